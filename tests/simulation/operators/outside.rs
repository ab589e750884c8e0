//! What is outside of the cluster: an entry for each site, and a record of what the processes do.
//!
//! Answers "did a process break a rule of its own, and what has it left behind?". It is shared by the processes of one world,
//! and survives their crashes. Invariants:
//! 1. A process works on a key once at a time; a crash ends its work.
//! 2. Once a request with a fencing number has come, those with a smaller one are refused, as a storage with fencing does.
//!
//! Read next: `operator.rs`, which calls it; `judge.rs`, which reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_informer::controller::Reason;
use actix_informer::events::RecorderFigures;
use actix_informer::prelude::*;
use tokio::time::Instant;

use super::site::Website;

#[derive(Debug, Clone)]
pub(crate) struct Outside {
    state: Arc<Mutex<State>>,
    /// When the time of its world was zero.
    start: Instant,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) entries: BTreeSet<String>,
    pub(crate) flights: BTreeSet<(String, ObjectKey)>,
    /// How many reconciles have begun since an event led to them.
    pub(crate) begun_by_events: u64,
    /// The longest reconcile of each process.
    longest: BTreeMap<String, Duration>,
    /// When which process said that it leads.
    pub(crate) leaders: Vec<(Duration, String)>,
    /// What must not happen, and has.
    pub(crate) broken: Vec<String>,
    /// The lives of processes that ended in order.
    pub(crate) lives: Vec<Life>,
    starts: u32,
    /// The greatest fencing number that has come.
    fence: Option<u64>,
}

/// What a process has measured from its start to its end.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    /// The name of the process, and which of its starts it was.
    pub(crate) instance: String,
    /// The longest reconcile.
    pub(crate) longest_reconcile: Duration,
    /// The longest time for which a key was held: a reconcile, and the wait for its writes.
    pub(crate) longest_hold: Duration,
    /// The events that it gave, and what became of them.
    pub(crate) events: Option<RecorderFigures>,
}

/// The work on one key; its end is the drop.
pub(crate) struct Flight {
    outside: Outside,
    flight: (String, ObjectKey),
    since: Duration,
}

impl Outside {
    /// What is outside of a world whose time is this now.
    pub(crate) fn new(now: Duration) -> Self {
        Self { state: Arc::default(), start: Instant::now() - now }
    }

    /// The time of the world, which is the same in all its processes.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// A process starts; gives the name of this start of it.
    pub(crate) fn start(&self, process: &str) -> String {
        let mut state = self.state();
        state.starts += 1;
        format!("{process}.{}", state.starts)
    }

    /// A process begins to work on a key.
    pub(crate) fn begin(&self, process: &str, request: &Request<Website>) -> Flight {
        let flight = (process.to_owned(), request.key().clone());
        let mut state = self.state();
        let is_by_event = request.causes().iter().any(|cause| matches!(cause, Reason::Event { .. }));
        state.begun_by_events += u64::from(is_by_event);
        if !state.flights.insert(flight.clone()) {
            state.broken.push(format!("worked on twice at once: {flight:?}"));
        }
        let (newest, fence) = (state.fence, request.fence());
        if state.is_stale(fence) {
            state.broken.push(format!("{flight:?} was begun in the term {fence:?}, after {newest:?}"));
        }
        Flight { outside: self.clone(), flight, since: self.now() }
    }

    /// The longest reconcile of a process.
    pub(crate) fn longest_reconcile(&self, process: &str) -> Duration {
        self.state().longest.get(process).copied().unwrap_or_default()
    }

    /// Makes the entry of a site.
    pub(crate) fn add(&self, name: &str, fence: Option<u64>) -> Result<(), &'static str> {
        let mut state = self.state();
        state.admit(fence)?;
        state.entries.insert(name.to_owned());
        Ok(())
    }

    /// Removes the entry of a site.
    pub(crate) fn remove(&self, name: &str, fence: Option<u64>) -> Result<(), &'static str> {
        let mut state = self.state();
        state.admit(fence)?;
        state.entries.remove(name);
        Ok(())
    }

    /// A site is gone. Its entry should have been removed before: only a replica that has just taken over, with a cache that
    /// was behind, may have made it again.
    pub(crate) fn forget(&self, name: &str, fence: Option<u64>) -> Result<(), &'static str> {
        let mut state = self.state();
        state.admit(fence)?;
        if state.entries.remove(name) && fence.is_none() {
            state.broken.push(format!("{name} is gone, and was not cleaned up"));
        }
        Ok(())
    }

    /// A process says that it leads.
    pub(crate) fn leads(&self, process: &str) {
        self.state().leaders.push((self.now(), process.to_owned()));
    }

    /// A life has ended in order.
    pub(crate) fn end(&self, life: Life) {
        self.state().lives.push(life);
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether a newer term has begun; if not, this one is the newest.
    fn is_stale(&mut self, fence: Option<u64>) -> bool {
        let is_stale = fence < self.fence;
        self.fence = self.fence.max(fence);
        is_stale
    }

    fn admit(&mut self, fence: Option<u64>) -> Result<(), &'static str> {
        if self.is_stale(fence) { Err("another replica leads by now") } else { Ok(()) }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let took = self.outside.now().saturating_sub(self.since);
        let mut state = self.outside.state();
        state.flights.remove(&self.flight);
        let longest = state.longest.entry(self.flight.0.clone()).or_default();
        *longest = took.max(*longest);
    }
}

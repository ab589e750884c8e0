//! What a client knows of its server's resources, shared by all its clones.
//!
//! Answers "is the server to be asked now, and by whom?" Invariants:
//! 1. One caller asks at a time. Those that wait for it take its answer, if it is new enough for their question, or its
//!    error.
//! 2. A caller that stops waiting leaves nothing behind: the next one asks.
//! 3. What is known is replaced as a whole, and never by an error.
//!
//! Read next: `policy.rs`, the decisions; `fetch.rs`, which asks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::error::DiscoveryError;
use super::model::{DiscoveredGroup, FailedGroupVersion, ServerResources};
use super::policy::{MissBudget, Origin};

/// What is known, and since when.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) resources: Arc<ServerResources>,
    pub(crate) origin: Origin,
}

/// An answer to `/api` or `/apis` with the ETag by which the server recognizes it.
#[derive(Debug, Clone)]
pub(crate) struct Tagged {
    pub(crate) etag: String,
    pub(crate) groups: Vec<DiscoveredGroup>,
    pub(crate) failed: Vec<FailedGroupVersion>,
}

/// The answers to `/api` and `/apis`, where the server has tagged them.
pub(crate) type Roots = [Option<Tagged>; 2];

/// How discovery of a client is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveryStatus {
    /// How often the server was asked for everything that it serves.
    pub refreshes: u64,
    /// The requests that were sent for that: two each time, and more where the server knows only the old form.
    pub requests: u64,
    /// How many of the requests were answered with 304: nothing has changed.
    pub unchanged: u64,
    /// How often asking failed.
    pub failures: u64,
    /// How often a name was not found in what was known, so that the server was asked again.
    pub misses: u64,
    /// How often the server was not asked again for such a name, because too many were not found shortly before.
    pub misses_held_back: u64,
    /// How often a cache on disk was used instead of the server.
    pub disk_hits: u64,
    /// How often a cache on disk could not be written.
    pub disk_failures: u64,
    /// Whether what is known came in the aggregated form.
    pub is_aggregated: bool,
    /// How many versions of groups could not be discovered the last time.
    pub failed: usize,
}

/// The shared state.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    turn: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    order: u64,
    known: Option<Known>,
    /// The last failure, with its place in the order: those that asked before it have waited for it.
    failed: Option<(u64, DiscoveryError)>,
    invalidated: Option<u64>,
    budget: MissBudget,
    roots: Roots,
    status: DiscoveryStatus,
}

/// What a question needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Question {
    /// Its place in the order.
    pub(crate) order: u64,
    /// Whether only an answer will do that was begun after it.
    pub(crate) newer: bool,
    pub(crate) ttl: Duration,
}

/// Who asks the server now, and what it may compare with.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) order: u64,
    pub(crate) at: Instant,
    pub(crate) roots: Roots,
    /// Whether a cache on disk may answer.
    pub(crate) may_read_disk: bool,
}

/// What follows for a question.
#[derive(Debug)]
pub(crate) enum Next {
    Use(Known),
    Fail(DiscoveryError),
    Ask(Begun),
    /// Too many names were not found: the server is asked again after this time.
    HoldBack(Duration, Known),
}

impl Memory {
    /// The place of a question that is asked now.
    pub(crate) fn question(&self) -> u64 {
        self.state().next()
    }

    /// What is known, if it answers the question.
    pub(crate) fn known(&self, question: Question) -> Option<Known> {
        self.state().known_for(question, Instant::now())
    }

    /// Waits until nobody else asks.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// What follows when it is this question's turn.
    pub(crate) fn next(&self, question: Question) -> Next {
        let now = Instant::now();
        let mut state = self.state();
        if let Some(known) = state.known_for(question, now) {
            return Next::Use(known);
        }
        if let Some((order, error)) = &state.failed
            && *order > question.order
        {
            return Next::Fail(error.clone());
        }
        if question.newer
            && let Some(known) = state.known.clone()
        {
            if let Err(wait) = state.budget.take(now) {
                state.status.misses_held_back += 1;
                return Next::HoldBack(wait, known);
            }
            state.status.misses += 1;
        }
        let may_read_disk = !question.newer && state.invalidated.is_none();
        Next::Ask(Begun { order: state.next(), at: now, roots: state.roots.clone(), may_read_disk })
    }

    /// Keeps an answer of the server.
    pub(crate) fn accept(&self, resources: ServerResources, roots: Roots, begun: &Begun) -> Known {
        let mut state = self.state();
        state.roots = roots;
        state.failed = None;
        state.accept(resources, (begun.order, Duration::ZERO), begun.at)
    }

    /// Keeps what a cache on disk had, which is of this age.
    pub(crate) fn accept_from_disk(&self, resources: ServerResources, now: Instant, age: Duration) -> Known {
        let mut state = self.state();
        state.status.disk_hits += 1;
        state.accept(resources, (0, age), now)
    }

    /// Keeps an error for those that wait for the same answer.
    pub(crate) fn fail(&self, error: DiscoveryError) -> DiscoveryError {
        let mut state = self.state();
        state.status.failures += 1;
        state.failed = Some((state.next(), error.clone()));
        error
    }

    /// What is known now does not answer any later question.
    pub(crate) fn invalidate(&self) {
        let mut state = self.state();
        state.invalidated = Some(state.next());
    }

    pub(crate) fn count(&self, add: impl FnOnce(&mut DiscoveryStatus)) {
        add(&mut self.state().status);
    }

    pub(crate) fn status(&self) -> DiscoveryStatus {
        self.state().status.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that runs under this lock can panic halfway through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    fn known_for(&self, question: Question, now: Instant) -> Option<Known> {
        let known = self.known.as_ref()?;
        let serves = known.origin.serves(self.invalidated, question.ttl, now);
        let is_new = !question.newer || known.origin.is_newer_than(question.order);
        (serves && is_new).then(|| known.clone())
    }

    fn accept(&mut self, resources: ServerResources, (order, age): (u64, Duration), at: Instant) -> Known {
        self.status.failed = resources.failed.len();
        let origin = Origin { order, at, age, is_incomplete: !resources.failed.is_empty() };
        let known = Known { resources: Arc::new(resources), origin };
        self.known = Some(known.clone());
        known
    }
}

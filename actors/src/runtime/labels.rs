//! Which actor or closure a thread runs now, for the watchdog: one number that each poll writes, and a table of
//! names. Actors count their turns (polls); the listeners of an informer count together.
//!
//! A poll writes only its label's number and takes no lock. A poll inside another shows its own label; then the outer
//! one shows again, also after a panic. A [`Labelled`] is never dropped during its own poll.
use crate::runtime::locked::locked;

use std::collections::BTreeSet;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::Clock;

/// The actors that [`ArbiterHealth::busiest`](super::ArbiterHealth::busiest) names.
const MOST_SHOWN: usize = 20;

/// The turns of an actor, or of a closure, on its thread. In one turn an actor handles the messages that wait, and a
/// few that come meanwhile; nothing else runs on the thread until it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActorTurns {
    /// Its name, as `informer/actor`.
    pub actor: String,
    /// How many turns it has had.
    pub turns: u64,
    /// The time of all turns.
    pub time: Duration,
    /// The longest turn.
    pub longest: Duration,
}

/// The name of an actor or closure on a thread. It shares existing texts and is formatted only when read.
#[derive(Debug)]
pub struct Label {
    /// The owner of the actor or closure: an informer's name.
    pub owner: Arc<str>,
    /// The child's name.
    pub name: Arc<str>,
    turns: Option<Arc<Turns>>,
    is_listener: bool,
}

/// Written by one thread alone.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    count: AtomicU64,
    nanos: AtomicU64,
    longest: AtomicU64,
}

impl Turns {
    fn note(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let add = |figure: &AtomicU64, more: u64| {
            figure.store(figure.load(Ordering::Relaxed).saturating_add(more), Ordering::Relaxed);
        };
        add(&self.count, 1);
        add(&self.nanos, took);
        if took > self.longest.load(Ordering::Relaxed) {
            self.longest.store(took, Ordering::Relaxed);
        }
    }
}

impl Label {
    /// An actor, or a task, that counts its turns.
    pub fn new(owner: Arc<str>, name: Arc<str>) -> Self {
        Self { owner, name, turns: Some(Arc::default()), is_listener: false }
    }

    pub(crate) fn listener(owner: Arc<str>, name: Arc<str>, turns: Arc<Turns>) -> Self {
        Self { owner, name, turns: Some(turns), is_listener: true }
    }

    /// Its calls are measured elsewhere.
    pub(crate) fn closure(owner: Arc<str>, name: Arc<str>) -> Self {
        Self { owner, name, turns: None, is_listener: false }
    }

    /// The name within its owner.
    pub(crate) fn child(&self) -> Arc<str> {
        if self.is_listener { format!("listener {}", self.name).into() } else { Arc::clone(&self.name) }
    }

    fn read(&self) -> Option<ActorTurns> {
        let Turns { count, nanos, longest } = &**self.turns.as_ref()?;
        let time = |figure: &AtomicU64| Duration::from_nanos(figure.load(Ordering::Relaxed));
        let actor = if self.is_listener { format!("{}/listeners", self.owner) } else { self.to_string() };
        let turns = count.load(Ordering::Relaxed);
        Some(ActorTurns { actor, turns, time: time(nanos), longest: time(longest) })
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_listener { "listener " } else { "" };
        write!(f, "{}/{kind}{}", self.owner, self.name)
    }
}

#[derive(Debug)]
pub(crate) struct Labels {
    clock: Clock,
    /// 0 while none is polled.
    running: AtomicU32,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    labels: Vec<Option<Arc<Label>>>,
    free: Vec<u32>,
}

impl Labels {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, running: AtomicU32::new(0), table: Mutex::default() }
    }

    pub(crate) fn add(self: &Arc<Self>, label: Arc<Label>) -> Labelled {
        let mut table = self.table();
        let number = table.free.pop().unwrap_or_else(|| {
            table.labels.push(None);
            u32::try_from(table.labels.len()).expect("a thread has fewer than four billion actors")
        });
        let turns = label.turns.clone();
        table.labels[number as usize - 1] = Some(label);
        Labelled { labels: Arc::clone(self), turns, number }
    }

    pub(super) fn running(&self) -> Option<String> {
        let table = self.table();
        // Read under the lock: the running label cannot be removed in between.
        let number = self.running.load(Ordering::Acquire);
        let label = table.labels.get((number as usize).checked_sub(1)?)?.as_ref();
        label.map(ToString::to_string)
    }

    /// Of those that still run. O(labels).
    pub(super) fn busiest(&self) -> Vec<ActorTurns> {
        let labels: Vec<Arc<Label>> = self.table().labels.iter().flatten().cloned().collect();
        let mut known = BTreeSet::new();
        let is_new =
            |label: &&Arc<Label>| label.turns.as_ref().is_some_and(|turns| known.insert(Arc::as_ptr(turns)));
        let mut busiest: Vec<_> = labels.iter().filter(is_new).filter_map(|label| label.read()).collect();
        busiest.sort_by(|one, other| other.time.cmp(&one.time).then_with(|| one.actor.cmp(&other.actor)));
        busiest.truncate(MOST_SHOWN);
        busiest
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        locked(&self.table)
    }
}

/// A label in the table of its thread, until dropped.
#[derive(Debug)]
pub struct Labelled {
    labels: Arc<Labels>,
    turns: Option<Arc<Turns>>,
    number: u32,
}

impl Labelled {
    pub(crate) fn enter(&self) -> Entered<'_> {
        let running = &self.labels.running;
        // Only this thread writes it.
        let outer = running.load(Ordering::Relaxed);
        running.store(self.number, Ordering::Release);
        let began = self.turns.as_ref().map_or(Duration::ZERO, |_| self.labels.clock.now());
        Entered { of: self, outer, began }
    }

    /// Polls `future` under the label.
    pub async fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let _entered = self.enter();
            future.as_mut().poll(cx)
        })
        .await
    }
}

impl Drop for Labelled {
    fn drop(&mut self) {
        let mut table = self.labels.table();
        table.labels[self.number as usize - 1] = None;
        table.free.push(self.number);
    }
}

pub(crate) struct Entered<'a> {
    of: &'a Labelled,
    outer: u32,
    began: Duration,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let Labelled { labels, turns, .. } = self.of;
        labels.running.store(self.outer, Ordering::Release);
        if let Some(turns) = turns {
            turns.note(labels.clock.now().saturating_sub(self.began));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use super::{Clock, Label, Labels};

    fn labels() -> Arc<Labels> {
        Arc::new(Labels::new(Clock::started_now()))
    }

    fn label(name: &str) -> Arc<Label> {
        Arc::new(Label::listener("pods".into(), name.into(), Arc::default()))
    }

    #[test]
    fn the_label_of_the_innermost_poll_is_shown_and_none_after_a_panic() {
        let labels = labels();
        let (outer, inner) = (labels.add(label("outer")), labels.add(label("inner")));
        assert_eq!(labels.running(), None);
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let _outer = outer.enter();
            {
                let _inner = inner.enter();
                assert_eq!(labels.running().as_deref(), Some("pods/listener inner"));
            }
            assert_eq!(labels.running().as_deref(), Some("pods/listener outer"));
            panic!("in a poll");
        }));
        assert!(polled.is_err());
        assert_eq!(labels.running(), None);
    }

    #[test]
    fn a_number_is_used_again_after_its_label_is_taken_out() {
        let labels = labels();
        for round in 0..1_000 {
            let (kept, one) = (labels.add(label("kept")), labels.add(label(&round.to_string())));
            let _entered = one.enter();
            assert_eq!(labels.running(), Some(format!("pods/listener {round}")));
            drop(kept);
        }
        assert_eq!(labels.table().labels.len(), 2);
    }
}

//! When to ask again for the objects that could not be read.
//!
//! Answers "which set-aside object is asked for by GET next, when, and does its answer still count?" for one source.
//! It sends nothing: the reflector's session asks, and hands what counts to the store, which looks again. Invariants:
//! 1. A key is asked for only while it is set aside: a good version, a deletion or a list without it ends that.
//! 2. Its first question comes 1 to 2 min after it was set aside, the next ones at gaps drawn from d to 2d, d doubling
//!    from 1 to 5 min: never sooner, also when ever newer versions of it cannot be read.
//! 3. One question is open at a time, and they begin at least [`SPACING`] apart, however many keys are due: a source
//!    of which nothing can be read is asked once a second. An answer older than what the watch has told by then, and one whose question
//!    was taken back by a list, do not count.
//!
//! Bounds: one entry for each set-aside key; a list is taken in by slices, since all of it may be set aside.
//! Read next: `indexer/parts.rs`, what a fetched object changes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::backoff::{Backoff, BackoffPolicy};
use crate::delta::{Replacement, SetAside, WatchPart};
use crate::meta::{Object, ObjectKey, ResourceVersion};
use crate::reflector::Moment;

/// The waits before each question for one key: 1 to 2 min, then up to 5 to 10 min.
const GAPS: BackoffPolicy = BackoffPolicy { base: Duration::from_secs(60), cap: Duration::from_secs(300) };

/// At least so long from question to question.
pub const SPACING: Duration = Duration::from_secs(1);

/// Spreads keys that were set aside in one moment: the part of a gap by which neighbours differ.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;

/// The set-aside objects of one source, and when each is asked for.
///
/// ```
/// use informer_core::delta::{SetAside, WatchPart};
/// use informer_core::reflector::Moment;
/// use informer_core::repair::RepairSchedule;
/// use std::time::Duration;
/// let mut schedule = RepairSchedule::new();
/// let version = "7".parse().expect("a version");
/// let aside = SetAside { key: "a/x".parse().expect("a key"), version, error: "no such field".into() };
/// let at = |seconds| Moment { now: Duration::from_secs(seconds), chance: 0.0 };
/// schedule.observe_parts(&[WatchPart::<String>::SetAside(aside)], at(0));
/// assert_eq!(schedule.poll_timeout(), Some(Duration::from_secs(60)));
/// assert_eq!(schedule.handle_timeout(at(60)).map(|key| key.to_string()), Some("a/x".to_owned()));
/// ```
#[derive(Debug, Default)]
pub struct RepairSchedule {
    keys: BTreeMap<ObjectKey, Broken>,
    /// The keys in the order in which they are due, but for the one that is being asked for.
    turns: BTreeSet<(Duration, ObjectKey)>,
    asked: Option<ObjectKey>,
    /// No question before this.
    pause_until: Duration,
    /// Moves the chance on from key to key.
    draws: u32,
    /// The list that is being taken in.
    intake: Option<Intake>,
}

/// A list on its way in: what was set aside before it, and how much of it has been taken in.
#[derive(Debug)]
struct Intake {
    before: BTreeMap<ObjectKey, Broken>,
    turns: BTreeSet<(Duration, ObjectKey)>,
    taken: usize,
}

/// One set-aside key.
#[derive(Debug)]
struct Broken {
    /// Its newest version that could not be read.
    version: ResourceVersion,
    due: Duration,
    gaps: Backoff,
}

impl RepairSchedule {
    /// Nothing is set aside.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many keys are set aside.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether nothing is set aside.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// These parts have been told by the watch, in this order.
    pub fn observe_parts<S>(&mut self, parts: &[WatchPart<S>], at: Moment) {
        for part in parts {
            match part {
                WatchPart::SetAside(aside) => self.set_aside(aside, at),
                _ if self.keys.is_empty() => {}
                WatchPart::Applied(object) | WatchPart::Deleted(object) | WatchPart::Fetched(object) => {
                    self.settle(object.key(), object.version());
                }
                WatchPart::DeletedUnread(aside) => self.settle(&aside.key, &aside.version),
                WatchPart::Bookmark { .. } => {}
            }
        }
    }

    /// This whole list replaces all that was told before: only what it sets aside is. Keys that were set aside
    /// already keep their turn; a question still open is taken back, and to be dropped.
    ///
    /// Takes in, or forgets, at most `budget` keys (at least one); to be called with the same list until it gives
    /// true, before anything else is told or asked.
    pub fn observe_replace<S>(&mut self, replacement: &Replacement<S>, budget: usize, at: Moment) -> bool {
        let mut intake = self.intake.take().unwrap_or_else(|| {
            self.postpone_asked(at);
            let (before, turns) = (std::mem::take(&mut self.keys), std::mem::take(&mut self.turns));
            Intake { before, turns, taken: 0 }
        });
        for _ in 0..budget.max(1) {
            if let Some(aside) = replacement.set_aside.get(intake.taken) {
                intake.taken += 1;
                self.set_aside_again(intake.before.remove(&aside.key), aside, at);
            } else if intake.before.pop_first().is_none() && intake.turns.pop_first().is_none() {
                return true;
            }
        }
        self.intake = Some(intake);
        false
    }

    /// When `handle_timeout` is due; `None` while a question is open or nothing is set aside.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let (due, _) = self.turns.first()?;
        self.asked.is_none().then_some((*due).max(self.pause_until))
    }

    /// The key to ask for now, if one is due and no question is open.
    pub fn handle_timeout(&mut self, at: Moment) -> Option<ObjectKey> {
        self.poll_timeout().filter(|due| *due <= at.now)?;
        let (_, key) = self.turns.pop_first()?;
        self.asked = Some(key.clone());
        self.pause_until = at.now.saturating_add(SPACING);
        Some(key)
    }

    /// The answer to the open question: the object if it counts. `None` in it says that there is nothing, or nothing
    /// readable: that is asked again, since only the watch or a list can tell that the object is gone.
    pub fn handle_answer<S>(&mut self, found: Option<Object<S>>, at: Moment) -> Option<Object<S>> {
        let key = self.asked.clone()?;
        let counts = |object: &Object<S>| {
            let broken = self.keys.get(object.key());
            *object.key() == key && broken.is_some_and(|broken| broken.version <= *object.version())
        };
        let good = found.filter(counts);
        if good.is_some() {
            self.forget(&key);
        }
        self.postpone_asked(at);
        good
    }

    fn set_aside(&mut self, aside: &SetAside, at: Moment) {
        if let Some(known) = self.keys.get_mut(&aside.key) {
            if known.version < aside.version {
                known.version = aside.version.clone();
            }
            return;
        }
        let mut gaps = Backoff::new(GAPS);
        let due = at.now.saturating_add(gaps.next_wait(self.draw(at)));
        self.turns.insert((due, aside.key.clone()));
        self.keys.insert(aside.key.clone(), Broken { version: aside.version.clone(), due, gaps });
    }

    /// A list sets this key aside; `known` is what was noted of it before.
    fn set_aside_again(&mut self, known: Option<Broken>, aside: &SetAside, at: Moment) {
        let Some(known) = known else { return self.set_aside(aside, at) };
        self.turns.insert((known.due, aside.key.clone()));
        self.keys.insert(aside.key.clone(), Broken { version: aside.version.clone(), ..known });
    }

    fn settle(&mut self, key: &ObjectKey, version: &ResourceVersion) {
        if self.keys.get(key).is_some_and(|broken| broken.version <= *version) {
            self.forget(key);
        }
    }

    fn forget(&mut self, key: &ObjectKey) {
        if let Some(broken) = self.keys.remove(key) {
            self.turns.remove(&(broken.due, key.clone()));
        }
    }

    /// The question is closed; if its key is still set aside, its next turn comes after the next gap.
    fn postpone_asked(&mut self, at: Moment) {
        let Some(key) = self.asked.take() else { return };
        let chance = self.draw(at);
        if let Some(broken) = self.keys.get_mut(&key) {
            broken.due = at.now.saturating_add(broken.gaps.next_wait(chance));
            self.turns.insert((broken.due, key));
        }
    }

    /// A chance that differs from draw to draw also within one moment.
    fn draw(&mut self, at: Moment) -> f64 {
        self.draws = self.draws.wrapping_add(1);
        (at.chance + f64::from(self.draws - 1) * GOLDEN_RATIO).fract()
    }
}

#[cfg(test)]
mod tests;

//! The schedule of GETs for undecodable objects of one source. Invariants:
//! 1. A key is requested only until a version that decodes, a deletion, or a list without it.
//! 2. The first GET comes 1 to 2 min after the key became undecodable. Later gaps are from d to 2d, where d doubles
//!    from 1 to 5 min.
//! 3. An answer does not count if it is older than what the watch has brought, or if a list came since.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::backoff::{Backoff, BackoffPolicy};
use crate::delta::{Replacement, Undecodable, WatchPart};
use crate::meta::{Object, ObjectKey, ResourceVersion};
use crate::reflector::Moment;

const GAPS: BackoffPolicy = BackoffPolicy { base: Duration::from_secs(60), cap: Duration::from_secs(300) };

/// The least time from the start of one GET to the start of the next.
pub const SPACING: Duration = Duration::from_secs(1);

/// Spreads keys that became undecodable at the same time.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;

/// The undecodable objects of one source, and when each is requested.
///
/// ```
/// # use informer_core::delta::{Undecodable, WatchPart};
/// # use informer_core::reflector::Moment;
/// # use informer_core::repair::RepairSchedule;
/// use std::time::Duration;
/// let mut schedule = RepairSchedule::new();
/// let version = "7".parse().expect("a version");
/// let undecodable = Undecodable { key: "a/x".parse().expect("a key"), version, error: "no such field".into() };
/// let at = |seconds| Moment { now: Duration::from_secs(seconds), chance: 0.0 };
/// schedule.observe_parts(&[WatchPart::<String>::Undecodable(undecodable)], at(0));
/// assert_eq!(schedule.poll_timeout(), Some(Duration::from_secs(60)));
/// assert_eq!(schedule.handle_timeout(at(60)).map(|key| key.to_string()), Some("a/x".to_owned()));
/// ```
#[derive(Debug, Default)]
pub struct RepairSchedule {
    keys: BTreeMap<ObjectKey, Broken>,
    /// By due time, without the key of the open GET.
    turns: BTreeSet<(Duration, ObjectKey)>,
    asked: Option<ObjectKey>,
    pause_until: Duration,
    /// Gives each key another random number.
    draws: u32,
    intake: Option<Intake>,
}

#[derive(Debug)]
struct Intake {
    before: BTreeMap<ObjectKey, Broken>,
    turns: BTreeSet<(Duration, ObjectKey)>,
    taken: usize,
}

#[derive(Debug)]
struct Broken {
    version: ResourceVersion,
    due: Duration,
    gaps: Backoff,
}

impl RepairSchedule {
    /// Nothing is undecodable.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many keys are undecodable.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether nothing is undecodable.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The watch has brought these parts, in this order.
    pub fn observe_parts<S>(&mut self, parts: &[WatchPart<S>], at: Moment) {
        for part in parts {
            match part {
                WatchPart::Undecodable(undecodable) => self.observe_undecodable(undecodable, at),
                _ if self.keys.is_empty() => {}
                WatchPart::Applied(object) | WatchPart::Deleted(object) | WatchPart::Fetched(object) => {
                    self.settle(object.key(), object.version());
                }
                WatchPart::DeletedUndecodable(undecodable) => {
                    self.settle(&undecodable.key, &undecodable.version)
                }
                // A GET would bring the same body.
                WatchPart::LateUndecodable(_) | WatchPart::Bookmark { .. } => {}
            }
        }
    }

    /// This list replaces all that was known before: only its undecodable keys are kept. Keys that were
    /// undecodable before keep their due time. A GET that is still open is cancelled: the caller drops it.
    ///
    /// Processes at most `budget` keys (at least one). Call it with the same list until it returns true,
    /// before any other method.
    pub fn observe_replace<S>(&mut self, replacement: &Replacement<S>, budget: usize, at: Moment) -> bool {
        let mut intake = self.intake.take().unwrap_or_else(|| {
            self.postpone_asked(at);
            let (before, turns) = (std::mem::take(&mut self.keys), std::mem::take(&mut self.turns));
            Intake { before, turns, taken: 0 }
        });
        for _ in 0..budget.max(1) {
            if let Some(undecodable) = replacement.undecodable.get(intake.taken) {
                intake.taken += 1;
                self.observe_again(intake.before.remove(&undecodable.key), undecodable, at);
            } else if intake.before.pop_first().is_none() && intake.turns.pop_first().is_none() {
                return true;
            }
        }
        self.intake = Some(intake);
        false
    }

    /// When `handle_timeout` is due; `None` while a GET is open or nothing is undecodable.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let (due, _) = self.turns.first()?;
        self.asked.is_none().then_some((*due).max(self.pause_until))
    }

    /// The key to request now, if one is due and no GET is open.
    pub fn handle_timeout(&mut self, at: Moment) -> Option<ObjectKey> {
        self.poll_timeout().filter(|due| *due <= at.now)?;
        let (_, key) = self.turns.pop_first()?;
        self.asked = Some(key.clone());
        self.pause_until = at.now.saturating_add(SPACING);
        Some(key)
    }

    /// The answer to the open GET; returns the object if it counts. `found` is `None` if there is no such
    /// object, or if it cannot be decoded: the key is requested again, since only the watch or a list proves
    /// that it is gone.
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

    fn observe_undecodable(&mut self, undecodable: &Undecodable, at: Moment) {
        if let Some(known) = self.keys.get_mut(&undecodable.key) {
            if known.version < undecodable.version {
                known.version = undecodable.version.clone();
            }
            return;
        }
        let mut gaps = Backoff::new(GAPS);
        let due = at.now.saturating_add(gaps.next_wait(self.draw(at)));
        self.turns.insert((due, undecodable.key.clone()));
        self.keys.insert(undecodable.key.clone(), Broken { version: undecodable.version.clone(), due, gaps });
    }

    /// `known` is the key's entry from before the list.
    fn observe_again(&mut self, known: Option<Broken>, undecodable: &Undecodable, at: Moment) {
        let Some(known) = known else { return self.observe_undecodable(undecodable, at) };
        self.turns.insert((known.due, undecodable.key.clone()));
        self.keys.insert(undecodable.key.clone(), Broken { version: undecodable.version.clone(), ..known });
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

    fn postpone_asked(&mut self, at: Moment) {
        let Some(key) = self.asked.take() else { return };
        let chance = self.draw(at);
        if let Some(broken) = self.keys.get_mut(&key) {
            broken.due = at.now.saturating_add(broken.gaps.next_wait(chance));
            self.turns.insert((broken.due, key));
        }
    }

    fn draw(&mut self, at: Moment) -> f64 {
        self.draws = self.draws.wrapping_add(1);
        (at.chance + f64::from(self.draws - 1) * GOLDEN_RATIO).fract()
    }
}

#[cfg(test)]
mod tests;

//! Which changes leave marks, and which marks are kept.
//!
//! 1. Whether a change leaves marks depends on its version alone, or on its key if somebody asked for that:
//!    so every place decides alike, without a word between them.
//! 2. A place keeps the newest marks only; a path says that older ones are gone.
//! 3. Marks of one time stay in the order in which they were made.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::{Hop, Mark, Path};
use crate::meta::{ObjectKey, ResourceVersion};

/// A change that takes longer from its first mark until it is handled is slow.
pub const SLOW: Duration = Duration::from_secs(1);
/// How often an informer tells of a slow change.
pub const SLOW_EVERY: Duration = Duration::from_secs(600);
/// Informers and controllers with marks.
const MOST_PLACES: usize = 1_000;
/// Of each informer and each controller.
pub const MOST_MARKS: usize = 4_096;
/// Keys that may be followed at once.
pub const MOST_KEYS: usize = 64;
/// Keys in queues whose marks are awaited.
const MOST_WORK: usize = 4_096;

/// Which changes leave marks: a number, so that the places can read it without a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "known to our own crates alone")]
pub struct Choice(pub u64);

const SAMPLES: u64 = 1;
const KEYS: u64 = 2;

impl Choice {
    /// None.
    pub const NOTHING: Self = Self(0);

    /// One of so many changes, rounded up to a power of two; 1: all; 0: none.
    #[must_use]
    pub fn sampling(self, one_of: u32) -> Self {
        let keys = self.0 & KEYS;
        match u64::from(one_of).next_power_of_two() {
            _ if one_of == 0 => Self(keys),
            power => Self(keys | SAMPLES | ((power - 1) << 8)),
        }
    }

    /// Whether some keys are followed.
    #[must_use]
    pub fn with_keys(self, are_there: bool) -> Self {
        Self((self.0 & !KEYS) | if are_there { KEYS } else { 0 })
    }

    /// Whether any change can leave a mark.
    pub const fn is_on(self) -> bool {
        self.0 != 0
    }

    /// Whether every change leaves marks.
    pub const fn is_all(self) -> bool {
        self.0 & SAMPLES != 0 && self.0 >> 8 == 0
    }

    /// Whether the keys that are followed have to be looked up.
    pub const fn has_keys(self) -> bool {
        self.0 & KEYS != 0
    }

    /// Whether a change of this version leaves marks, whatever its key is.
    pub fn samples(self, version: &ResourceVersion) -> bool {
        self.0 & SAMPLES != 0 && version.low_bits() & (self.0 >> 8) == 0
    }
}

/// The newest marks of each place.
#[derive(Debug, Default)]
pub struct Marks {
    places: BTreeMap<Arc<str>, Place>,
    noted: u64,
    keys: BTreeSet<ObjectKey>,
    /// Keys of queues, by controller, that a change with marks has added.
    work: BTreeSet<(Arc<str>, ObjectKey)>,
    /// The same, the oldest first: it is forgotten for a new one.
    work_order: VecDeque<(Arc<str>, ObjectKey)>,
    /// By informer and subscription, what was delivered and is not handled.
    delivered: BTreeMap<(Arc<str>, Arc<str>), Vec<Mark>>,
}

#[derive(Debug, Default)]
struct Place {
    /// When the newest change of a key left its first mark.
    first: BTreeMap<ObjectKey, (Option<ResourceVersion>, Duration)>,
    /// When a slow path was told last.
    slow_since: Option<Duration>,
    marks: VecDeque<(u64, Mark)>,
    is_cut: bool,
}

impl Place {
    fn begin(&mut self, mark: &Mark) {
        if self.first.get(&mark.key).is_some_and(|(version, _)| *version == mark.version) {
            return;
        }
        if self.first.len() >= MOST_MARKS {
            self.first.clear();
        }
        self.first.insert(mark.key.clone(), (mark.version.clone(), mark.at));
    }

    /// How long it is since the first mark of this change.
    fn took(&self, last: &Mark) -> Duration {
        let first = self.first.get(&last.key).filter(|(version, _)| *version == last.version);
        first.map_or(Duration::ZERO, |(_, at)| last.at.saturating_sub(*at))
    }
}

impl Marks {
    /// False if [`MOST_KEYS`] are followed already.
    pub fn follow(&mut self, key: &ObjectKey) -> bool {
        let is_room = self.keys.len() < MOST_KEYS || self.keys.contains(key);
        if is_room {
            self.keys.insert(key.clone());
        }
        is_room
    }

    /// Returns whether other keys are followed.
    pub fn unfollow(&mut self, key: &ObjectKey) -> bool {
        self.keys.remove(key);
        !self.keys.is_empty()
    }

    /// Whether this key is followed.
    pub fn follows(&self, key: &ObjectKey) -> bool {
        self.keys.contains(key)
    }

    /// Notes a mark. One of an added key is followed in its queue until its reconcile has ended.
    pub fn note(&mut self, mark: Mark) {
        match mark.hop {
            Hop::KeyAdded => self.begin_work(&mark),
            Hop::Delivered => {
                let by = mark.by.clone().unwrap_or_default();
                let delivered = self.delivered.entry((Arc::clone(&mark.place), by)).or_default();
                if delivered.len() < MOST_WORK {
                    delivered.push(mark.clone());
                }
            }
            Hop::Seen => drop(self.work.remove(&(Arc::clone(&mark.place), mark.key.clone()))),
            _ => {}
        }
        // A write is reported once for each type of cache.
        let is_same = |(_, last): &(u64, Mark)| *last == mark.clone().at(last.at);
        let last = self.places.get(&mark.place).and_then(|place| place.marks.back());
        let is_new_place = !self.places.contains_key(&mark.place);
        if (mark.hop == Hop::Written && last.is_some_and(is_same))
            || (is_new_place && self.places.len() >= MOST_PLACES)
        {
            return;
        }
        self.noted += 1;
        let place = self.places.entry(Arc::clone(&mark.place)).or_default();
        place.begin(&mark);
        if place.marks.len() >= MOST_MARKS {
            place.marks.pop_front();
            place.is_cut = true;
        }
        place.marks.push_back((self.noted, mark));
    }

    fn begin_work(&mut self, mark: &Mark) {
        let work = (Arc::clone(&mark.place), mark.key.clone());
        if self.work.insert(work.clone()) {
            self.work_order.push_back(work);
        }
        while self.work_order.len() > MOST_WORK {
            let Some(oldest) = self.work_order.pop_front() else { break };
            self.work.remove(&oldest);
        }
    }

    /// The subscriber receives nothing more.
    pub fn forget_subscription(&mut self, place: &Arc<str>, subscription: &Arc<str>) {
        self.delivered.remove(&(Arc::clone(place), Arc::clone(subscription)));
    }

    /// The subscriber has handled what was delivered to it. Returns the path of the slowest of these changes
    /// if it took longer than [`SLOW`], at most once in [`SLOW_EVERY`] for each informer.
    pub fn handled(&mut self, at: Duration, place: &Arc<str>, subscription: &Arc<str>) -> Option<Path> {
        let delivered = self.delivered.remove(&(Arc::clone(place), Arc::clone(subscription)))?;
        let mut slowest: Option<(Duration, Mark)> = None;
        for mark in delivered {
            let handled = Mark { at, hop: Hop::Handled, ..mark };
            // What is not live was published long ago: a resync, or the first events of a late subscriber.
            let took = self.places.get(place).filter(|_| handled.is_live);
            let took = took.map_or(Duration::ZERO, |place| place.took(&handled));
            if took > SLOW && slowest.as_ref().is_none_or(|(longest, _)| took > *longest) {
                slowest = Some((took, handled.clone()));
            }
            self.note(handled);
        }
        let (_, slowest) = slowest?;
        let place = self.places.get_mut(place)?;
        if place.slow_since.is_some_and(|last| at.saturating_sub(last) < SLOW_EVERY) {
            return None;
        }
        place.slow_since = Some(at);
        Some(self.of_change(&slowest))
    }

    /// The marks of the change of this mark in its informer, and this one.
    fn of_change(&self, last: &Mark) -> Path {
        let is_of = |mark: &Mark| mark.key == last.key && mark.version == last.version;
        let own = |mark: &Mark| mark.hop != Hop::Delivered || mark.by == last.by;
        let mut path = self.path(|mark| mark.place == last.place && is_of(mark) && own(mark));
        path.marks.retain(|mark| mark.hop != Hop::Handled);
        path.marks.push(last.clone());
        path
    }

    /// The keys that are followed.
    pub fn followed(&self) -> impl Iterator<Item = &ObjectKey> {
        self.keys.iter()
    }

    /// Whether a change with marks has added this key to the queue of this controller.
    pub fn has_work(&self, controller: &Arc<str>, key: &ObjectKey) -> bool {
        self.work.contains(&(Arc::clone(controller), key.clone()))
    }

    /// Forgets a place that has ended.
    pub fn forget(&mut self, place: &Arc<str>) {
        self.places.remove(place);
        self.work.retain(|(controller, _)| controller != place);
        self.work_order.retain(|(controller, _)| controller != place);
        self.delivered.retain(|(informer, _), _| informer != place);
    }

    /// The marks of this object, and those that name it.
    pub fn of(&self, key: &ObjectKey) -> Path {
        self.path(|mark| mark.key == *key || mark.other.as_ref() == Some(key))
    }

    /// All marks.
    pub fn all(&self) -> Path {
        self.path(|_| true)
    }

    fn path(&self, is_of: impl Fn(&Mark) -> bool) -> Path {
        let mut marks: Vec<_> = self
            .places
            .values()
            .flat_map(|place| &place.marks)
            .filter(|(_, mark)| is_of(mark))
            .map(|(number, mark)| (mark.at, *number, mark))
            .collect();
        marks.sort_unstable_by_key(|(at, number, _)| (*at, *number));
        Path {
            marks: marks.into_iter().map(|(_, _, mark)| mark.clone()).collect(),
            is_cut: self.places.values().any(|place| place.is_cut),
        }
    }
}

#[cfg(test)]
mod tests;

//! Which changes leave marks, and which marks are kept.
//!
//! 1. Whether a change leaves marks depends on its version alone, or on its key if somebody asked for that: so all
//!    places decide alike.
//! 2. A place keeps the newest marks only; a path says that older ones are gone.
//! 3. Marks of one time stay in the order in which they were made.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use self::changes::Changes;
use super::{Hop, Mark, Path};
use crate::meta::{ObjectKey, ResourceVersion, SourceId};

mod changes;

/// A change that takes longer from its first mark until it is handled is slow.
pub const SLOW: Duration = Duration::from_secs(1);
/// How often an informer tells of a slow change.
pub const SLOW_EVERY: Duration = Duration::from_secs(600);
/// Informers and controllers with marks.
const MOST_PLACES: usize = 1_000;
/// Of each controller, and deliveries of each informer.
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

/// What changes of an informer have done.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_enums, reason = "known to our own crates alone")]
pub enum Passage<'a> {
    /// They have come from a source, which may say when it read and cut their bytes.
    Arrived {
        /// The source.
        source: &'a SourceId,
        /// When they were read.
        read: Option<Duration>,
        /// When they were cut into events.
        scanned: Option<Duration>,
    },
    /// They have passed this hop: one from [`Hop::Queued`] to [`Hop::Distributed`].
    Passed(Hop),
    /// They are with this subscription.
    Delivered(&'a Arc<str>),
}

/// The newest marks of each place.
#[derive(Debug, Default)]
pub struct Marks {
    informers: BTreeMap<Arc<str>, Changes>,
    controllers: BTreeMap<Arc<str>, Work>,
    noted: u64,
    keys: BTreeSet<ObjectKey>,
    /// Keys of queues, by controller, that a change with marks has added.
    work: BTreeSet<(Arc<str>, ObjectKey)>,
    /// The same, oldest first: it is forgotten for a new one.
    work_order: VecDeque<(Arc<str>, ObjectKey)>,
}

#[derive(Debug, Default)]
struct Work {
    marks: VecDeque<(u64, Mark)>,
    is_cut: bool,
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

    /// The keys that are followed.
    pub fn followed(&self) -> impl Iterator<Item = &ObjectKey> {
        self.keys.iter()
    }

    /// These changes of this informer have made a step; each says whether it is live. Those that are chosen
    /// leave a mark.
    pub fn pass<'a>(
        &mut self,
        choice: Choice,
        informer: &Arc<str>,
        (step, at): (Passage<'_>, Duration),
        changes: impl Iterator<Item = (&'a ObjectKey, &'a ResourceVersion, bool)>,
    ) {
        let Self { informers, noted, keys, .. } = self;
        if !informers.contains_key(informer) {
            if informers.len() >= MOST_PLACES {
                return;
            }
            informers.insert(Arc::clone(informer), Changes::default());
        }
        let Some(ring) = informers.get_mut(informer) else { return };
        let is_chosen = |key: &ObjectKey, version: &ResourceVersion| {
            choice.samples(version) || (choice.has_keys() && keys.contains(key))
        };
        let changes = changes.filter(|(key, version, _)| is_chosen(key, version));
        ring.pass(noted, step, at, changes);
    }

    /// The subscriber has handled what was delivered to it. Returns the path of the slowest of these changes
    /// if it took longer than [`SLOW`], at most once in [`SLOW_EVERY`] for each informer.
    pub fn handled(&mut self, at: Duration, informer: &Arc<str>, subscription: &Arc<str>) -> Option<Path> {
        let ring = self.informers.get_mut(informer)?;
        let marks = ring.handled(&mut self.noted, at, informer, subscription)?;
        Some(Path::of(marks, ring.is_cut))
    }

    /// The subscriber receives nothing more.
    pub fn forget_subscription(&mut self, informer: &Arc<str>, subscription: &Arc<str>) {
        self.informers.get_mut(informer).into_iter().for_each(|ring| ring.forget_subscription(subscription));
    }

    /// Notes a mark of a controller. An added key is followed in its queue until its reconcile has ended.
    pub fn note(&mut self, mark: Mark) {
        match mark.hop {
            Hop::KeyAdded => self.begin_work(&mark),
            Hop::Seen => drop(self.work.remove(&(Arc::clone(&mark.place), mark.key.clone()))),
            _ => {}
        }
        // A write is reported once for each type of cache.
        let is_same = |(_, last): &(u64, Mark)| *last == mark.clone().at(last.at);
        let last = self.controllers.get(&mark.place).and_then(|work| work.marks.back());
        let is_new = !self.controllers.contains_key(&mark.place);
        if (mark.hop == Hop::Written && last.is_some_and(is_same))
            || (is_new && self.controllers.len() >= MOST_PLACES)
        {
            return;
        }
        self.noted += 1;
        let work = self.controllers.entry(Arc::clone(&mark.place)).or_default();
        if work.marks.len() >= MOST_MARKS {
            work.marks.pop_front();
            work.is_cut = true;
        }
        work.marks.push_back((self.noted, mark));
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

    /// Whether a change with marks has added this key to the queue of this controller.
    pub fn has_work(&self, controller: &Arc<str>, key: &ObjectKey) -> bool {
        self.work.contains(&(Arc::clone(controller), key.clone()))
    }

    /// Forgets an informer that has ended.
    pub fn forget_informer(&mut self, informer: &Arc<str>) {
        self.informers.remove(informer);
    }

    /// Forgets a controller that has ended.
    pub fn forget_controller(&mut self, controller: &Arc<str>) {
        self.controllers.remove(controller);
        self.work.retain(|(of, _)| of != controller);
        self.work_order.retain(|(of, _)| of != controller);
    }

    /// The marks of this object, and those that name it.
    pub fn of(&self, key: &ObjectKey) -> Path {
        self.path(|one, other| one == key || other == Some(key))
    }

    /// All marks.
    pub fn all(&self) -> Path {
        self.path(|_, _| true)
    }

    fn path(&self, is_of: impl Fn(&ObjectKey, Option<&ObjectKey>) -> bool) -> Path {
        let mut marks = Vec::new();
        for (name, ring) in &self.informers {
            ring.marks(name, |key| is_of(key, None), &mut marks);
        }
        let of_work = self.controllers.values().flat_map(|work| &work.marks);
        marks.extend(of_work.filter(|(_, mark)| is_of(&mark.key, mark.other.as_ref())).cloned());
        let is_cut = self.informers.values().any(|ring| ring.is_cut)
            || self.controllers.values().any(|work| work.is_cut);
        Path::of(marks, is_cut)
    }
}

#[cfg(test)]
mod tests;

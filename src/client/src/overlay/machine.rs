//! The results of our own writes, laid over a cache until the watch has brought them.
//!
//! 1. A written object is shown until its source has reached its version, or the cache has a state of its key
//!    that is at least as new. Nothing is resurrected: deletions by others and new lives have such versions.
//! 2. A deleted life is hidden until the key is absent or has a newer life.
//! 3. Versions are compared only within one key, and with the sources that may follow it: all are of one
//!    resource of one cluster.
//! 4. At the limit, a further entry is refused: an earlier write never vanishes for a later one.
//! 5. An entry also ends after its time, or when its source is rewound or removed.

use std::collections::BTreeMap;
use std::time::Duration;

use informer_core::meta::{Meta, Object, ObjectKey, SourceId};
use informer_core::snapshot::Snapshot;

pub use overlaid::{Overlaid, Shown};

use entry::{Entry, Look, State};

mod entry;
mod overlaid;

/// The limits of an overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverlayLimits {
    /// The maximum number of keys.
    pub entries: usize,
    /// How long an answer is shown at most if its source does not reach it. `Duration::MAX` means no limit.
    pub age: Duration,
}

impl OverlayLimits {
    /// Limits other than the default of 1,000 keys for five minutes. A source that works reaches each version
    /// sooner: by an event, a bookmark (each minute) or a renewed watch (90 s).
    pub const fn new(entries: usize, age: Duration) -> Self {
        Self { entries, age }
    }
}

impl Default for OverlayLimits {
    fn default() -> Self {
        Self::new(1_000, Duration::from_secs(300))
    }
}

/// What became of the answers that were laid over a cache. Counters only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverlayCounters {
    /// Answers that are or were shown.
    pub laid: u64,
    /// Of these: the cache has them, or something newer.
    pub reached: u64,
    /// Of these: replaced by a later write of our own.
    pub replaced: u64,
    /// Of these: their time was over first. The cache may then show an older state again.
    pub expired: u64,
    /// Of these: their source was rewound or removed.
    pub rewound: u64,
    /// Answers that the cache already had, or that were older than a shown one.
    pub outdated: u64,
    /// Answers that were refused because of the limit.
    pub refused: u64,
}

impl OverlayCounters {
    fn holds<S>(
        &mut self,
        key: &ObjectKey,
        entry: &mut Entry<S>,
        cache: &Snapshot<S>,
        now: Duration,
    ) -> bool {
        let counter = match entry.look(key, cache) {
            Look::Reached => &mut self.reached,
            Look::Rewound => &mut self.rewound,
            Look::Holds if entry.is_over(now) => &mut self.expired,
            Look::Holds => return true,
        };
        *counter += 1;
        false
    }
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Laid {
    /// Readers see it.
    Shown,
    /// The cache, or a later answer, is at least as new: there is nothing to show.
    Outdated,
}

/// An answer is not shown: the limit of keys is reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} is not laid over the cache: {entries} other keys are, which is the limit")]
#[non_exhaustive]
pub struct OverlayFull {
    /// The key of the answer.
    pub key: ObjectKey,
    /// The limit.
    pub entries: usize,
}

pub(crate) struct Overlay<S> {
    entries: BTreeMap<ObjectKey, Entry<S>>,
    limits: OverlayLimits,
    counters: OverlayCounters,
    /// Removed by the last call.
    ended: Vec<State<S>>,
}

impl<S> Overlay<S> {
    pub(crate) fn new(limits: OverlayLimits) -> Self {
        Self { entries: BTreeMap::new(), limits, counters: OverlayCounters::default(), ended: Vec::new() }
    }

    /// `followed_by`: the sources that may follow the key; at least one.
    pub(crate) fn handle_written(
        &mut self,
        cache: &Snapshot<S>,
        object: Object<S>,
        followed_by: &[SourceId],
        now: Duration,
    ) -> Result<Laid, OverlayFull> {
        let key = object.key().clone();
        self.handle(cache, key, Entry::new(State::Written(object), followed_by, self.until(now)), now)
    }

    /// Our write took this object out of the informer's selection: hidden until the sources have reached this
    /// version.
    pub(crate) fn handle_left(
        &mut self,
        cache: &Snapshot<S>,
        object: &Meta,
        followed_by: &[SourceId],
        now: Duration,
    ) -> Result<Laid, OverlayFull> {
        let left = State::Left(object.version.clone(), object.uid.clone());
        self.handle(cache, object.key.clone(), Entry::new(left, followed_by, self.until(now)), now)
    }

    /// `last`: with the newest known version of that life.
    pub(crate) fn handle_deleted(
        &mut self,
        cache: &Snapshot<S>,
        last: &Meta,
        followed_by: &[SourceId],
        now: Duration,
    ) -> Result<Laid, OverlayFull> {
        let cached = cache.get(&last.key).filter(|object| object.object_uid() == last.uid.as_ref());
        let newest = cached.map(Object::version).max(Some(&last.version)).unwrap_or(&last.version).clone();
        let deleted = State::Deleted(newest, last.uid.clone());
        self.handle(cache, last.key.clone(), Entry::new(deleted, followed_by, self.until(now)), now)
    }

    fn handle(
        &mut self,
        cache: &Snapshot<S>,
        key: ObjectKey,
        mut entry: Entry<S>,
        now: Duration,
    ) -> Result<Laid, OverlayFull> {
        self.end_entries(cache, now);
        let known = self.entries.get(&key);
        let is_outdated = known.is_some_and(|known| !entry.follows(known));
        if is_outdated || entry.look(&key, cache) != Look::Holds {
            self.counters.outdated += 1;
            self.ended.push(entry.into_state());
            return Ok(Laid::Outdated);
        }
        if known.is_none() && self.entries.len() >= self.limits.entries {
            self.counters.refused += 1;
            self.ended.push(entry.into_state());
            return Err(OverlayFull { key, entries: self.limits.entries });
        }
        self.counters.laid += 1;
        if let Some(replaced) = self.entries.insert(key, entry) {
            self.counters.replaced += 1;
            self.ended.push(replaced.into_state());
        }
        Ok(Laid::Shown)
    }

    fn until(&self, now: Duration) -> Duration {
        now.saturating_add(self.limits.age)
    }

    /// O(entries x log of the cache).
    fn end_entries(&mut self, cache: &Snapshot<S>, now: Duration) {
        self.ended.clear();
        let counters = &mut self.counters;
        let ended = self.entries.extract_if(.., |key, entry| !counters.holds(key, entry, cache, now));
        self.ended.extend(ended.map(|(_, entry)| entry.into_state()));
    }

    /// For the caller to drop, since a drop may run code of the object's type. The next call drops the rest.
    pub(crate) fn take_ended(&mut self) -> Vec<State<S>> {
        std::mem::take(&mut self.ended)
    }

    /// O(log of the cache).
    pub(crate) fn get(&mut self, cache: &Snapshot<S>, key: &ObjectKey, now: Duration) -> Option<Shown<S>> {
        self.ended.clear();
        let cached = || cache.get(key).cloned().map(Shown::Cached);
        let Some(entry) = self.entries.get_mut(key) else { return cached() };
        if !self.counters.holds(key, entry, cache, now) {
            self.ended.extend(self.entries.remove(key).map(Entry::into_state));
            return cached();
        }
        entry.written().cloned().map(Shown::Written)
    }

    /// `None` for a hidden object. O(entries).
    pub(crate) fn laid(
        &mut self,
        cache: &Snapshot<S>,
        now: Duration,
    ) -> BTreeMap<ObjectKey, Option<Object<S>>> {
        self.end_entries(cache, now);
        self.entries.iter().map(|(key, entry)| (key.clone(), entry.written().cloned())).collect()
    }

    pub(crate) fn counters(&mut self, cache: &Snapshot<S>, now: Duration) -> OverlayCounters {
        self.end_entries(cache, now);
        self.counters
    }
}

#[cfg(test)]
mod tests;

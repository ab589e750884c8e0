//! Answers to writes of our own, laid over a cache until the watch has brought them.
//!
//! Answers "what does this key look like, given the cache and what our writes returned?". Invariants:
//! 1. An object that was written is shown until its source has reached its version, or the cache has a state of its key
//!    that is at least as new; then the cache alone counts. Deletions by others and new lives have such versions, so
//!    nothing is resurrected.
//! 2. A life that was deleted is hidden until the cache no longer has it: until the key is absent, or has a newer life.
//! 3. Versions are compared only within one key, and with the sources that may follow it: all are of one resource of one
//!    cluster.
//! 4. When as many entries are held as allowed, a further one is refused: an earlier write never vanishes for a later one.
//! 5. An entry ends after its time, and when its source was rewound or removed. Each end is counted by its reason.
//!
//! Read next: `machine/entry.rs`, the decision for one key; `machine/overlaid.rs`, what readers get.

use std::collections::BTreeMap;
use std::time::Duration;

use informer_core::meta::{Meta, Object, ObjectKey, SourceId};
use informer_core::snapshot::Snapshot;

pub use overlaid::{Overlaid, Shown};

use entry::{Entry, Look, State};

mod entry;
mod overlaid;

/// How much an overlay may hold, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverlayLimits {
    /// How many keys at most.
    pub entries: usize,
    /// How long an answer is shown at most, if its source does not reach it. `Duration::MAX` means for ever.
    pub age: Duration,
}

impl OverlayLimits {
    /// Other limits than the default of 1,000 keys for five minutes: a source that works reaches each version in less,
    /// by an event, a bookmark (each minute) or a renewed watch (90 s).
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
    /// Of those: the cache has them, or something newer.
    pub reached: u64,
    /// Of those: a later write of our own took their place.
    pub replaced: u64,
    /// Of those: their time was over first. The cache may then show an older state again.
    pub expired: u64,
    /// Of those: their source was rewound or removed.
    pub rewound: u64,
    /// Answers that the cache had already, or that were older than one that is shown.
    pub outdated: u64,
    /// Answers that were refused, since as many were shown as allowed.
    pub refused: u64,
}

impl OverlayCounters {
    /// Whether an entry still counts; if not, counts why.
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

/// An answer is not shown: as many are as are allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} is not laid over the cache: {entries} other keys are, which is the limit")]
#[non_exhaustive]
pub struct OverlayFull {
    /// The key of the answer.
    pub key: ObjectKey,
    /// The limit.
    pub entries: usize,
}

/// The answers that wait for the watch. It knows no clock: each call is told the time, in any unit that grows.
pub(crate) struct Overlay<S> {
    entries: BTreeMap<ObjectKey, Entry<S>>,
    limits: OverlayLimits,
    counters: OverlayCounters,
    /// What the last call has given up.
    ended: Vec<State<S>>,
}

impl<S> Overlay<S> {
    /// Nothing is laid over yet.
    pub(crate) fn new(limits: OverlayLimits) -> Self {
        Self { entries: BTreeMap::new(), limits, counters: OverlayCounters::default(), ended: Vec::new() }
    }

    /// A write has returned this object. `followed_by` are the sources that may follow its key; at least one.
    ///
    /// # Errors
    /// [`OverlayFull`] when as many other keys are shown as allowed. Then readers see the cache alone.
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

    /// A write of ours has taken this object out of what the informer selects, at this version: it is hidden until the
    /// sources have reached the version.
    ///
    /// # Errors
    /// As [`Self::handle_written`].
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

    /// This life of a key was deleted by us, and the server has answered that it is gone: it is hidden until the watch
    /// has the deletion. The version is the newest one that is known of that life.
    ///
    /// # Errors
    /// As [`Self::handle_written`].
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

    /// Ends the entries that the cache has reached, and those whose time is over. O(entries x log of the cache).
    fn end_entries(&mut self, cache: &Snapshot<S>, now: Duration) {
        self.ended.clear();
        let counters = &mut self.counters;
        let ended = self.entries.extract_if(.., |key, entry| !counters.holds(key, entry, cache, now));
        self.ended.extend(ended.map(|(_, entry)| entry.into_state()));
    }

    /// What the last call has given up, to be dropped by the caller: the drop of an object may run code of its type.
    /// What is not taken is dropped by the next call.
    pub(crate) fn take_ended(&mut self) -> Vec<State<S>> {
        std::mem::take(&mut self.ended)
    }

    /// The state of one key: what was written, or else what the cache has. O(log of the cache).
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

    /// The keys whose answers are shown, each with what was written; `None` if nothing is to be seen of it. O(entries).
    pub(crate) fn laid(
        &mut self,
        cache: &Snapshot<S>,
        now: Duration,
    ) -> BTreeMap<ObjectKey, Option<Object<S>>> {
        self.end_entries(cache, now);
        self.entries.iter().map(|(key, entry)| (key.clone(), entry.written().cloned())).collect()
    }

    /// What became of all answers so far.
    pub(crate) fn counters(&mut self, cache: &Snapshot<S>, now: Duration) -> OverlayCounters {
        self.end_entries(cache, now);
        self.counters
    }
}

#[cfg(test)]
mod tests;

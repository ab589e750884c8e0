//! A queue of keys: each waits once, and is handed out to one worker at a time.
//!
//! [`QueueMachine::check`] tests the structure behind these invariants:
//! 1. An added key is handed out, later than the add; several adds before that count as one.
//! 2. A key that is being processed is not handed out. If it is added meanwhile, it is handed out once more
//!    after it has come back.
//! 3. A key has at most one delayed add, which a plain add does not remove.
//! 4. Keys leave a lane of a priority in the order in which they came into it.
//! 5. Foreign code (the orders and the limiter) runs before anything changes, so its panic changes nothing.
//!
//! Cost: O(log n) for each call, and at most [`MOST_DUE`] delayed adds. Memory: a key, a slot of 48 bytes, at
//! most 8 for the index, and two notes; 33 more for a delayed add, and still more for one after a failure or
//! a postponed one. A key that is done takes none unless its note stays.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub use delays::{MOST_DUE, MOST_PERIODS};
pub use figures::QueueFigures;
pub use key_backoff::{KeyBackoff, KeyBackoffPolicy};
pub use limiter::{
    Bucket, ExponentialPerKey, FastSlow, MaxOf, MaxWait, RateLimiter, TooLong, default_limiter,
};
pub use lines::{LaneOrder, MOST_PASSED_OVER, MOST_TURNS};
pub use slots::{Merge, Priority};

use informer_core::meta::ObjectKey;
use lines::Lines;
use shutdown::Phase;
use slots::{Budget, Processing, Slot, Slots, State, Waiting, nanos};
use sorted_ids::SortedIds;

mod check;
mod delays;
mod figures;
mod key_backoff;
mod limiter;
mod lines;
mod retries;
mod shutdown;
mod slots;
mod sorted_ids;

/// What has become of an add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Added {
    /// The key waits, or will when it comes back.
    Accepted,
    /// An earlier add stands for this one, too.
    Merged,
    /// The queue has been shut down. It is counted.
    Refused,
}

/// A key that was handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Taken<K, P = ()> {
    /// Which one.
    pub key: K,
    /// With which priority it waited.
    pub priority: Priority,
    /// How long it has waited.
    pub waited: Duration,
    /// What was noted of it.
    pub note: P,
}

/// The queue; the module's documentation describes it. Times are since the start of the runtime.
///
/// ```
/// # use informer_operator::queue::machine::{Priority, QueueMachine};
/// use std::time::Duration;
/// let at = Duration::from_millis;
/// let mut queue = QueueMachine::<&str>::new();
/// for key in ["foo", "bar", "foo"] {
///     queue.add(key, Priority::Normal, at(0));
/// }
/// assert_eq!(queue.len(), 2);
/// let taken = queue.take(at(5)).expect("two keys wait");
/// assert_eq!((taken.key, taken.waited), ("foo", at(5)));
/// queue.add("foo", Priority::Normal, at(6));
/// assert_eq!(queue.take(at(7)).map(|taken| taken.key), Some("bar"));
/// assert_eq!(queue.take(at(8)), None, "foo is being processed");
/// queue.done(&"foo", at(9));
/// assert_eq!(queue.take(at(9)).map(|taken| taken.key), Some("foo"));
/// ```
pub struct QueueMachine<K, P: Merge = ()> {
    slots: Slots<K, P>,
    by_key: SortedIds,
    lines: Lines<K>,
    /// When due, and the slot.
    delays: BTreeSet<(u64, u32)>,
    /// Those whose delayed add is a retry.
    retrying: BTreeSet<u32>,
    /// Slots, and the latest time for the add.
    postponed: BTreeMap<u32, u64>,
    budget: Budget,
    pub(crate) tally: P::Tally,
    /// Since when, and the slot.
    processing: BTreeSet<(u64, u32)>,
    /// Offered, and neither accepted nor taken back.
    offered: usize,
    /// Only the sums.
    cells: QueueFigures,
    phase: Phase,
}

impl<K: Ord + Clone> QueueMachine<K> {
    /// An empty queue in which all keys are of one lane.
    pub fn new() -> Self {
        Self::with_lanes(|_, _| Ordering::Equal)
    }

    /// An empty queue whose keys are of one lane if they compare equal by this order. Lanes take turns.
    pub fn with_lanes(order: LaneOrder<K>) -> Self {
        Self::noting(order, 0)
    }
}

impl<K: Ord + Clone, P: Merge> QueueMachine<K, P> {
    /// As [`QueueMachine::with_lanes`], with notes. At most `most` keys have notes with memory of their own.
    pub fn noting(order: LaneOrder<K>, most: usize) -> Self {
        Self {
            slots: Slots::default(),
            by_key: SortedIds::default(),
            lines: Lines::new(order),
            delays: BTreeSet::new(),
            retrying: BTreeSet::new(),
            postponed: BTreeMap::new(),
            budget: Budget { large: 0, most },
            tally: P::Tally::default(),
            processing: BTreeSet::new(),
            offered: 0,
            cells: QueueFigures::default(),
            phase: Phase::Open,
        }
    }

    /// Adds a key. One that waits moves to the end of its lane in the class of a higher priority, and else
    /// stays where it is.
    pub fn add(&mut self, key: K, priority: Priority, now: Duration) -> Added {
        self.add_with(key, (priority, P::default()), now)
    }

    /// As [`Self::add`], with a note that is handed out with the key.
    pub fn add_with(&mut self, key: K, (priority, note): (Priority, P), now: Duration) -> Added {
        if self.refuses() {
            return Added::Refused;
        }
        let (now, place) = (nanos(now), self.search(&key));
        let (id, added) = match place {
            Ok((_, id)) => (id, self.make_ready(id, priority, now)),
            Err(place) => {
                let line = self.lines.find(&self.slots, &key, priority);
                let id = self.store(place, key);
                self.lines.put(&mut self.slots, id, (priority, now), line);
                self.cells.adds += 1;
                (id, Added::Accepted)
            }
        };
        if let Some(slot) = self.slots.get_mut(id) {
            self.budget.merge(&mut slot.note, note);
        }
        added
    }

    fn refuses(&mut self) -> bool {
        self.cells.refused += u64::from(self.is_shut_down());
        self.is_shut_down()
    }

    /// Hands out the next key, if one waits. It is being processed until it comes back by [`Self::done`] or
    /// [`Self::retry_after`].
    pub fn take(&mut self, now: Duration) -> Option<Taken<K, P>> {
        self.release_due(now);
        self.take_ready(now)
    }

    fn take_ready(&mut self, now: Duration) -> Option<Taken<K, P>> {
        if self.phase == Phase::Forced {
            return None;
        }
        let (id, waiting) = self.lines.pop(&mut self.slots)?;
        let (since, priority) = (nanos(now), waiting.priority);
        let slot = self.slots.get_mut(id)?;
        let key = slot.key.clone();
        let note = self.budget.take(&mut slot.note);
        slot.state = State::Processing(Processing { since, again_since: 0, again: None, priority });
        self.processing.insert((since, id));
        let waited = Duration::from_nanos(since.saturating_sub(waiting.since));
        self.cells.waited.record(waited);
        Some(Taken { key, priority, waited, note })
    }

    /// The work on a key that was handed out begins only now: what was added since then is part of it, and
    /// its note is returned. The key is not handed out once more for that.
    pub fn begin(&mut self, key: &K) -> P {
        let Some(slot) = self.find(key).and_then(|id| self.slots.get_mut(id)) else { return P::default() };
        let State::Processing(processing) = &mut slot.state else { return P::default() };
        processing.again = None;
        self.budget.take(&mut slot.note)
    }

    /// A key comes back in order. It waits again if it was added while it was processed, or when a delayed
    /// add of it is due, unless that is a retry. Else the queue forgets it. Returns false, and changes
    /// nothing, if the key is not being processed.
    pub fn done(&mut self, key: &K, now: Duration) -> bool {
        self.come_back(key, true, now)
    }

    fn come_back(&mut self, key: &K, is_in_order: bool, now: Duration) -> bool {
        let Ok((place, id)) = self.search(key) else { return false };
        let Some(State::Processing(processing)) = self.slots.get(id).map(|slot| slot.state) else {
            return false;
        };
        let again = processing.again.map(|priority| (priority, self.lines.find(&self.slots, key, priority)));
        self.processing.remove(&(processing.since, id));
        if is_in_order {
            self.drop_retry(id);
        }
        self.retrying.remove(&id);
        self.cells.worked.record(Duration::from_nanos(nanos(now).saturating_sub(processing.since)));
        if let Some(slot) = self.slots.get_mut(id) {
            slot.state = State::Idle;
        }
        match again {
            Some((priority, line)) => {
                self.lines.put(&mut self.slots, id, (priority, processing.again_since), line);
            }
            None => self.free_if_idle(place, id),
        }
        true
    }

    /// A key comes back that nobody has worked on. It waits again with its former priority and its note, also
    /// after a shutdown, but is discarded after [`Self::force`]. Returns false, and changes nothing, if the
    /// key is not being processed.
    pub fn put_back(&mut self, key: &K, note: P, now: Duration) -> bool {
        let Some((_, Processing { since, priority, .. })) = self.processed(key) else { return false };
        self.again_since(key, (priority, note), since);
        self.come_back(key, false, now)
    }

    /// A key that is being processed is handed out once more when it comes back, for something that happened
    /// before a shutdown. So this works also after a shutdown, but not after [`Self::force`]. Returns false,
    /// and changes nothing, if the key is not being processed.
    pub fn again(&mut self, key: &K, noted: (Priority, P), now: Duration) -> bool {
        self.again_since(key, noted, nanos(now))
    }

    fn again_since(&mut self, key: &K, (priority, note): (Priority, P), since: u64) -> bool {
        let Some(slot) = self.find(key).and_then(|id| self.slots.get_mut(id)) else { return false };
        let State::Processing(processing) = &mut slot.state else { return false };
        if self.phase == Phase::Forced {
            self.cells.discarded += 1;
            return true;
        }
        if processing.again.is_none() {
            processing.again_since = since;
        }
        processing.again = processing.again.max(Some(priority));
        // What has come since is newer.
        let meanwhile = self.budget.take(&mut slot.note);
        self.budget.merge(&mut slot.note, note);
        self.budget.merge(&mut slot.note, meanwhile);
        true
    }

    /// How many keys wait. Those that are delayed, and those that are being processed, do not.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether no key waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this key was handed out and has not come back.
    pub fn is_processing(&self, key: &K) -> bool {
        self.processed(key).is_some()
    }

    fn processed(&self, key: &K) -> Option<(u32, Processing)> {
        let id = self.find(key)?;
        match self.slots.get(id)?.state {
            State::Processing(processing) => Some((id, processing)),
            _ => None,
        }
    }

    fn find(&self, key: &K) -> Option<u32> {
        self.search(key).ok().map(|(_, id)| id)
    }

    fn search(&self, key: &K) -> Result<(sorted_ids::Place, u32), sorted_ids::Place> {
        self.by_key.find(|id| self.slots.get(id).map_or(Ordering::Less, |slot| slot.key.cmp(key)))
    }

    fn slot_of(&mut self, key: K) -> u32 {
        match self.search(&key) {
            Ok((_, id)) => id,
            Err(place) => {
                self.lines.ask(&key);
                self.store(place, key)
            }
        }
    }

    fn store(&mut self, place: sorted_ids::Place, key: K) -> u32 {
        let id = self.slots.insert(Slot::new(key));
        self.by_key.insert(place, id);
        id
    }

    fn make_ready(&mut self, id: u32, priority: Priority, now: u64) -> Added {
        let Some(slot) = self.slots.get_mut(id) else { return Added::Merged };
        match &mut slot.state {
            State::Idle => self.lines.push(&mut self.slots, id, (priority, now)),
            State::Waiting(Waiting { since, priority: former, .. }) => {
                let since = *since;
                if *former < priority {
                    self.lines.raise(&mut self.slots, id, (priority, since));
                }
                return Added::Merged;
            }
            State::Processing(Processing { again: Some(former), .. }) => {
                *former = priority.max(*former);
                return Added::Merged;
            }
            State::Processing(processing) => {
                (processing.again, processing.again_since) = (Some(priority), now);
            }
        }
        self.cells.adds += 1;
        Added::Accepted
    }

    fn free_if_idle(&mut self, place: sorted_ids::Place, id: u32) {
        if let Some(Slot { state: State::Idle, delay: None, note, .. }) = self.slots.get(id)
            && !note.stays()
        {
            self.by_key.remove(place);
            self.slots.remove(id);
        }
    }
}

impl QueueMachine<ObjectKey> {
    /// An empty queue in which the namespaces of all clusters take turns.
    pub fn by_namespace() -> Self {
        Self::with_lanes(namespace_order)
    }
}

/// Compares the clusters and namespaces of two keys.
pub fn namespace_order(one: &ObjectKey, other: &ObjectKey) -> Ordering {
    one.scope().cmp(&other.scope())
}

impl<K: Ord + Clone> Default for QueueMachine<K> {
    fn default() -> Self {
        Self::new()
    }
}

informer_core::debug_as!([K, P: Merge] QueueMachine<K, P>, self,
    phase = self.phase,
    waiting = self.lines.len(),
    delayed = self.delays.len(),
    processing = self.processing.len()
);

#[cfg(test)]
mod tests;

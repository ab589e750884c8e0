//! Adds that are made later: at a time, or when nothing more has come for a while.
//!
//! A postponed add starts its delay again with each call, but never beyond [`MOST_PERIODS`] delays after the
//! first call, nor beyond a time set by [`QueueMachine::add_after`]. While more keys are due than one call
//! may release, [`QueueMachine::next_due`] is in the past.

use std::time::Duration;

use super::slots::{Delay, Processing, State, nanos};
use super::{Added, Merge, Priority, QueueMachine};

/// How many delayed adds become waiting keys in one call, and how many keys one call discards after a
/// shutdown.
pub const MOST_DUE: usize = 250;

/// A key to which something happens again and again is put off for at most this many times its delay.
pub const MOST_PERIODS: u32 = 10;

impl<K: Ord + Clone, P: Merge> QueueMachine<K, P> {
    /// Adds a key when this time has passed; at once if it is zero. If a key gets several delayed adds, the
    /// earliest counts, with the highest of their priorities.
    pub fn add_after(&mut self, key: K, delay: Duration, priority: Priority, now: Duration) -> Added {
        self.add_after_with(key, delay, (priority, P::default()), now)
    }

    /// As [`Self::add_after`], with a note that is handed out with the key then.
    pub fn add_after_with(
        &mut self,
        key: K,
        delay: Duration,
        (priority, note): (Priority, P),
        now: Duration,
    ) -> Added {
        if delay.is_zero() {
            return self.add_with(key, (priority, note), now);
        }
        if self.refuses() {
            return Added::Refused;
        }
        let due = nanos(now.saturating_add(delay));
        let id = self.slot_of(key);
        let former = self.slots.get(id).and_then(|slot| slot.delay).map(|delay| delay.due);
        if let Some(latest) = self.postponed.get_mut(&id) {
            *latest = due.min(*latest);
        }
        self.set_delay(id, former.map_or(due, |former| former.min(due)), (priority, note))
    }

    /// Adds a key when nothing more has come for it in this time: each further call puts the add off again,
    /// until [`MOST_PERIODS`] such times have passed since the first one. One that waits already is added
    /// now.
    pub fn postpone(&mut self, key: K, quiet: Duration, priority: Priority, now: Duration) -> Added {
        self.postpone_with(key, quiet, (priority, P::default()), now)
    }

    /// As [`Self::postpone`], with a note that is handed out with the key then.
    pub fn postpone_with(
        &mut self,
        key: K,
        quiet: Duration,
        (priority, note): (Priority, P),
        now: Duration,
    ) -> Added {
        let waits = |id| self.slots.get(id).is_some_and(|slot| matches!(slot.state, State::Waiting(_)));
        if quiet.is_zero() || self.find(&key).is_some_and(waits) {
            return self.add_with(key, (priority, note), now);
        }
        if self.refuses() {
            return Added::Refused;
        }
        let id = self.slot_of(key);
        let asked = self.slots.get(id).and_then(|slot| slot.delay).map_or(u64::MAX, |delay| delay.due);
        let last = nanos(now.saturating_add(quiet.saturating_mul(MOST_PERIODS)));
        let latest = *self.postponed.entry(id).or_insert_with(|| last.min(asked));
        self.set_delay(id, nanos(now.saturating_add(quiet)).min(latest), (priority, note))
    }

    /// A key comes back in order, and is added with its former priority when this time has passed. Returns
    /// false, and changes nothing, if the key is not being processed.
    pub fn retry_after(&mut self, key: &K, delay: Duration, now: Duration) -> bool {
        self.retry_after_with(key, delay, P::default(), now)
    }

    /// As [`Self::retry_after`], with a note that is handed out with the key then.
    pub fn retry_after_with(&mut self, key: &K, delay: Duration, note: P, now: Duration) -> bool {
        let Some((id, Processing { priority, .. })) = self.processed(key) else { return false };
        self.drop_retry(id);
        self.add_after_with(key.clone(), delay, (priority, note), now);
        self.come_back(key, true, now)
    }

    /// Makes the keys wait that are due by now, at most [`MOST_DUE`] of them; none after a shutdown.
    pub fn release_due(&mut self, now: Duration) {
        if self.is_shut_down() {
            return;
        }
        let now = nanos(now);
        for _ in 0..MOST_DUE {
            let Some((due, id)) = self.delays.first().copied().filter(|(due, _)| *due <= now) else { return };
            let delay = self.slots.get(id).and_then(|slot| slot.delay);
            if let Some(delay) = delay {
                self.make_ready(id, delay.priority, due);
            }
            self.delays.remove(&(due, id));
            self.retrying.remove(&id);
            self.postponed.remove(&id);
            if let Some(slot) = self.slots.get_mut(id) {
                slot.delay = None;
                let note = self.budget.take(&mut slot.delayed_note);
                self.budget.merge(&mut slot.note, note);
            }
        }
    }

    /// When [`Self::take`] has to be called for the delayed add that is due next, if it returned nothing
    /// before.
    pub fn next_due(&self) -> Option<Duration> {
        let first = self.delays.first().filter(|_| !self.is_shut_down());
        first.map(|(due, _)| Duration::from_nanos(*due))
    }

    fn set_delay(&mut self, id: u32, due: u64, (priority, note): (Priority, P)) -> Added {
        let Some(slot) = self.slots.get_mut(id) else { return Added::Merged };
        self.budget.merge(&mut slot.delayed_note, note);
        let former = slot.delay;
        let priority = former.map_or(priority, |former| former.priority.max(priority));
        slot.delay = Some(Delay { due, priority, is_retry: false });
        if former.is_some_and(|former| former.due == due) {
            return Added::Merged;
        }
        if let Some(former) = former {
            self.delays.remove(&(former.due, id));
        }
        self.delays.insert((due, id));
        Added::Accepted
    }

    pub(super) fn drop_delay(&mut self, id: u32) -> bool {
        self.retrying.remove(&id);
        self.postponed.remove(&id);
        let Some(slot) = self.slots.get_mut(id) else { return false };
        self.budget.take(&mut slot.delayed_note);
        let Some(delay) = slot.delay.take() else { return false };
        self.delays.remove(&(delay.due, id));
        true
    }
}

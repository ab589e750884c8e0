//! How a work queue ends: at once, when everything is done, or by force.
//!
//! Adds are refused and delayed adds are discarded; both are counted. No call hands out what is to be
//! discarded, which goes a part at a time, so that the lock is never held for long.

use std::time::Duration;

use super::slots::{Processing, State};
use super::{MOST_DUE, Merge, QueueMachine, Taken};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// A caller waits for the rest.
    Draining,
    ShutDown,
    /// Also nothing waits again.
    Forced,
}

impl<K: Ord + Clone, P: Merge> QueueMachine<K, P> {
    /// Refuses adds from here on, and makes no delayed one wait. What waits is still handed out. A drain that
    /// waits is over.
    pub fn shut_down(&mut self) {
        if self.phase != Phase::Forced {
            self.phase = Phase::ShutDown;
        }
    }

    /// Shuts down, and [`Self::is_drain_over`] says when everything is done, also after [`Self::shut_down`].
    pub fn drain(&mut self) {
        if self.phase != Phase::Forced {
            self.phase = Phase::Draining;
        }
    }

    /// Shuts down, and hands nothing out any more. What is being processed goes on.
    pub fn force(&mut self) {
        self.phase = Phase::Forced;
    }

    /// Discards what is not handed out any more: delayed adds after a shutdown, and after a forced one also
    /// all that waits or would wait again. Returns how many keys it has discarded: at most [`MOST_DUE`], and
    /// none if nothing is left.
    pub fn discard_some(&mut self) -> usize {
        let mut count = 0;
        if self.phase == Phase::Open {
            return count;
        }
        while count < MOST_DUE
            && let Some((due, id)) = self.delays.first().copied()
        {
            self.drop_delay(id);
            self.delays.remove(&(due, id));
            self.forget_if_idle(id);
            count += 1;
        }
        if self.phase == Phase::Forced {
            count += self.discard_waiting(MOST_DUE - count);
        }
        self.cells.discarded += u64::try_from(count).unwrap_or(u64::MAX);
        count
    }

    fn discard_waiting(&mut self, most: usize) -> usize {
        let mut count = 0;
        while count < most
            && let Some((id, _)) = self.lines.pop(&mut self.slots)
        {
            self.drop_note(id);
            self.forget_if_idle(id);
            count += 1;
        }
        let again = self.processing.iter().map(|(_, id)| *id).filter(|id| self.is_again(*id));
        let again: Vec<u32> = again.take(most - count).collect();
        for id in &again {
            if let Some(State::Processing(processing)) = self.slots.get_mut(*id).map(|slot| &mut slot.state) {
                processing.again = None;
            }
            self.drop_note(*id);
        }
        count + again.len()
    }

    /// Forgets a key that waits or is delayed: it is not handed out. Returns false, and changes nothing, if
    /// the key is being processed.
    pub fn discard(&mut self, key: &K) -> bool {
        let Ok((place, id)) = self.search(key) else { return true };
        let Some(slot) = self.slots.get(id) else { return true };
        if matches!(slot.state, State::Processing(_)) {
            return false;
        }
        let is_discarded = self.lines.remove(&mut self.slots, id).is_some() | self.drop_delay(id);
        self.drop_note(id);
        self.cells.discarded += u64::from(is_discarded);
        self.free_if_idle(place, id);
        true
    }

    /// Whether adds are refused.
    pub fn is_shut_down(&self) -> bool {
        self.phase != Phase::Open
    }

    /// Whether no key will be handed out any more: it is shut down, none waits, and none will wait again.
    pub fn is_over(&self) -> bool {
        if self.phase == Phase::Forced {
            return true;
        }
        let is_empty = self.is_empty() && self.offered == 0;
        self.is_shut_down() && is_empty && !self.processing.iter().any(|(_, id)| self.is_again(*id))
    }

    /// Whether a drain has nothing to wait for: everything is done, or [`Self::shut_down`] was called after
    /// [`Self::drain`], or [`Self::force`].
    pub fn is_drain_over(&self) -> bool {
        match self.phase {
            Phase::Open => false,
            Phase::Draining => self.is_empty() && self.processing.is_empty(),
            Phase::ShutDown | Phase::Forced => true,
        }
    }

    fn drop_note(&mut self, id: u32) {
        if let Some(slot) = self.slots.get_mut(id) {
            self.budget.take(&mut slot.note);
        }
    }

    fn forget_if_idle(&mut self, id: u32) {
        let place = self.slots.get(id).and_then(|slot| self.search(&slot.key).ok());
        if let Some((place, _)) = place {
            self.free_if_idle(place, id);
        }
    }

    fn is_again(&self, id: u32) -> bool {
        let state = self.slots.get(id).map(|slot| slot.state);
        matches!(state, Some(State::Processing(Processing { again: Some(_), .. })))
    }
}

// While an offered key is on its way, the queue is not over: the worker may have gone.

impl<K: Ord + Clone, P: Merge> QueueMachine<K, P> {
    /// As [`Self::take`], without delayed adds, which [`Self::release_due`] makes wait before. It is for a
    /// worker that may have gone: until [`Self::accept`] or [`Self::take_back`] is called for the key, the
    /// queue is not over, since the key may wait again.
    pub fn offer(&mut self, now: Duration) -> Option<Taken<K, P>> {
        let taken = self.take_ready(now)?;
        self.offered += 1;
        Some(taken)
    }

    /// A worker has one of the keys that were offered.
    pub fn accept(&mut self) {
        self.offered = self.offered.saturating_sub(1);
    }

    /// The worker to whom this key was offered has gone: as [`Self::put_back`].
    pub fn take_back(&mut self, key: &K, note: P, now: Duration) -> bool {
        self.accept();
        self.put_back(key, note, now)
    }
}

//! How a work queue ends: at once, when everything is done, or by force.
//!
//! Answers "what is still handed out, and is it over?". In every case adds are refused and delayed adds are discarded;
//! both are counted. Keys that are being processed stay so until they come back. Read next: `work_queue.rs`.

use super::slots::{Processing, State};
use super::{Merge, WorkQueue};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// Shut down, and somebody waits for the rest to be done.
    Draining,
    ShutDown,
    /// Shut down, and nothing waits again.
    Forced,
}

impl<K: Ord + Clone, P: Merge> WorkQueue<K, P> {
    /// Refuses adds from here on and discards delayed ones. What waits is still handed out. A drain that waits has
    /// ended: it is over.
    pub fn shut_down(&mut self) {
        if self.phase != Phase::Forced {
            self.phase = Phase::ShutDown;
        }
        self.discard_delays();
    }

    /// Shuts down, and [`Self::is_drain_over`] says when everything is done, also after [`Self::shut_down`].
    pub fn drain(&mut self) {
        if self.phase != Phase::Forced {
            self.phase = Phase::Draining;
        }
        self.discard_delays();
    }

    /// Shuts down and discards all that waits, or would wait again. What is being processed goes on. Gives how many
    /// keys were discarded.
    pub fn force(&mut self) -> usize {
        let before = self.cells.discarded;
        self.phase = Phase::Forced;
        self.discard_delays();
        while let Some((id, _)) = self.lines.pop(&mut self.slots) {
            self.cells.discarded += 1;
            self.drop_note(id);
            self.forget_if_idle(id);
        }
        for (_, id) in &self.processing {
            let Some(slot) = self.slots.get_mut(*id) else { continue };
            if let State::Processing(processing) = &mut slot.state {
                self.cells.discarded += u64::from(processing.again.take().is_some());
                self.budget.take(&mut slot.note);
            }
        }
        usize::try_from(self.cells.discarded - before).unwrap_or(usize::MAX)
    }

    /// Forgets a key that waits or is delayed: it is not handed out. False, and nothing happens, if it is being processed.
    pub fn discard(&mut self, key: &K) -> bool {
        let Ok((place, id)) = self.search(key) else { return true };
        let Some(slot) = self.slots.get(id) else { return true };
        if matches!(slot.state, State::Processing(_)) {
            return false;
        }
        self.lines.remove(&mut self.slots, id);
        self.drop_delay(id);
        self.drop_note(id);
        self.cells.discarded += 1;
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

    fn discard_delays(&mut self) {
        while let Some((_, id)) = self.delays.first().copied() {
            self.cells.discarded += 1;
            if !self.drop_delay(id) {
                self.delays.pop_first();
            }
            self.forget_if_idle(id);
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

//! The invariants of a work queue as a function, and a new queue from the keys of a broken one. They are
//! checked after a panic during a change: the order of keys is foreign code.

use super::shutdown::Phase;
use super::slots::{Budget, Delay, Processing, Slot, State};
use super::{Merge, QueueMachine};

impl<K: Ord + Clone, P: Merge> QueueMachine<K, P> {
    /// Whether all invariants hold. Linear in the number of keys.
    ///
    /// # Errors
    /// The first one that does not, in words.
    pub fn check(&self) -> Result<(), String> {
        let ids: Vec<u32> = self.by_key.iter().collect();
        let keys: Option<Vec<&K>> = ids.iter().map(|id| self.slots.get(*id).map(|slot| &slot.key)).collect();
        let keys = keys.ok_or("the index names a freed slot")?;
        if keys.len() != self.slots.len() || !keys.is_sorted_by(|one, next| one < next) {
            return Err(format!("{} slots, {} keys in the index", self.slots.len(), keys.len()));
        }
        self.lines.check(&self.slots)?;
        let (mut waiting, mut processing, mut delayed) = (0, 0, 0);
        let mut is_noted = true;
        for (id, slot) in self.slots.iter() {
            match slot.state {
                State::Idle if slot.delay.is_none() && !slot.note.stays() => {
                    return Err("a slot of which nothing is known".into());
                }
                State::Idle => {}
                State::Waiting(_) => waiting += 1,
                State::Processing(Processing { since, .. }) => {
                    processing += 1;
                    is_noted &= self.processing.contains(&(since, id));
                }
            }
            if let Some(Delay { due, .. }) = slot.delay {
                delayed += 1;
                is_noted &= self.delays.contains(&(due, id));
            }
        }
        if !is_noted {
            return Err("a key that is processed or delayed, and not noted".into());
        }
        if waiting != self.lines.len() {
            return Err(format!("{waiting} keys wait, {} are in lines", self.lines.len()));
        }
        if processing != self.processing.len() {
            return Err(format!("{processing} keys are processed, {} are noted", self.processing.len()));
        }
        if delayed != self.delays.len() {
            return Err(format!("{delayed} keys are delayed, {} are noted", self.delays.len()));
        }
        let is_delayed = |id: &u32| self.slots.get(*id).is_some_and(|slot| slot.delay.is_some());
        if !self.retrying.iter().all(is_delayed) {
            return Err("a key that is retried, and not delayed".into());
        }
        if !self.postponed.keys().all(is_delayed) {
            return Err("a key that is postponed, and not delayed".into());
        }
        let is_large = |(_, slot): (u32, &Slot<K, P>)| {
            usize::from(slot.note.is_large()) + usize::from(slot.delayed_note.is_large())
        };
        let large: usize = self.slots.iter().map(is_large).sum();
        if large != self.budget.large || large > self.budget.most {
            return Err(format!("{large} large notes, {:?}", self.budget));
        }
        Ok(())
    }

    /// A queue of the same keys, for one whose invariants do not hold. What is being processed stays so;
    /// everything else waits, also what was delayed, and what is known of a key that is processed makes it
    /// wait once more. No key is lost, and none is handed out twice at once. This queue stays as it is, also
    /// if the order or a clone panics.
    #[must_use]
    pub fn rebuilt(&self) -> Self {
        let Self { slots, lines, cells, phase, tally, budget: Budget { most, .. }, .. } = self;
        let mut anew = Self { cells: *cells, phase: Phase::Open, ..Self::noting(lines.order(), *most) };
        let slots = slots.iter().map(|(_, slot)| slot.clone());
        let is_processing = |slot: &Slot<K, P>| matches!(slot.state, State::Processing(_));
        let (processing, others): (Vec<_>, Vec<_>) = slots.partition(is_processing);
        for Slot { key, state, delay, mut note, delayed_note } in processing {
            let id = anew.slot_of(key);
            let State::Processing(Processing { since, again, again_since, .. }) = state else { continue };
            if let Some(slot) = anew.slots.get_mut(id).filter(|slot| slot.state == State::Idle) {
                slot.state = state;
                anew.processing.insert((since, id));
            }
            if let Some(priority) = again.or_else(|| delay.map(|delay| delay.priority)) {
                anew.make_ready(id, priority, again_since);
            } else {
                drop(note.hand_out());
            }
            anew.note(id, [note, delayed_note]);
        }
        for Slot { key, state, delay, note, delayed_note } in others {
            let (since, waited) = match state {
                State::Waiting(waiting) => (waiting.since, Some(waiting.priority)),
                _ => (delay.map_or(0, |delay| delay.due), None),
            };
            let priority = waited.max(delay.map(|delay| delay.priority)).unwrap_or_default();
            let id = anew.slot_of(key);
            anew.make_ready(id, priority, since);
            anew.note(id, [note, delayed_note]);
        }
        anew.tally = tally.clone();
        anew.cells.adds = cells.adds;
        anew.phase = *phase;
        anew.offered = self.offered;
        anew
    }

    fn note(&mut self, id: u32, notes: [P; 2]) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        for note in notes {
            self.budget.merge(&mut slot.note, note);
        }
    }
}

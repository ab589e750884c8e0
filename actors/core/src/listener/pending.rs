//! The events that wait, by key and by order of arrival.
//!
//! Answers "what is this key owed, and whose turn is it?"; what two events of a key come to is `coalesce.rs`.
//! Invariants:
//! 1. A key has one entry or none, and an entry is in the order exactly once.
//! 2. An entry keeps the place of its first event however much is coalesced into it; one that came to nothing has
//!    lost its place.
//!
//! Logarithmic in the number of keys that are owed something. Read next: `cursor.rs`, for what is owed but not here.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::time::Duration;

use super::coalesce::{Coalesced, Owed, coalesce};
use crate::delta::Change;
use crate::meta::ObjectKey;
use crate::snapshot::Sameness;

/// A place in the order: that of a recorded change, or a step of the cursor that arrived there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) arrival: u64,
    pub(super) step: u64,
}

/// How a change came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) place: Place,
    pub(super) since: Duration,
    /// Whether it is one of the initial events.
    pub(super) is_initial: bool,
    /// What makes its state the one told last.
    pub(super) sameness: Sameness,
}

/// What became of a change that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Merged {
    /// It is owed, in an entry of its own.
    Alone,
    /// It is owed, as a part of what was owed before.
    Together,
    /// Together with what was owed before it comes to nothing.
    Nothing { was_initial: bool },
    /// It cannot follow what was owed; it is owed all the same.
    Impossible,
}

/// One event on its way out.
#[derive(Debug)]
pub(super) struct Taken<S> {
    pub(super) change: Change<S>,
    pub(super) is_initial: bool,
    /// Whether the key is owed nothing more.
    pub(super) is_last: bool,
}

/// The events that wait.
pub(super) struct Pending<S> {
    entries: BTreeMap<ObjectKey, Entry<S>>,
    order: BTreeMap<Place, ObjectKey>,
    events: usize,
}

struct Entry<S> {
    arrival: Arrival,
    owed: Owed<S>,
}

impl<S> Pending<S> {
    /// Nothing waits.
    pub(super) const fn new() -> Self {
        Self { entries: BTreeMap::new(), order: BTreeMap::new(), events: 0 }
    }

    /// Adds a change to what its key is owed.
    pub(super) fn merge(&mut self, change: Change<S>, arrival: Arrival) -> Merged {
        let slot = match self.entries.entry(change.key().clone()) {
            Slot::Vacant(slot) => {
                self.order.insert(arrival.place, slot.key().clone());
                slot.insert(Entry { arrival, owed: Owed::One(change) });
                self.events += 1;
                return Merged::Alone;
            }
            Slot::Occupied(slot) => slot,
        };
        let sameness = arrival.sameness;
        let (key, Entry { arrival, owed }) = slot.remove_entry();
        self.events -= owed.len();
        let (owed, merged) = match coalesce(owed, change, sameness) {
            Coalesced::Nothing => {
                self.order.remove(&arrival.place);
                return Merged::Nothing { was_initial: arrival.is_initial };
            }
            Coalesced::Owed(owed) => (owed, Merged::Together),
            Coalesced::Impossible(owed) => (owed, Merged::Impossible),
        };
        self.events += owed.len();
        self.entries.insert(key, Entry { arrival, owed });
        merged
    }

    /// Whose turn it is.
    pub(super) fn first(&self) -> Option<(Place, &ObjectKey)> {
        self.order.first_key_value().map(|(place, key)| (*place, key))
    }

    /// Since when the first one waits.
    pub(super) fn first_since(&self) -> Option<Duration> {
        let (_, key) = self.first()?;
        self.entries.get(key).map(|entry| entry.arrival.since)
    }

    /// Takes out the event whose turn it is; of two, the second keeps the place.
    pub(super) fn take_first(&mut self) -> Option<Taken<S>> {
        let (place, key) = self.order.pop_first()?;
        let Entry { arrival, owed } = self.entries.remove(&key)?;
        let (change, rest) = owed.into_first();
        self.events -= 1;
        let is_last = rest.is_none();
        if let Some(owed) = rest {
            self.order.insert(place, key.clone());
            self.entries.insert(key, Entry { arrival, owed });
        }
        Some(Taken { change, is_initial: arrival.is_initial, is_last })
    }

    /// Whether this key is owed something.
    #[cfg(test)]
    pub(super) fn contains(&self, key: &ObjectKey) -> bool {
        self.entries.contains_key(key)
    }

    /// How many keys are owed something.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many events that makes: at most two a key.
    pub(super) fn events(&self) -> usize {
        self.events
    }

    /// What is owed, by key.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Owed<S>)> {
        self.entries.iter().map(|(key, entry)| (key, &entry.owed))
    }
}

//! The events that wait under `Coalesce`, by key and by order of arrival.
//!
//! Answers "what is this key owed, and whose turn is it?"; what two events of a key come to is `coalesce.rs`.
//! Invariants:
//! 1. A key has one entry or none, and an entry is in the order exactly once.
//! 2. An entry keeps the place of its first event however much is coalesced into it; one that came to nothing has
//!    lost its place.
//! 3. At most `most_briefs` brief lives wait, also those of keys that a cursor has yet to pass; beyond that the
//!    oldest are dropped.
//!
//! Logarithmic in the number of keys that are owed something. Read next: `cursor.rs`, for what is owed but not here.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use super::coalesce::{Brief, Owed};
use crate::delta::Change;
use crate::meta::ObjectKey;

/// The events that wait.
pub(super) struct Pending<S> {
    entries: BTreeMap<ObjectKey, Entry<S>>,
    order: BTreeMap<u64, ObjectKey>,
    /// Brief lives of keys that a cursor has yet to pass: it tells them when it does.
    ahead: BTreeMap<ObjectKey, Brief<S>>,
    /// All brief lives, oldest first.
    briefs: BTreeMap<u64, ObjectKey>,
    most_briefs: usize,
    events: usize,
}

struct Entry<S> {
    arrival: u64,
    since: Duration,
    owed: Owed<S>,
}

impl<S> Pending<S> {
    /// Nothing waits.
    pub(super) const fn new(most_briefs: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            order: BTreeMap::new(),
            ahead: BTreeMap::new(),
            briefs: BTreeMap::new(),
            most_briefs,
            events: 0,
        }
    }

    /// Adds a change to what its key is owed; false if it cannot follow.
    pub(super) fn merge(&mut self, change: Change<S>, arrival: u64, since: Duration) -> bool {
        let key = change.key().clone();
        let mut entry = self.remove(&key).unwrap_or(Entry { arrival, since, owed: Owed::nothing() });
        let is_possible = entry.owed.merge(change, arrival);
        self.insert(key, entry);
        is_possible
    }

    /// A life of a key that a cursor has yet to pass came and went: the last of them is told.
    pub(super) fn keep_ahead(&mut self, key: &ObjectKey, brief: Brief<S>) {
        if let Some(mut entry) = self.remove(key) {
            entry.owed.brief = None;
            self.insert(key.clone(), entry);
        }
        self.events += 2;
        self.briefs.insert(brief.arrival, key.clone());
        if let Some(older) = self.ahead.insert(key.clone(), brief) {
            self.events -= 2;
            self.briefs.remove(&older.arrival);
        }
    }

    /// Takes out the brief lives of the keys after one key, up to and with another.
    pub(super) fn passed(&mut self, after: Option<&ObjectKey>, until: Option<&ObjectKey>) -> Vec<Brief<S>> {
        if self.ahead.is_empty() {
            return Vec::new();
        }
        let range = (
            after.map_or(Bound::Unbounded, Bound::Excluded),
            until.map_or(Bound::Unbounded, Bound::Included),
        );
        let keys: Vec<ObjectKey> =
            self.ahead.range::<ObjectKey, _>(range).map(|(key, _)| key.clone()).collect();
        let briefs: Vec<Brief<S>> = keys.iter().filter_map(|key| self.ahead.remove(key)).collect();
        for brief in &briefs {
            self.events -= 2;
            self.briefs.remove(&brief.arrival);
        }
        briefs
    }

    /// Drops the oldest brief lives beyond the bound, and says how many events that were.
    pub(super) fn drop_surplus(&mut self) -> u64 {
        let mut dropped = 0;
        while self.briefs.len() > self.most_briefs {
            let Some((arrival, key)) = self.briefs.pop_first() else { break };
            dropped += 2;
            if self.ahead.get(&key).is_some_and(|brief| brief.arrival == arrival) {
                self.ahead.remove(&key);
                self.events -= 2;
            } else if let Some(mut entry) = self.remove(&key) {
                entry.owed.brief = None;
                self.insert(key, entry);
            }
        }
        dropped
    }

    /// The arrival of the entry whose turn it is, and since when it waits.
    pub(super) fn first(&self) -> Option<(u64, Duration)> {
        let (arrival, key) = self.order.first_key_value()?;
        self.entries.get(key).map(|entry| (*arrival, entry.since))
    }

    /// Takes out all that the key is owed whose turn it is.
    pub(super) fn take_first(&mut self) -> Option<(u64, Duration, Owed<S>)> {
        let (_, key) = self.order.first_key_value()?;
        let key = key.clone();
        self.remove(&key).map(|entry| (entry.arrival, entry.since, entry.owed))
    }

    /// Whether this key is owed something.
    pub(super) fn contains(&self, key: &ObjectKey) -> bool {
        self.entries.contains_key(key)
    }

    /// How many keys are owed something.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many events that makes, with those of brief lives that a cursor will tell.
    pub(super) const fn events(&self) -> usize {
        self.events
    }

    /// How many brief lives wait.
    #[cfg(test)]
    pub(super) fn briefs(&self) -> usize {
        self.briefs.len()
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Entry<S>> {
        let entry = self.entries.remove(key)?;
        self.order.remove(&entry.arrival);
        self.events -= entry.owed.len();
        if let Some(brief) = &entry.owed.brief {
            self.briefs.remove(&brief.arrival);
        }
        Some(entry)
    }

    fn insert(&mut self, key: ObjectKey, entry: Entry<S>) {
        if entry.owed.len() == 0 {
            return;
        }
        self.events += entry.owed.len();
        self.order.insert(entry.arrival, key.clone());
        if let Some(brief) = &entry.owed.brief {
            self.briefs.insert(brief.arrival, key.clone());
        }
        self.entries.insert(key, entry);
    }
}

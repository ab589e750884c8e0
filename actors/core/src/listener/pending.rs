//! The events that wait under `Coalesce`, by key and by order of arrival.
//!
//! Answers "which events of this key wait, and which key is next?"; `coalesce.rs` merges two events of a key.
//! Invariants:
//! 1. A key has one entry or none, and its place in the order names its arrival; a place of another arrival is void.
//! 2. An entry keeps the place of its first event however much is coalesced into it; one that came to nothing has
//!    lost its place.
//! 3. At most `most_briefs` brief lives wait, also those of keys that a cursor has yet to pass; beyond that the
//!    oldest are dropped.
//!
//! Logarithmic in the number of keys whose events wait. Read next: `cursor.rs`, for what waits but is not here.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use super::coalesce::{Brief, KeyEvents};
use crate::delta::Change;
use crate::meta::ObjectKey;

/// The events that wait.
pub(super) struct Pending<S> {
    entries: BTreeSet<ByKey<S>>,
    /// By arrival. The first one is not void, and at most half of them and a few are.
    order: VecDeque<(u64, ObjectKey)>,
    /// Brief lives of keys that a cursor has not passed yet: it gives them when it passes the key.
    ahead: BTreeMap<ObjectKey, Brief<S>>,
    /// All brief lives, oldest first.
    briefs: BTreeMap<u64, ObjectKey>,
    most_briefs: usize,
    events: usize,
}

struct Entry<S> {
    arrival: u64,
    since: Duration,
    events: KeyEvents<S>,
}

/// An entry in order of its key, which is that of its changes: no second key is held for it.
struct ByKey<S>(Box<Entry<S>>);

impl<S> Borrow<ObjectKey> for ByKey<S> {
    fn borrow(&self) -> &ObjectKey {
        self.0.events.key().expect("a waiting entry has an event")
    }
}

impl<S> Ord for ByKey<S> {
    fn cmp(&self, other: &Self) -> Ordering {
        Borrow::<ObjectKey>::borrow(self).cmp(other.borrow())
    }
}

impl<S> PartialOrd for ByKey<S> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<S> PartialEq for ByKey<S> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<S> Eq for ByKey<S> {}

impl<S> Pending<S> {
    /// Nothing waits.
    pub(super) const fn new(most_briefs: usize) -> Self {
        Self {
            entries: BTreeSet::new(),
            order: VecDeque::new(),
            ahead: BTreeMap::new(),
            briefs: BTreeMap::new(),
            most_briefs,
            events: 0,
        }
    }

    /// Adds a change to the events of its key; false if it cannot follow them.
    pub(super) fn merge(&mut self, change: Change<S>, arrival: u64, since: Duration) -> bool {
        let key = change.key().clone();
        let known = self.remove(&key);
        if known.is_none() {
            if self.order.len() == self.order.capacity() {
                // By a quarter: many subscribers may stand still with some keys each.
                self.order.reserve_exact(self.order.len() / 4 + 4);
            }
            self.order.push_back((arrival, key.clone()));
        }
        let mut entry =
            known.unwrap_or_else(|| Box::new(Entry { arrival, since, events: KeyEvents::nothing() }));
        let is_possible = entry.events.merge(change, arrival);
        self.insert(&key, entry);
        is_possible
    }

    /// Takes back events that were ready to be delivered: each in the place of its entry, before all that waits.
    /// Nothing waits of any of their keys. `arrival` is that of the first of them, and counts on.
    pub(super) fn put_back(&mut self, ready: VecDeque<(u64, Duration, Change<S>)>, mut arrival: u64) {
        let mut places = Vec::new();
        for (place, since, change) in ready {
            let key = change.key().clone();
            let mut entry = self.remove(&key).unwrap_or_else(|| {
                places.push((place, key.clone()));
                Box::new(Entry { arrival: place, since, events: KeyEvents::nothing() })
            });
            let is_possible = entry.events.merge(change, arrival);
            debug_assert!(is_possible, "what was ready of {key} was in order");
            self.insert(&key, entry);
            arrival += 1;
        }
        places.into_iter().rev().for_each(|place| self.order.push_front(place));
        self.tidy();
    }

    /// An object whose key a cursor has yet to pass was created and deleted: the last such life is delivered.
    pub(super) fn keep_ahead(&mut self, key: &ObjectKey, brief: Brief<S>) {
        if let Some(mut entry) = self.remove(key) {
            entry.events.brief = None;
            self.insert(key, entry);
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
                entry.events.brief = None;
                self.insert(&key, entry);
            }
        }
        dropped
    }

    /// The arrival of the entry whose turn it is, and since when it waits.
    pub(super) fn first(&self) -> Option<(u64, Duration)> {
        let (arrival, key) = self.order.front()?;
        self.entries.get(key).map(|entry| (*arrival, entry.0.since))
    }

    /// Takes out all events of the key whose turn it is.
    pub(super) fn take_first(&mut self) -> Option<(u64, Duration, KeyEvents<S>)> {
        let (_, key) = self.order.pop_front()?;
        let entry = self.remove(&key)?;
        self.tidy();
        Some((entry.arrival, entry.since, entry.events))
    }

    /// Whether events of this key wait.
    pub(super) fn contains(&self, key: &ObjectKey) -> bool {
        self.entries.contains(key)
    }

    /// How many keys have events that wait.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many events that makes, with those of brief lives that a cursor will give.
    pub(super) const fn events(&self) -> usize {
        self.events
    }

    /// The keys whose events wait.
    #[cfg(test)]
    pub(super) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.entries.iter().map(Borrow::borrow)
    }

    /// How many brief lives wait.
    #[cfg(test)]
    pub(super) fn briefs(&self) -> usize {
        self.briefs.len()
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Box<Entry<S>>> {
        let ByKey(entry) = self.entries.take(key)?;
        self.events -= entry.events.len();
        if let Some(brief) = &entry.events.brief {
            self.briefs.remove(&brief.arrival);
        }
        Some(entry)
    }

    /// Puts an entry back in its place, or gives up the place if it has come to nothing.
    fn insert(&mut self, key: &ObjectKey, entry: Box<Entry<S>>) {
        if entry.events.len() == 0 {
            return self.tidy();
        }
        self.events += entry.events.len();
        if let Some(brief) = &entry.events.brief {
            self.briefs.insert(brief.arrival, key.clone());
        }
        self.entries.insert(ByKey(entry));
    }

    /// Forgets void places: those in front, and all of them when they are too many.
    fn tidy(&mut self) {
        let entries = &self.entries;
        let is_void = |(arrival, key): &(u64, ObjectKey)| {
            entries.get(key).is_none_or(|entry| entry.0.arrival != *arrival)
        };
        while self.order.pop_front_if(|place| is_void(place)).is_some() {}
        if self.order.len() > 2 * entries.len() + 16 {
            self.order.retain(|place| !is_void(place));
        }
    }
}

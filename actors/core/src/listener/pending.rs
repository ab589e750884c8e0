//! The events that wait under `Coalesce`, by key and by order of arrival.
//!
//! Answers "which events of this key wait, and which key is next?"; `coalesce.rs` merges two events of a key.
//! Invariants:
//! 1. A key has one entry in the line or none, and `places` says which one: by its number, counted from the entry in
//!    front, whose number is `first`.
//! 2. An entry keeps the place of its first event however much is coalesced into it; one that came to nothing is void,
//!    and has lost its place.
//! 3. At most `most_briefs` brief lives wait, also those of keys that a cursor has yet to pass; beyond that the
//!    oldest are dropped.
//!
//! Logarithmic in the number of keys whose events wait: one search for an event that comes, and one for a key that
//! leaves. Read next: `cursor.rs`, for what waits but is not here.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use super::coalesce::{Brief, KeyEvents};
use crate::delta::Change;
use crate::meta::ObjectKey;

/// The events that wait.
pub(super) struct Pending<S> {
    /// By arrival. The first entry is not void, and at most half of them and a few are.
    line: VecDeque<Entry<S>>,
    first: u64,
    places: BTreeMap<ObjectKey, u64>,
    /// Brief lives of keys that a cursor has not passed yet: it gives them when it passes the key.
    ahead: BTreeMap<ObjectKey, Brief<S>>,
    /// All brief lives, oldest first.
    briefs: BTreeMap<u64, ObjectKey>,
    most_briefs: usize,
    events: usize,
}

/// The events of one key; none if it is void.
struct Entry<S> {
    arrival: u64,
    since: Duration,
    events: KeyEvents<S>,
}

impl<S> Pending<S> {
    /// Nothing waits.
    pub(super) const fn new(most_briefs: usize) -> Self {
        Self {
            line: VecDeque::new(),
            first: 0,
            places: BTreeMap::new(),
            ahead: BTreeMap::new(),
            briefs: BTreeMap::new(),
            most_briefs,
            events: 0,
        }
    }

    /// Adds a change to the events of its key; false if it cannot follow them.
    pub(super) fn merge(&mut self, change: Change<S>, arrival: u64, since: Duration) -> bool {
        let is_possible = self.add(change, arrival, (arrival, since));
        self.tidy();
        is_possible
    }

    /// Takes back events that were ready to be delivered: each in the place of its entry, before all that waits.
    /// Nothing waits of any of their keys. `arrival` is that of the first of them, and counts on.
    pub(super) fn put_back(&mut self, ready: VecDeque<(u64, Duration, Change<S>)>, mut arrival: u64) {
        let waiting = self.line.len();
        for (place, since, change) in ready {
            let is_possible = self.add(change, arrival, (place, since));
            debug_assert!(is_possible, "what was ready of a key was in order");
            arrival += 1;
        }
        let back = self.line.len() - waiting;
        self.line.rotate_right(back);
        self.first = self.first.wrapping_sub(back as u64);
        self.number(back);
        self.tidy();
    }

    /// An object whose key a cursor has yet to pass was created and deleted: the last such life is delivered.
    pub(super) fn keep_ahead(&mut self, key: &ObjectKey, brief: Brief<S>) {
        self.drop_brief(key);
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
            } else {
                self.drop_brief(&key);
            }
        }
        dropped
    }

    /// The arrival of the entry whose turn it is, and since when it waits.
    pub(super) fn first(&self) -> Option<(u64, Duration)> {
        self.line.front().map(|entry| (entry.arrival, entry.since))
    }

    /// Takes out all events of the key whose turn it is.
    pub(super) fn take_first(&mut self) -> Option<(u64, Duration, KeyEvents<S>)> {
        let Entry { arrival, since, events } = self.line.pop_front()?;
        self.first = self.first.wrapping_add(1);
        self.places.remove(events.key()?);
        self.events -= events.len();
        if let Some(brief) = &events.brief {
            self.briefs.remove(&brief.arrival);
        }
        self.tidy();
        Some((arrival, since, events))
    }

    /// Whether events of this key wait.
    pub(super) fn contains(&self, key: &ObjectKey) -> bool {
        self.places.contains_key(key)
    }

    /// How many keys have events that wait.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// How many events that makes, with those of brief lives that a cursor will give.
    pub(super) const fn events(&self) -> usize {
        self.events
    }

    /// The keys whose events wait.
    #[cfg(test)]
    pub(super) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.places.keys()
    }

    /// How many brief lives wait.
    #[cfg(test)]
    pub(super) fn briefs(&self) -> usize {
        self.briefs.len()
    }

    /// Adds a change to the events of its key, which get this place if there are none; false if it cannot follow them.
    fn add(&mut self, change: Change<S>, arrival: u64, (place, since): (u64, Duration)) -> bool {
        let key = change.key().clone();
        let next = self.first.wrapping_add(self.line.len() as u64);
        let number = *self.places.entry(key.clone()).or_insert(next);
        if number == next {
            if self.line.len() == self.line.capacity() {
                // By a quarter: many subscribers may stand still with some keys each.
                self.line.reserve_exact(self.line.len() / 4 + 4);
            }
            self.line.push_back(Entry { arrival: place, since, events: KeyEvents::nothing() });
        }
        let mut is_possible = false;
        self.alter(&key, number, |events| is_possible = events.merge(change, arrival));
        is_possible
    }

    /// Drops the brief life among the events of a key.
    fn drop_brief(&mut self, key: &ObjectKey) {
        if let Some(number) = self.places.get(key).copied() {
            self.alter(key, number, |events| events.brief = None);
            self.tidy();
        }
    }

    /// Changes the events of a key; its place is given up if they have come to nothing.
    fn alter(&mut self, key: &ObjectKey, number: u64, change: impl FnOnce(&mut KeyEvents<S>)) {
        let at = number.wrapping_sub(self.first) as usize;
        let Some(Entry { events, .. }) = self.line.get_mut(at) else { return };
        self.events -= events.len();
        if let Some(brief) = &events.brief {
            self.briefs.remove(&brief.arrival);
        }
        change(events);
        self.events += events.len();
        if let Some(brief) = &events.brief {
            self.briefs.insert(brief.arrival, key.clone());
        }
        if events.len() == 0 {
            self.places.remove(key);
        }
    }

    /// Forgets void entries: those in front, and all of them when they are too many.
    fn tidy(&mut self) {
        while self.line.pop_front_if(|entry| entry.events.len() == 0).is_some() {
            self.first = self.first.wrapping_add(1);
        }
        if self.line.len() > 2 * self.places.len() + 16 {
            self.line.retain(|entry| entry.events.len() > 0);
            self.number(self.line.len());
        }
    }

    /// Notes the places of so many entries in front.
    fn number(&mut self, count: usize) {
        for (at, entry) in self.line.iter().take(count).enumerate() {
            if let Some(place) = entry.events.key().and_then(|key| self.places.get_mut(key)) {
                *place = self.first.wrapping_add(at as u64);
            }
        }
    }
}

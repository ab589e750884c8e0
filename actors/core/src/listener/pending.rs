//! The events that wait under `Coalesce`, by key and arrival. Invariants:
//! 1. A key has at most one entry in the line. `places` has its number; the entry in front has the number `first`.
//! 2. An entry keeps the place of its first event. One whose events came to nothing is void, and has no place.
//! 3. At most `most_briefs` brief lives wait; the oldest are dropped.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use super::coalesce::{Brief, KeyEvents};
use crate::delta::Change;
use crate::meta::ObjectKey;

pub(super) struct Pending<S> {
    /// By arrival. The first entry is not void.
    line: VecDeque<Entry<S>>,
    first: u64,
    places: BTreeMap<ObjectKey, u64>,
    /// Brief lives that a cursor delivers when it passes the key.
    ahead: BTreeMap<ObjectKey, Brief<S>>,
    /// All brief lives, by arrival.
    briefs: BTreeMap<u64, ObjectKey>,
    most_briefs: usize,
    events: usize,
}

struct Entry<S> {
    arrival: u64,
    since: Duration,
    events: KeyEvents<S>,
}

impl<S> Pending<S> {
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

    /// False if the change cannot follow the events of its key.
    pub(super) fn merge(&mut self, change: Change<S>, arrival: u64, since: Duration) -> bool {
        let is_possible = self.add(change, arrival, (arrival, since));
        self.tidy();
        is_possible
    }

    /// Puts events before all that waits, each in the place of its entry. Nothing waits for their keys. `arrival` is
    /// that of the first, and counts up.
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

    pub(super) fn keep_ahead(&mut self, key: &ObjectKey, brief: Brief<S>) {
        self.drop_brief(key);
        self.events += 2;
        self.briefs.insert(brief.arrival, key.clone());
        if let Some(older) = self.ahead.insert(key.clone(), brief) {
            self.events -= 2;
            self.briefs.remove(&older.arrival);
        }
    }

    /// `until` is included.
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

    /// Returns the number of events.
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

    pub(super) fn first(&self) -> Option<(u64, Duration)> {
        self.line.front().map(|entry| (entry.arrival, entry.since))
    }

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

    pub(super) fn contains(&self, key: &ObjectKey) -> bool {
        self.places.contains_key(key)
    }

    /// In keys.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Includes brief lives that a cursor will deliver.
    pub(super) const fn events(&self) -> usize {
        self.events
    }

    #[cfg(test)]
    pub(super) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.places.keys()
    }

    #[cfg(test)]
    pub(super) fn briefs(&self) -> usize {
        self.briefs.len()
    }

    /// As [`Self::merge`]; a new entry has this place.
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

    fn drop_brief(&mut self, key: &ObjectKey) {
        if let Some(number) = self.places.get(key).copied() {
            self.alter(key, number, |events| events.brief = None);
            self.tidy();
        }
    }

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

    /// Removes void entries: in front always, all when there are too many.
    fn tidy(&mut self) {
        while self.line.pop_front_if(|entry| entry.events.len() == 0).is_some() {
            self.first = self.first.wrapping_add(1);
        }
        if self.line.len() > 2 * self.places.len() + 16 {
            self.line.retain(|entry| entry.events.len() > 0);
            self.number(self.line.len());
        }
    }

    fn number(&mut self, count: usize) {
        for (at, entry) in self.line.iter().take(count).enumerate() {
            if let Some(place) = entry.events.key().and_then(|key| self.places.get_mut(key)) {
                *place = self.first.wrapping_add(at as u64);
            }
        }
    }
}

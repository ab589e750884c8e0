//! A map that forgets what was not used for longest.
//!
//! Answers "what is given up when the map is full?": the oldest entry that may go. Invariants:
//! 1. It never holds more than its bound, as long as some entry may go.
//! 2. `order` names each entry once, the least recently used one first.
//!
//! Cost: O(log n) for each call, as long as the oldest entries may go.

use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub(super) struct Lru<K, V> {
    entries: BTreeMap<K, (u64, V)>,
    order: BTreeMap<u64, K>,
    used: u64,
    most: usize,
}

impl<K: Ord + Clone, V> Lru<K, V> {
    pub(super) const fn new(most: usize) -> Self {
        Self { entries: BTreeMap::new(), order: BTreeMap::new(), used: 0, most }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Looks without using it.
    pub(super) fn peek(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    /// Uses an entry.
    pub(super) fn get(&mut self, key: &K) -> Option<&mut V> {
        let (at, value) = self.entries.get_mut(key)?;
        if let Some(key) = self.order.remove(at) {
            self.used += 1;
            *at = self.used;
            self.order.insert(self.used, key);
        }
        Some(value)
    }

    /// Adds an entry that is not there yet. Gives the oldest one that may go, if there is no room.
    pub(super) fn insert(&mut self, key: K, value: V, may_go: impl Fn(&V) -> bool) -> Option<V> {
        let goes = |key: &&K| self.peek(key).is_some_and(&may_go);
        let oldest = (self.len() >= self.most).then(|| self.order.values().find(goes).cloned());
        let gone = oldest.flatten().and_then(|key| self.remove(&key));
        self.used += 1;
        self.order.insert(self.used, key.clone());
        self.entries.insert(key, (self.used, value));
        gone
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let (at, value) = self.entries.remove(key)?;
        self.order.remove(&at);
        Some(value)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.values().map(|(_, value)| value)
    }

    /// Whether invariant 2 holds.
    pub(super) fn check(&self) -> bool {
        self.entries.len() == self.order.len()
            && self.order.iter().all(|(at, key)| self.entries.get(key).is_some_and(|(used, _)| used == at))
    }
}

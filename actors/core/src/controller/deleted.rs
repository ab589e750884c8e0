//! The last states of objects that are gone, until their reconcile is done.
//!
//! Answers "what was it?" for a reconcile that finds no object any more. Invariants:
//! 1. At most so many are kept as it was made for; beyond that the one that was kept first is dropped and counted.
//! 2. For each key the newest one is kept.
//!
//! Read next: `ledger.rs`, which asks.

use std::collections::BTreeMap;

use crate::meta::{Object, ObjectKey};

pub(super) struct Deleted<S> {
    by_key: BTreeMap<ObjectKey, (u64, Object<S>)>,
    /// Keys by the number under which they came.
    by_number: BTreeMap<u64, ObjectKey>,
    number: u64,
    most: usize,
    pub(super) dropped: u64,
}

impl<S> Deleted<S> {
    pub(super) const fn new(most: usize) -> Self {
        Self { by_key: BTreeMap::new(), by_number: BTreeMap::new(), number: 0, most, dropped: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Object<S>> {
        self.by_key.get(key).map(|(_, object)| object)
    }

    pub(super) fn keep(&mut self, last: Object<S>) {
        let key = last.key().clone();
        self.number += 1;
        if let Some((former, _)) = self.by_key.insert(key.clone(), (self.number, last)) {
            self.by_number.remove(&former);
        }
        self.by_number.insert(self.number, key);
        if self.by_key.len() > self.most
            && let Some((_, oldest)) = self.by_number.pop_first()
        {
            self.by_key.remove(&oldest);
            self.dropped += 1;
        }
    }

    /// Forgets this state, unless a newer one is kept.
    pub(super) fn forget(&mut self, done: &Object<S>) {
        let Some((number, kept)) = self.by_key.get(done.key()) else { return };
        if kept.ptr_eq(done) {
            let number = *number;
            self.by_number.remove(&number);
            self.by_key.remove(done.key());
        }
    }
}

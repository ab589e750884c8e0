//! The last states of objects that are gone or have left what is followed, until their reconcile is done.
//!
//! Answers "what was there?" for a reconcile that finds no object. Invariants:
//! 1. At most as many are kept as it was made for. Beyond that the one that was kept first goes, and is counted.
//! 2. For each key the newest one is kept.
//! 3. A state that goes is handed to the caller: its drop is code of a user.
//!
//! Read next: `ledger.rs`, which asks.

use std::collections::BTreeMap;

use informer_core::meta::{Object, ObjectKey, Uid};

pub(super) struct Deleted<S> {
    by_key: BTreeMap<ObjectKey, Kept<S>>,
    /// Keys by the number under which they came.
    by_number: BTreeMap<u64, ObjectKey>,
    number: u64,
    most: usize,
    pub(super) dropped: u64,
}

/// One of them.
struct Kept<S> {
    number: u64,
    last: Object<S>,
    /// Whether the object may live on.
    has_left: bool,
}

impl<S> Deleted<S> {
    pub(super) const fn new(most: usize) -> Self {
        Self { by_key: BTreeMap::new(), by_number: BTreeMap::new(), number: 0, most, dropped: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Object<S>> {
        self.by_key.get(key).map(|kept| &kept.last)
    }

    /// Whether a state of this key is kept, of an object that may live on.
    pub(super) fn has_left(&self, key: &ObjectKey) -> bool {
        self.by_key.get(key).is_some_and(|kept| kept.has_left)
    }

    /// Keeps this state, and gives the one that is not kept any more for that: an older one of the key, or of another
    /// key if there are too many.
    pub(super) fn keep(&mut self, last: Object<S>, has_left: bool) -> Option<Object<S>> {
        let key = last.key().clone();
        self.number += 1;
        let former = self.by_key.insert(key.clone(), Kept { number: self.number, last, has_left });
        self.by_number.insert(self.number, key);
        if let Some(former) = former {
            self.by_number.remove(&former.number);
            return Some(former.last);
        }
        if self.by_key.len() <= self.most {
            return None;
        }
        let (_, oldest) = self.by_number.pop_first()?;
        self.dropped += 1;
        self.by_key.remove(&oldest).map(|kept| kept.last)
    }

    /// Gives the state of this key that is kept, and keeps it no more, if it is of this life.
    pub(super) fn take_life(&mut self, key: &ObjectKey, life: Option<&Uid>) -> Option<Object<S>> {
        let kept = self.by_key.get(key)?;
        if life.is_none() || kept.last.object_uid() != life {
            return None;
        }
        self.take(key)
    }

    /// Keeps the state of this key no more, and returns it.
    pub(super) fn take(&mut self, key: &ObjectKey) -> Option<Object<S>> {
        let kept = self.by_key.remove(key)?;
        self.by_number.remove(&kept.number);
        Some(kept.last)
    }

    /// Forgets this state, which the caller still holds, unless a newer one is kept.
    pub(super) fn forget(&mut self, done: &Object<S>) {
        if self.by_key.get(done.key()).is_some_and(|kept| kept.last.ptr_eq(done)) {
            drop(self.take(done.key()));
        }
    }
}

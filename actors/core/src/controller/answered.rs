//! What reconciles were answered for their writes, until the events of these writes come.
//!
//! Answers "does this event show what the reconcile of its owner knows already?". Invariants:
//! 1. Only the very version that was answered is known, and only for the key whose reconcile was answered it.
//! 2. Any state of an object that is told, its end too, forgets what was answered for it: after a server has gone back, a
//!    version may come again. So does a write that its cache has not shown in time.
//! 3. At most so many answers are kept as it was made for; beyond that the oldest one is forgotten.
//!
//! Read next: `ledger.rs`, which asks.

use std::collections::BTreeMap;

use crate::meta::{ObjectKey, ResourceVersion};

/// An object: the number of its informer, and its key.
pub(super) type Place = (usize, ObjectKey);

pub(super) struct Answered {
    by_place: BTreeMap<Place, Answer>,
    /// Places by the number under which they came.
    by_number: BTreeMap<u64, Place>,
    number: u64,
    most: usize,
    /// How many events showed what was answered.
    pub(super) taken: u64,
}

pub(super) struct Answer {
    number: u64,
    owner: ObjectKey,
    version: ResourceVersion,
}

impl Answered {
    pub(super) const fn new(most: usize) -> Self {
        Self { by_place: BTreeMap::new(), by_number: BTreeMap::new(), number: 0, most, taken: 0 }
    }

    /// The reconcile of `owner` was answered this version.
    pub(super) fn keep(&mut self, place: Place, owner: &ObjectKey, version: &ResourceVersion) {
        self.number += 1;
        let answer = Answer { number: self.number, owner: owner.clone(), version: version.clone() };
        if let Some(former) = self.by_place.insert(place.clone(), answer) {
            self.by_number.remove(&former.number);
        }
        self.by_number.insert(self.number, place);
        if self.by_place.len() > self.most
            && let Some((_, oldest)) = self.by_number.pop_first()
        {
            self.by_place.remove(&oldest);
        }
    }

    /// An event shows this version. Whether that was answered to the reconcile of `owner`; what was answered of the
    /// object is forgotten.
    pub(super) fn take(&mut self, place: &Place, owner: &ObjectKey, version: &ResourceVersion) -> bool {
        let answer = self.forget(place);
        let is_known = answer.is_some_and(|answer| answer.owner == *owner && answer.version == *version);
        self.taken += u64::from(is_known);
        is_known
    }

    /// Whatever was answered of this object does not count any more.
    pub(super) fn forget(&mut self, place: &Place) -> Option<Answer> {
        let answer = self.by_place.remove(place)?;
        self.by_number.remove(&answer.number);
        Some(answer)
    }
}

//! The progress of a function that takes changes and outlives its Listeners.
//!
//! When a Listener dies, the next one delivers what leads from the settled state to the present one. That misses
//! objects that were taken since and are gone, so their last states are kept: at most one for each object that the
//! function takes to be there.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::delta::{Cause, Change};
use crate::meta::{Object, ObjectKey};
use crate::snapshot::Snapshot;

/// The most objects that one call of [`FeedProgress::changes_to`] looks at.
pub const TAKEN_AT_ONCE: usize = 250;

/// The state up to which all changes were taken, and what was taken after it.
///
/// ```
/// # use informer_core::delta::{Cause, Change};
/// # use informer_core::listener::FeedProgress;
/// # use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
/// # use informer_core::snapshot::Snapshot;
/// let version = ResourceVersion::from_number(1).expect("not zero");
/// let object = Object::new(Meta::new(ObjectKey::cluster("a"), version, SourceId::default()), "body");
/// let mut progress = FeedProgress::default();
/// progress.take(&Change::Added { object, cause: Cause::Watch });
/// // It is gone before everything was settled, and no two states show that it was there.
/// assert!(matches!(progress.changes_to(&Snapshot::empty(), None).0[..], [Change::Deleted { .. }]));
/// ```
pub struct FeedProgress<S> {
    settled: Option<Snapshot<S>>,
    since: BTreeMap<ObjectKey, Object<S>>,
}

impl<S> FeedProgress<S> {
    /// The function takes this change. Returns the state that was kept for its key, to be freed.
    pub fn take(&mut self, change: &Change<S>) -> Option<Object<S>> {
        match change {
            Change::Added { object, .. } | Change::Updated { object, .. } => {
                self.since.insert(object.key().clone(), object.clone())
            }
            Change::Deleted { last, .. } => self.since.remove(last.key()),
        }
    }

    /// Everything up to this state was taken. Returns what was known before, to be freed; `None` if that is
    /// nothing new.
    pub fn settle(&mut self, state: &Snapshot<S>) -> Option<Self> {
        let is_known = self.settled.as_ref().is_some_and(|settled| settled.ptr_eq(state));
        if is_known && self.since.is_empty() {
            return None;
        }
        Some(std::mem::replace(self, Self { settled: Some(state.clone()), since: BTreeMap::new() }))
    }

    /// The state up to which all changes were taken; `None` before the first list.
    pub fn settled(&self) -> Option<&Snapshot<S>> {
        self.settled.as_ref()
    }

    /// What leads from the states that were taken since to the present ones, in order of keys, with cause
    /// `Relist`: for the next [`TAKEN_AT_ONCE`] objects behind this key. Also returns the last of their keys,
    /// if there may be more. O(log m) for each.
    pub fn changes_to(
        &self,
        now: &Snapshot<S>,
        behind: Option<&ObjectKey>,
    ) -> (Vec<Change<S>>, Option<ObjectKey>) {
        let (exact, cause) = (false, Cause::Relist);
        let change = |old: &Object<S>| match now.get(old.key()) {
            Some(object) if object.ptr_eq(old) => None,
            Some(object) if object.is_same_life_as(old) => {
                Some(Change::Updated { old: old.clone(), object: object.clone(), cause })
            }
            // The difference from the settled state tells another life of the key as an addition.
            _ => Some(Change::Deleted { old: old.clone(), last: old.clone(), exact, cause }),
        };
        let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
        let next = || self.since.range((from, Bound::Unbounded)).take(TAKEN_AT_ONCE);
        let last = next().nth(TAKEN_AT_ONCE - 1).map(|(key, _)| key.clone());
        (next().filter_map(|(_, old)| change(old)).collect(), last)
    }
}

impl<S> Default for FeedProgress<S> {
    fn default() -> Self {
        Self { settled: None, since: BTreeMap::new() }
    }
}

crate::debug_as!([S] FeedProgress<S>, self, settled = self.settled, since = self.since.len());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::{Meta, ResourceVersion, SourceId};

    #[test]
    fn informer_8_what_a_listener_had_taken_before_it_died_is_told_250_at_a_time_and_once_each() {
        let mut progress = FeedProgress::default();
        let version = ResourceVersion::from_number(1).expect("not zero");
        for number in 0..1_000 {
            let key = ObjectKey::cluster(format!("{number:04}"));
            let object = Object::new(Meta::new(key, version.clone(), SourceId::default()), ());
            progress.take(&Change::Added { object, cause: Cause::Watch });
        }
        let (mut behind, mut told, mut calls) = (None, Vec::new(), 0);
        loop {
            let (changes, last) = progress.changes_to(&Snapshot::empty(), behind.as_ref());
            assert!(changes.len() <= TAKEN_AT_ONCE);
            for change in changes {
                told.push(change.key().clone());
                progress.take(&change);
            }
            calls += 1;
            behind = last;
            if behind.is_none() {
                break;
            }
        }
        assert!(told.len() == 1_000 && told.is_sorted() && calls == 5, "{} in {calls} calls", told.len());
    }
}

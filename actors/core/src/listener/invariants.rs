//! What every subscriber may rely on, as a function that complains in words.
//!
//! Answers "is this sequence of told changes one that a subscriber can replay, and does it end where the store is?".
//! It keeps what a naive subscriber would keep, one map. Used by this crate's proptests and by the suites of whole
//! informers. What it demands of each told change:
//! 1. No `Added` of a key that is present; no `Updated` or `Deleted` of one that is absent.
//! 2. `old` is what was told last, so nothing of the key was told out of order or left out.
//! 3. No event for an unchanged object, but for `Resync`, which changes nothing, and `Rewind`, after which equal
//!    versions prove nothing.
//! 4. Another life of a key is a `Deleted`, then an `Added`.

use std::collections::BTreeMap;
use std::fmt;

use crate::delta::{Cause, Change};
use crate::meta::{Object, ObjectKey};
use crate::snapshot::Snapshot;

/// The state of a subscriber that believes what it is told.
///
/// ```
/// use informer_core::listener::invariants::Replay;
/// use informer_core::snapshot::Snapshot;
/// let replay = Replay::<String>::default();
/// assert_eq!(replay.equals(&Snapshot::empty()), Ok(()));
/// ```
pub struct Replay<S> {
    present: BTreeMap<ObjectKey, Object<S>>,
    told: u64,
}

impl<S> Replay<S> {
    /// Believes one change. Logarithmic.
    ///
    /// # Errors
    /// In words, what rule the change broke; it is believed all the same, so that one fault is one complaint.
    pub fn tell(&mut self, change: &Change<S>) -> Result<(), String> {
        self.told += 1;
        let verdict = check(self.present.get(change.key()), change);
        match change.object() {
            Some(object) => self.present.insert(change.key().clone(), object.clone()),
            None => self.present.remove(change.key()),
        };
        verdict.map_err(|complaint| format!("event {}: {complaint}", self.told))
    }

    /// Whether what was told is exactly this state. Linear.
    ///
    /// # Errors
    /// In words, the first key that differs.
    pub fn equals(&self, snapshot: &Snapshot<S>) -> Result<(), String> {
        for object in snapshot.iter() {
            match self.present.get(object.key()) {
                None => return Err(format!("{object:?} is in the snapshot and was not told")),
                Some(told) if !told.is_same_as(object) => {
                    return Err(format!("{object:?} is in the snapshot, told was {told:?}"));
                }
                Some(_) => {}
            }
        }
        match self.present.values().find(|told| !snapshot.contains(told.key())) {
            Some(told) => Err(format!("{told:?} was told and is not in the snapshot")),
            None => Ok(()),
        }
    }

    /// What was told last of a key: `None` if it is absent.
    pub fn get(&self, key: &ObjectKey) -> Option<&Object<S>> {
        self.present.get(key)
    }

    /// How many keys are present.
    pub fn len(&self) -> usize {
        self.present.len()
    }

    /// Whether no key is present.
    pub fn is_empty(&self) -> bool {
        self.present.is_empty()
    }

    /// How many changes were told.
    pub fn told(&self) -> u64 {
        self.told
    }
}

impl<S> Default for Replay<S> {
    fn default() -> Self {
        Self { present: BTreeMap::new(), told: 0 }
    }
}

impl<S> Clone for Replay<S> {
    fn clone(&self) -> Self {
        Self { present: self.present.clone(), told: self.told }
    }
}

impl<S> fmt::Debug for Replay<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("present", &self.present.len()).field("told", &self.told).finish()
    }
}

fn check<S>(known: Option<&Object<S>>, change: &Change<S>) -> Result<(), String> {
    match (change, known) {
        (Change::Added { object, .. }, Some(known)) => {
            Err(format!("Added {object:?} while {known:?} is present"))
        }
        (Change::Added { .. }, None) => Ok(()),
        (Change::Updated { object, .. }, None) => Err(format!("Updated {object:?} of an absent key")),
        (Change::Deleted { last, .. }, None) => Err(format!("Deleted {last:?} of an absent key")),
        (Change::Updated { old, object, cause }, Some(known)) => check_update(known, old, object, *cause),
        (Change::Deleted { old, last, exact, .. }, Some(known)) => {
            check_old(known, old)?;
            if *exact && !last.is_same_life_as(known) {
                return Err(format!("Deleted {last:?} is the exact end of another life than {known:?}"));
            }
            Ok(())
        }
    }
}

fn check_update<S>(
    known: &Object<S>,
    old: &Object<S>,
    object: &Object<S>,
    cause: Cause,
) -> Result<(), String> {
    check_old(known, old)?;
    if !old.is_same_life_as(object) {
        return Err(format!("Updated {object:?} is another life than {old:?}"));
    }
    match (cause, old.is_same_as(object)) {
        (Cause::Resync, false) => Err(format!("Resync changed {old:?} to {object:?}")),
        (Cause::Resync | Cause::Rewind, _) | (_, false) => Ok(()),
        (cause, true) => Err(format!("Updated {object:?} of an unchanged object, cause {cause}")),
    }
}

fn check_old<S>(known: &Object<S>, old: &Object<S>) -> Result<(), String> {
    if known.is_same_as(old) { Ok(()) } else { Err(format!("old is {old:?}, told last was {known:?}")) }
}

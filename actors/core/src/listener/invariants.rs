//! The promises to a subscriber, as a check of its events, for tests:
//! 1. No `Added` of a key that is present; no `Updated` or `Deleted` of a key that is absent.
//! 2. `old` is the state delivered last.
//! 3. No event for an unchanged object, except `Resync`, and `Rewind`, after which an equal version may be
//!    another state.
//! 4. Another life of a key is a `Deleted`, then an `Added`.

use std::collections::BTreeMap;

use crate::delta::{Cause, Change};
use crate::meta::{Object, ObjectKey};
use crate::snapshot::Snapshot;

/// The state of a subscriber that applies every event it receives.
///
/// ```
/// # use informer_core::listener::invariants::Replay;
/// # use informer_core::snapshot::Snapshot;
/// let replay = Replay::<String>::default();
/// assert_eq!(replay.equals(&Snapshot::empty()), Ok(()));
/// ```
pub struct Replay<S> {
    present: BTreeMap<ObjectKey, Object<S>>,
    applied: u64,
}

impl<S> Replay<S> {
    /// Applies one change. Logarithmic.
    ///
    /// # Errors
    /// The rule that the change broke, as a text. The change is applied in any case, so one fault causes one
    /// error.
    pub fn apply(&mut self, change: &Change<S>) -> Result<(), String> {
        self.applied += 1;
        let verdict = check(self.present.get(change.key()), change);
        match change.object() {
            Some(object) => self.present.insert(change.key().clone(), object.clone()),
            None => self.present.remove(change.key()),
        };
        verdict.map_err(|complaint| format!("event {}: {complaint}", self.applied))
    }

    /// Whether what was applied leads to exactly this state. Linear.
    ///
    /// # Errors
    /// The first key that differs, in words.
    pub fn equals(&self, snapshot: &Snapshot<S>) -> Result<(), String> {
        for object in snapshot.iter() {
            match self.present.get(object.key()) {
                None => return Err(format!("{object:?} is in the snapshot and was not delivered")),
                Some(delivered) if !delivered.is_same_as(object) => {
                    return Err(format!("{object:?} is in the snapshot, {delivered:?} was delivered"));
                }
                Some(_) => {}
            }
        }
        match self.present.values().find(|delivered| !snapshot.contains(delivered.key())) {
            Some(delivered) => Err(format!("{delivered:?} was delivered and is not in the snapshot")),
            None => Ok(()),
        }
    }

    /// The last state of a key: `None` if it is absent.
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

    /// How many changes were applied.
    pub fn applied(&self) -> u64 {
        self.applied
    }
}

impl<S> Default for Replay<S> {
    fn default() -> Self {
        Self { present: BTreeMap::new(), applied: 0 }
    }
}

crate::clone_of!([S] Replay<S> { present, applied });

crate::debug_as!([S] Replay<S>, self, present = self.present.len(), applied = self.applied);

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
    if known.is_same_as(old) { Ok(()) } else { Err(format!("old is {old:?}, delivered last was {known:?}")) }
}

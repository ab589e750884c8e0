//! What this process has applied, so that an apply that changes nothing is left out. The cache is compared
//! with the server's answer: servers fill in defaults and write quantities in their own form.
//!
//! 1. An apply is left out only if the same was applied to the same object, and the cache shows the version
//!    of the answer, or an equal object. So the next apply removes what another process of the same manager
//!    has added.
//! 2. At most 65,536 children are remembered, and as many objects that are not ours.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use informer_core::meta::{ObjectKey, Uid};
use serde_json::Value;

use super::shown::Shown;
use super::{ChildBody, State};

const BOUND: usize = 65_536;

pub(super) type Place = (TypeId, ObjectKey, Uid);

#[derive(Default)]
pub(super) struct Memory {
    hasher: RandomState,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By the hash of their place: a collision costs one apply.
    children: BTreeMap<u64, Child>,
    /// Uid and version of objects that are not ours.
    foreign: BTreeMap<u64, u64>,
}

/// Hashes: the texts of 30,000 children would take megabytes.
struct Child {
    /// Of place, uid and body.
    applied: u64,
    /// The newest state that shows the answer.
    state: State,
    /// Of the answer without status; `None` if the cache shows only versions.
    shown: Option<u64>,
}

impl Memory {
    pub(super) fn is_applied<K: ChildBody>(&self, place: &Place, body: &Value, shown: &Shown<K>) -> bool {
        let (applied, version) = (self.applied(place, shown.uid(), body), shown.version().to_string());
        let at = self.hasher.hash_one(place);
        let expected = {
            let known = self.known();
            let Some(child) = known.children.get(&at).filter(|child| child.applied == applied) else {
                return false;
            };
            if *child.state.version == *version {
                return true;
            }
            child.shown
        };
        let found = shown.json().map(|object| self.hash_shown(object, body));
        if expected.is_none() || found != expected {
            return false;
        }
        if let Some(child) = self.known().children.get_mut(&at) {
            child.state.version = version.into();
        }
        true
    }

    pub(super) fn state(&self, place: &Place) -> Option<State> {
        self.known().children.get(&self.hasher.hash_one(place)).map(|child| child.state.clone())
    }

    /// `is_shown`: the cache shows whole objects.
    pub(super) fn remember<K: ChildBody>(&self, place: &Place, body: &Value, answer: &K, is_shown: bool) {
        let at = self.hasher.hash_one(place);
        let Some(state) = State::of(answer.meta()) else { return self.forget(place) };
        let applied = self.applied(place, Uid::new(&state.uid).as_ref(), body);
        let whole = is_shown.then(|| serde_json::to_value(answer).ok()).flatten();
        let shown = whole.map(|object| self.hash_shown(object, body));
        let mut known = self.known();
        known.children.insert(at, Child { applied, state, shown });
        if known.children.len() > BOUND {
            drop(known.children.pop_first());
        }
    }

    pub(super) fn forget(&self, place: &Place) {
        self.known().children.remove(&self.hasher.hash_one(place));
    }

    pub(super) fn note_foreign(&self, state: &State) {
        let (uid, version) = (self.hasher.hash_one(&state.uid), self.hasher.hash_one(&state.version));
        let mut known = self.known();
        known.foreign.insert(uid, version);
        if known.foreign.len() > BOUND {
            known.foreign.pop_first();
        }
    }

    pub(super) fn is_foreign(&self, state: &State) -> bool {
        let (uid, version) = (self.hasher.hash_one(&state.uid), self.hasher.hash_one(&state.version));
        self.known().foreign.get(&uid) == Some(&version)
    }

    fn applied(&self, place: &Place, uid: Option<&Uid>, body: &Value) -> u64 {
        self.hasher.hash_one((place, uid, self.hash(body)))
    }

    /// Without what may change by itself: version, managed fields and, unless it was applied, the status.
    fn hash_shown(&self, mut object: Value, applied: &Value) -> u64 {
        if let Some(members) = object.as_object_mut().filter(|_| applied.get("status").is_none()) {
            members.remove("status");
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["managedFields", "resourceVersion"] {
                metadata.remove(field);
            }
        }
        self.hash(&object)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Each change is one insert or assignment: a panic leaves nothing half done.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The seed of a process: nobody can prepare two bodies with one hash.
    fn hash(&self, value: &Value) -> u64 {
        self.hasher.hash_one(value.to_string())
    }
}

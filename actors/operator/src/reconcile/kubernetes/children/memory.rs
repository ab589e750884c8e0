//! What this process has applied, what the server has made of it, and which objects were found not to be ours.
//!
//! Answers "would this apply change anything?" from the cache alone. Of each child it keeps a hash of what was applied, the version
//! of the server's answer, and a hash of the answer but for its status. Nothing is compared with what was applied itself:
//! servers fill in defaults and write amounts in their own way. Invariants:
//! 1. An apply is left out only if the same was applied before to the same object, and the cache shows the version of the
//!    server's answer, or an object that is as that answer was but for its status, its version and its managed fields. So
//!    what anybody has added is seen: another process of the same manager may have done it, which the next apply removes.
//! 2. At most 65,536 children are remembered, and as many objects that are not ours.
//!
//! Read next: `shown.rs`, what a cache knows of a child.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use informer_core::meta::{ObjectKey, Uid};
use serde_json::Value;

use super::shown::Shown;
use super::{ChildBody, State};

/// How many children are remembered.
const BOUND: usize = 65_536;

/// Which child it is: its type, its key, and the uid of its owner.
pub(super) type Place = (TypeId, ObjectKey, Uid);

/// What was applied.
#[derive(Default)]
pub(super) struct Memory {
    hasher: RandomState,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By the hash of their place: two places with one hash cost an apply that changes nothing.
    children: BTreeMap<u64, Child>,
    /// The hash of the version at which an object was found not to be ours, by that of its uid.
    foreign: BTreeMap<u64, u64>,
}

/// Hashes instead of texts: of 30,000 children the texts would be megabytes.
struct Child {
    /// Of place, uid and body.
    applied: u64,
    /// The newest state of which it is known that it shows what the server has made of it.
    state: State,
    /// Of the answer but for its status; `None` if the cache shows versions alone.
    shown: Option<u64>,
}

impl Memory {
    /// Whether this body was applied before, and the cached object shows what the server made of it.
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

    /// The newest state of this child that this process knows, if it has applied it before.
    pub(super) fn state(&self, place: &Place) -> Option<State> {
        self.known().children.get(&self.hasher.hash_one(place)).map(|child| child.state.clone())
    }

    /// The server has answered an apply of this body. `is_shown`: the cache shows whole objects.
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

    /// The child is gone.
    pub(super) fn forget(&self, place: &Place) {
        self.known().children.remove(&self.hasher.hash_one(place));
    }

    /// This state of an object is not ours.
    pub(super) fn note_foreign(&self, state: &State) {
        let (uid, version) = (self.hasher.hash_one(&state.uid), self.hasher.hash_one(&state.version));
        let mut known = self.known();
        known.foreign.insert(uid, version);
        if known.foreign.len() > BOUND {
            known.foreign.pop_first();
        }
    }

    /// Whether this state was found not to be ours.
    pub(super) fn is_foreign(&self, state: &State) -> bool {
        let (uid, version) = (self.hasher.hash_one(&state.uid), self.hasher.hash_one(&state.version));
        self.known().foreign.get(&uid) == Some(&version)
    }

    fn applied(&self, place: &Place, uid: Option<&Uid>, body: &Value) -> u64 {
        self.hasher.hash_one((place, uid, self.hash(body)))
    }

    /// The hash of an object without what may differ although nobody has changed anything: who has written it, and how far it is,
    /// if that was not applied as well.
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
        // Each change of it is one insert or one assignment: nothing is half done where a thread has panicked.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The seed is drawn for each process: nobody can prepare two bodies with one hash.
    fn hash(&self, value: &Value) -> u64 {
        self.hasher.hash_one(value.to_string())
    }
}

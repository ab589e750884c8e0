//! What this process has applied, and what the server has made of it.
//!
//! Answers "would this apply change anything?" from the cache alone. Of each child it keeps a hash of what was applied, the
//! fields that the server then said are this manager's, and a hash of their values in the answer. Nothing is compared with
//! what was applied itself: servers fill in defaults and write amounts in their own way. Invariants:
//! 1. An apply is left out only if the same was applied before to the same object, and the cache shows the version of the
//!    server's answer, or each field of this manager with the value of that answer.
//! 2. At most 65,536 children are remembered; the sets of fields are shared, since children of one sort have the same.
//!
//! Read next: `projection.rs`.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use informer_core::meta::{ObjectKey, ResourceVersion, Uid};
use serde_json::Value;

use super::ChildBody;
use super::projection::projected;
use super::shown::Shown;

/// How many children are remembered.
const BOUND: usize = 65_536;

/// Which child it is.
pub(super) type Place = (TypeId, ObjectKey);

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
    /// The sets of fields, by their hash.
    fields: BTreeMap<u64, Arc<Value>>,
}

/// Hashes instead of texts: of 30,000 children the texts would be megabytes.
struct Child {
    /// Of place, uid and body.
    applied: u64,
    /// Of the newest version of which it is known that it shows what the server has made of it.
    version: u64,
    /// `None` if the cache shows versions alone.
    values: Option<Values>,
}

#[derive(Clone)]
struct Values {
    fields: Arc<Value>,
    /// The hash of the values of these fields in the server's answer.
    hash: u64,
}

impl Memory {
    /// Whether this body was applied before, and the cached object shows what the server made of it.
    pub(super) fn is_applied<K: ChildBody>(&self, place: &Place, body: &Value, shown: &Shown<K>) -> bool {
        let (applied, version) =
            (self.applied(place, shown.uid(), body), self.hasher.hash_one(shown.version()));
        let at = self.hasher.hash_one(place);
        let values = {
            let known = self.known();
            let Some(child) = known.children.get(&at).filter(|child| child.applied == applied) else {
                return false;
            };
            if child.version == version {
                return true;
            }
            child.values.clone()
        };
        let (Some(values), Some(object)) = (values, shown.json()) else { return false };
        if self.hash(&projected(&object, &values.fields)) != values.hash {
            return false;
        }
        if let Some(child) = self.known().children.get_mut(&at) {
            child.version = version;
        }
        true
    }

    /// Whether this process has applied it before.
    pub(super) fn has(&self, place: &Place) -> bool {
        self.known().children.contains_key(&self.hasher.hash_one(place))
    }

    /// The server has answered an apply of this body. By which manager, if the cache shows fields: then those of this
    /// manager are remembered.
    pub(super) fn remember<K: ChildBody>(
        &self,
        place: &Place,
        body: &Value,
        answer: &K,
        manager: Option<&str>,
    ) {
        let (meta, at) = (answer.meta(), self.hasher.hash_one(place));
        let values = manager.map(|manager| self.values(answer, manager));
        // Without a version nothing shows it, and without the manager's fields no other version does.
        let version =
            meta.resource_version.as_ref().and_then(|version| version.parse::<ResourceVersion>().ok());
        let (Some(version), false) = (version, matches!(values, Some(None))) else {
            self.known().children.remove(&at);
            return;
        };
        let uid = meta.uid.as_deref().and_then(Uid::new);
        let applied = self.applied(place, uid.as_ref(), body);
        let version = self.hasher.hash_one(&version);
        let mut known = self.known();
        let values = values
            .flatten()
            .map(|(fields, hash)| Values { fields: known.shared(self.hash(&fields), fields), hash });
        known.children.insert(at, Child { applied, version, values });
        if known.children.len() > BOUND {
            drop(known.children.pop_first());
        }
    }

    /// The fields of this manager, and the hash of their values.
    fn values<K: ChildBody>(&self, answer: &K, manager: &str) -> Option<(Value, u64)> {
        let entries = answer.meta().managed_fields.iter().flatten();
        let mut own = entries.filter(|entry| {
            entry.manager.as_deref() == Some(manager)
                && entry.operation.as_deref() == Some("Apply")
                && entry.subresource.as_deref().unwrap_or_default().is_empty()
        });
        let fields = own.next()?.fields_v1.clone()?.0;
        let hash = self.hash(&projected(&serde_json::to_value(answer).ok()?, &fields));
        Some((fields, hash))
    }

    fn applied(&self, place: &Place, uid: Option<&Uid>, body: &Value) -> u64 {
        self.hasher.hash_one((place, uid, self.hash(body)))
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

impl Known {
    /// The one copy of this set of fields; sets that no child has any more are dropped when there are too many.
    fn shared(&mut self, hash: u64, fields: Value) -> Arc<Value> {
        if self.fields.len() > self.children.len() + 16 {
            self.fields.retain(|_, fields| Arc::strong_count(fields) > 1);
        }
        let known = self.fields.get(&hash).filter(|known| ***known == fields);
        known.cloned().unwrap_or_else(|| {
            let fields = Arc::new(fields);
            self.fields.insert(hash, Arc::clone(&fields));
            fields
        })
    }
}

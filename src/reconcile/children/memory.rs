//! What this process has applied, and what the server has made of it.
//!
//! Answers "would this apply change anything?" from the cache alone. Of each child it keeps a hash of what was applied, the
//! fields that the server then said are this manager's, and a hash of their values in the answer. Nothing is compared with
//! what was applied itself: servers fill in defaults and write amounts in their own way. Invariants:
//! 1. An apply is left out only if the same was applied before to the same object, and the cache shows each field of this
//!    manager with the value of the server's answer.
//! 2. At most 65,536 children are remembered; the sets of fields are shared, since children of one sort have the same.
//!
//! Read next: `projection.rs`.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use informer_core::meta::{Object, ObjectKey};
use kube_core::Resource;
use serde::Serialize;
use serde_json::Value;

use super::projection::projected;

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
    children: BTreeMap<Place, Child>,
    /// The sets of fields, by their hash.
    fields: BTreeMap<u64, Arc<Value>>,
}

struct Child {
    uid: Option<String>,
    applied: u64,
    fields: Arc<Value>,
    /// The hash of the values of these fields in the server's answer.
    values: u64,
    /// The newest version of which it is known that it shows these values.
    version: String,
}

impl Memory {
    /// Whether this body was applied before, and the cached object shows what the server made of it.
    pub(super) fn is_applied<K: Resource + Serialize>(
        &self,
        place: &Place,
        body: &Value,
        cached: &Object<K>,
    ) -> bool {
        let (fields, values) = {
            let known = self.known();
            let Some(child) = known.children.get(place) else { return false };
            if child.uid != cached.meta().uid || child.applied != self.hash(body) {
                return false;
            }
            if cached.meta().resource_version.as_ref() == Some(&child.version) {
                return true;
            }
            (Arc::clone(&child.fields), child.values)
        };
        let Ok(shown) = serde_json::to_value(cached.body()) else { return false };
        if self.hash(&projected(&shown, &fields)) != values {
            return false;
        }
        if let (Some(child), Some(version)) =
            (self.known().children.get_mut(place), &cached.meta().resource_version)
        {
            child.version.clone_from(version);
        }
        true
    }

    /// Whether this process has applied it before.
    pub(super) fn has(&self, place: &Place) -> bool {
        self.known().children.contains_key(place)
    }

    /// The server has answered an apply of this body by this manager.
    pub(super) fn remember<K: Resource + Serialize>(
        &self,
        place: Place,
        body: &Value,
        manager: &str,
        answer: &K,
    ) {
        let meta = answer.meta();
        let entries = meta.managed_fields.iter().flatten();
        let mut own = entries.filter(|entry| {
            entry.manager.as_deref() == Some(manager)
                && entry.operation.as_deref() == Some("Apply")
                && entry.subresource.as_deref().unwrap_or_default().is_empty()
        });
        let fields = own.next().and_then(|entry| entry.fields_v1.as_ref());
        let (Some(fields), Ok(shown)) = (fields, serde_json::to_value(answer)) else {
            self.known().children.remove(&place);
            return;
        };
        let values = self.hash(&projected(&shown, &fields.0));
        let mut known = self.known();
        let fields = known.shared(self.hash(&fields.0), &fields.0);
        let version = meta.resource_version.clone().unwrap_or_default();
        let child = Child { uid: meta.uid.clone(), applied: self.hash(body), fields, values, version };
        known.children.insert(place, child);
        if known.children.len() > BOUND {
            drop(known.children.pop_first());
        }
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
    fn shared(&mut self, hash: u64, fields: &Value) -> Arc<Value> {
        if self.fields.len() > self.children.len() + 16 {
            self.fields.retain(|_, fields| Arc::strong_count(fields) > 1);
        }
        let known = self.fields.get(&hash).filter(|known| ***known == *fields);
        known.cloned().unwrap_or_else(|| {
            let fields = Arc::new(fields.clone());
            self.fields.insert(hash, Arc::clone(&fields));
            fields
        })
    }
}

//! Which objects depend on which: what the garbage collector knows.
//!
//! Answers: which objects are to be looked at after this change? Nothing is decided here.
//! 1. Owners are known by uid.
//!
//! Next: `garbage.rs` decides.
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::Deserialize;

use super::ResourceId;
use super::history::Event;
use super::object::Object;
use super::propagation::{FOREGROUND, ORPHAN};

/// The place of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) resource: ResourceId,
    pub(super) key: Arc<str>,
}

/// Which objects depend on which, and which are to be checked.
#[derive(Debug, Default)]
pub(super) struct Garbage {
    /// By the uid of the owner, whether it exists or not.
    pub(super) dependants: BTreeMap<String, BTreeSet<Place>>,
    /// Removed owners to which some object still refers, and their namespaces.
    pub(super) gone: BTreeMap<String, Box<str>>,
    /// Owners that wait for their dependants, by uid.
    waiting: BTreeMap<String, Place>,
    pub(super) queue: VecDeque<Place>,
    queued: BTreeSet<Place>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Ties {
    pub(super) owner_references: Vec<Reference>,
    pub(super) finalizers: Vec<String>,
    pub(super) deletion_timestamp: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Reference {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) block_owner_deletion: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tied {
    metadata: Ties,
}

impl Ties {
    pub(super) fn of(object: &Object) -> Self {
        let tied: Result<Tied, _> = serde_json::from_slice(object.metadata_only());
        tied.unwrap_or_default().metadata
    }

    pub(super) fn holds(&self, finalizer: &str) -> bool {
        self.deletion_timestamp.is_some() && self.finalizers.iter().any(|held| held == finalizer)
    }
}

impl Garbage {
    pub(super) fn look_at(&mut self, place: &Place) {
        if self.queued.insert(place.clone()) {
            self.queue.push_back(place.clone());
        }
    }

    pub(super) fn next(&mut self) -> Option<Place> {
        let place = self.queue.pop_front()?;
        self.queued.remove(&place);
        Some(place)
    }

    /// Records a change.
    pub(super) fn note(&mut self, resource: &ResourceId, event: &Event) {
        let place = Place { resource: resource.clone(), key: Arc::clone(&event.key) };
        let before = event.old.as_deref().map(Ties::of).unwrap_or_default();
        let after = event.new.as_deref().map(Ties::of).unwrap_or_default();
        if before.owner_references != after.owner_references {
            self.untie(&place, &before);
            self.tie(&place, &after);
        }
        if let Some(object) = &event.new
            && (after.holds(FOREGROUND) || after.holds(ORPHAN))
        {
            self.waiting.insert(object.uid.to_string(), place.clone());
            self.look_at(&place);
        }
        if let (Some(object), None) = (&event.old, &event.new) {
            self.waiting.remove(&*object.uid);
            if let Some(left) = self.dependants.get(&*object.uid).cloned() {
                self.gone.insert(object.uid.to_string(), object.namespace.clone());
                left.iter().for_each(|dependant| self.look_at(dependant));
            }
        }
    }

    fn tie(&mut self, place: &Place, ties: &Ties) {
        for owner in &ties.owner_references {
            self.dependants.entry(owner.uid.clone()).or_default().insert(place.clone());
        }
        if !ties.owner_references.is_empty() {
            self.look_at(place);
        }
    }

    fn untie(&mut self, place: &Place, ties: &Ties) {
        for owner in &ties.owner_references {
            if let Some(places) = self.dependants.get_mut(&owner.uid) {
                places.remove(place);
                if places.is_empty() {
                    self.dependants.remove(&owner.uid);
                    self.gone.remove(&owner.uid);
                }
            }
            if let Some(owner) = self.waiting.get(&owner.uid).cloned() {
                self.look_at(&owner);
            }
        }
    }

    pub(super) fn dependants_of(&self, uid: &str) -> Vec<Place> {
        self.dependants.get(uid).into_iter().flatten().cloned().collect()
    }
}

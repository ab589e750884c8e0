//! The garbage collector: objects are deleted after their owners, as by the controller manager of a cluster.
//!
//! Answers: which objects lose their last owner by this change, or their last finalizer? Off unless asked for; then it
//! gets each commit.
//! 1. Owners are known by uid: another object of the same name is not the owner.
//! 2. No decision is made when a change is recorded: `sweep` reads the object as it is then, and writes only as any
//!    client could.
//! 3. A sweep is bounded; the rest waits in the queue, where each object is at most once.
//! 4. An object is left as it is while one of its owners cannot be found out: of a kind that is not served, or of a
//!    namespaced kind where the object has no namespace. It has lost a removed owner only if it could refer to it.
//!
//! Next: `propagation.rs` for the finalizers; `world.rs` calls `sweep` after a request until nothing is left.
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::delete::DeleteOptions;
use super::history::Event;
use super::kind::{Kind, ResourceId};
use super::object::Object;
use super::patch::PatchKind;
use super::propagation::{FOREGROUND, ORPHAN, Propagation};
use super::store::{Call, Cluster};

/// The manager of the collector's writes.
const COLLECTOR: &str = "kube-controller-manager";
/// How many objects one sweep handles.
const SWEEP: usize = 64;

/// The place of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    resource: ResourceId,
    key: Arc<str>,
}

/// Which objects depend on which, and which are to be checked.
#[derive(Debug, Default)]
pub(super) struct Garbage {
    /// By the uid of the owner, whether it exists or not.
    dependants: BTreeMap<String, BTreeSet<Place>>,
    /// Removed owners to which some object still refers, and their namespaces.
    gone: BTreeMap<String, Box<str>>,
    /// Owners that wait for their dependants, by uid.
    waiting: BTreeMap<String, Place>,
    queue: VecDeque<Place>,
    queued: BTreeSet<Place>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Ties {
    owner_references: Vec<Reference>,
    finalizers: Vec<String>,
    deletion_timestamp: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Reference {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    block_owner_deletion: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tied {
    metadata: Ties,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Living,
    /// Is deleted in the foreground: after its dependants.
    Waiting,
    Gone,
    /// Nobody can say where it is.
    Unknown,
}

impl Ties {
    fn of(object: &Object) -> Self {
        let tied: Result<Tied, _> = serde_json::from_slice(object.metadata_only());
        tied.unwrap_or_default().metadata
    }

    fn holds(&self, finalizer: &str) -> bool {
        self.deletion_timestamp.is_some() && self.finalizers.iter().any(|held| held == finalizer)
    }
}

impl Garbage {
    fn look_at(&mut self, place: &Place) {
        if self.queued.insert(place.clone()) {
            self.queue.push_back(place.clone());
        }
    }

    fn next(&mut self) -> Option<Place> {
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

    fn dependants_of(&self, uid: &str) -> Vec<Place> {
        self.dependants.get(uid).into_iter().flatten().cloned().collect()
    }
}

impl Cluster {
    /// Begins to delete objects after their owners, also objects that are already stored.
    pub(crate) fn collect_garbage(&mut self) {
        let mut garbage = Garbage::default();
        for (resource, table) in &self.tables {
            for (key, object) in &table.objects {
                let event = Event::new(Arc::clone(key), object.revision, None, Some(Arc::clone(object)));
                garbage.note(resource, &event);
            }
        }
        self.garbage = Some(garbage);
    }

    /// Checks some of the objects whose owners or dependants have changed. Returns whether there are more.
    pub(crate) fn sweep(&mut self, now: i64) -> bool {
        for _ in 0..SWEEP {
            let Some(place) = self.garbage.as_mut().and_then(Garbage::next) else { return false };
            self.settle_ties(&place, now);
        }
        self.garbage.as_ref().is_some_and(|garbage| !garbage.queue.is_empty())
    }

    fn settle_ties(&mut self, place: &Place, now: i64) {
        let Some(kind) = self.registry.stored(&place.resource).cloned() else { return };
        let Some(object) = self.find(&place.resource, &place.key).cloned() else { return };
        let ties = Ties::of(&object);
        if ties.holds(ORPHAN) {
            self.orphan(place, &object, now);
        } else if ties.holds(FOREGROUND) {
            self.end_after_dependants(&kind, &object, now);
        } else if ties.deletion_timestamp.is_none() && !ties.owner_references.is_empty() {
            self.follow_owners(&kind, &object, &ties, now);
        }
    }

    /// Handles an object whose owners have changed: it is deleted, loses some of its references, or stays as
    /// it is.
    fn follow_owners(&mut self, kind: &Arc<Kind>, object: &Object, ties: &Ties, now: i64) {
        let owners: Vec<(&Reference, Owner)> =
            ties.owner_references.iter().map(|owner| (owner, self.state_of(object, owner))).collect();
        let is = |state: Owner| owners.iter().any(|(_, owner)| *owner == state);
        if is(Owner::Unknown) {
            return;
        }
        if is(Owner::Living) {
            let lost = owners.iter().filter(|(_, owner)| *owner != Owner::Living);
            let lost: Vec<&str> = lost.map(|(owner, _)| owner.uid.as_str()).collect();
            if !lost.is_empty() {
                self.forget_owners(kind, object, &lost, now);
            }
            return;
        }
        let held = |name: &str| ties.finalizers.iter().any(|held| held == name);
        let depended = self.garbage.as_ref().is_some_and(|known| known.dependants.contains_key(&*object.uid));
        let propagation = if (is(Owner::Waiting) && depended) || held(FOREGROUND) {
            Propagation::Foreground
        } else if held(ORPHAN) {
            Propagation::Orphan
        } else {
            Propagation::Background
        };
        let options = DeleteOptions {
            uid: Some(object.uid.to_string()),
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        // An object that cannot be deleted (a permanent namespace) stays, as with the real collector.
        let _gone = self.delete(&call(kind, object, now), &options);
    }

    fn state_of(&self, object: &Object, owner: &Reference) -> Owner {
        let gone = self.garbage.as_ref().and_then(|garbage| garbage.gone.get(&owner.uid));
        if gone.is_some_and(|namespace| namespace.is_empty() || *namespace == object.namespace) {
            return Owner::Gone;
        }
        let Some(kind) = self.registry.by_type(&owner.api_version, &owner.kind) else {
            return Owner::Unknown;
        };
        if kind.namespaced && object.namespace.is_empty() {
            return Owner::Unknown;
        }
        match self.find(&kind.storage, &kind.key(&object.namespace, &owner.name)) {
            Some(found) if *found.uid != *owner.uid => Owner::Gone,
            Some(found) if Ties::of(found).holds(FOREGROUND) => Owner::Waiting,
            Some(_) => Owner::Living,
            None => Owner::Gone,
        }
    }

    fn forget_owners(&mut self, kind: &Arc<Kind>, object: &Object, lost: &[&str], now: i64) -> bool {
        let value = object.decode();
        let mut kept = value["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        kept.retain(|owner| !owner["uid"].as_str().is_some_and(|uid| lost.contains(&uid)));
        let kept = if kept.is_empty() { Value::Null } else { Value::Array(kept) };
        self.change(kind, object, &json!({"metadata": {"ownerReferences": kept}}), now)
    }

    /// Removes from some dependants the reference to an owner that is deleted without them; after the last
    /// one the owner is removed.
    fn orphan(&mut self, place: &Place, owner: &Object, now: i64) {
        let dependants = self.garbage.as_ref().map_or_else(Vec::new, |known| known.dependants_of(&owner.uid));
        for dependant in dependants.iter().take(SWEEP) {
            let Some(kind) = self.registry.stored(&dependant.resource).cloned() else { return };
            let Some(object) = self.find(&dependant.resource, &dependant.key).cloned() else { return };
            if !self.forget_owners(&kind, &object, &[&owner.uid], now) {
                return;
            }
        }
        if dependants.len() > SWEEP {
            if let Some(garbage) = &mut self.garbage {
                garbage.look_at(place);
            }
        } else if let Some(kind) = self.registry.stored(&place.resource).cloned() {
            self.release(&kind, owner, ORPHAN, now);
        }
    }

    /// Removes an owner that no dependant blocks any more; else its dependants are deleted first.
    fn end_after_dependants(&mut self, kind: &Arc<Kind>, owner: &Object, now: i64) {
        let Some(garbage) = &mut self.garbage else { return };
        let dependants = garbage.dependants_of(&owner.uid);
        let blocks = |place: &Place| {
            let object = self.tables.get(&place.resource).and_then(|table| table.objects.get(&place.key));
            let owners = object.map(|object| Ties::of(object).owner_references).unwrap_or_default();
            owners.iter().any(|one| one.block_owner_deletion == Some(true) && *one.uid == *owner.uid)
        };
        if !dependants.iter().any(blocks) {
            self.release(kind, owner, FOREGROUND, now);
            return;
        }
        dependants.iter().for_each(|dependant| garbage.look_at(dependant));
    }

    fn release(&mut self, kind: &Arc<Kind>, owner: &Object, finalizer: &str, now: i64) {
        let mut held = Ties::of(owner).finalizers;
        held.retain(|name| name != finalizer);
        self.change(kind, owner, &json!({"metadata": {"finalizers": held}}), now);
    }

    /// Patches an object as a client would. Returns whether the patch was accepted.
    fn change(&mut self, kind: &Arc<Kind>, object: &Object, patch: &Value, now: i64) -> bool {
        let patch = patch.to_string();
        self.patch(&call(kind, object, now), PatchKind::Merge, patch.as_bytes()).is_ok()
    }
}

fn call<'a>(kind: &'a Arc<Kind>, object: &'a Object, now: i64) -> Call<'a> {
    Call { manager: COLLECTOR, ..Call::plain(kind, &object.namespace, &object.name, now) }
}

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
//! Next: `dependants.rs` for what is known, `propagation.rs` for the finalizers; `world.rs` calls `sweep` after a request until nothing is left.
use std::sync::Arc;

use serde_json::{Value, json};

use super::call::{Call, PatchKind};
use super::delete::DeleteOptions;
use super::dependants::{Garbage, Place, Reference, Ties};
use super::history::Event;
use super::kind::Kind;
use super::object::Object;
use super::propagation::{FOREGROUND, ORPHAN, Propagation};
use super::store::Cluster;

/// The manager of the collector's writes.
const COLLECTOR: &str = "kube-controller-manager";
/// How many objects one sweep handles.
const SWEEP: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Living,
    /// Is deleted in the foreground: after its dependants.
    Waiting,
    Gone,
    /// Nobody can say where it is.
    Unknown,
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

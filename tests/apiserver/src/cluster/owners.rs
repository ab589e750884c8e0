//! `metadata.managedFields` at each write: read from the stored and the sent object, updated, written back.
//!
//! Answers: who owns which fields of this object after this create, update or apply? The rules are in `apply`.
//! 1. Until a commit the entries are kept apart from the object: a comparison of objects never sees them.
//! 2. Entries that cannot be read are ignored; `[]` and `[{}]` mean that nothing is owned.
//! 3. An object without owners stays so until the next apply.
//! 4. A server without managed fields keeps none and ignores those in bodies.
//!
//! Next: `write.rs` and `server_side.rs` call this.
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::apply::{FieldSet, Managed, Place, Writer};
use super::call::{Call, SERVER};
use super::convert;
use super::defaults::GoType;
use super::kind::Kind;
use super::metadata::metadata_mut;
use super::schema::Schema;
use super::store::Cluster;

const MEMBER: &str = "managedFields";

/// The owners after a write, and the stored ones before it.
#[derive(Debug)]
pub(super) struct Owners {
    managed: Managed,
    stored: Option<Value>,
}

impl Owners {
    /// Owners of an object that is not stored yet.
    pub(super) fn of_new(managed: Managed) -> Self {
        Self { managed, stored: None }
    }

    /// Whether the owners are the same as before, without regard to times.
    pub(super) fn are_as_before(&self) -> bool {
        let before = Managed::decode(self.stored.as_ref()).unwrap_or_default();
        self.managed.is_same(&before)
    }

    /// Writes the entries into their object.
    pub(super) fn write(&self, body: &mut Value) {
        if !self.managed.is_empty() {
            metadata_mut(body).insert(MEMBER.into(), Value::String(self.managed.encode()));
        }
    }
}

/// Removes the entries from an object.
pub(super) fn take_entries(value: &mut Value) -> Option<Value> {
    value.get_mut("metadata")?.as_object_mut()?.remove(MEMBER)
}

/// Whether a client asks with this to remove all owners.
fn is_reset(sent: &Value) -> bool {
    match sent.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(only)]) => only.values().all(Value::is_null),
        _ => false,
    }
}

/// The zero value of a kind, with which a creation is compared.
pub(super) fn zero(kind: &Kind) -> Value {
    if kind.custom {
        return Value::Object(Map::new());
    }
    GoType::of(kind).map_or_else(|| json!({"metadata": {}}), GoType::zero)
}

/// The fields that the endpoint of a call does not write.
fn ignored(call: &Call<'_>) -> FieldSet {
    let kind = call.kind;
    let signing = kind.resource.is("certificates.k8s.io", "certificatesigningrequests");
    match (call.subresource, kind.custom) {
        ("", false) if signing => FieldSet::of_fields(&[&["spec"], &["status"]]),
        ("status", false) if signing => FieldSet::of_fields(&[&["spec"], &["status", "conditions"]]),
        ("approval", false) => FieldSet::of_fields(&[&["spec"], &["status", "certificate"]]),
        ("status", true) => FieldSet::of_fields(&[&["metadata"], &["spec"]]),
        ("status", false) => {
            let mut set = FieldSet::of_fields(&[&["spec"]]);
            for name in ["labels", "annotations", "finalizers", "ownerReferences"] {
                if !kind.rules.status_metadata.contains(&name) {
                    set = set.union(FieldSet::of_fields(&[&["metadata", name]]));
                }
            }
            set
        }
        ("" | "ephemeralcontainers" | "resize" | "finalize", _) if kind.status => {
            FieldSet::of_fields(&[&["status"]])
        }
        _ => FieldSet::default(),
    }
}

impl Cluster {
    /// The owners of a new object; takes the entries that were sent out of it.
    pub(super) fn owners_of_new(&self, call: &Call<'_>, body: &mut Value) -> Owners {
        let sent = take_entries(body);
        if !self.keeps_owners() {
            return Owners::of_new(Managed::default());
        }
        let managed = Managed::decode(sent.as_ref()).unwrap_or_default();
        let zero = zero(call.kind);
        Owners::of_new(self.as_writer(call, &managed, |writer| writer.update(&zero, body, managed.clone())))
    }

    /// The owners after an update; takes the entries out of both states. `told` are the owners that an apply
    /// has computed.
    pub(super) fn owners_after(
        &self,
        call: &Call<'_>,
        before: &mut Value,
        body: &mut Value,
        told: Option<Managed>,
    ) -> Owners {
        let (stored, sent) = (take_entries(before), take_entries(body));
        if !self.keeps_owners() {
            return Owners { managed: Managed::default(), stored };
        }
        if let Some(managed) = told {
            return Owners { managed, stored };
        }
        let base = match sent {
            Some(sent) if call.subresource.is_empty() && is_reset(&sent) => Managed::default(),
            Some(sent) if call.subresource.is_empty() && stored.as_ref() != Some(&sent) => {
                let sent = Managed::decode(Some(&sent)).ok().filter(|sent| !sent.is_empty());
                sent.unwrap_or_else(|| Managed::decode(stored.as_ref()).unwrap_or_default())
            }
            _ => Managed::decode(stored.as_ref()).unwrap_or_default(),
        };
        if base.is_empty() {
            return Owners { managed: base, stored };
        }
        let update = |writer: Writer<'_>| writer.update(before, body, base.clone());
        Owners { managed: self.as_writer(call, &base, update), stored }
    }

    /// Calls `act` with the writer of this call and the object in the versions of the existing owners.
    pub(super) fn as_writer<R>(
        &self,
        call: &Call<'_>,
        managed: &Managed,
        act: impl FnOnce(Writer<'_>) -> R,
    ) -> R {
        let version = call.kind.api_version();
        let mut kinds: Vec<(String, &Arc<Kind>)> = vec![(version.clone(), call.kind)];
        if managed.entries.iter().any(|entry| entry.owner.version != version) {
            // Fields written through another group are in a version that this group does not have.
            let of_group = |kind: &&Arc<Kind>| kind.resource == call.kind.resource;
            let versions = self.registry.stored_in(&call.kind.storage).filter(of_group);
            kinds.extend(versions.map(|kind| (kind.api_version(), kind)));
        }
        let schemas: Vec<(&str, Option<Schema>)> =
            kinds.iter().map(|(version, kind)| (version.as_str(), kind.schema())).collect();
        let places = |version: &str| {
            let (_, schema) = schemas.iter().find(|(known, _)| *known == version)?;
            Some(schema.as_ref().map_or(Place::Free, Place::root))
        };
        let told = |version: &str, value: &Value| {
            let mut value = value.clone();
            if let Some((_, kind)) = kinds.iter().find(|(known, _)| known == version) {
                convert::into_stored(call.kind, &mut value);
                convert::from_stored(kind, &mut value);
            }
            value
        };
        act(Writer {
            manager: call.manager,
            version: &version,
            subresource: call.subresource,
            now: call.now,
            ignored: &ignored(call),
            places: &places,
            told: &told,
        })
    }

    /// Writes the entries of an object that is answered and never stored: a review.
    pub(crate) fn own_unstored(&self, call: &Call<'_>, body: &mut Value) {
        if !self.keeps_owners() {
            return;
        }
        take_entries(body);
        let none = Managed::default();
        // No watch has recorded the zero value of such a kind.
        let zero = json!({"metadata": {}, "spec": {}});
        let managed = self.as_writer(call, &none, |writer| writer.update(&zero, body, none.clone()));
        if !managed.is_empty() {
            let entries = serde_json::from_str(&managed.encode()).expect("entries are encoded as JSON");
            metadata_mut(body).insert(MEMBER.into(), entries);
        }
    }

    /// Writes the entries that a controller of the server leaves when it sets a status.
    pub(super) fn own_status(&self, call: &Call<'_>, mut before: Value, after: &mut Value) {
        let call = Call { status: true, subresource: "status", manager: SERVER, ..call.clone() };
        self.owners_after(&call, &mut before, after, None).write(after);
    }
}

/// What an apply must not carry.
pub(super) fn carries_entries(config: &Value) -> bool {
    config.pointer("/metadata/managedFields").is_some_and(|entries| *entries != json!(null))
}

//! Reads from `metadata.managedFields` who has applied an object, and moves fields of former managers to the
//! present one, as client-go's `csaupgrade` does for updates. Former releases used one manager for each
//! owner, `name/<uid of the owner>`. A view without managed fields is unknown, since most caches cut them.
//! Only `metadata.managedFields` changes, and only at the version that was read.

use crate::reconcile::machine::children::Appliers;
use informer_core::meta::Uid;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use kube_core::ObjectMeta;
use serde_json::{Map, Value, json};

/// Hexadecimal digits in a server's uid.
const UID_PARTS: [usize; 5] = [8, 4, 4, 4, 12];

#[derive(Debug, Clone)]
pub(super) struct Manager(std::sync::Arc<str>);

impl Manager {
    pub(super) fn new(name: std::sync::Arc<str>) -> Self {
        Self(name)
    }

    pub(super) fn name(&self) -> &str {
        &self.0
    }

    /// `is_whole`: from the server, so no entry means no manager.
    pub(super) fn appliers(&self, meta: &ObjectMeta, owner: &Uid, is_whole: bool) -> Option<Appliers> {
        let entries = meta.managed_fields.as_deref().unwrap_or_default();
        if entries.is_empty() && !is_whole {
            return None;
        }
        Some(Appliers {
            ours: entries.iter().any(|entry| is_apply(entry) && self.is_ours(entry)),
            another: entries.iter().any(|entry| !self.is_ours(entry) && refers_to(entry, owner)),
        })
    }

    pub(super) fn has_former(&self, meta: &ObjectMeta) -> bool {
        meta.managed_fields.iter().flatten().any(|entry| is_apply(entry) && self.is_former(entry))
    }

    pub(super) fn move_over(&self, meta: &ObjectMeta) -> Option<Value> {
        let entries = meta.managed_fields.as_deref()?;
        let is_moved = |entry: &ManagedFieldsEntry| is_apply(entry) && self.is_former(entry);
        let is_united = |entry: &ManagedFieldsEntry| is_apply(entry) && self.is_ours(entry);
        let newest = entries.iter().find(|entry| is_apply(entry) && self.is_present(entry));
        let former = entries.iter().find(|entry| is_moved(entry))?;
        let mut present = newest.unwrap_or(former).clone();
        present.manager = Some(self.0.to_string());
        let mut fields = Value::Object(Map::new());
        for entry in entries.iter().filter(|entry| is_united(entry)) {
            // Field sets of another version of the kind name other fields.
            if entry.api_version == present.api_version {
                unite(&mut fields, entry.fields_v1.as_ref().map_or(&Value::Null, |fields| &fields.0));
            }
        }
        present.fields_v1 = Some(FieldsV1(fields));
        let others = entries.iter().filter(|entry| !is_united(entry));
        let all: Vec<&ManagedFieldsEntry> = std::iter::once(&present).chain(others).collect();
        Some(patch_of(meta, &all))
    }

    /// No value changes.
    pub(super) fn give_up(&self, meta: &ObjectMeta) -> Value {
        let is_left = |entry: &&ManagedFieldsEntry| !(is_apply(entry) && self.is_present(entry));
        patch_of(meta, &meta.managed_fields.iter().flatten().filter(is_left).collect::<Vec<_>>())
    }

    fn is_ours(&self, entry: &ManagedFieldsEntry) -> bool {
        self.is_present(entry) || self.is_former(entry)
    }

    fn is_present(&self, entry: &ManagedFieldsEntry) -> bool {
        entry.manager.as_deref() == Some(&*self.0)
    }

    fn is_former(&self, entry: &ManagedFieldsEntry) -> bool {
        let manager = entry.manager.as_deref().unwrap_or_default();
        let uid = manager.strip_prefix(&*self.0).and_then(|rest| rest.strip_prefix('/'));
        uid.is_some_and(is_uid)
    }
}

fn patch_of(meta: &ObjectMeta, entries: &[&ManagedFieldsEntry]) -> Value {
    json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        // Another version is a conflict.
        {"op": "replace", "path": "/metadata/resourceVersion", "value": meta.resource_version},
    ])
}

fn is_uid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq(UID_PARTS)
        && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn is_apply(entry: &ManagedFieldsEntry) -> bool {
    entry.operation.as_deref() == Some("Apply") && entry.subresource.as_deref().unwrap_or_default().is_empty()
}

fn refers_to(entry: &ManagedFieldsEntry, owner: &Uid) -> bool {
    let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
    let references = fields.and_then(|fields| fields.pointer("/f:metadata/f:ownerReferences")?.as_object());
    references.into_iter().flatten().any(|(step, _)| {
        let keys = step.strip_prefix("k:").and_then(|keys| serde_json::from_str::<Value>(keys).ok());
        keys.is_some_and(|keys| keys["uid"].as_str().is_some_and(|uid| *owner == uid))
    })
}

fn unite(set: &mut Value, more: &Value) {
    let (Value::Object(set), Value::Object(more)) = (set, more) else { return };
    for (step, below) in more {
        unite(set.entry(step.clone()).or_insert_with(|| Value::Object(Map::new())), below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0a1b2c3d-0000-4000-8000-00000000000f";

    fn entry(manager: &str, operation: &str, fields: &Value) -> ManagedFieldsEntry {
        let entry = json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": fields});
        serde_json::from_value(entry).expect("an entry")
    }

    fn meta(entries: Vec<ManagedFieldsEntry>) -> ObjectMeta {
        let resource_version = Some("7".to_owned());
        ObjectMeta { managed_fields: Some(entries), resource_version, ..ObjectMeta::default() }
    }

    fn references(uid: &str) -> Value {
        json!({"f:metadata": {"f:ownerReferences": {format!(r#"k:{{"uid":"{uid}"}}"#): {}}}})
    }

    #[test]
    fn operator_a1_an_apply_of_our_name_is_ours_and_one_for_the_same_owner_is_another_appliers() {
        let (manager, owner) = (Manager::new("sites".into()), Uid::new(UID).expect("a uid"));
        let former = format!("sites/{UID}");
        for (name, operation, fields, ours, another) in [
            ("sites", "Apply", references(UID), true, false),
            (&*former, "Apply", references(UID), true, false),
            ("sites", "Update", references(UID), false, false),
            ("sites/other", "Apply", references(UID), false, true),
            ("dns", "Apply", references(UID), false, true),
            ("dns", "Apply", references("another"), false, false),
            ("kubectl", "Apply", json!({"f:data": {"f:a": {}}}), false, false),
            ("dns", "Update", references(UID), false, true),
            ("dns", "Update", references("another"), false, false),
        ] {
            let meta = meta(vec![entry(name, operation, &fields)]);
            let appliers = manager.appliers(&meta, &owner, false);
            assert_eq!(appliers, Some(Appliers { ours, another }), "{name} {operation}");
        }
        let none = ObjectMeta::default();
        assert_eq!(manager.appliers(&none, &owner, false), None, "a cache that cuts them says nothing");
        assert_eq!(manager.appliers(&none, &owner, true), Some(Appliers::default()));
    }

    #[test]
    fn operator_a6_the_fields_of_former_managers_are_united_with_those_of_the_present_one() {
        let manager = Manager::new("sites".into());
        let former = entry(&format!("sites/{UID}"), "Apply", &json!({"f:data": {".": {}, "f:old": {}}}));
        let kubectl = entry("kubectl", "Update", &json!({"f:data": {"f:theirs": {}}}));
        let present =
            entry("sites", "Apply", &json!({"f:data": {"f:new": {}}, "f:metadata": {"f:labels": {}}}));
        let patch =
            manager.move_over(&meta(vec![former.clone(), kubectl.clone(), present])).expect("a patch");
        let united = json!({"f:data": {".": {}, "f:old": {}, "f:new": {}}, "f:metadata": {"f:labels": {}}});
        let all = json!([entry("sites", "Apply", &united), kubectl]);
        assert_eq!(patch[0]["value"], all);
        assert_eq!(patch[1], json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}));

        let alone = manager.move_over(&meta(vec![former.clone()])).expect("a patch");
        let renamed = ManagedFieldsEntry { manager: Some("sites".to_owned()), ..former };
        assert_eq!(alone[0]["value"], json!([renamed]), "it is renamed");
        assert_eq!(manager.move_over(&meta(vec![kubectl])), None, "there is nothing to move");
    }
}

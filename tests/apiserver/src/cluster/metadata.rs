//! The `metadata` of an object as JSON, its type, and the conditions of its status.
//!
//! Answers: how is a member of them read and written? Nothing is checked here.
use serde_json::{Map, Value, json};

/// The API's time stamp of this second.
pub(crate) fn timestamp(now: i64) -> String {
    jiff::Timestamp::from_second(now).unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}

/// A text member of `metadata`, empty if it is missing.
pub(crate) fn member<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get("metadata").and_then(|metadata| metadata.get(name)).and_then(Value::as_str).unwrap_or_default()
}

/// The `metadata` of a value that has been checked to have one.
pub(crate) fn metadata_mut(value: &mut Value) -> &mut Map<String, Value> {
    let root = value.as_object_mut().expect("checked to be an object");
    let metadata = root.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    metadata.as_object_mut().expect("checked to be an object")
}

/// Writes the decimal text of `revision` into the metadata; 0 means that there is none (a dry run's creation).
pub(crate) fn set_version(value: &mut Value, revision: u64) {
    match revision {
        0 => metadata_mut(value).remove("resourceVersion"),
        _ => metadata_mut(value).insert("resourceVersion".into(), Value::String(revision.to_string())),
    };
}

/// Writes `apiVersion` and `kind`.
pub(crate) fn set_type(value: &mut Value, api_version: &str, kind: &str) {
    if let Value::Object(root) = value {
        root.insert("apiVersion".into(), Value::String(api_version.to_owned()));
        root.insert("kind".into(), Value::String(kind.to_owned()));
    }
}

/// Drops `apiVersion` and `kind`.
pub(crate) fn drop_type(value: &mut Value) {
    if let Value::Object(root) = value {
        root.remove("kind");
        root.remove("apiVersion");
    }
}

/// Whether the metadata lists any finalizer.
pub(crate) fn has_finalizers(value: &Value) -> bool {
    value.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
}

/// The metadata of a bookmark.
pub(crate) fn bookmark_metadata(revision: u64, initial_end: bool) -> Value {
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if initial_end {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    metadata
}

/// Whether the status has this condition, and it is true.
pub(crate) fn condition_holds(value: &Value, name: &str) -> bool {
    let conditions = value.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| one["type"] == name && one["status"] == "True")
}

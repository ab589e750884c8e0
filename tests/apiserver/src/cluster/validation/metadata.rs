//! The checks of every object's metadata: labels, annotations, owners, finalizers.
//!
//! Answers: do these names and values have the form that the API requires? `prepare.rs` checks the object's own name.
//! 1. A qualified name is a name of up to 63 characters, with an optional DNS name of its owner before it.
use serde_json::{Value, json};

use super::causes::{Causes, list, text};
use crate::cluster::names;

const MOST_ANNOTATIONS: usize = 256 * 1024;
const STANDARD: [&str; 4] =
    ["foregroundDeletion", "orphan", "kubernetes", "customresourcecleanup.apiextensions.k8s.io"];

/// The checks for every object. `standard` requires finalizers that are known or have a domain.
pub(super) fn check(body: &Value, standard: bool, causes: &mut Causes) {
    check_change(body, causes);
    let finalizers = list(&body["metadata"], "finalizers");
    for finalizer in finalizers {
        let faults = names::label_key_faults(finalizer.as_str().unwrap_or_default());
        causes.invalid_for("metadata.finalizers", finalizer, faults);
    }
    for (at, finalizer) in finalizers.iter().enumerate().filter(|_| standard) {
        let name = finalizer.as_str().unwrap_or_default();
        if !name.contains('/') && !STANDARD.contains(&name) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.invalid(&format!("metadata.finalizers[{at}]"), finalizer, why);
        }
    }
}

/// What is checked again when an object is compared with its stored state.
pub(super) fn check_change(body: &Value, causes: &mut Causes) {
    let metadata = &body["metadata"];
    labels("metadata.labels", metadata.get("labels"), causes);
    annotations("metadata.annotations", metadata.get("annotations"), causes);
    for owner in list(metadata, "ownerReferences") {
        let members = [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ];
        for (name, why) in members.into_iter().filter(|(name, _)| text(owner, name).is_empty()) {
            causes.invalid(&format!("metadata.ownerReferences.{name}"), &json!(""), why);
        }
    }
    one_controller(metadata, causes);
}

/// At most one owner is the controller.
fn one_controller(metadata: &Value, causes: &mut Causes) {
    let owners = list(metadata, "ownerReferences");
    let controls = |owner: &&Value| owner["controller"] == true;
    let mut named = owners
        .iter()
        .filter(controls)
        .map(|owner| format!("{}/{}", text(owner, "kind"), text(owner, "name")));
    let Some(first) = named.next() else { return };
    for other in named {
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {other}"
        );
        causes.invalid("metadata.ownerReferences", &json!(owners), &why);
    }
}

/// Labels: qualified names with short values.
pub(super) fn labels(field: &str, labels: Option<&Value>, causes: &mut Causes) {
    for (name, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        causes.invalid_for(field, &json!(name), names::label_key_faults(name));
        causes.invalid_for(field, value, names::label_value_faults(value.as_str().unwrap_or_default()));
    }
}

/// Annotations: qualified names, and a limited total size.
pub(super) fn annotations(field: &str, annotations: Option<&Value>, causes: &mut Causes) {
    let Some(annotations) = annotations.and_then(Value::as_object) else { return };
    let mut size = 0;
    for (name, value) in annotations {
        // Annotations may be written in capitals.
        causes.invalid_for(field, &json!(name), names::label_key_faults(&name.to_lowercase()));
        size += name.len() + value.as_str().map_or(0, str::len);
    }
    if size > MOST_ANNOTATIONS {
        causes.too_long(field, MOST_ANNOTATIONS);
    }
}

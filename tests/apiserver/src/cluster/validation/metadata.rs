//! What holds for the metadata of every object: labels, annotations, owners, finalizers.
//!
//! Answers: are these names and values of the form the API asks for? The object's own name is `prepare.rs`'.
//! 1. A qualified name is a name of up to 63 characters, perhaps behind the DNS name of who owns it.
use serde_json::{Value, json};

use super::causes::{Causes, list, text};
use crate::cluster::names;

const MOST_ANNOTATIONS: usize = 256 * 1024;

pub(super) fn check(body: &Value, causes: &mut Causes) {
    let metadata = &body["metadata"];
    labels("metadata.labels", metadata.get("labels"), causes);
    annotations(metadata, causes);
    for owner in list(metadata, "ownerReferences") {
        for (name, field) in [("apiVersion", "version"), ("kind", "kind"), ("name", "name"), ("uid", "uid")] {
            if text(owner, name).is_empty() {
                causes.invalid(&format!("metadata.ownerReferences.{field}"), &json!(""), "must not be empty");
            }
        }
    }
    for (at, finalizer) in list(metadata, "finalizers").iter().enumerate() {
        let name = finalizer.as_str().unwrap_or_default();
        let field = format!("metadata.finalizers[{at}]");
        let faults = names::label_key_faults(name);
        if !faults.is_empty() {
            causes.invalid_for(&field, finalizer, faults);
        } else if !name.contains('/')
            && !matches!(
                name,
                "foregroundDeletion" | "orphan" | "kubernetes" | "customresourcecleanup.apiextensions.k8s.io"
            )
        {
            causes.invalid(
                &field,
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            );
        }
    }
}

/// Labels: qualified names with short values.
pub(super) fn labels(field: &str, labels: Option<&Value>, causes: &mut Causes) {
    for (name, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        causes.invalid_for(field, &json!(name), names::label_key_faults(name));
        causes.invalid_for(field, value, names::label_value_faults(value.as_str().unwrap_or_default()));
    }
}

fn annotations(metadata: &Value, causes: &mut Causes) {
    let Some(annotations) = metadata.get("annotations").and_then(Value::as_object) else { return };
    let mut size = 0;
    for (name, value) in annotations {
        // Annotations may be written in capitals.
        let faults = names::label_key_faults(&name.to_lowercase());
        causes.invalid_for("metadata.annotations", &json!(name), faults);
        size += name.len() + value.as_str().map_or(0, str::len);
    }
    if size > MOST_ANNOTATIONS {
        causes.too_long("metadata.annotations", MOST_ANNOTATIONS);
    }
}

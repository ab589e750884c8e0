//! What holds for the metadata of every object: labels, annotations, owners, finalizers.
//!
//! Answers: are these names and values of the form the API asks for? The object's own name is `prepare.rs`'.
//! 1. A qualified name is a name of up to 63 characters, perhaps behind the DNS name of who owns it.
use serde_json::{Value, json};

use super::causes::{Causes, list, text};
use crate::cluster::kind::NameRule;
use crate::cluster::names;

const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
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
        if let Some(why) = refuse_qualified(name) {
            causes.invalid(&field, finalizer, why);
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
        if let Some(why) = refuse_qualified(name) {
            causes.invalid(field, &json!(name), why);
        }
        let text = value.as_str().unwrap_or_default();
        if text.len() > 63 {
            causes.invalid(field, value, "must be no more than 63 characters");
        }
        if !text.is_empty() && !is_name(text) {
            causes.invalid(field, value, LABEL_VALUE);
        }
    }
}

fn annotations(metadata: &Value, causes: &mut Causes) {
    let Some(annotations) = metadata.get("annotations").and_then(Value::as_object) else { return };
    let mut size = 0;
    for (name, value) in annotations {
        // Annotations may be written in capitals.
        if let Some(why) = refuse_qualified(&name.to_lowercase()) {
            causes.invalid("metadata.annotations", &json!(name), why);
        }
        size += name.len() + value.as_str().map_or(0, str::len);
    }
    if size > MOST_ANNOTATIONS {
        causes.too_long("metadata.annotations", MOST_ANNOTATIONS);
    }
}

fn refuse_qualified(name: &str) -> Option<&'static str> {
    let part = match name.split_once('/') {
        None => name,
        Some(("", _)) => return Some("prefix part must be non-empty"),
        Some((prefix, _)) if names::refuse(prefix, NameRule::Subdomain).is_some() => {
            return Some("prefix part must be a lowercase RFC 1123 subdomain");
        }
        Some((_, part)) => part,
    };
    if part.is_empty() {
        return Some("name part must be non-empty");
    }
    if part.len() > 63 {
        return Some("name part must be no more than 63 characters");
    }
    (!is_name(part)).then_some(NAME_PART)
}

fn is_name(text: &str) -> bool {
    let ends = text.as_bytes().first().zip(text.as_bytes().last());
    ends.is_some_and(|(first, last)| first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

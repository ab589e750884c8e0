//! Defaults of built-in kinds: what the server writes into an object where its author was silent.
//!
//! Answers: what does this object look like once everything has its default? It refuses nothing.
//! 1. What is always the same is data (`table.rs`): a path, and the text that is written where nothing stands.
//! 2. What depends on something else of the object is code: `pods.rs`, `services.rs`, `workloads.rs`.
//! 3. Completing an object that is complete changes nothing, so an update may be completed as well as a creation.
//!
//! Next: `path.rs` reads the paths of the table.
mod path;
mod pods;
mod services;
mod table;
mod workloads;

use serde_json::{Map, Value};

use services::Addresses;

use super::crd;
use super::kind::Kind;
use super::store::Cluster;

impl Cluster {
    /// Writes the defaults of a built-in object: what every server would make of this body.
    pub(super) fn complete(&self, kind: &Kind, body: &mut Value) {
        if is_completed(kind) {
            complete(kind, body);
        }
    }

    /// Gives a new job that came without labels those of its pods.
    pub(super) fn label(&self, kind: &Kind, body: &mut Value) {
        if kind.resource.is("batch", "jobs") {
            workloads::label_like_pods(body);
        }
    }

    /// Writes what this server adds to an object it takes in: addresses, marks, what admission sets.
    /// `old` is the stored state, if there is one.
    pub(super) fn admit(&self, kind: &Kind, body: &mut Value, old: Option<&Value>) {
        if !is_completed(kind) {
            return;
        }
        let (group, plural) = (&*kind.resource.group, &*kind.resource.plural);
        if old.is_none() {
            workloads::create(group, plural, body);
        }
        match (group, plural) {
            ("apps", "daemonsets") => workloads::count_templates(body, old),
            ("", "pods") => pods::admit(body, old.is_none()),
            ("", "services") => {
                let mut services = || {
                    let table = self.table(&kind.storage);
                    table.map_or_else(Vec::new, |table| {
                        table.objects.values().map(|object| object.decode()).collect()
                    })
                };
                services::admit(body, old, &mut Addresses(&mut services));
            }
            _ => {}
        }
        fill(body, &zero_of(kind), true);
    }
}

/// Definitions and custom objects have defaults of another kind: see `crd.rs`.
fn is_completed(kind: &Kind) -> bool {
    !kind.custom && !crd::is_definition(kind)
}

fn zero_of(kind: &Kind) -> Value {
    serde_json::from_str(&format!("{{{}}}", kind.zero)).unwrap_or_default()
}

fn complete(kind: &Kind, body: &mut Value) {
    let (group, plural) = (&*kind.resource.group, &*kind.resource.plural);
    if !kind.resource.is("apps", "controllerrevisions") {
        drop_nulls(body);
    }
    // First what is there in every object, empty; then the defaults; last what is told even where it is nothing.
    let zero = zero_of(kind);
    fill(body, &zero, false);
    workloads::complete(group, plural, body);
    if (group, plural) == ("", "services") {
        services::complete(body);
    }
    if let Some(at) = table::pod_spec(group, plural)
        && let Some(spec) = body.pointer_mut(at).filter(|spec| spec.is_object())
    {
        pods::spec(spec);
    }
    if (group, plural) == ("", "pods") {
        pods::pod(body);
    }
    for (at, text) in table::rows(group, plural) {
        path::put_missing(body, at, text);
    }
    fill(body, &zero, true);
}

/// Drops members that say nothing, as they are when a Go server reads and writes an object.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        _ => {}
    }
    let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let empty = |value: &Value| {
        value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
    };
    metadata.retain(|_, value| !empty(value));
}

/// Writes the members that are told even where they are empty: objects, or `all`.
fn fill(value: &mut Value, zero: &Value, all: bool) {
    let (Value::Object(value), Value::Object(zero)) = (value, zero) else { return };
    for (name, zero) in zero {
        match value.get_mut(name) {
            Some(value) => fill(value, zero, all),
            None if all => {
                value.insert(name.clone(), zero.clone());
            }
            None if zero.is_object() => {
                let mut part = Value::Object(Map::new());
                fill(&mut part, zero, false);
                value.insert(name.clone(), part);
            }
            None => {}
        }
    }
}

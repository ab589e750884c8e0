//! Lists that are sets or maps: no item, and no key, may be there twice. And embedded objects.
//!
//! Answers: which items are duplicates, and which embedded objects lack a type or a valid name?
//! 1. Neither asks what was stored before; `version.rs` does.
//! 2. A third item that is the same is not told.
use std::collections::HashMap;

use serde_json::{Map, Value};

use super::validate::below;
use crate::cluster::names::{self, NameRule};
use crate::cluster::schema::source::{Others, Source};
use crate::cluster::status::Cause;

/// The items that are there twice, in the order of the object.
pub(super) fn duplicates(source: &Source, value: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    each(source, "", value, &mut |source, path, value| {
        if let Value::Array(items) = value {
            causes.extend(repeated(source, path, items));
        }
    });
    causes
}

/// What is wrong with embedded objects, in the order of the object.
pub(super) fn embedded(source: &Source, value: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    each(source, "", value, &mut |source, path, value| {
        if let (true, Value::Object(members)) = (source.embedded, value) {
            embedded_in(path, members, &mut causes);
        }
    });
    causes
}

/// Calls `visit` with a value and all values of a schema below it.
fn each(source: &Source, path: &str, value: &Value, visit: &mut impl FnMut(&Source, &str, &Value)) {
    visit(source, path, value);
    match value {
        Value::Array(items) => {
            let Some(of) = &source.items else { return };
            for (index, item) in items.iter().enumerate() {
                each(of, &format!("{path}[{index}]"), item, visit);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                match (source.properties.get(name.as_str()), &source.additional_properties) {
                    (Some(of), _) => each(of, &below(path, name), value, visit),
                    (None, Some(Others::Typed(of))) => each(of, &format!("{path}[{name}]"), value, visit),
                    (None, _) => {}
                }
            }
        }
        _ => {}
    }
}

fn repeated(source: &Source, path: &str, items: &[Value]) -> Vec<Cause> {
    let key = |item: &Value| match source.list_type.as_deref() {
        Some("set") => Some(item.clone()),
        Some("map") => {
            let members = source
                .list_map_keys
                .iter()
                .filter_map(|key| Some((key.to_string(), item.get(&**key)?.clone())));
            Some(Value::Object(members.collect::<Map<_, _>>()))
        }
        _ => None,
    };
    let mut times = HashMap::new();
    let repeated = items.iter().enumerate().filter_map(|(index, item)| {
        let key = key(item)?;
        let message = format!("Duplicate value: {key}");
        let before = times.entry(key).or_insert(0);
        *before += 1;
        let field = format!("{path}[{index}]");
        (*before == 2).then_some(Cause { reason: "FieldValueDuplicate", message, field })
    });
    repeated.collect()
}

fn embedded_in(path: &str, members: &Map<String, Value>, causes: &mut Vec<Cause>) {
    for name in ["apiVersion", "kind"] {
        if members.get(name).and_then(Value::as_str).is_none_or(str::is_empty) {
            causes.push(Cause::required(&below(path, name), ""));
        }
    }
    let name = members.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Value::as_str);
    let name = name.unwrap_or_default();
    if !name.is_empty() {
        let faults = names::faults(name, NameRule::Subdomain);
        let at = format!("{path}.metadata.name");
        causes.extend(faults.iter().map(|why| Cause::invalid(&at, name, why)));
    }
}

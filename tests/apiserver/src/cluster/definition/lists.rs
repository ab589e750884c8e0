//! Lists that are sets or maps: no item, and no key, may be there twice. And embedded objects.
//!
//! Answers: which items are duplicates, and which embedded objects lack a type or a valid name?
//! 1. A list that did not change is not checked again.
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::validate::{below, same_item};
use crate::cluster::names::{self, NameRule};
use crate::cluster::schema::source::{Others, Source};
use crate::cluster::status::Cause;

/// The causes below `path`, in the order of the object.
pub(super) fn check(
    source: &Source,
    path: &str,
    value: &Value,
    old: Option<&Value>,
    causes: &mut Vec<Cause>,
) {
    if old == Some(value) {
        return;
    }
    match value {
        Value::Array(items) => {
            duplicates(source, path, items, causes);
            let Some(of) = &source.items else { return };
            for (index, item) in items.iter().enumerate() {
                let old = same_item(source, old, index, item);
                check(of, &format!("{path}[{index}]"), item, old, causes);
            }
        }
        Value::Object(members) => {
            if source.embedded {
                embedded(path, members, causes);
            }
            for (name, value) in members {
                let of = match (source.properties.get(name.as_str()), &source.additional_properties) {
                    (Some(of), _) => of,
                    (None, Some(Others::Typed(of))) => of,
                    (None, _) => continue,
                };
                check(of, &below(path, name), value, old.and_then(|old| old.get(name)), causes);
            }
        }
        _ => {}
    }
}

fn duplicates(source: &Source, path: &str, items: &[Value], causes: &mut Vec<Cause>) {
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
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let Some(key) = key(item) else { return };
        if !seen.insert(key.to_string()) {
            let message = format!("Duplicate value: {key}");
            causes.push(Cause { reason: "FieldValueDuplicate", message, field: format!("{path}[{index}]") });
        }
    }
}

fn embedded(path: &str, members: &Map<String, Value>, causes: &mut Vec<Cause>) {
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

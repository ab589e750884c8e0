//! Lists that are sets or maps: no item, and no key, may be there twice. And embedded objects.
//!
//! Answers: which items are duplicates, and which embedded objects lack a valid type or name?
//! 1. Neither asks what was stored before; `version.rs` does.
//! 2. A third item that is the same is not told.
use std::collections::HashMap;

use serde_json::{Map, Value};

use super::refuse_label;
use super::validate::below;
use crate::cluster::names::{self, NameRule};
use crate::cluster::schema::source::{Others, Source};
use crate::cluster::status::Cause;

/// The items that are there twice, in the order of the object, and the first without keys of a list that is a map.
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
    let mut odd = items.iter().enumerate().filter(|(_, item)| !item.is_object() && !item.is_null());
    if source.list_type.as_deref() == Some("map")
        && let Some((index, item)) = odd.next()
    {
        let message = format!("Invalid value: {item}: must be an object for an array of list-type map");
        return vec![Cause { reason: "FieldValueInvalid", message, field: format!("{path}[{index}]") }];
    }
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
        let at = below(path, name);
        let Some(value) = members.get(name) else {
            causes.push(Cause::required(&at, ""));
            continue;
        };
        let text = value.as_str().unwrap_or_default();
        let why = match name {
            _ if !value.is_string() => Some("must be a string".to_owned()),
            _ if text.is_empty() => Some("must not be empty".to_owned()),
            "kind" => refuse_label(&text.to_lowercase())
                .map(|why| format!("may have mixed case, but should otherwise match: {why}")),
            _ if text.matches('/').count() > 1 => Some(format!("unexpected GroupVersion string: {text}")),
            _ => None,
        };
        let cause = |why| Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value}: {why}"),
            field: at,
        };
        causes.extend(why.map(cause));
    }
    let name = members.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Value::as_str);
    let name = name.unwrap_or_default();
    let faults = names::faults(name, NameRule::PathSegment);
    let at = format!("{path}.metadata.name");
    causes.extend(faults.iter().map(|why| Cause::invalid(&at, name, why)));
}

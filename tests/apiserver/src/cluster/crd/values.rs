//! Custom objects as rules see them.
//!
//! Answers: which value does an expression find under `self`? It sees only fields that the schema names, with names
//! that the language can read.
//! 1. Texts of the formats of times, durations and bytes are such values, not texts.
//! 2. Lists that are sets or maps are compared without their order.
use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use serde_json::{Map, Value as Json};

use crate::cluster::cel::Key;
use crate::cluster::cel::{self, List, Merge, Value, escape};
use crate::cluster::schema::source::{Others, Source};

/// The value an expression sees; `whole` objects have a type and a name whatever their schema says.
pub(super) fn seen(source: &Source, value: &Json, whole: bool) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(value) if source.kind != "number" => Value::Int(value),
            _ => Value::Double(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => text_seen(source, text),
        Json::Array(items) => {
            let anything = Source::default();
            let of = source.items.as_deref().unwrap_or(&anything);
            let items = items.iter().map(|item| seen(of, item, of.embedded)).collect();
            Value::List(List { items, merge: merge(source) })
        }
        Json::Object(members) => object_seen(source, members, whole),
    }
}

fn merge(source: &Source) -> Merge {
    match source.list_type.as_deref() {
        Some("set") => Merge::Set,
        Some("map") => Merge::Map(source.list_map_keys.iter().map(|key| Arc::from(&**key)).collect()),
        _ => Merge::Atomic,
    }
}

fn object_seen(source: &Source, members: &Map<String, Json>, whole: bool) -> Value {
    if let (Some(Others::Typed(of)), true) = (&source.additional_properties, source.properties.is_empty()) {
        let members = members.iter().map(|(name, value)| (Key::text(name), seen(of, value, of.embedded)));
        return Value::Map(Arc::new(members.collect()));
    }
    let mut seen_members = BTreeMap::new();
    for (name, value) in members {
        let given = match source.properties.get(name.as_str()) {
            _ if whole && matches!(name.as_str(), "apiVersion" | "kind") => cel::from_json(value),
            Some(of) if !(whole && name == "metadata") => seen(of, value, of.embedded),
            _ if whole && name == "metadata" => metadata_seen(value),
            _ if source.kind.is_empty() && source.properties.is_empty() => cel::from_json(value),
            _ => continue,
        };
        if let Some(name) = escape(name) {
            seen_members.insert(Key::text(&name), given);
        }
    }
    Value::Object(Arc::new(seen_members))
}

/// Of the metadata, expressions see only the names.
fn metadata_seen(metadata: &Json) -> Value {
    let named = ["name", "generateName"].into_iter().filter_map(|name| {
        let text = metadata.get(name)?.as_str()?;
        Some((Key::text(name), Value::text(text)))
    });
    Value::Object(Arc::new(named.collect()))
}

fn text_seen(source: &Source, text: &str) -> Value {
    let read = match source.format.as_str() {
        _ if source.int_or_string => None,
        "date-time" => cel::date_time(text),
        "date" => cel::date(text),
        "duration" => cel::duration(text).map(Value::Duration),
        "byte" => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text);
            bytes.ok().map(|bytes| Value::Bytes(bytes.into()))
        }
        _ => None,
    };
    read.unwrap_or_else(|| Value::text(text))
}

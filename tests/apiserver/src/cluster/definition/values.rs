//! Custom objects as rules see them.
//!
//! Answers: which value does an expression find under `self`? It reads only fields that the schema names and that have a
//! value; the others only take part in `==` (`cel/object.rs`).
//! 1. Texts of the formats of times, durations and bytes are such values, not texts.
//! 2. What has no schema at all has the value that its text has in JSON.
use std::sync::LazyLock;

use base64::Engine;
use cel::common::types::{CelBool, CelBytes, CelDouble, CelInt, CelNull, CelString};
use serde_json::{Map, Value};

use crate::cluster::cel::{Cel, converted, escape, list, object};
use crate::cluster::go_json;
use crate::cluster::schema::source::{Others, Source};

/// The value an expression sees; `whole` objects have a type and a name whatever their schema says.
pub(crate) fn seen(source: &Source, value: &Value, whole: bool) -> Cel {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(value) => Box::new(CelBool::from(*value)),
        Value::Number(number) => match go_json::number(number).as_i64() {
            Some(value) if source.kind != "number" => Box::new(CelInt::from(value)),
            _ => Box::new(CelDouble::from(number.as_f64().unwrap_or_default())),
        },
        Value::String(text) => {
            text_seen(source, text).unwrap_or_else(|| Box::new(CelString::from(text.clone())))
        }
        Value::Array(items) => {
            let of = source.items.as_deref().unwrap_or(&ANYTHING);
            list(source, items, items.iter().map(|item| seen(of, item, of.embedded)).collect())
        }
        Value::Object(members) => members_seen(source, members, whole),
    }
}

fn members_seen(source: &Source, members: &Map<String, Value>, whole: bool) -> Cel {
    // Of a map rules read every member, also one that is null.
    let of_all = match &source.additional_properties {
        Some(Others::Typed(of)) if source.properties.is_empty() => Some(&**of),
        _ if source.kind.is_empty() && !whole => Some(&*ANYTHING),
        _ => None,
    };
    let (mut fields, mut hidden, mut scalars) = (Vec::new(), Map::new(), Map::new());
    // Who owns a field, and its version, are not yet those of the new object.
    let later =
        |name: &str| std::ptr::eq(source, &*METADATA) && matches!(name, "managedFields" | "resourceVersion");
    for (name, value) in members.iter().filter(|(name, _)| !later(name)) {
        let known = of_all.or_else(|| field_of(source, name, whole));
        let Some(of) = known.filter(|_| of_all.is_some() || !value.is_null()) else {
            hidden.insert(name.clone(), value.clone());
            continue;
        };
        let read = if of_all.is_some() { None } else { escape(name) };
        fields.push((read.unwrap_or_else(|| name.clone()), seen(of, value, of.embedded)));
        if !value.is_array() && !value.is_object() {
            scalars.insert(name.clone(), value.clone());
        }
    }
    object(fields, hidden, scalars)
}

fn field_of<'a>(source: &'a Source, name: &str, whole: bool) -> Option<&'a Source> {
    match name {
        "apiVersion" | "kind" if whole => Some(&TEXT),
        "metadata" if whole => Some(&METADATA),
        _ => source.properties.get(name),
    }
}

static ANYTHING: LazyLock<Source> = LazyLock::new(Source::default);

/// A text, whatever a whole object's schema says of its type.
static TEXT: LazyLock<Source> = LazyLock::new(|| Source { kind: "string".to_owned(), ..Source::default() });

/// Of the metadata, expressions see only the names.
static METADATA: LazyLock<Source> = LazyLock::new(|| {
    let names = ["name", "generateName"].map(|name| (name.into(), TEXT.clone()));
    Source { kind: "object".to_owned(), properties: names.into(), ..Source::default() }
});

fn text_seen(source: &Source, text: &str) -> Option<Cel> {
    match source.format.as_str() {
        _ if source.kind != "string" => None,
        "date-time" => converted("timestamp", text),
        "date" => converted("timestamp", &format!("{text}T00:00:00Z")),
        "duration" => converted("duration", text),
        "byte" => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
            Some(Box::new(CelBytes::from(bytes)))
        }
        _ => None,
    }
}

//! Custom objects as rules see them.
//!
//! Answers: which value does an expression find under `self`? It sees only fields that the schema names, with names
//! that the language can read.
//! 1. Texts of the formats of times, durations and bytes are such values, not texts.
use std::collections::HashMap;

use base64::Engine;
use cel::common::types::{CelBool, CelBytes, CelDouble, CelInt, CelMap, CelMapKey, CelNull, CelString};
use serde_json::{Map, Value};

use crate::cluster::cel::{Cel, converted, escape, list};
use crate::cluster::schema::source::{Others, Source};

/// The value an expression sees; `whole` objects have a type and a name whatever their schema says.
pub(crate) fn seen(source: &Source, value: &Value, whole: bool) -> Cel {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(value) => Box::new(CelBool::from(*value)),
        Value::Number(number) => match number.as_i64() {
            Some(value) if source.kind != "number" => Box::new(CelInt::from(value)),
            _ => Box::new(CelDouble::from(number.as_f64().unwrap_or_default())),
        },
        Value::String(text) => {
            text_seen(source, text).unwrap_or_else(|| Box::new(CelString::from(text.clone())))
        }
        Value::Array(items) => {
            let anything = Source::default();
            let of = source.items.as_deref().unwrap_or(&anything);
            list(source, items, items.iter().map(|item| seen(of, item, of.embedded)).collect())
        }
        Value::Object(members) => {
            let members = match &source.additional_properties {
                Some(Others::Typed(of)) if source.properties.is_empty() => {
                    let member =
                        |(name, value): (&String, &Value)| (name.clone(), seen(of, value, of.embedded));
                    members.iter().map(member).collect()
                }
                _ => fields_seen(source, members, whole),
            };
            let members = members.into_iter().map(|(name, value)| (CelMapKey::from(name), value));
            Box::new(CelMap::from(members.collect::<HashMap<_, _>>()))
        }
    }
}

fn fields_seen(source: &Source, members: &Map<String, Value>, whole: bool) -> Vec<(String, Cel)> {
    let anything = Source::default();
    let field = |(name, value): (&String, &Value)| {
        let given = match source.properties.get(name.as_str()) {
            _ if whole && matches!(name.as_str(), "apiVersion" | "kind") => seen(&anything, value, false),
            // Of the metadata, expressions see only the names.
            _ if whole && name == "metadata" => {
                let mut names = value.as_object().cloned().unwrap_or_default();
                names.retain(|name, _| matches!(name.as_str(), "name" | "generateName"));
                seen(&anything, &Value::Object(names), false)
            }
            Some(of) => seen(of, value, of.embedded),
            None if source.kind.is_empty() && source.properties.is_empty() => seen(&anything, value, false),
            None => return None,
        };
        Some((escape(name)?, given))
    };
    members.iter().filter_map(field).collect()
}

fn text_seen(source: &Source, text: &str) -> Option<Cel> {
    match source.format.as_str() {
        _ if source.int_or_string => None,
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

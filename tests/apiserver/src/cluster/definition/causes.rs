//! The causes that are collected while a definition is checked.
//!
//! Answers: which text does the refusal of a field have? Values are shown as Go marshals them.
use serde_json::{Value, json};

use crate::cluster::names::{self, NameRule};
use crate::cluster::status::Cause;

/// The causes found so far.
#[derive(Debug, Default)]
pub(super) struct Found(pub(super) Vec<Cause>);

impl Found {
    pub(super) fn invalid(&mut self, field: String, value: &Value, why: &str) {
        let message = format!("Invalid value: {}: {why}", marshalled(value));
        self.0.push(Cause { reason: "FieldValueInvalid", message, field });
    }

    pub(super) fn unsupported(&mut self, field: String, value: &Value, known: &[&str]) {
        let known: Vec<String> = known.iter().map(|known| format!("{known:?}")).collect();
        let message =
            format!("Unsupported value: {}: supported values: {}", marshalled(value), known.join(", "));
        self.0.push(Cause { reason: "FieldValueNotSupported", message, field });
    }

    pub(super) fn required(&mut self, field: String, why: &str) {
        self.0.push(Cause::required(&field, why));
    }

    pub(super) fn forbidden(&mut self, field: String, why: &str) {
        self.0.push(Cause::forbidden(&field, why));
    }

    pub(super) fn duplicate(&mut self, field: String, value: &Value) {
        let message = format!("Duplicate value: {}", marshalled(value));
        self.0.push(Cause { reason: "FieldValueDuplicate", message, field });
    }
}

/// The value as Go marshals it: letters that mean something to HTML are escaped in texts of structures.
pub(super) fn marshalled(value: &Value) -> String {
    match value {
        Value::String(_) => value.to_string(),
        other => escaped(&other.to_string()),
    }
}

/// Letters that mean something to HTML, escaped.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

/// A text member; empty if there is none.
pub(super) fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn flag(of: &Value, name: &str) -> bool {
    of.get(name) == Some(&json!(true))
}

/// The items of a member.
pub(super) fn list<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The member, if it is there and not null.
pub(super) fn given<'a>(of: &'a Value, name: &str) -> Option<&'a Value> {
    of.get(name).filter(|value| !value.is_null())
}

/// The named schemas below a schema.
pub(super) fn properties(of: &Value) -> impl Iterator<Item = (&String, &Value)> {
    of.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Why a text is not a label that begins with a letter; none if it is.
pub(super) fn refuse_label(text: &str) -> Option<String> {
    let faults = names::old_label_faults(text);
    (!faults.is_empty()).then(|| faults.join(","))
}

/// Why a text is not a DNS name; none if it is.
pub(super) fn refuse_subdomain(text: &str) -> Option<String> {
    let faults = names::faults(text, NameRule::Subdomain);
    (!faults.is_empty()).then(|| faults.join(","))
}

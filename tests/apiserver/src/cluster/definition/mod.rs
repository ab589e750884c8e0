//! The schema of one version of a custom kind, and the checks of definitions.
//!
//! Answers: what is wrong with a definition or with an object of its kind, and what does the schema change in the object?
//! It knows neither kinds nor the store. Causes are collected while a definition is checked; their texts show values as Go
//! marshals them.
//!
//! Next: `check.rs`, `versions.rs` and `schema_checks.rs` check definitions, `version.rs` is one version.

pub(super) mod check;
mod field_path;
mod keywords;
mod lists;
#[cfg(feature = "cel")]
mod rule_checks;
#[cfg(feature = "cel")]
mod rules;
mod schema_checks;
mod structural;
#[cfg(test)]
mod tests;
mod validate;
#[cfg(feature = "cel")]
mod values;
mod version;
mod versions;
#[cfg(not(feature = "cel"))]
mod without_cel;

use serde_json::{Value, json};

#[cfg(all(test, feature = "cel"))]
pub(crate) use values::seen;
pub(crate) use version::{Definition, ScalePaths};
#[cfg(not(feature = "cel"))]
use without_cel as rules;

use super::names;
use super::names::NameRule;
use super::status::Cause;

pub(super) fn text_at<'a>(definition: &'a Value, at: &str) -> &'a str {
    definition.pointer(at).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn texts_at(definition: &Value, at: &str) -> Vec<String> {
    let list = definition.pointer(at).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The causes found so far.
#[derive(Debug, Default)]
struct Found(Vec<Cause>);

impl Found {
    fn invalid(&mut self, field: String, value: &Value, why: &str) {
        let message = format!("Invalid value: {}: {why}", marshalled(value));
        self.0.push(Cause { reason: "FieldValueInvalid", message, field });
    }

    fn unsupported(&mut self, field: String, value: &Value, known: &[&str]) {
        self.0.push(Cause::unsupported(&field, marshalled(value), known));
    }

    fn required(&mut self, field: String, why: &str) {
        self.0.push(Cause::required(&field, why));
    }

    fn forbidden(&mut self, field: String, why: &str) {
        self.0.push(Cause::forbidden(&field, why));
    }

    fn duplicate(&mut self, field: String, value: &Value) {
        let message = format!("Duplicate value: {}", marshalled(value));
        self.0.push(Cause { reason: "FieldValueDuplicate", message, field });
    }
}

/// The value as Go marshals it: letters that mean something to HTML are escaped in texts of structures.
fn marshalled(value: &Value) -> String {
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
fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn flag(of: &Value, name: &str) -> bool {
    of.get(name) == Some(&json!(true))
}

/// The items of a member.
fn list<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The member, if it is there and not null.
fn given<'a>(of: &'a Value, name: &str) -> Option<&'a Value> {
    of.get(name).filter(|value| !value.is_null())
}

/// The named schemas below a schema.
fn properties(of: &Value) -> impl Iterator<Item = (&String, &Value)> {
    of.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Why a text is not a label that begins with a letter; none if it is.
fn refuse_label(text: &str) -> Option<String> {
    let faults = names::old_label_faults(text);
    (!faults.is_empty()).then(|| faults.join(","))
}

/// Why a text is not a DNS name; none if it is.
fn refuse_subdomain(text: &str) -> Option<String> {
    let faults = names::faults(text, NameRule::Subdomain);
    (!faults.is_empty()).then(|| faults.join(","))
}

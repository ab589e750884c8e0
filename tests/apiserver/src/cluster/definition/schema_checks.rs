//! The check of one schema of a definition as a whole.
//!
//! Answers: may this schema be stored? First its shape, then its defaults, then keywords and rules, as a real server
//! does it: a later step runs only if the earlier ones passed.
use serde_json::{Value, json};

use super::keywords::{At, Keywords};
use super::{Definition, Found, flag, given, properties, structural, text};
use crate::cluster::schema::decode;
use crate::cluster::status::Cause;

/// Keywords that are allowed at the root of a schema whose status is an endpoint of its own.
const WITH_STATUS: &str = "description type format title maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength \
    pattern maxItems minItems uniqueItems multipleOf required items properties externalDocs example \
    x-kubernetes-preserve-unknown-fields x-kubernetes-validations";

/// All that is wrong with a schema; `status` says whether the status is an endpoint of its own.
pub(super) fn causes(schema: &Value, path: &str, status: bool) -> Vec<Cause> {
    let mut found = Found::default();
    if status {
        with_status(&mut found, schema, path);
    }
    if flag(schema, "nullable") {
        found.forbidden(format!("{path}.nullable"), "nullable cannot be true at the root");
    }
    let mut shape = structural::causes(schema, path);
    if shape.is_empty() {
        let mut defaults = Found::default();
        judge_defaults(&mut defaults, schema, path);
        shape = defaults.0;
    }
    let sound = shape.is_empty();
    found.0.extend(shape);
    let mut keywords = Keywords { found: Found::default(), of_rules: Found::default(), sound, root: schema };
    keywords.judge(schema, &At::root(path));
    let Keywords { found: of_keywords, of_rules, .. } = keywords;
    found.0.extend(of_keywords.0);
    found.0.extend(of_rules.0);
    found.0
}

fn with_status(found: &mut Found, schema: &Value, path: &str) {
    let kind = text(schema, "type");
    if !kind.is_empty() && kind != "object" {
        let why = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        found.invalid(format!("{path}.type"), &json!(kind), why);
    }
    let other = schema.as_object().into_iter().flatten().find(|(name, value)| {
        let empty = [json!(false), json!(""), json!([]), json!({}), Value::Null];
        !WITH_STATUS.split(' ').any(|known| known == name.as_str()) && !empty.contains(value)
    });
    if other.is_some() {
        let known: Vec<String> = WITH_STATUS.split(' ').map(field_of).collect();
        let why = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            known.join(" ")
        );
        found.invalid(path.to_owned(), schema, &why);
    }
}

/// The name of a keyword's field in Go.
fn field_of(name: &str) -> String {
    let parts = name.strip_prefix("x-kubernetes-").map(|rest| format!("x-{rest}"));
    let name = parts.as_deref().unwrap_or(name);
    let capital = |part: &str| {
        let mut letters = part.chars();
        letters
            .next()
            .map(|first| first.to_uppercase().chain(letters).collect::<String>())
            .unwrap_or_default()
    };
    name.split('-').map(capital).collect()
}

/// Defaults must be valid values of their places.
fn judge_defaults(found: &mut Found, schema: &Value, path: &str) {
    default_of(found, schema, path);
    if let Some(items) = given(schema, "items") {
        judge_defaults(found, items, &format!("{path}.items"));
    }
    for (name, below) in properties(schema) {
        judge_defaults(found, below, &format!("{path}.properties[{name}]"));
    }
}

fn default_of(found: &mut Found, schema: &Value, path: &str) {
    let Some(default) = schema.get("default") else { return };
    let field = format!("{path}.default");
    let Some(definition) = Definition::new(schema) else { return };
    let decoded = decode::value(&definition.schema, false, default.clone());
    if !decoded.faults.fields(true).is_empty() {
        found.invalid(field.clone(), default, "must not have unknown fields");
    }
    for cause in definition.judge_default(default) {
        let below = match cause.field.as_str() {
            "<nil>" => field.clone(),
            inner => format!("{field}.{inner}"),
        };
        found.0.push(Cause { field: below, ..cause });
    }
}

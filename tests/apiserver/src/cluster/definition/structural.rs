//! Structural schemas: what a schema must contain so that the server can prune, default and validate by it.
//!
//! Answers: does every field have one type, outside of combinations? `keywords.rs` checks single keywords.
//! 1. Combinations may restrict what is described elsewhere, but do not describe anything themselves.
//! 2. Causes come in the order of their texts.
use serde_json::{Value, json};

use super::{Found, flag, given, list, properties, text};
use crate::cluster::schema::pattern;
use crate::cluster::status::Cause;

/// The role of a place in a schema for its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Root,
    Field,
    Item,
}

const NESTED_WORDS: [(&str, &str); 12] = [
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
];

/// Why a schema is not structural.
pub(super) fn causes(schema: &Value, path: &str) -> Vec<Cause> {
    let mut found = Found::default();
    place(&mut found, schema, path, Role::Root);
    complete(&mut found, schema, schema, (path, path));
    found.0.sort_by_cached_key(|cause| format!("{}: {}", cause.field, cause.message));
    found.0
}

fn place(found: &mut Found, schema: &Value, path: &str, role: Role) {
    if text(schema, "type") == "array" && given(schema, "items").is_none() {
        found.required(format!("{path}.items"), "must be specified");
    }
    if let Some(items) = given(schema, "items").filter(|items| items.is_object()) {
        place(found, items, &format!("{path}.items"), Role::Item);
    }
    for (name, below) in properties(schema) {
        place(found, below, &format!("{path}.properties[{name}]"), Role::Field);
    }
    if let Some(others) = given(schema, "additionalProperties") {
        if role == Role::Root {
            found.forbidden(format!("{path}.additionalProperties"), "must not be used at the root");
        }
        if others.is_object() {
            place(found, others, &format!("{path}.additionalProperties"), Role::Field);
        }
    }
    if flag(schema, "x-kubernetes-int-or-string") {
        for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if flag(schema, name) {
                let why = "must be false if x-kubernetes-int-or-string is true";
                found.invalid(format!("{path}.{name}"), &json!(true), why);
            }
        }
    }
    combinations(found, schema, path);
    kind(found, schema, path, role);
    whole(found, schema, path, role);
}

fn kind(found: &mut Found, schema: &Value, path: &str, role: Role) {
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let free =
        flag(schema, "x-kubernetes-int-or-string") || flag(schema, "x-kubernetes-preserve-unknown-fields");
    let field = format!("{path}.type");
    let kind = text(schema, "type");
    match (kind, role) {
        ("", _) if embedded => {
            found.required(field, "must be object if x-kubernetes-embedded-resource is true");
        }
        (kind, _) if embedded && kind != "object" => {
            found.invalid(field, &json!(kind), "must be object if x-kubernetes-embedded-resource is true");
        }
        ("", _) if free => {}
        ("", Role::Root) => found.required(field, "must not be empty at the root"),
        ("", Role::Item) => found.required(field, "must not be empty for specified array items"),
        ("", Role::Field) => found.required(field, "must not be empty for specified object fields"),
        _ => {}
    }
    if role == Role::Root && !matches!(kind, "" | "object") {
        found.invalid(format!("{path}.type"), &json!(kind), "must be object at the root");
    }
}

/// What holds for schemas of whole objects: the root, and embedded ones.
fn whole(found: &mut Found, schema: &Value, path: &str, role: Role) {
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    if embedded && given(schema, "additionalProperties").is_some() {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        found.forbidden(format!("{path}.additionalProperties"), why);
    }
    if role == Role::Root || embedded {
        for (name, wanted) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
            let own = schema.get("properties").and_then(|properties| properties.get(name));
            if let Some(own) = own.filter(|own| text(own, "type") != wanted) {
                let field = format!("{path}.properties[{name}].type");
                found.invalid(field, &json!(text(own, "type")), &format!("must be {wanted}"));
            }
        }
    }
    let metadata = schema.get("properties").and_then(|properties| properties.get("metadata"));
    if role == Role::Root && metadata.is_some_and(tells_more_than_names) {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        found.forbidden(format!("{path}.properties[metadata]"), why);
    }
    let open = flag(schema, "x-kubernetes-preserve-unknown-fields");
    if embedded && !open && properties(schema).next().is_none() {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        found.required(format!("{path}.properties"), why);
    }
}

fn tells_more_than_names(metadata: &Value) -> bool {
    let names = properties(metadata).all(|(name, _)| matches!(name.as_str(), "name" | "generateName"));
    let others = metadata.as_object().into_iter().flatten();
    !names || others.into_iter().any(|(name, _)| !matches!(name.as_str(), "properties" | "type" | "default"))
}

/// Whether a list of alternatives only says "an integer or a text".
fn is_int_or_string(alternatives: &Value) -> bool {
    *alternatives == json!([{"type": "integer"}, {"type": "string"}])
}

fn combinations(found: &mut Found, schema: &Value, path: &str) {
    let free = schema.get("anyOf").is_some_and(is_int_or_string);
    let first_free = list(schema, "allOf").first().and_then(|first| first.get("anyOf"));
    let first_free = first_free.is_some_and(is_int_or_string);
    for name in ["anyOf", "allOf", "oneOf"] {
        for (index, below) in list(schema, name).iter().enumerate() {
            if name == "anyOf" && free {
                continue;
            }
            let first = name == "allOf" && index == 0 && first_free;
            nested(found, below, &format!("{path}.{name}[{index}]"), first);
        }
    }
    if let Some(not) = given(schema, "not") {
        nested(found, not, &format!("{path}.not"), false);
    }
    let given = text(schema, "pattern");
    if let Err(why) = pattern::read(given) {
        let why = format!("must be a valid regular expression, but isn't: {why}");
        found.invalid(format!("{path}.pattern"), &json!(given), &why);
    }
}

/// A schema in a combination may restrict, but not describe.
fn nested(found: &mut Found, schema: &Value, path: &str, int_or_string: bool) {
    if int_or_string {
        let mut without = schema.clone();
        without.as_object_mut().map(|members| members.remove("anyOf"));
        return nested(found, &without, path, false);
    }
    combinations(found, schema, path);
    if let Some(items) = given(schema, "items") {
        nested(found, items, &format!("{path}.items"), false);
    }
    for (name, below) in properties(schema) {
        nested(found, below, &format!("{path}.properties[{name}]"), false);
    }
    for (name, why) in NESTED_WORDS {
        let empty = [json!(false), json!(""), json!([])];
        if given(schema, name).is_some_and(|value| !empty.contains(value) || name == "additionalProperties") {
            found.forbidden(format!("{path}.{name}"), why);
        }
    }
    if !list(schema, "x-kubernetes-validations").is_empty() {
        found.forbidden(format!("{path}.x-kubernetes-validations"), "must be empty to be structural");
    }
    if schema.get("properties").is_some_and(|fields| fields.get("metadata").is_some()) {
        let why = "must not be specified in a nested context";
        found.forbidden(format!("{path}.properties[metadata]"), why);
    }
}

/// What combinations restrict must be described outside of them.
fn complete(found: &mut Found, schema: &Value, described: &Value, (own, judged): (&str, &str)) {
    for name in ["allOf", "anyOf", "oneOf"] {
        for (index, below) in list(schema, name).iter().enumerate() {
            let judged = format!("{judged}.{name}[{index}]");
            complete_nested(found, below, Some(described), (own, &judged));
        }
    }
    if let Some(not) = given(schema, "not") {
        complete_nested(found, not, Some(described), (own, &format!("{judged}.not")));
    }
}

fn complete_nested(
    found: &mut Found,
    schema: &Value,
    described: Option<&Value>,
    (own, judged): (&str, &str),
) {
    let Some(described) = described else {
        return found.required(own.to_owned(), &format!("because it is defined in {judged}"));
    };
    complete(found, schema, described, (own, judged));
    if let Some(items) = given(schema, "items") {
        let paths = (&*format!("{own}.items"), &*format!("{judged}.items"));
        complete_nested(found, items, given(described, "items"), paths);
    }
    for (name, below) in properties(schema) {
        let paths = (&*format!("{own}.properties[{name}]"), &*format!("{judged}.properties[{name}]"));
        let described = described.get("properties").and_then(|fields| fields.get(name));
        complete_nested(found, below, described, paths);
    }
}

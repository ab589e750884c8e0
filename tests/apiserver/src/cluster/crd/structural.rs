//! Structural schemas: what the schema in a definition must and must not say.
//!
//! Answers: is this schema one that can default, prune and judge, and where is it not? The cost of rules is not
//! estimated, and their types are not checked.
//! 1. Paths are those of a real server: `spec.validation` where all versions have one schema, else that of the version.
use regex::Regex;
use serde_json::{Map, Value, json};

use super::{Definition, rules};
use crate::cluster::schema::decode;
use crate::cluster::status::Cause;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// Keywords of JSON schema that no definition may use.
const FORBIDDEN: [(&str, &str); 6] = [
    ("$ref", "$ref is not supported"),
    ("definitions", "definitions is not supported"),
    ("dependencies", "dependencies is not supported"),
    ("id", "id is not supported"),
    ("patternProperties", "patternProperties is not supported"),
    ("additionalItems", "additionalItems is not supported"),
];

/// The causes of all versions' schemas.
pub(super) fn versions(versions: &[Value]) -> Vec<Cause> {
    let schemas: Vec<Option<&Value>> = versions
        .iter()
        .map(|version| version.pointer("/schema/openAPIV3Schema").filter(|schema| schema.is_object()))
        .collect();
    let mut walk = Walk::default();
    for (index, version) in versions.iter().enumerate() {
        walk.with_status(index, version);
    }
    match schemas.as_slice() {
        [Some(first), rest @ ..] if rest.iter().all(|other| *other == Some(first)) => {
            walk.root(first, "spec.validation.openAPIV3Schema");
        }
        _ => {
            for (index, schema) in schemas.iter().enumerate() {
                if let Some(schema) = schema {
                    walk.root(schema, &format!("spec.versions[{index}].schema.openAPIV3Schema"));
                }
            }
        }
    }
    walk.causes
}

#[derive(Default)]
struct Walk {
    causes: Vec<Cause>,
}

/// What a place in a schema is to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Root,
    Field,
    Item,
}

impl Walk {
    fn invalid(&mut self, field: String, value: &Value, why: &str) {
        self.causes.push(Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value}: {why}"),
            field,
        });
    }

    fn unsupported(&mut self, field: String, value: &Value, known: &[&str]) {
        let known: Vec<String> = known.iter().map(|known| format!("{known:?}")).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", known.join(", "));
        self.causes.push(Cause { reason: "FieldValueNotSupported", message, field });
    }

    fn forbid(&mut self, field: &str, why: &str) {
        self.causes.push(Cause::forbidden(field, why));
    }

    fn with_status(&mut self, index: usize, version: &Value) {
        let kind = version.pointer("/schema/openAPIV3Schema/type").and_then(Value::as_str);
        let kind = kind.filter(|kind| *kind != "object" && version.pointer("/subresources/status").is_some());
        if let Some(kind) = kind {
            let why = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
            self.invalid(format!("spec.versions[{index}].schema.openAPIV3Schema.type"), &json!(kind), why);
        }
    }

    fn root(&mut self, schema: &Value, path: &str) {
        if schema["nullable"] == json!(true) {
            self.forbid(&format!("{path}.nullable"), "nullable cannot be true at the root");
        }
        if schema.get("additionalProperties").is_some_and(|others| *others != json!(false)) {
            self.forbid(&format!("{path}.additionalProperties"), "must not be used at the root");
        }
        let metadata = schema.pointer("/properties/metadata/properties").and_then(Value::as_object);
        if metadata
            .is_some_and(|fields| fields.keys().any(|name| !matches!(name.as_str(), "name" | "generateName")))
        {
            let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
            self.forbid(&format!("{path}.properties[metadata]"), why);
        }
        self.schema(schema, path, Role::Root);
    }

    fn schema(&mut self, schema: &Value, path: &str, role: Role) {
        let Some(members) = schema.as_object() else { return };
        for (name, why) in FORBIDDEN {
            if members.get(name).is_some_and(|value| !value.is_null()) {
                self.forbid(&format!("{path}.{name}"), why);
            }
        }
        if members.get("uniqueItems") == Some(&json!(true)) {
            let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbid(&format!("{path}.uniqueItems"), why);
        }
        self.kind(members, path, role);
        self.extensions(members, path);
        self.lists(members, path);
        self.rules(members, path);
        self.default_of(schema, path);
        if let Some(pattern) = members
            .get("pattern")
            .filter(|pattern| pattern.as_str().is_some_and(|text| Regex::new(text).is_err()))
        {
            self.invalid(format!("{path}.pattern"), pattern, "must be a valid regular expression");
        }
        self.below(members, path);
        self.combinations(members, path);
    }

    fn kind(&mut self, members: &Map<String, Value>, path: &str, role: Role) {
        let flag = |name: &str| members.get(name) == Some(&json!(true));
        let field = format!("{path}.type");
        let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
        let free = flag("x-kubernetes-int-or-string") || flag("x-kubernetes-preserve-unknown-fields");
        match (kind, role) {
            ("", Role::Root) => self.causes.push(Cause::required(&field, "must not be empty at the root")),
            ("", _) if free => {}
            ("", Role::Field) => {
                self.causes.push(Cause::required(&field, "must not be empty for specified object fields"))
            }
            ("", Role::Item) => {
                self.causes.push(Cause::required(&field, "must not be empty for specified array items"))
            }
            (kind, _) => {
                if role == Role::Root && kind != "object" {
                    self.invalid(field.clone(), &json!(kind), "must be object at the root");
                }
                if !TYPES.contains(&kind) {
                    self.unsupported(field, &json!(kind), &TYPES);
                }
            }
        }
        if kind == "array" && members.get("items").is_none_or(Value::is_null) {
            self.causes.push(Cause::required(&format!("{path}.items"), "must be specified"));
        }
    }

    fn extensions(&mut self, members: &Map<String, Value>, path: &str) {
        if members.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false)) {
            self.invalid(
                format!("{path}.x-kubernetes-preserve-unknown-fields"),
                &json!(false),
                "must be true or undefined",
            );
        }
        let kind = members.get("type").cloned().unwrap_or_default();
        if members.get("x-kubernetes-embedded-resource") == Some(&json!(true)) {
            let open = members.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true));
            if !open && members.get("properties").is_none() {
                let why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
                self.causes.push(Cause::required(&format!("{path}.properties"), why));
            }
            if kind != json!("object") {
                self.invalid(
                    format!("{path}.type"),
                    &kind,
                    "must be object if x-kubernetes-embedded-resource is true",
                );
            }
        }
        if let Some(given) = members
            .get("x-kubernetes-map-type")
            .filter(|given| **given != json!("atomic") && **given != json!("granular"))
        {
            self.unsupported(format!("{path}.x-kubernetes-map-type"), given, &["atomic", "granular"]);
        }
    }

    fn lists(&mut self, members: &Map<String, Value>, path: &str) {
        let Some(list) = members.get("x-kubernetes-list-type") else { return };
        let kind = members.get("type").cloned().unwrap_or_default();
        let items = members.get("items").cloned().unwrap_or_default();
        if kind != json!("array") {
            self.invalid(
                format!("{path}.type"),
                &kind,
                "must be array if x-kubernetes-list-type is specified",
            );
            return;
        }
        let keys = members.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
        match list.as_str().unwrap_or_default() {
            "atomic" => {}
            "set"
                if items["type"] == json!("object") && items["x-kubernetes-map-type"] != json!("atomic") =>
            {
                let given = items["x-kubernetes-map-type"].clone();
                let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
                self.invalid(format!("{path}.items.x-kubernetes-map-type"), &given, why);
            }
            "set" => {}
            "map" if keys.is_none_or(Vec::is_empty) => {
                let why = "must not be empty if x-kubernetes-list-type is map";
                self.causes.push(Cause::required(&format!("{path}.x-kubernetes-list-map-keys"), why));
            }
            "map" => self.keys(keys.map_or(&[][..], Vec::as_slice), &items, path),
            _ => self.unsupported(format!("{path}.x-kubernetes-list-type"), list, &["atomic", "set", "map"]),
        }
    }

    fn keys(&mut self, keys: &[Value], items: &Value, path: &str) {
        let required = items["required"].as_array().cloned().unwrap_or_default();
        for key in keys {
            let name = key.as_str().unwrap_or_default();
            match items.get("properties").and_then(|fields| fields.get(name)) {
                None => {
                    let field = format!("{path}.x-kubernetes-list-map-keys");
                    self.invalid(field, key, "entries must all be names of item properties");
                }
                Some(of) if of.get("default").is_none() && !required.contains(key) => {
                    let field = format!("{path}.items.properties[{name}].default");
                    let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                    self.causes.push(Cause::required(&field, why));
                }
                Some(_) => {}
            }
        }
    }

    fn rules(&mut self, members: &Map<String, Value>, path: &str) {
        let list = members.get("x-kubernetes-validations").and_then(Value::as_array);
        for (index, rule) in list.into_iter().flatten().enumerate() {
            let field = format!("{path}.x-kubernetes-validations[{index}].rule");
            let text = |name: &str| rule[name].as_str().unwrap_or_default().to_owned();
            let expression = text("rule");
            if expression.trim().is_empty() {
                self.causes.push(Cause::required(&field, "rule is not specified"));
            } else if let Err(why) = rules::compile(&expression) {
                let shown = format!(
                    r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
                    json!(expression),
                    json!(text("message")),
                    json!(text("messageExpression")),
                    rule["reason"],
                    json!(text("fieldPath")),
                    rule["optionalOldSelf"]
                );
                let message = format!("Invalid value: {shown}: compilation failed: {why}");
                self.causes.push(Cause { reason: "FieldValueInvalid", message, field });
            }
        }
    }

    fn default_of(&mut self, schema: &Value, path: &str) {
        let Some(default) = schema.get("default") else { return };
        let field = format!("{path}.default");
        let Some(definition) = Definition::new(schema) else { return };
        let decoded = decode::value(&definition.schema, false, default.clone());
        if !decoded.faults.fields(true).is_empty() {
            self.invalid(field, default, "must not have unknown fields");
            return;
        }
        let mut value = decoded.value;
        definition.complete(&mut value);
        for cause in definition.judge(&value, None) {
            let below =
                if cause.field == "<nil>" { field.clone() } else { format!("{field}.{}", cause.field) };
            self.causes.push(Cause { field: below, ..cause });
        }
    }

    fn below(&mut self, members: &Map<String, Value>, path: &str) {
        let fields = members.get("properties").and_then(Value::as_object);
        for (name, schema) in fields.into_iter().flatten() {
            self.schema(schema, &format!("{path}.properties[{name}]"), Role::Field);
        }
        if let Some(others) = members.get("additionalProperties").filter(|others| others.is_object()) {
            if fields.is_some_and(|fields| !fields.is_empty()) {
                let why = "additionalProperties and properties are mutual exclusive";
                self.forbid(&format!("{path}.additionalProperties"), why);
            }
            self.schema(others, &format!("{path}.additionalProperties"), Role::Field);
        }
        match members.get("items") {
            Some(Value::Array(_)) => {
                self.forbid(&format!("{path}.items"), "items must be a schema object and not an array")
            }
            Some(items) => self.schema(items, &format!("{path}.items"), Role::Item),
            None => {}
        }
    }

    /// What stands in a combination may judge, but not describe.
    fn combinations(&mut self, members: &Map<String, Value>, path: &str) {
        let int_or_string = members.get("x-kubernetes-int-or-string") == Some(&json!(true));
        for name in ["allOf", "anyOf", "oneOf"] {
            let list = members.get(name).and_then(Value::as_array);
            for (index, schema) in list.into_iter().flatten().enumerate() {
                if !int_or_string {
                    self.nested(
                        schema,
                        &format!("{path}.{name}[{index}]"),
                        &Value::Object(members.clone()),
                        path,
                    );
                }
            }
        }
        if let Some(not) = members.get("not") {
            self.nested(not, &format!("{path}.not"), &Value::Object(members.clone()), path);
        }
    }

    fn nested(&mut self, schema: &Value, path: &str, structural: &Value, outer: &str) {
        for name in ["type", "default", "nullable", "additionalProperties", "description", "title"] {
            let given = schema.get(name).is_some_and(|value| !value.is_null() && *value != json!(false));
            if given {
                self.forbid(&format!("{path}.{name}"), "must be empty to be structural");
            }
        }
        let fields = schema.get("properties").and_then(Value::as_object);
        for (name, below) in fields.into_iter().flatten() {
            let (path, outer) = (format!("{path}.properties[{name}]"), format!("{outer}.properties[{name}]"));
            let own = structural.get("properties").and_then(|fields| fields.get(name));
            self.nested(below, &path, own.unwrap_or(&Value::Null), &outer);
            if own.is_none() {
                self.causes.push(Cause::required(&outer, &format!("because it is defined in {path}")));
            }
        }
    }
}

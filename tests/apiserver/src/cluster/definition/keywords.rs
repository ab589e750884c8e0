//! Keywords of schemas in definitions, one by one.
//!
//! Answers: which keywords are unknown, forbidden here, or contradict each other? `rule_checks.rs` checks rules,
//! `structural.rs` the structure.
//! 1. Rules are compiled only if everything else is valid.
use serde_json::{Value, json};

use super::{Found, flag, given, list, properties, text};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// The check of one schema.
pub(super) struct Keywords<'a> {
    pub(super) found: Found,
    /// Causes of rules, which come last.
    pub(super) of_rules: Found,
    /// Whether rules are to be compiled.
    #[cfg_attr(not(feature = "cel"), expect(dead_code, reason = "no rule is compiled"))]
    pub(super) sound: bool,
    pub(super) root: &'a Value,
}

/// Where in a schema a keyword stands.
#[derive(Debug, Clone)]
pub(super) struct At {
    pub(super) path: String,
    /// Why defaults are not allowed here.
    defaults: Option<String>,
    inside_metadata: bool,
    /// The list whose items have no identity, so that no item has an old state.
    pub(super) uncorrelated: Option<String>,
    /// Whether rules are compiled here: not in a combination of schemas.
    #[cfg_attr(not(feature = "cel"), expect(dead_code, reason = "no rule is compiled"))]
    pub(super) compiled: bool,
}

impl At {
    pub(super) fn root(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            defaults: None,
            inside_metadata: false,
            uncorrelated: None,
            compiled: true,
        }
    }

    pub(super) fn at(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    fn below(&self, name: &str) -> Self {
        Self { path: self.at(name), ..self.clone() }
    }

    fn combined(&self, name: &str) -> Self {
        Self { compiled: false, ..self.below(name) }
    }
}

impl Keywords<'_> {
    /// Checks a schema and all below it.
    pub(super) fn judge(&mut self, schema: &Value, at: &At) {
        let before = self.found.0.len();
        self.standard(schema, at);
        if flag(schema, "uniqueItems") {
            let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.found.forbidden(at.at("uniqueItems"), why);
        }
        self.children(schema, at);
        if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false)) {
            let field = at.at("x-kubernetes-preserve-unknown-fields");
            self.found.invalid(field, &json!(false), "must be true or undefined");
        }
        self.map_type(schema, at);
        self.list_type(schema, at);
        self.list_map(schema, at);
        self.identities(schema, at);
        self.rules(schema, at, before);
    }

    fn standard(&mut self, schema: &Value, at: &At) {
        let kind = text(schema, "type");
        if !kind.is_empty() && !TYPES.contains(&kind) {
            self.found.unsupported(at.at("type"), &json!(kind), &TYPES);
        }
        if let (Some(_), Some(why)) = (schema.get("default"), &at.defaults) {
            self.found.forbidden(at.at("default"), &format!("must not be set {why}"));
        }
        for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
            let empty = [json!(""), json!({})];
            if given(schema, name).is_some_and(|value| !empty.contains(value)) {
                self.found.forbidden(at.at(name), &format!("{name} is not supported"));
            }
        }
        if kind == "null" {
            self.found.forbidden(at.at("type"), "type cannot be set to null, use nullable as an alternative");
        }
        if schema.get("items").is_some_and(Value::is_array) {
            self.found.forbidden(at.at("items"), "items must be a schema object and not an array");
        }
        if at.inside_metadata && flag(schema, "x-kubernetes-embedded-resource") {
            self.found.forbidden(
                at.at("x-kubernetes-embedded-resource"),
                "must not be used inside of resource meta",
            );
        }
    }

    fn children(&mut self, schema: &Value, at: &At) {
        if let Some(others) = given(schema, "additionalProperties") {
            if properties(schema).next().is_some() && *others != json!(true) {
                let why = "additionalProperties and properties are mutual exclusive";
                self.found.forbidden(at.at("additionalProperties"), why);
            }
            let mut below = at.below("additionalProperties");
            if at.inside_metadata {
                below.defaults = Some("inside additionalProperties applying to object metadata".to_owned());
            }
            if others.is_object() {
                self.judge(others, &below);
            }
        }
        let root = std::ptr::eq(schema, self.root);
        for (name, property) in properties(schema) {
            let mut below = at.below(&format!("properties[{name}]"));
            if (root || flag(schema, "x-kubernetes-embedded-resource"))
                && matches!(name.as_str(), "metadata" | "kind" | "apiVersion")
            {
                below.inside_metadata = true;
                if root {
                    below.defaults = Some(format!("in top-level {name}"));
                }
            }
            self.judge(property, &below);
        }
        if let Some(not) = given(schema, "not") {
            self.judge(not, &at.combined("not"));
        }
        for name in ["allOf", "oneOf", "anyOf"] {
            for (index, one) in list(schema, name).iter().enumerate() {
                self.judge(one, &at.combined(&format!("{name}[{index}]")));
            }
        }
        if let Some(items) = given(schema, "items").filter(|items| items.is_object()) {
            let mut below = at.below("items");
            if text(schema, "x-kubernetes-list-type") != "map" && below.uncorrelated.is_none() {
                below.uncorrelated = Some(at.path.clone());
            }
            self.judge(items, &below);
        }
    }

    fn wrong_type(&mut self, schema: &Value, at: &At, why: &str) {
        match text(schema, "type") {
            "" => self.found.required(at.at("type"), why),
            kind => self.found.invalid(at.at("type"), &json!(kind), why),
        }
    }

    fn map_type(&mut self, schema: &Value, at: &At) {
        let Some(kind) = given(schema, "x-kubernetes-map-type") else { return };
        if text(schema, "type") != "object" {
            self.wrong_type(schema, at, "must be object if x-kubernetes-map-type is specified");
        }
        if !matches!(kind.as_str(), Some("atomic" | "granular")) {
            self.found.unsupported(at.at("x-kubernetes-map-type"), kind, &["atomic", "granular"]);
        }
    }

    fn list_type(&mut self, schema: &Value, at: &At) {
        let kind = text(schema, "x-kubernetes-list-type");
        let keys = list(schema, "x-kubernetes-list-map-keys");
        if given(schema, "x-kubernetes-list-type").is_some() {
            if text(schema, "type") != "array" {
                self.wrong_type(schema, at, "must be array if x-kubernetes-list-type is specified");
            } else if kind == "set" {
                self.set(schema, at);
            }
            if !matches!(kind, "atomic" | "set" | "map") {
                let field = at.at("x-kubernetes-list-type");
                self.found.unsupported(field, &json!(kind), &["atomic", "set", "map"]);
            }
        }
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        match (keys.is_empty(), kind) {
            (true, _) | (false, "map") => {}
            (false, "") => self.found.required(at.at("x-kubernetes-list-type"), why),
            (false, kind) => self.found.invalid(at.at("x-kubernetes-list-type"), &json!(kind), why),
        }
    }

    /// Items of a set are compared whole.
    fn set(&mut self, schema: &Value, at: &At) {
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let items = schema.get("items").unwrap_or(&Value::Null);
        let list_type = items.get("x-kubernetes-list-type").cloned().unwrap_or_default();
        match (text(items, "type"), text(items, "x-kubernetes-map-type"), list_type.as_str()) {
            ("array", _, Some(other)) if other != "atomic" => {
                self.found.invalid(at.at("items.x-kubernetes-list-type"), &list_type, why);
            }
            ("object", other, _) if other != "atomic" => {
                self.found.invalid(at.at("items.x-kubernetes-map-type"), &list_type, why);
            }
            _ => {}
        }
    }

    fn list_map(&mut self, schema: &Value, at: &At) {
        if text(schema, "x-kubernetes-list-type") != "map" {
            return;
        }
        let keys = list(schema, "x-kubernetes-list-map-keys");
        let field = at.at("x-kubernetes-list-map-keys");
        if keys.is_empty() {
            let why = "must not be empty if x-kubernetes-list-type is map";
            self.found.required(field.clone(), why);
        }
        let Some(items) = given(schema, "items") else {
            let why = "must have a schema if x-kubernetes-list-type is map";
            return self.found.required(at.at("items"), why);
        };
        if text(items, "type") != "object" {
            let why = "must be object if parent array's x-kubernetes-list-type is map";
            return self.found.invalid(at.at("items.type"), &json!(text(items, "type")), why);
        }
        let all = json!(keys);
        for (index, key) in keys.iter().enumerate() {
            let name = key.as_str().unwrap_or_default();
            match items.get("properties").and_then(|fields| fields.get(name)) {
                Some(of) if matches!(text(of, "type"), "array" | "object") => {
                    let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    let field = at.at(&format!("items.properties[{name}].type"));
                    self.found.invalid(field, &json!("object"), why);
                }
                Some(_) => {}
                None => {
                    let why = "entries must all be names of item properties";
                    self.found.invalid(field.clone(), &all, why);
                }
            }
            if keys[..index].contains(key) {
                self.found.invalid(field.clone(), &all, "must not contain duplicate entries");
            }
        }
    }

    /// The keys of an item must always be there.
    fn identities(&mut self, schema: &Value, at: &At) {
        let kind = text(schema, "x-kubernetes-list-type");
        let Some(items) = given(schema, "items").filter(|_| matches!(kind, "set" | "map")) else { return };
        if flag(items, "nullable") {
            let why = format!("cannot be nullable when x-kubernetes-list-type is {kind}");
            self.found.forbidden(at.at("items.nullable"), &why);
        }
        if kind != "map" {
            return;
        }
        for key in list(schema, "x-kubernetes-list-map-keys") {
            let name = key.as_str().unwrap_or_default();
            let Some(of) = items.get("properties").and_then(|fields| fields.get(name)) else { continue };
            let field = |keyword: &str| at.at(&format!("items.properties[{name}].{keyword}"));
            if of.get("default").is_none() && !list(items, "required").contains(key) {
                let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                self.found.required(field("default"), why);
            }
            if flag(of, "nullable") {
                let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.found.forbidden(field("nullable"), why);
            }
        }
    }
}

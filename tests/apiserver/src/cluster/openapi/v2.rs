//! `/openapi/v2`: all documents folded into one of the older form, for clients that know no other.
//!
//! Answers: what is the same document in Swagger 2.0? `protobuf.rs` encodes it as protobuf.
//! 1. A schema of version 3 becomes a definition: references change their prefix, what version 2 cannot express is
//!    dropped.
//!
//! Real servers fold equal parameters into shared ones; here each operation carries its own.
use serde_json::{Map, Value, json};

use super::super::registry::Registry;
use super::{custom, paths, schemas};

/// The whole document.
pub(crate) fn document(registry: &Registry) -> Value {
    let mut definitions = Map::new();
    for (name, text) in schemas() {
        let schema = serde_json::from_str(text.get()).expect("the carried schemas are JSON");
        definitions.insert(name.into(), schema_of(schema, false));
    }
    let mut folded = Map::new();
    for (_, text) in paths() {
        let paths: Map<String, Value> = serde_json::from_str(text.get()).expect("the carried paths are JSON");
        folded.extend(paths.into_iter().map(|(path, item)| (path, item_of(item))));
    }
    for name in custom::names(registry) {
        let Some(Value::Object(mut document)) = custom::document(registry, &name) else { continue };
        if let Some(Value::Object(paths)) = document.remove("paths") {
            folded.extend(paths.into_iter().map(|(path, item)| (path, item_of(item))));
        }
        if let Some(Value::Object(schemas)) =
            document["components"]["schemas"].as_object().cloned().map(Value::Object)
        {
            definitions.extend(schemas.into_iter().map(|(name, schema)| (name, schema_of(schema, true))));
        }
    }
    json!({
        "swagger": "2.0", "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": folded, "definitions": definitions,
        "securityDefinitions": {"BearerToken": {
            "description": "Bearer Token authentication", "type": "apiKey", "name": "authorization", "in": "header",
        }},
        "security": [{"BearerToken": []}],
    })
}

/// A schema in version 2; only custom kinds have defaults there.
fn schema_of(schema: Value, defaults: bool) -> Value {
    match schema {
        Value::Object(mut members) => {
            if let Some(name) = members.get("$ref").and_then(Value::as_str) {
                return json!({ "$ref": name.replace(super::PREFIX, "#/definitions/") });
            }
            // A reference with neighbours stands in an `allOf` of its own in version 3, beside them in version 2.
            let only = match members.get_mut("allOf").map(Value::take) {
                Some(Value::Array(mut all)) if all.len() == 1 => all.pop(),
                Some(all) => {
                    members.insert("allOf".into(), all);
                    None
                }
                None => None,
            };
            if let Some(only) = only {
                members.remove("allOf");
                members.extend(only.as_object().cloned().unwrap_or_default());
            }
            if members.remove("oneOf").is_some() || members.remove("anyOf").is_some() {
                members.entry("type").or_insert_with(|| json!("string"));
            }
            members.remove("nullable");
            if !defaults {
                members.remove("default");
            }
            let below = members.into_iter().map(|(name, value)| match (name.as_str(), value) {
                ("$ref", Value::String(target)) => {
                    (name, target.replace(super::PREFIX, "#/definitions/").into())
                }
                ("properties" | "patternProperties", Value::Object(named)) => {
                    let named = named.into_iter().map(|(name, schema)| (name, schema_of(schema, defaults)));
                    (name, Value::Object(named.collect()))
                }
                ("items" | "additionalProperties" | "not" | "allOf", value) => {
                    (name, schema_of(value, defaults))
                }
                (_, value) => (name, value),
            });
            Value::Object(below.collect())
        }
        Value::Array(items) => items.into_iter().map(|item| schema_of(item, defaults)).collect(),
        other => other,
    }
}

fn item_of(item: Value) -> Value {
    let Value::Object(members) = item else { return item };
    let fold = |(name, value): (String, Value)| match name.as_str() {
        "parameters" => (name, parameters_of(value)),
        _ => (name, operation_of(value)),
    };
    Value::Object(members.into_iter().map(fold).collect())
}

fn parameters_of(parameters: Value) -> Value {
    let Value::Array(parameters) = parameters else { return parameters };
    let fold = |mut parameter: Value| {
        let schema = parameter.as_object_mut().and_then(|members| members.remove("schema"));
        if let (Some(members), Some(Value::Object(schema))) = (parameter.as_object_mut(), schema) {
            members.extend(schema);
        }
        parameter
    };
    parameters.into_iter().map(fold).collect()
}

fn operation_of(operation: Value) -> Value {
    let Value::Object(mut operation) = operation else { return operation };
    let mut parameters = operation.remove("parameters").map_or_else(|| json!([]), parameters_of);
    if let Some(body) = operation.remove("requestBody") {
        let (consumes, schema) = content_of(&body["content"]);
        let mut parameter = json!({"name": "body", "in": "body", "schema": schema});
        if body["required"] == json!(true) {
            parameter["required"] = json!(true);
        }
        if let Some(parameters) = parameters.as_array_mut() {
            parameters.insert(0, parameter);
        }
        operation.insert("consumes".into(), consumes);
    }
    operation.insert("parameters".into(), parameters);
    let mut produces = json!([]);
    if let Some(Value::Object(responses)) = operation.get_mut("responses") {
        for response in responses.values_mut().filter_map(Value::as_object_mut) {
            if let Some(content) = response.remove("content") {
                let (media, schema) = content_of(&content);
                response.insert("schema".into(), schema);
                produces = media;
            }
        }
    }
    operation.insert("produces".into(), produces);
    Value::Object(operation)
}

/// The media types of a body and its schema.
fn content_of(content: &Value) -> (Value, Value) {
    let content = content.as_object().cloned().unwrap_or_default();
    let schema = content.values().next().map(|media| media["schema"].clone()).unwrap_or_default();
    (content.keys().map(String::as_str).collect(), schema_of(schema, false))
}

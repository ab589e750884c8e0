//! The OpenAPI document of a custom group and version, written from its definitions.
//!
//! Answers: which paths does this group have, which parameters, and what do its objects look like?
//! 1. Every write has the parameter `fieldValidation`, so that kubectl leaves validation to the server.
//! 2. The root's `apiVersion`, `kind` and `metadata` are those of every object, whatever the definition contains.
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::kind::Kind;
use super::super::registry::Registry;
use super::{reached, schemas};

const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert \
recognized schemas to the latest internal value, and may reject unrecognized values. More info: \
https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from \
the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const OBJECT_METADATA: &str = "Standard object's metadata. More info: \
https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_METADATA: &str = "Standard list metadata. More info: \
https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The names of the documents of all custom groups.
pub(super) fn names(registry: &Registry) -> Vec<String> {
    let mut names: Vec<String> = registry
        .groups()
        .into_iter()
        .flat_map(|group| {
            registry.versions(group).into_iter().map(move |version| format!("apis/{group}/{version}"))
        })
        .filter(|name| !kinds(registry, name).is_empty())
        .collect();
    names.dedup();
    names
}

fn kinds<'a>(registry: &'a Registry, name: &str) -> Vec<&'a Arc<Kind>> {
    let Some((group, version)) = name.strip_prefix("apis/").and_then(|rest| rest.split_once('/')) else {
        return Vec::new();
    };
    registry.in_version(group, version).filter(|kind| kind.custom).collect()
}

/// What a document of this name depends on: empty for a built-in one.
pub(super) fn versions(registry: &Registry, name: &str) -> Vec<String> {
    let written = |kind: &&Arc<Kind>| {
        let schema = kind.definition.as_ref().map(|definition| definition.written.to_string());
        format!("{}/{}/{:?}/{:?}", kind.kind, kind.namespaced, kind.subresources, schema)
    };
    kinds(registry, name).iter().map(written).collect()
}

/// The document; none if no custom kind is served there.
pub(super) fn document(registry: &Registry, name: &str) -> Option<Value> {
    let kinds = kinds(registry, name);
    if kinds.is_empty() {
        return None;
    }
    let (mut paths, mut own) = (Map::new(), Map::new());
    for kind in kinds {
        add_paths(kind, &mut paths);
        own.insert(schema_name(kind, ""), object_schema(kind));
        own.insert(schema_name(kind, "List"), list_schema(kind));
    }
    let all = schemas();
    let text = format!("{}{}", Value::Object(paths.clone()), Value::Object(own.clone()));
    for name in reached(&all, &text) {
        let schema = serde_json::from_str(all[name].get()).expect("the carried schemas are JSON");
        own.insert(name.to_owned(), schema);
    }
    Some(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": paths, "components": {"schemas": own},
    }))
}

/// `com.example.v1.Widget`: the group backwards.
pub(super) fn schema_name(kind: &Kind, suffix: &str) -> String {
    let group: Vec<&str> = kind.resource.group.rsplit('.').collect();
    format!("{}.{}.{}{suffix}", group.join("."), kind.version, kind.kind)
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn of_kind(kind: &Kind, suffix: &str) -> Value {
    json!({"group": &*kind.resource.group, "version": kind.version, "kind": format!("{}{suffix}", kind.kind)})
}

/// The members of every object or list, `metadata` with its description.
fn common(metadata: &str, description: &str) -> Map<String, Value> {
    let text = |description: &str| json!({"type": "string", "description": description});
    let metadata = reference(&format!("{META}.{metadata}"));
    let mut members = Map::new();
    members.insert("apiVersion".into(), text(API_VERSION));
    members.insert("kind".into(), text(KIND));
    members.insert("metadata".into(), json!({"allOf": [metadata], "description": description}));
    members
}

pub(super) fn object_schema(kind: &Kind) -> Value {
    let written = kind.definition.as_ref().map(|definition| definition.written.clone());
    let mut schema = written.unwrap_or_else(|| json!({"type": "object"}));
    if let Some(schema) = schema.as_object_mut() {
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        if let Some(properties) = properties.as_object_mut() {
            properties.extend(common("ObjectMeta", OBJECT_METADATA));
        }
        schema.insert("x-kubernetes-group-version-kind".into(), json!([of_kind(kind, "")]));
        if !kind.fields.is_empty() {
            let fields = kind.fields.iter().map(|(path, _)| json!({ "fieldPath": path }));
            schema.insert("x-kubernetes-selectable-fields".into(), fields.collect());
        }
    }
    schema
}

pub(super) fn list_schema(kind: &Kind) -> Value {
    let mut properties = common("ListMeta", LIST_METADATA);
    let items = format!("List of {}. More info: {CONVENTIONS}", kind.resource.plural);
    let item = reference(&schema_name(kind, ""));
    properties
        .insert("items".into(), json!({"type": "array", "items": {"allOf": [item]}, "description": items}));
    json!({
        "description": format!("{} is a list of {}", kind.list_kind, kind.kind), "type": "object",
        "required": ["items"], "properties": properties,
        "x-kubernetes-group-version-kind": [of_kind(kind, "List")],
    })
}

fn add_paths(kind: &Kind, paths: &mut Map<String, Value>) {
    let base = format!("/apis/{}/{}", kind.resource.group, kind.version);
    let plural = &kind.resource.plural;
    let collection = if kind.namespaced {
        let everywhere = json!({"get": operation(kind, "list"), "parameters": parameters("list", "")});
        paths.insert(format!("{base}/{plural}"), everywhere);
        format!("{base}/namespaces/{{namespace}}/{plural}")
    } else {
        format!("{base}/{plural}")
    };
    let object = json!({
        "get": operation(kind, "get"), "put": operation(kind, "put"), "patch": operation(kind, "patch"),
        "delete": operation(kind, "delete"), "parameters": parameters("", &format!("{collection}/{{name}}")),
    });
    let all = json!({
        "get": operation(kind, "list"), "post": operation(kind, "post"),
        "delete": operation(kind, "deletecollection"), "parameters": parameters("", &collection),
    });
    for sub in &kind.subresources {
        let path = format!("{collection}/{{name}}/{}", sub.name);
        let mut item = json!({"parameters": parameters("", &path)});
        for verb in ["get", "put", "patch"] {
            item[verb] = operation(kind, verb);
        }
        paths.insert(path, item);
    }
    paths.insert(format!("{collection}/{{name}}"), object);
    paths.insert(collection, all);
}

/// The parameters of an action, or of a path with places for a namespace and a name.
fn parameters(action: &str, path: &str) -> Value {
    let query = |name: &&str, kind: &str| json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}});
    let texts: &[&str] = match action {
        "post" | "put" | "patch" => &["dryRun", "fieldManager", "fieldValidation"],
        "list" | "deletecollection" => {
            &["continue", "fieldSelector", "labelSelector", "resourceVersion", "resourceVersionMatch"]
        }
        "delete" => &["dryRun", "propagationPolicy"],
        _ => &["pretty"],
    };
    let flags: &[&str] = match action {
        "patch" => &["force"],
        "list" => &["allowWatchBookmarks", "sendInitialEvents", "watch"],
        _ => &[],
    };
    let numbers: &[&str] = match action {
        "list" | "deletecollection" => &["limit", "timeoutSeconds"],
        "delete" => &["gracePeriodSeconds"],
        _ => &[],
    };
    let places = ["namespace", "name"].into_iter().filter(|name| path.contains(&format!("{{{name}}}")));
    let place = |name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}});
    let all = places.map(place).chain(texts.iter().map(|name| query(name, "string")));
    all.chain(flags.iter().map(|name| query(name, "boolean")))
        .chain(numbers.iter().map(|name| query(name, "integer")))
        .collect()
}

fn operation(kind: &Kind, action: &str) -> Value {
    let own = schema_name(kind, "");
    let answer = match action {
        "list" => schema_name(kind, "List"),
        "delete" | "deletecollection" => format!("{META}.Status"),
        _ => own.clone(),
    };
    let content = |name: &str| json!({"application/json": {"schema": reference(name)}, "application/yaml": {"schema": reference(name)}});
    let mut operation = json!({
        "parameters": parameters(action, ""),
        "responses": {"200": {"description": "OK", "content": content(&answer)}, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": action, "x-kubernetes-group-version-kind": of_kind(kind, ""),
    });
    let body = match action {
        "post" | "put" => Some(json!({"content": content(&own), "required": true})),
        "delete" => Some(json!({ "content": content(&format!("{META}.DeleteOptions")) })),
        "patch" => {
            let patch = json!({ "schema": reference(&format!("{META}.Patch")) });
            let languages = ["apply-patch+yaml", "json-patch+json", "merge-patch+json"];
            let content = languages.map(|language| (format!("application/{language}"), patch.clone()));
            Some(json!({"content": Map::from_iter(content), "required": true}))
        }
        _ => None,
    };
    if let Some(body) = body {
        operation["requestBody"] = body;
    }
    operation
}

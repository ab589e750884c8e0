//! OpenAPI: the description of the server's API, for `kubectl explain`, completion and validation.
//!
//! Answers `/openapi/v3` (an index of documents), each document, and `/openapi/v2` (all in one). Built-in groups have
//! the documents of kube-apiserver 1.36.2, from the data of this crate; those of custom groups are made from
//! definitions.
//! 1. A document's name in the index carries a hash that changes when the document does.
//! 2. Built-in documents are unpacked when they are asked for and not kept.
//!
//! Next: `custom.rs` writes the documents of custom groups, `protobuf.rs` encodes all as protobuf, `v2.rs` converts
//! all to the older form.
mod custom;
pub(crate) mod protobuf;
mod v2;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::registry::Registry;
use super::schema::load;
pub(crate) use v2::document as v2;

const PATHS: &[u8] = include_bytes!("../../../data/paths.json.gz");
const PREFIX: &str = "#/components/schemas/";
/// The kinds that every group has, which refer to the core group and their own.
const EVERYWHERE: [&str; 2] = ["DeleteOptions", "WatchEvent"];

/// A piece of JSON that is not parsed, by name.
type Raw = BTreeMap<Box<str>, Box<RawValue>>;

/// One document, ready to be sent.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) hash: String,
    pub(crate) body: Vec<u8>,
}

/// `/openapi/v3`: every document with its address.
pub(crate) fn index(registry: &Registry) -> Value {
    let builtin = paths();
    let names = builtin.keys().map(|name| name.to_string()).chain(custom::names(registry));
    let entry = |name: String| {
        let url = format!("/openapi/v3/{name}?hash={}", hash(registry, &name));
        (name, json!({ "serverRelativeURL": url }))
    };
    json!({ "paths": names.map(entry).collect::<Map<_, _>>() })
}

/// The document of this name (`apis/apps/v1`, `version`); none if there is none.
pub(crate) fn document(registry: &Registry, name: &str) -> Option<Document> {
    let hash = hash(registry, name);
    let body = match custom::document(registry, name) {
        Some(document) => document.to_string().into_bytes(),
        None => document_of(name, paths().get(name)?),
    };
    Some(Document { hash, body })
}

fn paths() -> Raw {
    serde_json::from_slice(&load::unpacked(PATHS)).expect("the carried paths are JSON")
}

fn schemas() -> Raw {
    serde_json::from_slice(&load::builtin_text()).expect("the carried schemas are JSON")
}

fn hash(registry: &Registry, name: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (name, env!("CARGO_PKG_VERSION"), PATHS.len(), custom::versions(registry, name)).hash(&mut hasher);
    format!("{:016X}", hasher.finish())
}

fn document_of(name: &str, paths: &RawValue) -> Vec<u8> {
    let all = schemas();
    let mut schemas = BTreeMap::new();
    for name in reached(&all, paths.get()) {
        schemas.insert(name, &all[name]);
    }
    let mut own = Map::new();
    for (schema, text) in &schemas {
        let short = schema.rsplit('.').next().unwrap_or_default();
        if EVERYWHERE.contains(&short) {
            let mut schema_of: Value =
                serde_json::from_str(text.get()).expect("the carried schemas are JSON");
            schema_of["x-kubernetes-group-version-kind"] = kinds(name, short);
            own.insert((*schema).to_owned(), schema_of);
        }
    }
    schemas.retain(|name, _| !own.contains_key(*name));
    let mut written: Vec<String> = schemas.iter().map(|(name, text)| format!("{name:?}:{text}")).collect();
    written.extend(own.iter().map(|(name, schema)| format!("{name:?}:{schema}")));
    let scheme = r#"{"BearerToken":{"type":"apiKey","description":"Bearer Token authentication","name":"authorization","in":"header"}}"#;
    let schemas =
        if written.is_empty() { String::new() } else { format!("\"schemas\":{{{}}},", written.join(",")) };
    format!(
        r#"{{"openapi":"3.0.0","info":{{"title":"Kubernetes","version":"1.36"}},"paths":{paths},"components":{{{schemas}"securitySchemes":{scheme}}}}}"#
    )
    .into_bytes()
}

fn kinds(document: &str, kind: &str) -> Value {
    let mut kinds = vec![json!({"group": "", "version": "v1", "kind": kind})];
    if let Some((group, version)) = document.strip_prefix("apis/").and_then(|rest| rest.split_once('/')) {
        kinds.push(json!({"group": group, "version": version, "kind": kind}));
    }
    Value::Array(kinds)
}

/// The names of the schemas a text refers to, and those they refer to in turn.
fn reached<'a>(all: &'a Raw, text: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = vec![text];
    while let Some(text) = open.pop() {
        for name in text.split(PREFIX).skip(1).filter_map(|rest| rest.split('"').next()) {
            let Some((name, schema)) = all.get_key_value(name) else { continue };
            if found.insert(&**name) {
                open.push(schema.get());
            }
        }
    }
    found
}

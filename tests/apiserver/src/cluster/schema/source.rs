//! The text form of JSON schemas: in OpenAPI v3 documents of built-in groups and in the versions of a definition.
//!
//! Answers: what does the text contain? Nothing is checked, and descriptions are skipped.
//! 1. A `default` of null differs from a missing one.
//!
//! Next: `load.rs` makes types from it.
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// One schema with the keywords this server acts on.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Source {
    #[serde(rename = "$ref")]
    pub(crate) reference: Option<String>,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) properties: BTreeMap<Box<str>, Self>,
    pub(crate) additional_properties: Option<Others>,
    pub(crate) required: Vec<Box<str>>,
    pub(crate) items: Option<Box<Self>>,
    #[serde(deserialize_with = "present")]
    pub(crate) default: Option<Value>,
    #[serde(rename = "enum")]
    pub(crate) values: Vec<Value>,
    pub(crate) nullable: bool,
    pub(crate) all_of: Vec<Self>,
    pub(crate) any_of: Vec<Self>,
    pub(crate) one_of: Vec<Self>,
    pub(crate) not: Option<Box<Self>>,
    pub(crate) maximum: Option<f64>,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) exclusive_minimum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) pattern: Option<String>,
    pub(crate) max_items: Option<u64>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) min_properties: Option<u64>,
    #[serde(rename = "x-kubernetes-validations")]
    pub(crate) rules: Vec<Rule>,
    #[serde(rename = "x-kubernetes-list-type")]
    pub(crate) list_type: Option<String>,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    pub(crate) list_map_keys: Vec<Box<str>>,
    #[serde(rename = "x-kubernetes-map-type")]
    pub(crate) map_type: Option<String>,
    #[serde(rename = "x-kubernetes-patch-strategy")]
    pub(crate) patch_strategy: String,
    #[serde(rename = "x-kubernetes-patch-merge-key")]
    pub(crate) patch_merge_key: Option<Box<str>>,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub(crate) open: bool,
    #[serde(rename = "x-kubernetes-embedded-resource")]
    pub(crate) embedded: bool,
    #[serde(rename = "x-kubernetes-int-or-string")]
    pub(crate) int_or_string: bool,
    #[serde(rename = "x-kubernetes-group-version-kind")]
    pub(crate) kinds: Vec<GroupVersionKind>,
}

/// One rule of `x-kubernetes-validations`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rule {
    pub(crate) rule: String,
    pub(crate) message: String,
    pub(crate) message_expression: String,
    pub(crate) reason: String,
    pub(crate) field_path: String,
    pub(crate) optional_old_self: Option<bool>,
}

impl Source {
    /// Calls `visit` with this schema and all below it.
    pub(crate) fn each(&self, visit: &mut impl FnMut(&Self)) {
        visit(self);
        let others = match &self.additional_properties {
            Some(Others::Typed(source)) => Some(&**source),
            _ => None,
        };
        let combined = self.all_of.iter().chain(&self.any_of).chain(&self.one_of);
        let below =
            self.properties.values().chain(others).chain(self.items.as_deref()).chain(self.not.as_deref());
        for source in below.chain(combined) {
            source.each(visit);
        }
    }
}

/// `additionalProperties`: a schema, or whether there may be any.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Others {
    Allowed(bool),
    Typed(Box<Source>),
}

/// A kind a built-in schema is the root of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct GroupVersionKind {
    pub(crate) group: Box<str>,
    pub(crate) version: Box<str>,
    pub(crate) kind: Box<str>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

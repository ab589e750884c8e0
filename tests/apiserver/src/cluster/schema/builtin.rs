//! The types of the built-in API: the schemas of kube-apiserver 1.36.2, included in this crate.
//!
//! Answers: what is the schema of this built-in kind? Unpacked once per process, at the first question.
//! 1. The data is constant, so two servers in one process share nothing that could change.
//!
//! Next: `data/fetch.sh` shows where the data comes from.
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, LazyLock};

use flate2::read::GzDecoder;

use super::load::{self, OBJECT_META};
use super::model::{Schema, Types};
use super::source::Source;

const PACKED: &[u8] = include_bytes!("../../../data/schemas.json.gz");

const WITHIN_META: [&str; 4] = ["FieldsV1", "ManagedFieldsEntry", "OwnerReference", "Time"];

static SOURCES: LazyLock<BTreeMap<Box<str>, Source>> =
    LazyLock::new(|| serde_json::from_slice(&text()).expect("the carried schemas are JSON schemas"));

static TYPES: LazyLock<Arc<Types>> = LazyLock::new(|| Arc::new(load::named(&SOURCES)));

/// The schemas of `metadata` and what is in it, by name: every custom kind has them too.
fn object_meta() -> BTreeMap<Box<str>, Source> {
    let package = OBJECT_META.trim_end_matches("ObjectMeta");
    let within = WITHIN_META.map(|name| format!("{package}{name}"));
    let names = within.iter().map(String::as_str).chain([OBJECT_META]);
    names.map(|name| (name.into(), SOURCES[name].clone())).collect()
}

/// Loads the schema of one version of a custom kind.
pub(crate) fn custom(source: &Source) -> Schema {
    load::custom(source, &object_meta())
}

/// The schema of a built-in kind; none if the kind has none. The first call takes some milliseconds.
pub(crate) fn schema(group: &str, version: &str, kind: &str) -> Option<Schema> {
    let root = TYPES.kind(group, version, kind)?;
    Some(Schema::new(Arc::clone(&TYPES), root))
}

/// The schemas as they were written, as JSON text.
pub(crate) fn text() -> Vec<u8> {
    unpacked(PACKED)
}

pub(crate) fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut text).expect("the carried data is gzip");
    text
}

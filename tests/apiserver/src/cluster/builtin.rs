//! The kinds that every server has from the start, recorded from a real API server.
//!
//! Answers: which built-in kinds are there, what are their names, what can be done with them? `kinds.json` is the
//! table: one line per kind and version, recorded by `record-kinds.py`; what cannot be recorded from a server is in
//! `rules.rs`.
//! 1. The order of the rows is the order of discovery; of two versions of a kind, the first is the stored one.
//! 2. `zero` is what a real server sends in a bookmark of that kind: the zero value of its Go type.
//! 3. The table is read once per process and shared by all servers in it.
//!
//! Next: `kind.rs` explains each column.
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::definition::ScalePaths;
use super::kind::{CREATED_COLUMN, Column, Kind, NAME_COLUMN, Subresource};
use super::{ResourceId, rules};

static TABLE: LazyLock<Vec<Arc<Kind>>> = LazyLock::new(|| {
    let rows: Vec<Row<'_>> =
        serde_json::from_str(include_str!("kinds.json")).expect("the recorded table is JSON of this shape");
    rows.iter().map(Row::to_kind).map(Arc::new).collect()
});

#[derive(Deserialize)]
struct Row<'a> {
    group: &'a str,
    version: &'a str,
    plural: &'a str,
    kind: &'a str,
    singular: &'a str,
    namespaced: bool,
    verbs: Vec<String>,
    #[serde(default)]
    short: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(default)]
    subresources: Vec<(String, String, String, String, Vec<String>)>,
    #[serde(default)]
    columns: Vec<(String, String, String, i64, String)>,
    #[serde(borrow, default)]
    zero: Option<&'a RawValue>,
}

impl Row<'_> {
    fn to_kind(&self) -> Kind {
        let resource = ResourceId::new(self.group, self.plural);
        let (rules, fields) = (rules::rules(&resource), rules::fields(&resource));
        let zero = self.zero.map_or("", RawValue::get);
        Kind {
            storage: rules::storage(&resource),
            stored_version: rules::stored_version(&resource, self.version).to_owned(),
            deprecation: rules::deprecation(&resource).map(str::to_owned),
            resource,
            version: self.version.to_owned(),
            kind: self.kind.to_owned(),
            list_kind: format!("{}List", self.kind),
            singular: self.singular.to_owned(),
            short_names: self.short.clone(),
            categories: self.categories.clone(),
            namespaced: self.namespaced,
            verbs: self.verbs.clone(),
            status: self.subresources.iter().any(|(name, ..)| name == "status"),
            subresources: self.subresources.iter().map(subresource).collect(),
            scale: self.subresources.iter().any(|(name, ..)| name == "scale").then(ScalePaths::builtin),
            custom: false,
            rules,
            fields,
            namespace_field: rules.namespace_field,
            zero: zero.trim_start_matches('{').strip_suffix('}').unwrap_or_default().to_owned(),
            columns: self.columns.iter().map(column).collect(),
            terminating: false,
            definition: None,
            stored_as: None,
        }
    }
}

fn subresource(
    (name, group, version, kind, verbs): &(String, String, String, String, Vec<String>),
) -> Subresource {
    Subresource {
        name: name.clone(),
        group: group.clone(),
        version: version.clone(),
        kind: kind.clone(),
        verbs: verbs.clone(),
    }
}

fn column(
    (name, value_type, format, priority, description): &(String, String, String, i64, String),
) -> Column {
    // Two texts that nearly every kind has are recorded only by their beginnings.
    let common = [NAME_COLUMN, CREATED_COLUMN].into_iter().find(|text| text.starts_with(&**description));
    let common = common.filter(|_| !description.is_empty());
    Column {
        name: name.clone(),
        value_type: value_type.clone(),
        format: format.clone(),
        priority: *priority,
        description: common.unwrap_or(description).to_owned(),
        path: String::new(),
    }
}

/// All built-in kinds, in the order of discovery.
pub(crate) fn kinds() -> impl Iterator<Item = Arc<Kind>> {
    TABLE.iter().map(Arc::clone)
}

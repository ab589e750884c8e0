//! Tables: objects as rows of cells, as kubectl shows them.
//!
//! Answers: which cells does this object have, and how is a Table of them written? The columns are data (`Kind::columns`).
//! 1. A row has a cell for every column the real server fills, the wide ones too: the client hides them.
//! 2. Ages are counted from `now`, which is an argument.
//! 3. Cells of built-ins are made from the stored form, whatever version was requested.
//! 4. A custom kind has one cell for each column of its definition: only the first value that a path finds. A column that
//!    finds nothing, or a value of another type than declared, shows null. A text column shows any value: as JSON, where
//!    it is not a text.
//!
//! Next: `view.rs` gives the printers access to an object; `pods.rs`, `workloads.rs`, `network.rs`, `storage.rs`,
//! `policy.rs` print.

mod json_path;
mod network;
mod pods;
mod policy;
mod storage;

#[cfg(test)]
mod tests;
mod view;
mod workloads;

use serde_json::{Value, json};

use super::convert;
use super::kind::{Column, Kind};
use super::metadata::{bookmark_metadata, member};
use super::object::Object;
use view::View;

type Printer = fn(&str, &str, &View<'_>) -> Option<Vec<Value>>;

/// The printers beside that of pods.
const PRINTERS: [Printer; 4] = [workloads::cells, network::cells, storage::cells, policy::cells];

/// What a row carries beside its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Include {
    Nothing,
    #[default]
    Metadata,
    Object,
}

/// How a Table is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableForm {
    /// Whether `v1beta1` of meta.k8s.io was asked for; else `v1`.
    pub(crate) beta: bool,
    pub(crate) include: Include,
    /// Whether the columns are included; in a watch only the first event has them.
    pub(crate) headers: bool,
    /// Seconds since 1970, from which ages are counted.
    pub(crate) now: i64,
}

impl TableForm {
    pub(crate) fn api_version(self) -> &'static str {
        if self.beta { "meta.k8s.io/v1beta1" } else { "meta.k8s.io/v1" }
    }

    /// The text of the column definitions, `null` if they are not included.
    pub(crate) fn columns(self, kind: &Kind) -> String {
        if !self.headers {
            return "null".to_owned();
        }
        let column = |column: &Column| {
            json!({"name": column.name, "type": column.value_type, "format": column.format,
                "description": column.description, "priority": column.priority})
        };
        Value::Array(kind.columns.iter().map(column).collect()).to_string()
    }

    /// The text of one row.
    pub(crate) fn row(self, kind: &Kind, object: &Object) -> String {
        let value = object.decode();
        let shown = match self.include {
            Include::Nothing => Value::Null,
            Include::Object => object.decode_as(kind),
            Include::Metadata => self.partial(value["metadata"].clone()),
        };
        self.row_of(kind, &value, shown)
    }

    fn row_of(self, kind: &Kind, value: &Value, shown: Value) -> String {
        let mut row = json!({"cells": cells(kind, value, self.now), "object": shown});
        if kind.resource.is("", "pods")
            && let Some(conditions) = pods::conditions(value)
        {
            row["conditions"] = conditions;
        }
        row.to_string()
    }

    fn partial(self, metadata: Value) -> Value {
        json!({"kind": "PartialObjectMetadata", "apiVersion": self.api_version(), "metadata": metadata})
    }

    /// The row of a bookmark: empty cells, and an object that has only a version.
    pub(crate) fn bookmark_row(self, kind: &Kind, revision: u64, initial_end: bool) -> String {
        let metadata = bookmark_metadata(revision, initial_end);
        let zero: Value = serde_json::from_str(&format!("{{{}}}", kind.zero)).unwrap_or_default();
        let shown = match self.include {
            Include::Object => {
                let mut object = zero.clone();
                object["metadata"] = metadata;
                convert::from_stored(kind, &mut object);
                super::metadata::set_type(&mut object, &kind.api_version(), &kind.kind);
                object
            }
            // Without the metadata the marker would be lost; a bookmark without the marker has no metadata.
            Include::Nothing if !initial_end => Value::Null,
            _ => self.partial(metadata),
        };
        self.row_of(kind, &zero, shown)
    }
}

/// Whether a real server has a printer for this kind: where it has none, a Table without rows has no list of them either.
pub(crate) fn is_printed(kind: &Kind) -> bool {
    let (group, plural) = (&*kind.storage.group, &*kind.storage.plural);
    let nothing = View::new(&Value::Null, 0);
    kind.custom
        || (group, plural) == ("", "pods")
        || PRINTERS.iter().any(|printer| printer(group, plural, &nothing).is_some())
}

/// The cells of one object.
fn cells(kind: &Kind, value: &Value, now: i64) -> Vec<Value> {
    if kind.custom {
        return custom_cells(kind, value, now);
    }
    let view = View::new(value, now);
    let (group, plural) = (&*kind.storage.group, &*kind.storage.plural);
    let own = if (group, plural) == ("", "pods") {
        Some(pods::cells(&view))
    } else {
        PRINTERS.iter().find_map(|printer| printer(group, plural, &view))
    };
    own.unwrap_or_else(|| vec![json!(member(value, "name")), view.created()])
}

/// The cells of a custom kind.
fn custom_cells(kind: &Kind, value: &Value, now: i64) -> Vec<Value> {
    let view = View::new(value, now);
    let mut cells = vec![view.name()];
    cells.extend(kind.columns.iter().skip(1).map(|column| cell(column, value, &view)));
    cells
}

fn cell(column: &Column, object: &Value, view: &View<'_>) -> Value {
    let found = json_path::find(object, &column.path);
    let Some(value) = found.first().filter(|value| !value.is_null()) else { return Value::Null };
    match column.value_type.as_str() {
        "integer" => value
            .as_i64()
            .or_else(|| value.as_f64().map(truncated))
            .map_or(Value::Null, |number| json!(number)),
        "number" => value.as_f64().map_or(Value::Null, whole_or_not),
        "boolean" => value.as_bool().map_or(Value::Null, |flag| json!(flag)),
        "date" => value.as_str().map_or(Value::Null, |text| json!(date(view, text))),
        _ => json!(value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
    }
}

fn truncated(number: f64) -> i64 {
    number as i64
}

/// A number without a fraction is written without one.
fn whole_or_not(number: f64) -> Value {
    let whole = truncated(number);
    let same = whole as f64 == number;
    if same { json!(whole) } else { json!(number) }
}

fn date(view: &View<'_>, text: &str) -> String {
    match view.since_text(text).as_str() {
        "<unknown>" => "<invalid>".to_owned(),
        age => age.to_owned(),
    }
}

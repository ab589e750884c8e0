//! The rows of custom kinds: one cell for each column of the definition.
//!
//! Answers: what does this column show for this object? Only the first value that a path finds.
//! 1. A column that finds nothing, or a value of another type than declared, shows null.
//! 2. A text column shows any value: as JSON, where it is not a text.
use serde_json::{Value, json};

use super::json_path;
use super::view::View;
use crate::cluster::kind::{Column, Kind};

pub(super) fn cells(kind: &Kind, value: &Value, now: i64) -> Vec<Value> {
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

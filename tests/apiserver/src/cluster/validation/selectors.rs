//! Label selectors as members of objects: their keys, operators and values.
//!
//! Answers: is this selector valid? Whether it matches the right objects is checked where it is used.
//! 1. A selector with a fault matches nothing; a missing selector has no fault.
use serde_json::Value;

use super::causes::{Causes, list, text};
use super::metadata;
use crate::cluster::names;

/// Whether the selector at this place is valid; faults are reported.
pub(super) fn check(field: &str, selector: Option<&Value>, causes: &mut Causes) -> bool {
    let Some(selector) = selector.filter(|selector| !selector.is_null()) else { return true };
    let before = causes.count();
    metadata::labels(&format!("{field}.matchLabels"), selector.get("matchLabels"), causes);
    for (at, expression) in list(selector, "matchExpressions").iter().enumerate() {
        check_expression(&format!("{field}.matchExpressions[{at}]"), expression, causes);
    }
    causes.count() == before
}

fn check_expression(field: &str, expression: &Value, causes: &mut Causes) {
    let values = list(expression, "values");
    match text(expression, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            causes.required(&format!("{field}.values"), why);
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.forbidden(&format!("{field}.values"), why);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            causes.invalid(&format!("{field}.operator"), &other.into(), "not a valid selector operator");
        }
    }
    let key = text(expression, "key");
    causes.invalid_for(&format!("{field}.key"), &key.into(), names::label_key_faults(key));
    for (at, value) in values.iter().enumerate() {
        let faults = names::label_value_faults(value.as_str().unwrap_or_default());
        causes.invalid_for(&format!("{field}.values[{at}]"), value, faults);
    }
}

/// Whether it has no requirement: it would match everything.
pub(super) fn is_empty(selector: &Value) -> bool {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    labels.is_none_or(serde_json::Map::is_empty) && list(selector, "matchExpressions").is_empty()
}

/// A selector as a Go server writes it: the labels first.
pub(super) fn written(selector: &Value) -> String {
    let parts = ["matchLabels", "matchExpressions"].into_iter().filter_map(|name| {
        let part = selector.get(name)?;
        Some(format!("{name:?}:{part}"))
    });
    format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
}

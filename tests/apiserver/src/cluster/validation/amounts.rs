//! Numbers that may be percentages: how many pods may be missing, or may be added.
//!
//! Answers: is this a number or a percentage, and how large is it?
//! 1. A value that cannot be read counts as 0.
use serde_json::Value;

use super::causes::Causes;

const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
regex used for validation is '[0-9]+%')";

fn percent(value: &Value) -> Option<i64> {
    let digits = value.as_str()?.strip_suffix('%')?;
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// A number that is not negative, or a percentage.
pub(super) fn not_negative(field: &str, value: Option<&Value>, causes: &mut Causes) {
    match value {
        Some(text) if text.is_string() && percent(text).is_none() => causes.invalid(field, text, PERCENT),
        other => causes.not_negative(field, other),
    }
}

/// A percentage of at most all.
pub(super) fn at_most_all(field: &str, value: Option<&Value>, causes: &mut Causes) {
    if let Some(value) = value.filter(|value| percent(value).is_some_and(|percent| percent > 100)) {
        causes.invalid(field, value, "must not be greater than 100%");
    }
}

pub(super) fn is_zero(value: Option<&Value>) -> bool {
    value.and_then(|value| value.as_i64().or_else(|| percent(value))).unwrap_or(0) == 0
}

//! The output of checks: a list of causes, each about one field, and the checks that fields of several kinds share.
//!
//! Answers: how is it reported that a value is missing, wrong, unknown, or there twice, and is this number or percentage (how
//! many pods may be missing, or may be added) in its bounds?
//! 1. Values are shown in a message as JSON: texts in quotes, everything else as it is.
//! 2. A number or percentage that cannot be read counts as 0.

use std::fmt::Display;

use serde_json::{Value, json};

use crate::cluster::names::{self, NameRule};
use crate::cluster::status::Cause;

pub(super) const NO_CHANGE: &str = "field is immutable";

/// The causes found so far.
#[derive(Debug, Default)]
pub(super) struct Causes(Vec<Cause>);

impl Causes {
    pub(super) fn into_list(self) -> Vec<Cause> {
        self.0
    }

    /// How many there are by now.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    fn add(&mut self, reason: &'static str, field: &str, message: String) {
        self.0.push(Cause { reason, message, field: field.to_owned() });
    }

    pub(super) fn required(&mut self, field: &str, why: &str) {
        self.0.push(Cause::required(field, why));
    }

    pub(super) fn invalid(&mut self, field: &str, value: &Value, why: &str) {
        self.add("FieldValueInvalid", field, format!("Invalid value: {value}: {why}"));
    }

    /// One cause for each of these faults of a value.
    pub(super) fn invalid_for(&mut self, field: &str, value: &Value, faults: Vec<String>) {
        for why in faults {
            self.invalid(field, value, &why);
        }
    }

    /// A name; an empty one is not checked.
    pub(super) fn name(&mut self, field: &str, name: &str, rule: NameRule) {
        if !name.is_empty() {
            self.invalid_for(field, &json!(name), names::faults(name, rule));
        }
    }

    /// A name that must not be empty.
    pub(super) fn needed_name(&mut self, field: &str, name: &str, rule: NameRule) {
        if name.is_empty() {
            self.required(field, "");
        }
        self.name(field, name, rule);
    }

    /// A value that is not written as this crate writes JSON.
    pub(super) fn invalid_text(&mut self, field: &str, value: &str, why: &str) {
        let message = if why.is_empty() {
            format!("Invalid value: {value}")
        } else {
            format!("Invalid value: {value}: {why}")
        };
        self.add("FieldValueInvalid", field, message);
    }

    /// The same for a value that is not shown.
    pub(super) fn invalid_whole(&mut self, field: &str, why: &str) {
        self.add("FieldValueInvalid", field, format!("Invalid value: {why}"));
    }

    pub(super) fn too_long(&mut self, field: &str, most: usize) {
        self.add("FieldValueTooLong", field, format!("Too long: may not be more than {most} bytes"));
    }

    pub(super) fn forbidden(&mut self, field: &str, why: &str) {
        self.0.push(Cause::forbidden(field, why));
    }

    /// A second value that is not a text.
    pub(super) fn duplicate_text(&mut self, field: &str, value: &str) {
        self.add("FieldValueDuplicate", field, format!("Duplicate value: {value}"));
    }

    pub(super) fn duplicate(&mut self, field: &str, value: &str) {
        self.add("FieldValueDuplicate", field, format!("Duplicate value: {value:?}"));
    }

    pub(super) fn not_found(&mut self, field: &str, value: &str) {
        self.add("FieldValueNotFound", field, format!("Not found: {value:?}"));
    }

    /// `value` is shown as it is written: a text is given as JSON.
    pub(super) fn unsupported(&mut self, field: &str, value: impl Display, known: &[&str]) {
        self.0.push(Cause::unsupported(field, value, known));
    }

    /// A text that must be one of some; a missing text is not checked.
    pub(super) fn one_of(&mut self, field: &str, value: Option<&Value>, known: &[&str]) {
        if let Some(value) = value
            && !value.as_str().is_some_and(|text| known.contains(&text))
        {
            self.unsupported(field, value, known);
        }
    }

    pub(super) fn not_negative(&mut self, field: &str, value: Option<&Value>) {
        if let Some(value) = value
            && value.as_i64().is_some_and(|number| number < 0)
        {
            self.invalid(field, value, "must be greater than or equal to 0");
        }
    }

    /// Members of an object that may not be negative.
    pub(super) fn counts(&mut self, field: &str, object: &Value, names: &[&str]) {
        for name in names {
            self.not_negative(&format!("{field}.{name}"), object.get(*name));
        }
    }

    pub(super) fn port(&mut self, field: &str, value: &Value) {
        if !value.as_i64().is_some_and(|port| (1..=65_535).contains(&port)) {
            self.invalid(field, value, "must be between 1 and 65535, inclusive");
        }
    }

    /// A member that may not change.
    pub(super) fn unchanged(&mut self, field: &str, old: Option<&Value>, new: Option<&Value>) {
        if old != new {
            self.invalid(field, new.unwrap_or(&Value::Null), NO_CHANGE);
        }
    }
}

/// The elements of a list member.
pub(super) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A text member, empty if it is missing.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

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

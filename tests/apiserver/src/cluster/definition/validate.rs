//! The checks of a schema on a custom object: types, bounds, patterns, enums, combinations.
//!
//! Answers: which fields of this object break the schema, with the texts of the API? `lists.rs` checks lists that are
//! sets or maps, `rules.rs` evaluates rules.
//! 1. A value that did not change since the stored object is not checked again (ratcheting), except by combinations.
//! 2. Members are checked in alphabetical order (a real server's order differs from request to request).
use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use crate::cluster::apply;
use crate::cluster::schema::format;
use crate::cluster::schema::pattern::Regex;
use crate::cluster::schema::source::{Others, Source};
use crate::cluster::status::Cause;

/// The compiled patterns of a schema, by their text.
pub(crate) type Patterns = BTreeMap<String, Regex>;

/// One walk of a schema's checks.
pub(crate) struct Check<'a> {
    pub(crate) patterns: &'a Patterns,
    pub(crate) causes: Vec<Cause>,
}

/// One place of the walk.
#[derive(Clone, Copy)]
struct At<'a> {
    path: &'a str,
    value: &'a Value,
    /// The stored value of this place.
    old: Option<&'a Value>,
}

/// `spec.name`, `spec.items[0]`.
pub(super) fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The type of an object is always checked: it does not tell what was stored.
pub(super) fn is_type(path: &str) -> bool {
    matches!(path, "apiVersion" | "kind")
}

impl<'a> Check<'a> {
    pub(crate) fn new(patterns: &'a Patterns) -> Self {
        Self { patterns, causes: Vec::new() }
    }

    /// Checks a whole object, or a single value (with the path "").
    pub(crate) fn value(&mut self, source: &Source, value: &Value, old: Option<&Value>) {
        self.at(source, At { path: "", value, old });
    }

    fn at(&mut self, source: &Source, at: At<'_>) {
        if at.old.is_some_and(|old| same(source, old, at.value)) {
            return;
        }
        if !at.value.is_null() || !source.nullable {
            self.type_of(source, at);
            self.combinations(source, at);
        }
        match at.value {
            Value::String(text) => self.text(source, at.path, text),
            Value::Number(_) => self.number(source, at),
            Value::Array(items) => self.list(source, at, items),
            Value::Object(members) => self.object(source, at, members),
            Value::Null | Value::Bool(_) => {}
        }
        let is_listed = |listed: &Value| apply::same(listed, at.value);
        if !source.values.is_empty() && !source.values.iter().any(is_listed) {
            let shown: Vec<String> = source.values.iter().map(quoted).collect();
            let message = format!("Unsupported value: {}: supported values: {}", at.value, shown.join(", "));
            self.push("FieldValueNotSupported", at.path, message);
        }
    }

    fn push(&mut self, reason: &'static str, field: &str, message: String) {
        let field = if field.is_empty() { "<nil>" } else { field }.to_owned();
        self.causes.push(Cause { reason, message, field });
    }

    fn invalid(&mut self, at: At<'_>, shown: &str, why: &str) {
        self.push("FieldValueInvalid", at.path, format!("Invalid value: {shown}: {} in body {why}", at.path));
    }

    fn nowhere(&mut self, why: &str) {
        self.push("FieldValueInvalid", "", format!("Invalid value: \"\": {why}"));
    }

    fn wrong_type(&mut self, path: &str, wanted: &str, shown: &str) {
        let message = format!("Invalid value: {shown:?}: {path} in body must be of type {wanted}: {shown:?}");
        self.push("FieldValueTypeInvalid", path, message);
    }

    fn type_of(&mut self, source: &Source, at: At<'_>) {
        let (format, found) = (source.format.as_str(), type_name(at.value));
        let wanted = if source.int_or_string { "integer,string" } else { source.kind.as_str() };
        // The format of a type is told in its place, and of lists nothing is known then.
        let is_known = match wanted {
            // A known one has no empty text.
            "string" => !format::holds(format, ""),
            "integer" | "number" => matches!(format, "int32" | "int64" | "float" | "double"),
            _ => false,
        };
        match found {
            _ if wanted.is_empty() || wanted.split(',').any(|one| one == found) => {}
            "integer" if wanted == "number" => {}
            "array" if is_known && wanted == "string" => {}
            "integer" if is_known => self.wrong_type(at.path, format, "int64"),
            "number" if is_known => self.wrong_type(at.path, format, "float64"),
            "boolean" | "object" if is_known => self.wrong_type(at.path, format, ""),
            _ => self.wrong_type(at.path, wanted, found),
        }
        if let Value::Number(number) = at.value {
            let text = number.as_i64().map(|number| number.to_string());
            let text = text.unwrap_or_else(|| number.as_f64().unwrap_or_default().to_string());
            self.size(source, "Checked", text, at.path);
        }
    }

    /// Checks that a text is an integer of the schema's size, if it has one.
    fn size(&mut self, source: &Source, what: &str, text: impl ToString, path: &str) -> bool {
        let (text, format) = (text.to_string(), source.format.as_str());
        let fits = if format == "int32" { text.parse::<i32>().is_ok() } else { text.parse::<i64>().is_ok() };
        let is_wrong = source.kind == "integer" && !fits;
        if is_wrong {
            let sized = matches!(format, "int32" | "int64");
            let how = if sized { format!("with format {format}") } else { "(default format)".to_owned() };
            self.nowhere(&format!("{what} value must be of type integer {how} in {path}"));
        }
        !is_wrong
    }

    fn text(&mut self, source: &Source, path: &str, text: &str) {
        let length = text.chars().count() as u64;
        let at = |why: &str| format!("Invalid value: {text:?}: {path} in body {why}");
        match (source.max_length, source.min_length, &source.pattern) {
            (Some(most), _, _) if length > most => {
                let bytes = if most == 1 { "byte" } else { "bytes" };
                self.push(
                    "FieldValueTooLong",
                    path,
                    format!("Too long: may not be more than {most} {bytes}"),
                );
            }
            (_, Some(least), _) if length < least => {
                self.push("FieldValueInvalid", path, at(&format!("should be at least {least} chars long")));
            }
            (_, _, Some(pattern)) if !self.patterns.get(pattern).is_none_or(|regex| regex.is_match(text)) => {
                self.push("FieldValueInvalid", path, at(&format!("should match '{pattern}'")));
            }
            _ => {}
        }
        if !format::holds(&source.format, text) {
            let message = format!(
                "Invalid value: {text:?}: {path} in body must be of type {}: {text:?}",
                source.format
            );
            self.push("FieldValueTypeInvalid", path, message);
        }
    }

    fn number(&mut self, source: &Source, at: At<'_>) {
        let value = at.value.as_f64().unwrap_or_default();
        let shown = at.value.to_string();
        if let Some(factor) = source.multiple_of {
            let is_sized = self.size(source, "MultipleOf", factor, at.path);
            let integer = at.value.as_i64().filter(|_| is_sized);
            // An integer is divided by what is whole of the factor.
            let factor = if integer.is_some() { factor.trunc() } else { factor };
            let times = value / factor;
            let is_broken = match integer.zip(whole(factor)) {
                Some((value, factor)) => value.checked_rem(factor) != Some(0),
                None => (times - times.round()).abs() > 1e-9,
            };
            if factor <= 0.0 {
                let factor = bound_text(factor);
                let why = format!(
                    "Invalid value: {factor}: factor MultipleOf declared for {} must be positive: {factor}",
                    at.path
                );
                self.push("FieldValueInvalid", at.path, why);
            } else if is_broken {
                self.invalid(at, &shown, &format!("should be a multiple of {}", bound_text(factor)));
            }
        }
        if let Some(most) = source.maximum {
            let order = compare(at.value, most);
            if order.is_gt() || (source.exclusive_maximum && order.is_eq()) {
                let than = if source.exclusive_maximum { "less than" } else { "less than or equal to" };
                self.invalid(at, &shown, &format!("should be {than} {}", bound_text(most)));
            }
        }
        if let Some(least) = source.minimum {
            let order = compare(at.value, least);
            if order.is_lt() || (source.exclusive_minimum && order.is_eq()) {
                let than = if source.exclusive_minimum { "greater than" } else { "greater than or equal to" };
                self.invalid(at, &shown, &format!("should be {than} {}", bound_text(least)));
            }
        }
    }

    fn list(&mut self, source: &Source, at: At<'_>, items: &[Value]) {
        if let Some(of) = &source.items {
            let stored = Stored::new(source, at.old);
            for (index, value) in items.iter().enumerate() {
                let old = stored.get(value);
                self.at(of, At { path: &format!("{}[{index}]", at.path), value, old });
            }
        }
        let count = items.len() as u64;
        if let Some(least) = source.min_items.filter(|least| count < *least) {
            self.invalid(at, &count.to_string(), &format!("should have at least {least} items"));
        }
        if let Some(most) = source.max_items.filter(|most| count > *most) {
            self.too_many(at, count, most);
        }
    }

    fn too_many(&mut self, at: At<'_>, count: u64, most: u64) {
        let items = if most == 1 { "item" } else { "items" };
        let why = format!("Too many: {count}: must have at most {most} {items}");
        self.push("FieldValueTooMany", at.path, why);
    }

    fn object(&mut self, source: &Source, at: At<'_>, members: &Map<String, Value>) {
        let count = members.len() as u64;
        if let Some(least) = source.min_properties.filter(|least| count < *least) {
            self.invalid(at, &count.to_string(), &format!("should have at least {least} properties"));
        }
        if let Some(most) = source.max_properties.filter(|most| count > *most) {
            self.too_many(at, count, most);
        }
        for name in &source.required {
            if !members.contains_key(&**name) {
                self.push("FieldValueRequired", &below(at.path, name), "Required value".to_owned());
            }
        }
        for (name, value) in members {
            let of = match (source.properties.get(name.as_str()), &source.additional_properties) {
                (Some(of), _) => Some(of),
                (None, Some(Others::Typed(of))) => Some(&**of),
                (None, _) => None,
            };
            if let Some(of) = of {
                let path = below(at.path, name);
                let old = at.old.filter(|_| !is_type(&path)).and_then(|old| old.get(name));
                self.at(of, At { path: &path, value, old });
            }
        }
    }

    /// The causes that a schema would give here, without reporting them.
    fn apart(&mut self, source: &Source, at: At<'_>) -> Vec<Cause> {
        let kept = std::mem::take(&mut self.causes);
        self.at(source, at);
        std::mem::replace(&mut self.causes, kept)
    }

    fn combinations(&mut self, source: &Source, at: At<'_>) {
        // What a combination says of a value that did not change is checked again.
        let at = At { old: None, ..at };
        if !source.any_of.is_empty() {
            let tried: Vec<Vec<Cause>> = source.any_of.iter().map(|one| self.apart(one, at)).collect();
            if !tried.iter().any(Vec::is_empty) {
                self.nowhere(&format!("{:?} must validate at least one schema (anyOf)", at.path));
                self.causes.extend(tried.into_iter().next().unwrap_or_default());
            }
        }
        if !source.one_of.is_empty() {
            let tried: Vec<Vec<Cause>> = source.one_of.iter().map(|one| self.apart(one, at)).collect();
            let valid = tried.iter().filter(|causes| causes.is_empty()).count();
            let must = "must validate one and only one schema (oneOf). Found";
            match valid {
                1 => {}
                0 => {
                    self.nowhere(&format!("{:?} {must} none valid", at.path));
                    self.causes.extend(tried.into_iter().next().unwrap_or_default());
                }
                more => self.nowhere(&format!("{:?} {must} {more} valid alternatives", at.path)),
            }
        }
        let before = self.causes.len();
        let mut valid = 0;
        for one in &source.all_of {
            let found = self.causes.len();
            self.at(one, at);
            valid += usize::from(self.causes.len() == found);
        }
        if self.causes.len() > before {
            let none = if valid == 0 { ". None validated" } else { "" };
            self.nowhere(&format!("{:?} must validate all the schemas (allOf){none}", at.path));
        }
        if source.not.as_ref().is_some_and(|not| self.apart(not, at).is_empty()) {
            self.nowhere(&format!("{:?} must not validate the schema (not)", at.path));
        }
    }
}

/// The elements of a stored list by their keys; none unless it is a map.
pub(super) struct Stored<'a> {
    keys: &'a [Box<str>],
    items: HashMap<Vec<&'a Value>, &'a Value>,
}

impl<'a> Stored<'a> {
    pub(super) fn new(source: &'a Source, old: Option<&'a Value>) -> Self {
        let map = source.list_type.as_deref() == Some("map");
        let keys = if map { &*source.list_map_keys } else { &[] };
        let mut items = HashMap::new();
        for item in old.and_then(Value::as_array).into_iter().flatten() {
            if let Some(key) = key(keys, item) {
                items.entry(key).or_insert(item);
            }
        }
        Self { keys, items }
    }

    /// The first with the keys of this one.
    pub(super) fn get(&self, item: &Value) -> Option<&'a Value> {
        self.items.get(&key(self.keys, item)?).copied()
    }
}

/// None if one is missing.
fn key<'v>(keys: &[Box<str>], item: &'v Value) -> Option<Vec<&'v Value>> {
    let scalar = |value: &&Value| value.is_string() || value.is_number() || value.is_boolean();
    let key: Option<Vec<_>> = keys.iter().map(|key| item.get(&**key).filter(scalar)).collect();
    key.filter(|_| !keys.is_empty())
}

/// Whether a value did not change: elements of a list that is a map may change their places. A field that the schema does
/// not name is always a change.
pub(super) fn same(source: &Source, old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Array(olds), Value::Array(news)) if source.list_type.as_deref() == Some("map") => {
            let stored = Stored::new(source, Some(old));
            let same = |item| {
                let known = stored.get(item).zip(source.items.as_deref());
                known.is_some_and(|(old, of)| same(of, old, item))
            };
            olds.len() == news.len() && news.iter().all(same)
        }
        (Value::Object(olds), Value::Object(news)) => {
            let same = |(name, value): (&String, &Value)| {
                let of = match (source.properties.get(name.as_str()), &source.additional_properties) {
                    (Some(of), _) => of,
                    (None, Some(Others::Typed(of))) => of,
                    (None, _) => return false,
                };
                olds.get(name).is_some_and(|old| same(of, old, value))
            };
            olds.len() == news.len() && news.iter().all(same)
        }
        _ => old == new,
    }
}

fn quoted(value: &Value) -> String {
    match value {
        Value::String(_) => value.to_string(),
        other => format!("\"{other}\""),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.as_f64().is_some_and(is_whole) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether a float counts as an integer: above 2^53 it may have been another one.
fn is_whole(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0
}

/// A bound is a float, as in Go; where it is a whole number it is compared exactly.
fn compare(value: &Value, bound: f64) -> std::cmp::Ordering {
    match (value.as_i64(), whole(bound)) {
        (Some(value), Some(bound)) => value.cmp(&bound),
        _ => value.as_f64().unwrap_or_default().total_cmp(&bound),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
fn whole(bound: f64) -> Option<i64> {
    (bound.fract() == 0.0 && bound.abs() < 9e18).then_some(bound as i64)
}

fn bound_text(bound: f64) -> String {
    whole(bound).map_or_else(|| bound.to_string(), |whole| whole.to_string())
}

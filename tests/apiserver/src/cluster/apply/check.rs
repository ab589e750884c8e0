//! The checks of an applied object before it is merged: its values must have the types of its schema.
//!
//! Answers: which values are of another type than declared, which fields are not declared at all, which items are
//! there twice? With the error texts of the real server, which answers 500.
//! 1. Every error names the path to its value, as `.spec.ports: duplicate entries for key [port=80]`.
//! 2. After the first undeclared field of an object the rest of that object is not checked.
//!
//! Next: `mod.rs` calls this first.
use std::collections::BTreeSet;

use serde_json::Value;

use super::element::Element;
use super::shape::{ListShape, MapShape, Place, Plain, Shape};
use crate::cluster::go_json::number;

/// The errors of an object as one text; none if it is valid.
pub(crate) fn refuse(place: Place<'_>, value: &Value) -> Option<String> {
    let mut errors = Vec::new();
    check(place, value, &mut String::new(), &mut errors);
    match errors.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("errors:\n  {}", many.join("\n  "))),
    }
}

fn check(place: Place<'_>, value: &Value, path: &mut String, errors: &mut Vec<String>) {
    let fault = match (place.shape(Some(value)), value) {
        (_, Value::Null) => None,
        (Shape::Map(map), Value::Object(_)) => return members(&map, value, path, errors),
        (Shape::List(list), Value::Array(items)) => return check_items(&list, items, path, errors),
        (Shape::Map(_), _) => Some(format!("expected map, got &{{{}}}", go(value))),
        (Shape::List(_), _) => Some(format!("expected list, got &{{{}}}", go(value))),
        (Shape::Scalar(plain), _) => wrong_scalar(plain, value),
        (Shape::Unknown, _) => None,
    };
    errors.extend(fault.map(|fault| told(path, &fault)));
}

fn told(path: &str, fault: &str) -> String {
    if path.is_empty() { fault.to_owned() } else { format!("{path}: {fault}") }
}

fn below(path: &mut String, element: &Element, check: impl FnOnce(&mut String)) {
    let end = path.len();
    path.push_str(&element.to_string());
    check(path);
    path.truncate(end);
}

fn members(map: &MapShape<'_>, value: &Value, path: &mut String, errors: &mut Vec<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let (place, _) = map.member(name);
        if matches!(place, Place::None) {
            below(path, &Element::field(name), |path| {
                errors.push(told(path, "field not declared in schema"))
            });
            return;
        }
        below(path, &Element::field(name), |path| check(place, value, path, errors));
    }
}

fn check_items(list: &ListShape<'_>, items: &[Value], path: &mut String, errors: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let element = if list.is_atomic() {
            Ok(Element::Index(i64::try_from(at).unwrap_or(i64::MAX)))
        } else {
            list.element_of(item)
        };
        let element = match element {
            Ok(element) => element,
            Err(error) => return errors.push(told(path, &format!("element {at}: {error}"))),
        };
        if seen.contains(&element) {
            errors.push(told(path, &format!("duplicate entries for key {element}")));
        }
        below(path, &element, |path| check(list.items, item, path, errors));
        seen.insert(element);
    }
}

fn wrong_scalar(plain: Plain, value: &Value) -> Option<String> {
    match (plain, value) {
        (Plain::Number, Value::Number(_))
        | (Plain::Text, Value::String(_))
        | (Plain::Boolean, Value::Bool(_))
        | (Plain::Any, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
        (Plain::Number, _) => Some(format!("expected numeric (int or float), got {}", go_type(value))),
        (Plain::Text, _) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(value)))
        }
        (Plain::Boolean, _) => Some(format!("expected boolean, got &{{{}}}", go(value))),
        (Plain::Any, _) => Some(format!("expected any scalar, got &{{{}}}", go(value))),
    }
}

/// A value as Go's `%v` prints it.
pub(crate) fn go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{name}:{}", go(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        Value::Number(found) => number(found).to_string(),
        Value::Bool(is) => is.to_string(),
    }
}

/// A value as Go's `%#v` prints it.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(go_syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| format!("{name:?}:{}", go_syntax(value));
            let members: Vec<String> = members.iter().map(member).collect();
            format!("map[string]interface {{}}{{{}}}", members.join(", "))
        }
        plain => plain.to_string(),
    }
}

/// A value's type as Go's `%T` prints it.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

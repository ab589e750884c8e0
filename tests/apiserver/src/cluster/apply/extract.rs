//! The fields an object has, as its schema divides them: what an applier owns after sending it.
//!
//! Answers: which set of fields is this object? It owns nothing itself and compares nothing.
//! 1. An atomic map or list is one field; a granular map is its members; an associative list is its items, each of
//!    which is also a member itself.
//! 2. A member that no schema declares (a label, a data key) is a member itself; so is an empty or null one.
//! 3. Items that are there twice in a list are one member, without members below it.
//!
//! Next: `compare.rs` finds what differs between two objects.
use serde_json::Value;

use super::element::Element;
use super::set::FieldSet;
use super::shape::{ListShape, MapShape, Place, Shape};

/// The fields of an object, without the root itself.
pub(crate) fn fields(place: Place<'_>, value: &Value) -> FieldSet {
    extract(place, value).1
}

/// Whether the value itself is a field, and the fields below it.
fn extract(place: Place<'_>, value: &Value) -> (bool, FieldSet) {
    match place.shape(Some(value)) {
        Shape::Scalar(_) => (true, FieldSet::default()),
        Shape::Map(map) if map.atomic => (true, FieldSet::default()),
        Shape::List(list) if list.is_atomic() => (true, FieldSet::default()),
        Shape::Map(map) => (false, members(&map, value)),
        Shape::List(list) => (false, items(&list, value)),
        Shape::Unknown => (false, FieldSet::default()),
    }
}

fn members(map: &MapShape<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    for (name, value) in value.as_object().into_iter().flatten() {
        let (place, declared) = map.member(name);
        let (leaf, below) = extract(place, value);
        let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        set.insert(Element::field(name), leaf || empty || !declared, below);
    }
    set
}

fn items(list: &ListShape<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    for (element, items) in list.indexed(value.as_array()) {
        let below = match items.as_slice() {
            [item] => extract(list.items, item).1,
            _ => FieldSet::default(),
        };
        set.insert(element, true, below);
    }
    set
}

//! What is removed when an applier leaves out what it applied before.
//!
//! Answers: which fields of the merged object are removed? Those that this applier owned and does not send any more,
//! if no other manager owns them.
//! 1. A field that another manager owns stays, and so do its parents.
//! 2. A field in no set stays, unless it lies below a removed item.
//! 3. A map or list that loses its last member stays, empty, unless it is removed itself.
//!
//! Next: `mod.rs` calls it between merging and comparing.
use serde_json::Value;

use super::compare;
use super::element::Element;
use super::set::FieldSet;
use super::shape::{ListShape, MapShape, Place, Shape};

/// Removes from `merged` what `last` names and `owned` (the sets of all managers, the new one included) does
/// not.
pub(crate) fn prune(place: Place<'_>, merged: Value, last: &FieldSet, owned: &FieldSet) -> Value {
    if last.is_empty() {
        return merged;
    }
    let last = with_declared(place, last);
    let all = with_declared(place, &compare::fields(place, &merged));
    let kept = |value: &Value| with_declared(place, &compare::fields(place, value));
    let without_last = kept(&remove(place, &merged, &last));
    // What other managers own is put back, with its parents.
    let owned = without_last.union(with_declared(place, owned));
    let with_owned = remove(place, &merged, &all.clone().difference(&owned));
    // Of the removed fields, only those that this applier owned may stay removed.
    let gone = all.difference(&kept(&with_owned)).intersection(&last);
    remove(place, &merged, &gone)
}

/// The set with each declared field that has members as a member itself, so that emptied structs can be
/// removed too.
fn with_declared(place: Place<'_>, set: &FieldSet) -> FieldSet {
    let shape = place.shape(None);
    set.map_nodes(|node| {
        let (below, declared) = match (&node.element, &shape) {
            (Element::Field(name), Shape::Map(map)) => {
                let (below, declared) = map.member(name);
                (below, declared && !node.children.is_empty())
            }
            (Element::Key(_), _) => (place.list().map_or(Place::None, |list| list.items), false),
            _ => (Place::None, false),
        };
        (node.member || declared, with_declared(below, &node.children))
    })
}

/// The value without these fields.
pub(crate) fn remove(place: Place<'_>, value: &Value, fields: &FieldSet) -> Value {
    match (place.shape(Some(value)), value) {
        (Shape::Map(map), Value::Object(_)) if !map.atomic => remove_members(&map, value, fields),
        (Shape::List(list), Value::Array(items)) if !list.is_atomic() => remove_items(&list, items, fields),
        _ => value.clone(),
    }
}

fn remove_members(map: &MapShape<'_>, value: &Value, fields: &FieldSet) -> Value {
    let members = value.as_object().into_iter().flatten();
    let kept = members.filter_map(|(name, value)| {
        let node = fields.get(&Element::field(name));
        if node.is_some_and(|node| node.member) {
            return None;
        }
        let value = match node {
            Some(node) => remove(map.member(name).0, value, &node.children),
            None => value.clone(),
        };
        Some((name.clone(), value))
    });
    Value::Object(kept.collect())
}

fn remove_items(list: &ListShape<'_>, items: &[Value], fields: &FieldSet) -> Value {
    let kept = items.iter().filter_map(|item| {
        let node = list.element_of(item).ok().and_then(|element| fields.get(&element));
        match node {
            Some(node) if node.member => None,
            Some(node) => Some(remove(list.items, item, &node.children)),
            None => Some(item.clone()),
        }
    });
    Value::Array(kept.collect())
}

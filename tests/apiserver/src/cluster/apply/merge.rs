//! Merges an applied object into the stored one, field by field of their schema.
//!
//! Answers: what does the object look like after this apply, before the fields that were left out are removed?
//! 1. What the applied object names wins; what it does not name stays.
//! 2. The items of an associative list stand in the applied order; those it does not name keep their positions among
//!    them as far as possible.
//! 3. Neither side is changed; the applied object does not have two items under one key (`check.rs` checks that).
//!
//! Next: `prune.rs` removes what the applier has left out.
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::element::Element;
use super::shape::{ListShape, MapShape, Place, Shape};

/// The stored object with the applied one merged into it.
pub(crate) fn merge(place: Place<'_>, live: &Value, applied: &Value) -> Value {
    merged(place, Some(live), Some(applied)).unwrap_or_default()
}

fn merged(place: Place<'_>, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let shape = place.shape(applied.or(live));
    match &shape {
        Shape::Map(map) if !map.atomic => maps(map, live, applied),
        Shape::List(list) if !list.is_atomic() => lists(list, live, applied),
        _ => applied.or(live).cloned(),
    }
}

fn maps(shape: &MapShape<'_>, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let filled =
        |value: Option<&Value>| value.and_then(Value::as_object).filter(|map| !map.is_empty()).cloned();
    let (old, new) = (filled(live), filled(applied));
    if old.is_none() && new.is_none() {
        return applied.or(live).cloned();
    }
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let mut out = Map::new();
    for (name, value) in &old {
        let both = merged(shape.member(name).0, Some(value), new.get(name));
        out.extend(both.map(|value| (name.clone(), value)));
    }
    for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
        let alone = merged(shape.member(name).0, None, Some(value));
        out.extend(alone.map(|value| (name.clone(), value)));
    }
    Some(Value::Object(out))
}

fn lists(shape: &ListShape<'_>, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let items = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let (old, new) = (items(live), items(applied));
    if old.is_empty() && new.is_empty() {
        return applied.or(live).cloned();
    }
    let keyed = |items: &[Value]| -> Vec<Element> {
        items.iter().filter_map(|item| shape.element_of(item).ok()).collect()
    };
    let (old_keys, new_keys) = (keyed(&old), keyed(&new));
    if old_keys.len() != old.len() || new_keys.len() != new.len() {
        // A stored list whose items have no keys cannot be merged into.
        return applied.or(live).cloned();
    }
    let olds = Side { items: &old, keys: &old_keys };
    let news = Side { items: &new, keys: &new_keys };
    Some(Value::Array(weave(shape, &olds, &news)))
}

struct Side<'a> {
    items: &'a [Value],
    keys: &'a [Element],
}

impl<'a> Side<'a> {
    /// The items by key; a key that is there twice has no single item.
    fn by_key(&self) -> BTreeMap<&'a Element, Option<&'a Value>> {
        let mut found = BTreeMap::new();
        for (key, item) in self.keys.iter().zip(self.items) {
            found.entry(key).and_modify(|twice| *twice = None).or_insert(Some(item));
        }
        found
    }
}

/// Both lists in one: the applied order, and before each applied item the stored ones that stood before it.
fn weave(shape: &ListShape<'_>, olds: &Side<'_>, news: &Side<'_>) -> Vec<Value> {
    let (old_by_key, new_by_key) = (olds.by_key(), news.by_key());
    let mut shared = news.keys.iter().filter(|key| old_by_key.contains_key(key)).peekable();
    let mut out = Vec::with_capacity(olds.items.len().max(news.items.len()));
    let mut done: BTreeSet<&Element> = BTreeSet::new();
    let mut old = olds.keys.iter().zip(olds.items).peekable();
    let mut new = news.keys.iter().peekable();
    while old.peek().is_some() || new.peek().is_some() {
        if let Some(&(key, item)) = old.peek() {
            if !new_by_key.contains_key(key) {
                out.extend(merged(shape.items, Some(item), None));
                old.next();
                continue;
            }
            let awaited = new.peek().is_some_and(|next| *next == key);
            let out_of_turn = shared.peek().is_some_and(|next| *next != key);
            if !awaited && out_of_turn && new.peek().is_some() {
                old.next();
                continue;
            }
            if awaited || done.contains(key) {
                old.next();
            }
        }
        let Some(key) = new.next() else { continue };
        done.insert(key);
        shared.next_if(|next| *next == key);
        out.extend(merged(shape.items, old_by_key.get(key).copied().flatten(), new_by_key[key]));
    }
    out
}

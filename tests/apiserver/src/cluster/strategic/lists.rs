//! Lists in a strategic merge patch: merged by key or by value, then sorted into the order of the patch.
//!
//! Answers: which items does the list have after the patch, and in which order?
//! 1. Items the patch names stand in its order; those only the server has keep their order among each other, and are
//!    placed before the first named item that they preceded.
//! 2. An item of a list that merges by key has that key, on both sides.
use serde_json::Value;

use super::{DIRECTIVE, Place, StrategicError, as_new, go, go_type, merge_map, unknown_directive};

/// How the items of one list are identified.
#[derive(Clone, Copy)]
enum Items<'s> {
    /// By this key.
    Maps(&'s str),
    /// By their own value.
    Plain,
}

impl Items<'_> {
    fn identity<'v>(&self, item: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Maps(key) => item.get(key),
            Self::Plain => Some(item),
        }
    }

    fn position(&self, list: &[Value], item: &Value) -> Option<usize> {
        let sought = self.identity(item);
        list.iter().position(|item| self.identity(item) == sought)
    }
}

/// The list under `name` after the patch.
pub(super) fn merge(
    place: Place<'_>,
    name: &str,
    original: Vec<Value>,
    patch: Vec<Value>,
) -> Result<Vec<Value>, StrategicError> {
    let slot = place.slot(name);
    if !slot.is_some_and(|slot| slot.patch_strategy.merge) {
        return Ok(patch);
    }
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let key = slot.and_then(|slot| slot.patch_merge_key.as_deref());
    let items = told_apart(key, name, &original, &patch)?;
    let Items::Maps(key) = items else {
        let mut merged = original.clone();
        merged.extend(patch.iter().cloned());
        return Ok(in_order(items, distinct(merged), &patch, &original));
    };
    let (original, patch) = special_items(original, patch, key)?;
    let merged = merge_maps(place.items(name), original.clone(), &patch, key)?;
    check_keys(key, &merged)?;
    Ok(in_order(items, merged, &patch, &original))
}

fn told_apart<'s>(
    key: Option<&'s str>,
    name: &str,
    original: &[Value],
    patch: &[Value],
) -> Result<Items<'s>, StrategicError> {
    let all = || original.iter().chain(patch);
    let first = all().next().unwrap_or(&Value::Null);
    if first.is_array() {
        return Err(StrategicError::ListOfLists);
    }
    if all().any(|item| std::mem::discriminant(item) != std::mem::discriminant(first)) {
        let both = Value::Array(vec![original.into(), patch.into()]);
        return Err(StrategicError::Failed(format!("list element types are not identical: {}", go(&both))));
    }
    match (first.is_object(), key) {
        (true, Some(key)) => Ok(Items::Maps(key)),
        (true, None) => {
            Err(StrategicError::Failed(format!("cannot merge lists without merge key for {name}")))
        }
        (false, _) => Ok(Items::Plain),
    }
}

/// Each value once: of equal values the first one stays, and the last item of the list takes the place of the
/// other.
fn distinct(mut list: Vec<Value>) -> Vec<Value> {
    let mut at = 0;
    while at < list.len() {
        let mut later = at + 1;
        while later < list.len() {
            if list[later] == list[at] {
                list.swap_remove(later);
            } else {
                later += 1;
            }
        }
        at += 1;
    }
    list
}

fn no_key(item: &Value, key: &str) -> StrategicError {
    StrategicError::Failed(format!("map: {} does not contain declared merge key: {key}", go(item)))
}

fn check_keys(key: &str, items: &[Value]) -> Result<(), StrategicError> {
    items.iter().find(|item| item.get(key).is_none()).map_or(Ok(()), |item| Err(no_key(item, key)))
}

/// Applies the `$patch` items of the patch: returns the remaining items of both lists.
fn special_items(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), StrategicError> {
    let (mut plain, mut replace) = (Vec::with_capacity(patch.len()), false);
    for item in patch {
        let Some(directive) = item.get(DIRECTIVE) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let Some(gone) = item.get(key) else { return Err(no_key(&item, key)) };
                original.retain(|item| item.get(key) != Some(gone));
            }
            Some("replace") => replace = true,
            Some("merge") => {
                let why = "merging lists cannot yet be specified in the patch";
                return Err(StrategicError::Failed(why.to_owned()));
            }
            _ => return Err(unknown_directive(&item)),
        }
    }
    Ok(if replace { (plain, Vec::new()) } else { (original, plain) })
}

fn merge_maps(
    place: Place<'_>,
    mut original: Vec<Value>,
    patch: &[Value],
    key: &str,
) -> Result<Vec<Value>, StrategicError> {
    for item in patch {
        let Some(name) = item.get(key) else { return Err(no_key(item, key)) };
        let found = original.iter_mut().find(|old| old.get(key) == Some(name));
        match (found, item) {
            (Some(old), Value::Object(item)) => {
                let before = old.as_object_mut().map(std::mem::take).unwrap_or_default();
                *old = Value::Object(merge_map(place, before, item.clone())?);
            }
            _ => original.push(item.clone()),
        }
    }
    Ok(original)
}

/// The merged items: those of `order` in that order, the others between them as in `before`.
fn in_order(items: Items<'_>, merged: Vec<Value>, order: &[Value], before: &[Value]) -> Vec<Value> {
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| items.position(order, item).is_some());
    named.sort_by_key(|item| items.position(order, item));
    others.sort_by_key(|item| items.position(before, item));
    let mut out = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in named {
        let at = items.position(before, &item);
        let stood_before = |other: &Value| {
            let other = items.position(before, other);
            matches!((other, at), (Some(other), Some(at)) if other < at)
        };
        while let Some(other) = others.next_if(|other| stood_before(other)) {
            out.push(other);
        }
        out.push(item);
    }
    out.extend(others);
    out
}

pub(super) fn not_a_list(value: &Value) -> StrategicError {
    let given = if value.is_null() { "%!s(<nil>)" } else { go_type(value) };
    StrategicError::Failed(format!("expected a []interface {{}}, but received a {given}"))
}

/// The list of the original and the list of the patch, merged, in the order of a `$setElementOrder`.
pub(super) fn ordered(
    place: Place<'_>,
    name: &str,
    lists: (Option<&Value>, Option<Value>),
    order: &[Value],
) -> Result<Option<Vec<Value>>, StrategicError> {
    let list = |value: Option<Value>| match value {
        None => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list)),
        Some(other) => Err(not_a_list(&other)),
    };
    let (original, patch) = (list(lists.0.cloned())?, list(lists.1)?);
    let slot = place.slot(name);
    if slot.is_none() && place.has_fields() {
        let why = format!("unable to find api field in struct for the json field {name:?}");
        return Err(StrategicError::Failed(why));
    }
    let key = slot.and_then(|slot| slot.patch_merge_key.as_deref());
    check_order(key, patch.as_deref().unwrap_or_default(), order)?;
    let before = original.clone().unwrap_or_default();
    let merged = match (original, patch) {
        (None, None) => return Ok(None),
        (Some(original), None) => original,
        (None, Some(patch)) => patch.into_iter().filter_map(as_new).collect(),
        (Some(original), Some(patch)) => merge(place, name, original, patch)?,
    };
    let items = key.map_or(Items::Plain, Items::Maps);
    if let Items::Maps(key) = items {
        check_keys(key, &merged)?;
        check_keys(key, order)?;
    }
    Ok(Some(in_order(items, merged, order, &before)))
}

/// Checks that the patch's items are in the given order.
fn check_order(key: Option<&str>, patch: &[Value], order: &[Value]) -> Result<(), StrategicError> {
    let items = key.map_or(Items::Plain, Items::Maps);
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut told = order.iter();
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let sought = items.identity(item);
        if let (None, Some(key)) = (sought, key) {
            return Err(no_key(item, key));
        }
        if !told.by_ref().any(|next| items.identity(next) == sought) {
            let (patch, order) = (go(&Value::from(patch)), go(&Value::from(order)));
            let why = format!(
                "The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n"
            );
            return Err(StrategicError::Failed(why));
        }
    }
    Ok(())
}

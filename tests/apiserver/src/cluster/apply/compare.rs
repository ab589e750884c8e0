//! The fields an object has, as its schema divides them, and what differs between two states of it: fields added, modified
//! and removed.
//!
//! Answers: which set of fields is this object, which an applier owns after sending it, and what did a write do, field by
//! field? A field stands in at most one of the three sets of a comparison. Nothing is owned here.
//! 1. Atomic maps and lists, and maps and lists that are empty on both sides, are compared as one value.
//! 2. A granular map or a list item that is added or removed is a field itself, beside its members.
//! 3. Items that are there twice on both sides are compared as one value.
//! 4. An object's own fields: an atomic map or list is one field; a granular map is its members; an associative list is its
//!    items, each of which is also a member itself. So is a member that no schema declares (a label, a data key), and an
//!    empty or null one. Items that are there twice in a list are one member, without members below it.
//!
//! Next: `mod.rs` takes fields from their owners by this.

use serde_json::Value;

use super::element::Element;
use super::set::FieldSet;
use super::shape::{ListShape, MapShape, Place, Shape, same};

/// The three sets of a comparison.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) added: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) removed: FieldSet,
}

/// What happened to one value itself, and to what is below it.
#[derive(Default)]
struct Difference {
    itself: Option<Change>,
    below: Comparison,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Added,
    Modified,
    Removed,
}

impl Comparison {
    pub(crate) fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Leaves the fields of `ignored` out, and all below them.
    #[must_use]
    pub(crate) fn ignoring(self, ignored: &FieldSet) -> Self {
        Self {
            added: self.added.recursive_difference(ignored),
            modified: self.modified.recursive_difference(ignored),
            removed: self.removed.recursive_difference(ignored),
        }
    }

    fn take(&mut self, element: &Element, found: Difference) {
        let put = |set: &mut Self, below, change| {
            let itself = found.itself == Some(change);
            match change {
                Change::Added => set.added.insert(element.clone(), itself, below),
                Change::Modified => set.modified.insert(element.clone(), itself, below),
                Change::Removed => set.removed.insert(element.clone(), itself, below),
            }
        };
        let Self { added, modified, removed } = found.below;
        put(self, added, Change::Added);
        put(self, modified, Change::Modified);
        put(self, removed, Change::Removed);
    }
}

/// Compares two states of an object.
pub(crate) fn compare(place: Place<'_>, old: &Value, new: &Value) -> Comparison {
    difference(place, Some(old), Some(new)).below
}

fn difference(place: Place<'_>, old: Option<&Value>, new: Option<&Value>) -> Difference {
    let (before, after) = (place.shape(old), place.shape(new));
    let mut found = match (old, new) {
        (Some(_), Some(_)) if !before.is_like(&after) => {
            // The type changed: the members of the old value, and those of the new one.
            let mut found = by_shape(&before, old, new);
            let then = by_shape(&after, old, new);
            found.itself = then.itself.or(found.itself);
            found.below.added = found.below.added.union(then.below.added);
            found.below.modified = found.below.modified.union(then.below.modified);
            found.below.removed = found.below.removed.union(then.below.removed);
            found
        }
        (_, None) => by_shape(&before, old, new),
        _ => by_shape(&after, old, new),
    };
    found.itself = match (old, new) {
        (None, _) => Some(Change::Added),
        (_, None) => Some(Change::Removed),
        _ => found.itself,
    };
    found
}

fn by_shape(shape: &Shape<'_>, old: Option<&Value>, new: Option<&Value>) -> Difference {
    match shape {
        Shape::Map(map) if !map.atomic && has_members(old, new) => maps(map, old, new),
        Shape::List(list) if !list.is_atomic() && has_items(old, new) => lists(list, old, new),
        Shape::Unknown => Difference::default(),
        _ => leaf(old, new),
    }
}

fn has_members(old: Option<&Value>, new: Option<&Value>) -> bool {
    [old, new].into_iter().flatten().filter_map(Value::as_object).any(|map| !map.is_empty())
}

fn has_items(old: Option<&Value>, new: Option<&Value>) -> bool {
    [old, new].into_iter().flatten().filter_map(Value::as_array).any(|list| !list.is_empty())
}

fn leaf(old: Option<&Value>, new: Option<&Value>) -> Difference {
    let modified = matches!((old, new), (Some(old), Some(new)) if !same(old, new));
    Difference { itself: modified.then_some(Change::Modified), below: Comparison::default() }
}

fn maps(shape: &MapShape<'_>, old: Option<&Value>, new: Option<&Value>) -> Difference {
    let (old, new) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
    let mut below = Comparison::default();
    for (name, new) in new.into_iter().flatten() {
        let old = old.and_then(|old| old.get(name));
        member(shape, name, (old, Some(new)), &mut below);
    }
    for (name, old) in old.into_iter().flatten() {
        if new.is_none_or(|new| !new.contains_key(name)) {
            member(shape, name, (Some(old), None), &mut below);
        }
    }
    Difference { itself: None, below }
}

fn member(shape: &MapShape<'_>, name: &str, pair: (Option<&Value>, Option<&Value>), out: &mut Comparison) {
    let found = difference(shape.member(name).0, pair.0, pair.1);
    if found.itself.is_some() || !found.below.is_same() {
        out.take(&Element::field(name), found);
    }
}

fn lists(shape: &ListShape<'_>, old: Option<&Value>, new: Option<&Value>) -> Difference {
    let mut below = Comparison::default();
    let mut olds = shape.indexed(old.and_then(Value::as_array));
    for (element, news) in shape.indexed(new.and_then(Value::as_array)) {
        let olds = olds.remove(&element).unwrap_or_default();
        below.take(&element, items(shape, &olds, &news));
    }
    for (element, olds) in olds {
        below.take(&element, items(shape, &olds, &[]));
    }
    Difference { itself: None, below }
}

/// The items under one key on both sides; more than one on a side are compared as one value.
fn items(shape: &ListShape<'_>, olds: &[&Value], news: &[&Value]) -> Difference {
    match (olds, news) {
        ([] | [_], [] | [_]) => difference(shape.items, olds.first().copied(), news.first().copied()),
        ([_, _, ..], [_, _, ..]) => {
            let equal = olds.len() == news.len() && olds.iter().zip(news).all(|(old, new)| same(old, new));
            Difference { itself: (!equal).then_some(Change::Modified), below: Comparison::default() }
        }
        ([_, _, ..], []) => Difference { itself: Some(Change::Removed), below: Comparison::default() },
        // An item that was there twice is there once now, so its fields are added; and the reverse.
        ([_, _, ..], [new]) => {
            Difference { itself: Some(Change::Added), below: difference(shape.items, None, Some(new)).below }
        }
        ([], _) => Difference { itself: Some(Change::Added), below: Comparison::default() },
        ([old], _) => {
            Difference { itself: Some(Change::Added), below: difference(shape.items, Some(old), None).below }
        }
    }
}

/// The fields of an object, without the root itself.
pub(crate) fn fields(place: Place<'_>, value: &Value) -> FieldSet {
    own_fields(place, value).1
}

/// Whether the value itself is a field, and the fields below it.
fn own_fields(place: Place<'_>, value: &Value) -> (bool, FieldSet) {
    match place.shape(Some(value)) {
        Shape::Scalar(_) => (true, FieldSet::default()),
        Shape::Map(map) if map.atomic => (true, FieldSet::default()),
        Shape::List(list) if list.is_atomic() => (true, FieldSet::default()),
        Shape::Map(map) => (false, members_of(&map, value)),
        Shape::List(list) => (false, items_of(&list, value)),
        Shape::Unknown => (false, FieldSet::default()),
    }
}

fn members_of(map: &MapShape<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    for (name, value) in value.as_object().into_iter().flatten() {
        let (place, declared) = map.member(name);
        let (leaf, below) = own_fields(place, value);
        let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        set.insert(Element::field(name), leaf || empty || !declared, below);
    }
    set
}

fn items_of(list: &ListShape<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    for (element, items) in list.indexed(value.as_array()) {
        let below = match items.as_slice() {
            [item] => own_fields(list.items, item).1,
            _ => FieldSet::default(),
        };
        set.insert(element, true, below);
    }
    set
}

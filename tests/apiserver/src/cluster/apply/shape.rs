//! How a schema divides an object into fields that can be owned.
//!
//! Answers: is the value at this place one field, a map of fields, or a list of items, and which item is which? It is
//! the only file here that uses the types of `schema`.
//! 1. A map is granular and a list atomic unless the schema says otherwise.
//! 2. Without a type, a map is granular, its members too, and everything else is one field.
//! 3. An item that omits a key has that key's default; an item without any key has no element.
//!
//! Next: `compare.rs`, `merge.rs` and `prune.rs` walk objects by this.
use std::collections::BTreeMap;

use serde_json::Value;

use super::element::{Datum, Element, compare_numbers};
use crate::cluster::schema::{
    Format, List, ListMerge, Object, Scalar, Schema, Shape as TypeShape, Slot, TypeId,
};

/// A place in an object, described by its schema.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'s> {
    Typed {
        schema: &'s Schema,
        id: TypeId,
        /// Whether the map in this place is one field, if that differs from its type.
        atomic: Option<bool>,
        /// Whether an object around it keeps unknown fields; then the inner ones do too.
        open: bool,
    },
    /// There is no type: the value decides.
    Free,
    /// There is no such field.
    None,
}

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plain {
    Any,
    Text,
    Number,
    Boolean,
}

/// The content of a place.
#[derive(Debug)]
pub(crate) enum Shape<'s> {
    Scalar(Plain),
    Map(MapShape<'s>),
    List(ListShape<'s>),
    Unknown,
}

/// A map or an object with declared fields.
#[derive(Debug)]
pub(crate) struct MapShape<'s> {
    pub(crate) atomic: bool,
    object: Option<(&'s Schema, &'s Object, bool)>,
}

/// A list.
#[derive(Debug)]
pub(crate) struct ListShape<'s> {
    pub(crate) items: Place<'s>,
    merge: &'s ListMerge,
}

/// Why an item of a list has no element.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ItemError {
    #[error("associative list with keys may not have a null element")]
    NullElement,
    #[error("associative list with keys may not have non-map elements")]
    NotAMap,
    #[error(
        "associative list with keys has an element that omits all key fields {0} (and doesn't have default values for any key fields)"
    )]
    NoKeys(String),
    #[error("associative list without keys has an element that's a map type")]
    MapInSet,
    #[error("not supported: associative list with lists as elements")]
    ListInSet,
    #[error("associative list without keys has an element that's an explicit null")]
    NullInSet,
    #[error("invalid indexing of non-associative list")]
    Atomic,
}

impl<'s> Place<'s> {
    /// The whole object.
    pub(crate) fn root(schema: &'s Schema) -> Self {
        Self::Typed { schema, id: schema.root(), atomic: None, open: false }
    }

    fn of(schema: &'s Schema, slot: &Slot, open: bool) -> Self {
        Self::Typed { schema, id: slot.id, atomic: slot.atomic, open }
    }

    /// The shape of the value; if a type allows several, the value decides.
    pub(crate) fn shape(&self, value: Option<&Value>) -> Shape<'s> {
        match *self {
            Self::None => Shape::Unknown,
            Self::Free => free(value),
            Self::Typed { schema, id, atomic, open } => match &schema.get(id).shape {
                TypeShape::Any => free(value),
                // Those of custom kinds have no type.
                TypeShape::Scalar(Scalar::IntegerOrText) if schema.name(id).is_none() => free(value),
                TypeShape::Scalar(scalar) => Shape::Scalar(plain(*scalar)),
                TypeShape::Object(object) => Shape::Map(MapShape {
                    atomic: atomic.unwrap_or(object.atomic),
                    object: Some((schema, object, open || object.open)),
                }),
                TypeShape::List(List { items, merge }) => {
                    Shape::List(ListShape { items: Self::of(schema, items, open), merge })
                }
            },
        }
    }

    /// The list at this place, if it can be one.
    pub(crate) fn list(&self) -> Option<ListShape<'s>> {
        match self.shape(Some(&Value::Array(Vec::new()))) {
            Shape::List(list) => Some(list),
            _ => None,
        }
    }
}

fn free<'s>(value: Option<&Value>) -> Shape<'s> {
    match value {
        None | Some(Value::Null | Value::Object(_)) => Shape::Map(MapShape { atomic: false, object: None }),
        Some(Value::Array(_)) => Shape::List(ListShape { items: Place::Free, merge: &ListMerge::Atomic }),
        Some(_) => Shape::Scalar(Plain::Any),
    }
}

fn plain(scalar: Scalar) -> Plain {
    match scalar {
        Scalar::Text(Format::None | Format::Byte) => Plain::Text,
        Scalar::Integer(_) | Scalar::Number(_) => Plain::Number,
        Scalar::Boolean => Plain::Boolean,
        Scalar::Text(_) | Scalar::IntegerOrText | Scalar::Quantity => Plain::Any,
    }
}

impl Shape<'_> {
    /// Whether both are of one kind, so that values at them can be compared part by part.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl<'s> MapShape<'s> {
    /// The place of a member, and whether the schema declares it by name.
    pub(crate) fn member(&self, name: &str) -> (Place<'s>, bool) {
        let Some((schema, object, open)) = self.object else { return (Place::Free, false) };
        match (object.fields.get(name), &object.others) {
            (Some(slot), _) => (Place::of(schema, slot, open), true),
            (None, Some(slot)) => (Place::of(schema, slot, open), false),
            (None, None) if open || object.fields.is_empty() => (Place::Free, false),
            (None, None) => (Place::None, false),
        }
    }
}

impl<'s> ListShape<'s> {
    pub(crate) fn is_atomic(&self) -> bool {
        *self.merge == ListMerge::Atomic
    }

    /// The items by element; items without an element are left out.
    pub(crate) fn indexed<'v>(&self, items: Option<&'v Vec<Value>>) -> BTreeMap<Element, Vec<&'v Value>> {
        let mut found: BTreeMap<Element, Vec<&Value>> = BTreeMap::new();
        for item in items.into_iter().flatten() {
            if let Ok(element) = self.element_of(item) {
                found.entry(element).or_default().push(item);
            }
        }
        found
    }

    /// What identifies an item.
    ///
    /// # Errors If nothing identifies it.
    pub(crate) fn element_of(&self, item: &Value) -> Result<Element, ItemError> {
        match (self.merge, item) {
            (ListMerge::Atomic, _) => Err(ItemError::Atomic),
            (ListMerge::Map(keys), Value::Object(item)) => {
                let key = |name: &str| {
                    let value = item.get(name).or_else(|| self.default_of(name))?;
                    Some((name.into(), Datum(value.clone())))
                };
                let mut found: Vec<(Box<str>, Datum)> = keys.iter().filter_map(|name| key(name)).collect();
                if found.is_empty() && !keys.is_empty() {
                    return Err(ItemError::NoKeys(format!("{keys:?}").replace(", ", " ")));
                }
                found.sort();
                Ok(Element::Key(found.into()))
            }
            (ListMerge::Map(_), Value::Null) => Err(ItemError::NullElement),
            (ListMerge::Map(_), _) => Err(ItemError::NotAMap),
            (ListMerge::Set, Value::Object(_)) => Err(ItemError::MapInSet),
            (ListMerge::Set, Value::Array(_)) => Err(ItemError::ListInSet),
            (ListMerge::Set, Value::Null) => Err(ItemError::NullInSet),
            (ListMerge::Set, value) => Ok(Element::Item(Datum(value.clone()))),
        }
    }

    fn default_of(&self, name: &str) -> Option<&'s Value> {
        let Place::Typed { schema, id, .. } = self.items else { return None };
        schema.get(id).object()?.fields.get(name)?.default.as_ref()
    }
}

/// Whether two values are equal; numbers as numbers.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare_numbers(one, other).is_eq(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let member =
                |name: &String, value: &Value| other.get(name).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(|(name, value)| member(name, value))
        }
        _ => one == other,
    }
}

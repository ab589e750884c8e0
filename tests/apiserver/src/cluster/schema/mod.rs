//! Schemas: the structure of a kind's objects, built-in or custom.
//!
//! Answers: which fields does this kind have, of which types, with which list keys, defaults and checks? It checks no
//! object; the checks walk the types from `Schema::root` along with a value.
//! 1. Types are in an arena and refer to each other by id, so that recursion (JSONSchemaProps) is a cycle of ids.
//! 2. A `Schema` is a pair of an arena and the id of its root: cloning it is cheap, and it never changes.
//! 3. Built-in types are unpacked once per process, at the first question, not when a server starts.
//! 4. A `Slot` is one use of a type: keywords beside a `$ref` (default, patch strategy) belong to the slot, not to the
//!    type.
//! 5. Fields are sorted by name. Every id in an arena names a type of that arena. An arena holds no values but defaults.
//!
//! Next: `source.rs` reads JSON schema text, `load.rs` makes types from it and has
//! the built-in ones.

pub(crate) mod decode;
pub(crate) mod fault;
pub(crate) mod format;
pub(crate) mod load;
pub(crate) mod pattern;
pub(crate) mod quantity;
pub(crate) mod source;
pub(crate) mod time;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use source::GroupVersionKind;

pub(crate) use load::custom;

/// A type of one arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TypeId(u32);

/// All types of one source: the built-in API, or one version of a custom kind.
#[derive(Debug, Default)]
pub(crate) struct Types {
    types: Vec<Type>,
    /// The types that have a name, for example `io.k8s.api.core.v1.PodSpec`.
    names: BTreeMap<Box<str>, TypeId>,
    /// The reverse map.
    labels: BTreeMap<TypeId, Box<str>>,
    /// Roots by group, version and kind.
    kinds: BTreeMap<GroupVersionKind, TypeId>,
}

/// One kind's type with the arena it lives in.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    types: Arc<Types>,
    root: TypeId,
}

/// What a value may be.
#[derive(Debug, Default)]
pub(crate) struct Type {
    pub(crate) shape: Shape,
    /// Whether null is a value of this type (custom kinds; a null of a built-in means absent).
    pub(crate) nullable: bool,
}

/// The four shapes of values.
#[derive(Debug, Default)]
pub(crate) enum Shape {
    /// Anything: there is no type.
    #[default]
    Any,
    Scalar(Scalar),
    Object(Object),
    List(List),
}

/// A text, a number, a truth value, or one of two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    Text(Format),
    Integer(Format),
    Number(Format),
    Boolean,
    /// `IntOrString`.
    IntegerOrText,
    /// `Quantity`: a text or a number that means one.
    Quantity,
}

/// The formats that built-in kinds use; a custom kind's other formats are checks of `crd`, not types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    None,
    Int32,
    Int64,
    Double,
    Byte,
    DateTime,
    /// A time with exactly six digits after the second.
    MicroTime,
}

/// An object with named fields, a map, or both.
#[derive(Debug, Default)]
pub(crate) struct Object {
    pub(crate) fields: BTreeMap<Box<str>, Slot>,
    /// The type of the values under all other names (`additionalProperties`).
    pub(crate) others: Option<Slot>,
    pub(crate) required: Vec<Box<str>>,
    /// Whether the object is owned and replaced as one (`x-kubernetes-map-type: atomic`).
    pub(crate) atomic: bool,
    /// Whether fields that are not named here are kept (`x-kubernetes-preserve-unknown-fields`, free-form objects).
    pub(crate) open: bool,
    /// Whether this is a whole object with apiVersion, kind and metadata (`x-kubernetes-embedded-resource`).
    pub(crate) embedded: bool,
}

/// A list and what identifies its items.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) items: Slot,
    pub(crate) merge: ListMerge,
}

/// How the items of two states of a list are matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListMerge {
    /// The list is one value.
    Atomic,
    /// An item is its own key.
    Set,
    /// These fields of an item are its key.
    Map(Vec<Box<str>>),
}

/// One use of a type.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub(crate) id: TypeId,
    pub(crate) default: Option<Value>,
    /// `merge`, `replace` and `retainKeys` of a strategic merge patch, in any combination.
    pub(crate) patch_strategy: PatchStrategy,
    pub(crate) patch_merge_key: Option<Box<str>>,
    /// Overrides `Object::atomic` of the type in this place.
    pub(crate) atomic: Option<bool>,
}

/// The value of `x-kubernetes-patch-strategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PatchStrategy {
    pub(crate) merge: bool,
    pub(crate) retain_keys: bool,
}

impl Schema {
    pub(crate) fn new(types: Arc<Types>, root: TypeId) -> Self {
        Self { types, root }
    }

    /// The type of the whole object.
    pub(crate) fn root(&self) -> TypeId {
        self.root
    }

    /// The type an id names.
    pub(crate) fn get(&self, id: TypeId) -> &Type {
        self.types.get(id)
    }

    /// The name of a type, if it is one that has a name.
    pub(crate) fn name(&self, id: TypeId) -> Option<&str> {
        self.types.labels.get(&id).map(|name| &**name)
    }

    /// The use of the type behind a field or a map's value; none if the type has no such field.
    pub(crate) fn field(&self, id: TypeId, name: &str) -> Option<&Slot> {
        self.get(id).object().and_then(|object| object.field(name))
    }

    /// The type at a path of field names; lists are entered with the name `*`.
    #[cfg(test)]
    pub(crate) fn at(&self, path: &str) -> Option<&Slot> {
        let mut slot = None;
        for name in path.split('.') {
            let id = slot.map_or(self.root, |slot: &Slot| slot.id);
            slot = match &self.get(id).shape {
                Shape::List(list) if name == "*" => Some(&list.items),
                _ => Some(self.field(id, name)?),
            };
        }
        slot
    }
}

impl Types {
    pub(crate) fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// The root type of a kind.
    pub(crate) fn kind(&self, group: &str, version: &str, kind: &str) -> Option<TypeId> {
        let kind = GroupVersionKind { group: group.into(), version: version.into(), kind: kind.into() };
        self.kinds.get(&kind).copied()
    }
}

impl Type {
    pub(crate) fn object(&self) -> Option<&Object> {
        match &self.shape {
            Shape::Object(object) => Some(object),
            _ => None,
        }
    }

    #[cfg(test)]
    pub(crate) fn list(&self) -> Option<&List> {
        match &self.shape {
            Shape::List(list) => Some(list),
            _ => None,
        }
    }
}

impl Object {
    /// The use of the type under this name, be it a field or a value of the map.
    pub(crate) fn field(&self, name: &str) -> Option<&Slot> {
        self.fields.get(name).or(self.others.as_ref())
    }
}

impl Slot {
    pub(crate) fn of(id: TypeId) -> Self {
        Self {
            id,
            default: None,
            patch_strategy: PatchStrategy::default(),
            patch_merge_key: None,
            atomic: None,
        }
    }
}

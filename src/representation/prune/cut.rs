//! A deserializer that skips fields while it parses.
//!
//! Answers "how is a field skipped inside the parser?" by wrapping the parser. serde knows two sides: a type (its
//! visitor) asks the deserializer for a value, and the deserializer calls the visitor back with what it found. To see
//! every map on a path, both sides must be wrapped, each with its node of the tree of paths:
//!
//! ```text
//!  type     --deserialize_...--> CutDeserializer --deserialize_...--> parser
//!  visitor  <--visit_...-------- CutVisitor      <--visit_...-------- parser
//!               visit_map: the map becomes a CutMap          (1)
//!               visit_seq: the list becomes a CutSeq         (2)
//!               other values: passed through                 (3)
//! ```
//!
//! 1. `CutMap` reads each key of the map and looks it up in its node. `Step::Cut`: it reads the value as `IgnoredAny`,
//!    which allocates nothing, and goes on with the next key, so that the visitor never sees the field.
//!    `Step::Descend`: the value is deserialized through a `CutSeed`, which wraps the parser of the value in a
//!    `CutDeserializer` with the node of that field. Any other key: the value is deserialized by the parser directly.
//! 2. `CutSeq` gives each element to a `CutSeed` with its own node: a path continues in each element of a list.
//! 3. `Option` and newtypes are passed on with the same node, since they are not a step in the document.
//!
//! Nothing here is specific to JSON; any self-describing format could be wrapped. Invariants:
//! 1. Where the tree of paths ends, the parser is used directly again.
//! 2. The visitor sees exactly what it would see if the cut fields were not in the document.
//!
//! Read next: `prune.rs`, the only user.

use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::wire::{FieldTree, Step};

/// Deserializes a value without the fields that `node` cuts from it.
pub(super) struct CutDeserializer<'n, D> {
    pub(super) inner: D,
    pub(super) node: &'n FieldTree,
}

/// Receives a value from the parser and passes it on without the fields that `node` cuts from it.
struct CutVisitor<'n, V> {
    inner: V,
    node: &'n FieldTree,
}

/// Deserializes a field's value or a list's element without the fields that `node` cuts from it.
struct CutSeed<'n, S> {
    inner: S,
    node: &'n FieldTree,
}

/// A map without the fields that `node` cuts.
struct CutMap<'n, M> {
    inner: M,
    node: &'n FieldTree,
    /// The node of the field whose key was read last, if fields are cut from its value.
    value_node: Option<&'n FieldTree>,
}

/// A list from whose elements fields are cut.
struct CutSeq<'n, A> {
    inner: A,
    node: &'n FieldTree,
}

macro_rules! forward {
    ($($method:ident($($arg:ident: $kind:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($arg: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method($($arg,)* CutVisitor { inner: visitor, node: self.node })
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for CutDeserializer<'_, D> {
    type Error = D::Error;

    forward! {
        deserialize_any(); deserialize_bool(); deserialize_i8(); deserialize_i16(); deserialize_i32();
        deserialize_i64(); deserialize_i128(); deserialize_u8(); deserialize_u16(); deserialize_u32();
        deserialize_u64(); deserialize_u128(); deserialize_f32(); deserialize_f64(); deserialize_char();
        deserialize_str(); deserialize_string(); deserialize_bytes(); deserialize_byte_buf();
        deserialize_option(); deserialize_unit(); deserialize_seq(); deserialize_map();
        deserialize_identifier(); deserialize_ignored_any();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! pass {
    ($($method:ident($kind:ty);)*) => {$(
        fn $method<E: Error>(self, value: $kind) -> Result<V::Value, E> {
            self.inner.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for CutVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    pass! {
        visit_bool(bool); visit_i8(i8); visit_i16(i16); visit_i32(i32); visit_i64(i64); visit_i128(i128);
        visit_u8(u8); visit_u16(u16); visit_u32(u32); visit_u64(u64); visit_u128(u128); visit_f32(f32);
        visit_f64(f64); visit_char(char); visit_str(&str); visit_borrowed_str(&'de str); visit_string(String);
        visit_bytes(&[u8]); visit_borrowed_bytes(&'de [u8]); visit_byte_buf(Vec<u8>);
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(CutDeserializer { inner, node: self.node })
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(CutDeserializer { inner, node: self.node })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(CutSeq { inner, node: self.node })
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(CutMap { inner, node: self.node, value_node: None })
    }

    fn visit_enum<A: serde::de::EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(data)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for CutSeed<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(CutDeserializer { inner, node: self.node })
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for CutSeq<'_, A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        self.inner.next_element_seed(CutSeed { inner: seed, node: self.node })
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for CutMap<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        loop {
            let Some(key) = self.inner.next_key::<Key<'de>>()? else { return Ok(None) };
            self.value_node = match self.node.step(key.as_bytes()) {
                Some(Step::Cut) => {
                    self.inner.next_value::<IgnoredAny>()?;
                    continue;
                }
                Some(Step::Descend(node)) => Some(node),
                None => None,
            };
            return match key {
                Key::Borrowed(text) => seed.deserialize(BorrowedStrDeserializer::new(text)),
                Key::Owned(text) => seed.deserialize(StringDeserializer::new(text)),
            }
            .map(Some);
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.value_node.take() {
            Some(node) => self.inner.next_value_seed(CutSeed { inner: seed, node }),
            None => self.inner.next_value_seed(seed),
        }
    }
}

/// A key's text, borrowed from the document if it has no escapes.
enum Key<'de> {
    Borrowed(&'de str),
    Owned(String),
}

impl Key<'_> {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Borrowed(text) => text.as_bytes(),
            Self::Owned(text) => text.as_bytes(),
        }
    }
}

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Key<'de>, E> {
        Ok(Key::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Key<'de>, E> {
        Ok(Key::Owned(text.to_owned()))
    }
}

//! A deserializer that leaves fields out on the way through.
//!
//! Answers "how is a field skipped inside the parser?": it wraps a deserializer and follows the path trie; each map on
//! a path hands the cut values to `IgnoredAny` and shows the visitor only the others. It knows no JSON and would wrap
//! any self-describing format. Invariants:
//! 1. Where the trie ends, the wrapped deserializer is used directly again.
//! 2. What the visitor sees is exactly what it would see if the cut fields were not in the document.
//!
//! Read next: `prune.rs`, the only user.

use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Node, Step};

/// A deserializer standing at a place of the trie.
pub(super) struct Cut<'n, D> {
    pub(super) inner: D,
    pub(super) node: &'n Node,
}

struct CutVisitor<'n, V> {
    inner: V,
    node: &'n Node,
}

struct CutSeed<'n, S> {
    inner: S,
    node: &'n Node,
}

struct CutMap<'n, M> {
    inner: M,
    node: &'n Node,
    below: Option<&'n Node>,
}

struct CutSeq<'n, A> {
    inner: A,
    node: &'n Node,
}

macro_rules! forward {
    ($($method:ident($($arg:ident: $kind:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($arg: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method($($arg,)* CutVisitor { inner: visitor, node: self.node })
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Cut<'_, D> {
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
        self.inner.visit_some(Cut { inner, node: self.node })
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(Cut { inner, node: self.node })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(CutSeq { inner, node: self.node })
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(CutMap { inner, node: self.node, below: None })
    }

    fn visit_enum<A: serde::de::EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(data)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for CutSeed<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(Cut { inner, node: self.node })
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
            self.below = match self.node.step(key.as_str()) {
                Some(Step::Cut) => {
                    self.inner.next_value::<IgnoredAny>()?;
                    continue;
                }
                Some(Step::Into(node)) => Some(node),
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
        match self.below.take() {
            Some(node) => self.inner.next_value_seed(CutSeed { inner: seed, node }),
            None => self.inner.next_value_seed(seed),
        }
    }
}

/// A key's text, borrowed from the document when it holds no escape.
enum Key<'de> {
    Borrowed(&'de str),
    Owned(String),
}

impl Key<'_> {
    fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
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

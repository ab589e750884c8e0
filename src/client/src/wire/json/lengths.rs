//! Decodes a JSON text with the length of each array known before its first element, so that each `Vec` gets its exact size at
//! once. Most of the CPU of a large list is the first use of memory, and a `Vec` that grows leaves a third of it unused.
//!
//! 1. One pass over the text, 64 bytes at once, notes for each value how many elements it has and which value comes after it.
//! 2. The notes are `size_hint`s and nothing else: of a text that is not JSON they may be wrong, and the parser refuses the text.

use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::block::{BLOCK_BYTES, Block, StringState};

/// As `serde_json::from_str`.
pub(crate) fn from_text<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    let values = noted(text.as_bytes());
    let mut parser = serde_json::Deserializer::from_str(text);
    let decoded = T::deserialize(WithLengths { inner: &mut parser, at: At { values: &values, index: 0 } })?;
    parser.end()?;
    Ok(decoded)
}

/// One value of the text; they stand in the order of the text.
#[derive(Debug, Clone, Copy)]
struct Noted {
    /// Elements of an array, members of an object.
    elements: u32,
    /// The first value that is not below this one.
    next: u32,
}

fn noted(text: &[u8]) -> Vec<Noted> {
    // A tape of positions of 32 bits has no room for more.
    if u32::try_from(text.len()).is_err() {
        return Vec::new();
    }
    let mut values = Vec::with_capacity(text.len() / 16 + 1);
    begin_value(&mut values);
    let mut open = Vec::new();
    let mut strings = StringState::default();
    for (number, piece) in text.chunks(BLOCK_BYTES).enumerate() {
        let (block, commas) = Block::with_commas(piece, &mut strings);
        let mut marks = block.opening | block.closing | commas;
        while marks != 0 {
            let at = marks.trailing_zeros() as usize;
            let is_set = |bits: u64| bits >> at & 1 == 1;
            marks &= marks - 1;
            if is_set(commas) {
                begin_element(&mut values, open.last());
            } else if is_set(block.opening) {
                open.push(values.len() - 1);
                if !is_empty(&text[number * BLOCK_BYTES + at + 1..]) {
                    begin_element(&mut values, open.last());
                }
            } else if let Some(closed) = open.pop() {
                values[closed].next = values.len() as u32;
            }
        }
    }
    values
}

fn begin_element(values: &mut Vec<Noted>, container: Option<&usize>) {
    if let Some(container) = container {
        values[*container].elements += 1;
        begin_value(values);
    }
}

fn begin_value(values: &mut Vec<Noted>) {
    values.push(Noted { elements: 0, next: values.len() as u32 + 1 });
}

/// Of the bytes behind an opening bracket.
fn is_empty(rest: &[u8]) -> bool {
    let first = rest.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(first, Some(b']' | b'}'))
}

/// The place of one value among the notes.
#[derive(Clone, Copy)]
struct At<'a> {
    values: &'a [Noted],
    index: usize,
}

impl At<'_> {
    fn first_below(self) -> Self {
        Self { index: self.index + 1, ..self }
    }

    fn elements(self) -> Option<usize> {
        self.values.get(self.index).map(|value| value.elements as usize)
    }

    /// Moves on, and returns the place where it was.
    fn step(&mut self) -> Self {
        let here = *self;
        self.index = self.values.get(self.index).map_or(self.values.len(), |value| value.next as usize);
        here
    }
}

/// A deserializer, a visitor or a seed of the value at this place.
struct WithLengths<'a, T> {
    inner: T,
    at: At<'a>,
}

macro_rules! wrapped {
    ($($method:ident($($name:ident: $kind:ty),*);)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method($($name,)* WithLengths { inner: visitor, at: self.at })
        })*
    };
}

/// Values without arrays that a `Vec` is made of.
macro_rules! passed_on {
    ($($method:ident($($name:ident: $kind:ty),*);)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method($($name,)* visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for WithLengths<'_, D> {
    type Error = D::Error;

    wrapped! {
        deserialize_any();
        deserialize_option();
        deserialize_newtype_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(length: usize);
        deserialize_tuple_struct(name: &'static str, length: usize);
        deserialize_map();
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
    }

    passed_on! {
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }
}

macro_rules! visited {
    ($($method:ident($kind:ty);)*) => {
        $(fn $method<E: serde::de::Error>(self, value: $kind) -> Result<Self::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for WithLengths<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visited! {
        visit_bool(bool);
        visit_i64(i64);
        visit_i128(i128);
        visit_u64(u64);
        visit_u128(u128);
        visit_f64(f64);
        visit_str(&str);
        visit_borrowed_str(&'de str);
        visit_string(String);
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
        self.inner.visit_some(WithLengths { inner, at: self.at })
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
        self.inner.visit_newtype_struct(WithLengths { inner, at: self.at })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<Self::Value, A::Error> {
        self.inner.visit_seq(Elements { inner, left: self.at.elements(), next: self.at.first_below() })
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<Self::Value, A::Error> {
        self.inner.visit_map(Members { inner, next: self.at.first_below() })
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for WithLengths<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(WithLengths { inner, at: self.at })
    }
}

struct Elements<'a, A> {
    inner: A,
    left: Option<usize>,
    next: At<'a>,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Elements<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.left = self.left.map(|left| left.saturating_sub(1));
        self.inner.next_element_seed(WithLengths { inner: seed, at: self.next.step() })
    }

    fn size_hint(&self) -> Option<usize> {
        self.left
    }
}

struct Members<'a, A> {
    inner: A,
    next: At<'a>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Members<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.inner.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(WithLengths { inner: seed, at: self.next.step() })
    }
}

#[cfg(test)]
mod tests;

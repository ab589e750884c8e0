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
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;
    use serde::de::IgnoredAny;
    use serde_json::{Value, json};

    use super::*;

    /// What each array of a tree was said to have, and what it had.
    #[derive(Debug, Default, PartialEq)]
    struct Counted(Vec<(Option<usize>, usize)>);

    struct CountingVisitor;

    impl<'de> Visitor<'de> for CountingVisitor {
        type Value = Counted;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("anything")
        }

        fn visit_bool<E>(self, _: bool) -> Result<Counted, E> {
            Ok(Counted::default())
        }

        fn visit_i64<E>(self, _: i64) -> Result<Counted, E> {
            Ok(Counted::default())
        }

        fn visit_u64<E>(self, _: u64) -> Result<Counted, E> {
            Ok(Counted::default())
        }

        fn visit_f64<E>(self, _: f64) -> Result<Counted, E> {
            Ok(Counted::default())
        }

        fn visit_str<E>(self, _: &str) -> Result<Counted, E> {
            Ok(Counted::default())
        }

        fn visit_unit<E>(self) -> Result<Counted, E> {
            Ok(Counted::default())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Counted, A::Error> {
            let said = elements.size_hint();
            let (mut below, mut count) = (Vec::new(), 0);
            while let Some(Counted(element)) = elements.next_element()? {
                below.extend(element);
                count += 1;
            }
            let mut all = vec![(said, count)];
            all.append(&mut below);
            Ok(Counted(all))
        }

        /// Passes over each member whose name begins with `x`, as a type does over a field that it does not know.
        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Counted, A::Error> {
            let mut all = Vec::new();
            while let Some(name) = members.next_key::<String>()? {
                if name.starts_with('x') {
                    members.next_value::<IgnoredAny>()?;
                } else {
                    all.extend(members.next_value::<Counted>()?.0);
                }
            }
            Ok(Counted(all))
        }
    }

    impl<'de> Deserialize<'de> for Counted {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(CountingVisitor)
        }
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a\\[\\]{},:\"\\\\ ]{0,80}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, |inner| {
            let name = "[xa\\[\\]{},:\"\\\\]{0,4}";
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(name, inner, 0..6).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn each_array_is_said_to_have_what_it_has(tree in tree(), is_wide in any::<bool>()) {
            let text = if is_wide { format!("{tree:#}") } else { tree.to_string() };
            let Counted(arrays) = from_text(&text).expect("JSON");
            for (said, count) in arrays {
                prop_assert_eq!(said, Some(count), "{}", text);
            }
            prop_assert_eq!(from_text::<Value>(&text).expect("JSON"), tree);
        }

        #[test]
        fn what_is_no_json_is_refused_as_by_the_parser(text in "[\\[\\]{},:\"\\\\ a1]{0,60}") {
            let parsed = serde_json::from_str::<Value>(&text).map_err(|error| error.to_string());
            prop_assert_eq!(from_text::<Value>(&text).map_err(|error| error.to_string()), parsed);
        }
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Everything {
        nothing: Option<Vec<u8>>,
        names: Vec<String>,
        pair: (u8, Vec<u8>),
        nested: BTreeMap<String, Vec<Vec<u8>>>,
        choice: Choice,
        wrapped: Wrapped,
    }

    #[derive(Debug, Deserialize)]
    enum Choice {
        Some(Vec<u8>),
    }

    #[derive(Debug, Deserialize)]
    struct Wrapped(Vec<u16>);

    #[test]
    fn a_vec_has_the_capacity_of_its_elements() {
        let text = r#"{"unknown": [[], [1, {"a": []}]], "nothing": null, "names": ["a", "b,c", "]"], "pair": [1, [1, 2, 3]],
            "nested": {"a": [[1], [], [1, 2, 3, 4, 5]]}, "choice": {"Some": [1, 2, 3]}, "wrapped": [1, 2, 3, 4, 5]}"#;
        let all: Everything = from_text(text).expect("it decodes");
        let exact =
            |values: &Vec<u8>, length: usize| assert_eq!((values.len(), values.capacity()), (length, length));
        assert_eq!(all.nothing, None);
        assert_eq!((all.names.len(), all.names.capacity()), (3, 3));
        exact(&all.pair.1, 3);
        let nested = &all.nested["a"];
        assert_eq!(nested.capacity(), 3);
        for (values, length) in nested.iter().zip([1, 0, 5]) {
            exact(values, length);
        }
        let Choice::Some(values) = &all.choice;
        assert_eq!(values.len(), 3);
        assert_eq!((all.wrapped.0.len(), all.wrapped.0.capacity()), (5, 5));
    }

    #[test]
    fn text_behind_the_value_is_refused() {
        assert!(from_text::<Value>("[1] 2").is_err());
        assert!(from_text::<Value>("").is_err());
    }
}

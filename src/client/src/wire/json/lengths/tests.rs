//! What each array is said to have is what it has.

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

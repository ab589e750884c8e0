//! Every kind, filled at random as its table allows: a written value reads back as the same value.
//!
//! Answers: is anything lost or changed between a value and its message? The fixtures show whether the bytes are Go's.
//! 1. A value is made as Go's JSON would write it: a member that is left out when empty is either missing or filled,
//!    never empty.
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::table::{Alternative, Field, Shape, TABLE};
use super::super::{answer, values};
use super::{NOTHING, decode};

/// How deep a value goes before every optional member is left out.
const DEPTH: usize = 7;

/// Choices that proptest makes and shrinks; after the last one all are 0.
struct Choices<'a>(std::slice::Iter<'a, u32>);

impl Choices<'_> {
    fn below(&mut self, end: u32) -> u32 {
        self.0.next().map_or(0, |choice| choice % end)
    }

    fn message(&mut self, place: usize, depth: usize) -> Map<String, Value> {
        let mut object = Map::new();
        for field in TABLE.message(place) {
            if let (true, Shape::Message(place)) = (field.inline, &field.shape) {
                object.extend(self.message(*place, depth));
            } else if let Some(value) = self.field(field, depth) {
                object.insert(field.name.to_owned(), value);
            }
        }
        object
    }

    fn field(&mut self, field: &Field, depth: usize) -> Option<Value> {
        let absent = match field.shape {
            Shape::Pointer(_) | Shape::List(_) | Shape::Map(_) | Shape::Wrapped(_) | Shape::Bytes => {
                Value::Null
            }
            Shape::Time | Shape::MicroTime | Shape::Raw => Value::Null,
            _ if !field.omit_empty => return Some(self.value(&field.shape, depth)),
            Shape::Text | Shape::Bool | Shape::Integer | Shape::Double => Value::Null,
            _ => return Some(self.value(&field.shape, depth)),
        };
        if depth < DEPTH && self.below(3) > 0 {
            return Some(self.value(&field.shape, depth));
        }
        let told = match field.shape {
            Shape::Time | Shape::MicroTime => !field.omit_zero,
            Shape::Raw => true,
            _ => !field.omit_empty,
        };
        told.then_some(absent)
    }

    /// A value that is not empty.
    fn value(&mut self, shape: &Shape, depth: usize) -> Value {
        match shape {
            Shape::Pointer(inner) => self.value(inner, depth),
            Shape::List(inner) | Shape::Wrapped(inner) => {
                (0..=self.below(3)).map(|_| self.value(inner, depth + 1)).collect()
            }
            Shape::Map(inner) => {
                (0..=self.below(3)).map(|key| (format!("k{key}"), self.value(inner, depth + 1))).collect()
            }
            Shape::Text => json!(format!("text {}", self.below(100))),
            Shape::Bytes => json!(["eA==", "eHk=", "eHl6"][self.below(3) as usize]),
            Shape::Bool => json!(true),
            Shape::Integer => json!(i64::from(self.below(u32::MAX)) - 7),
            Shape::Double => values::double((f64::from(self.below(1_000)) / 4.0 + 0.5).to_bits()).unwrap(),
            Shape::Time => json!(format!("20{:02}-01-02T03:04:05Z", self.below(90) + 10)),
            Shape::MicroTime => json!(format!("1969-12-31T23:59:59.{:06}Z", self.below(1_000_000))),
            Shape::Quantity => json!(format!("{}m", self.below(1_000))),
            Shape::IntOrString if self.below(2) == 0 => json!(self.below(1_000)),
            Shape::IntOrString => json!(format!("{}%", self.below(1_000))),
            Shape::Raw => json!({"f:a": [self.below(9), "x", true, {}]}),
            Shape::SchemaOr(alternative) => self.schema_or(*alternative, depth),
            Shape::Message(place) => Value::Object(self.message(*place, depth + 1)),
        }
    }

    fn schema_or(&mut self, alternative: Alternative, depth: usize) -> Value {
        let schema = Shape::Message(TABLE.schema());
        let one = depth < DEPTH && self.below(2) == 0;
        match alternative {
            _ if one => self.value(&schema, depth),
            Alternative::Schemas => Value::Array(vec![self.value(&schema, depth)]),
            Alternative::Bool => json!(true),
            Alternative::Names => json!(["a", "b"]),
        }
    }
}

proptest! {
    #[test]
    fn api_38_what_is_written_reads_back(at in 0usize..10_000, choices in proptest::collection::vec(any::<u32>(), 0..400)) {
        let mut kinds: Vec<_> = TABLE.kinds().filter(|(api_version, _)| *api_version != "-").collect();
        kinds.sort_unstable();
        let (api_version, kind) = kinds[at % kinds.len()];
        let place = TABLE.kind(api_version, kind).unwrap();
        let mut object = Choices(choices.iter()).message(place, 0);
        object.insert("apiVersion".to_owned(), api_version.replace('*', "v1").into());
        object.insert("kind".to_owned(), kind.into());
        let object = Value::Object(object);
        let written = answer::value(&object).unwrap();
        prop_assert_eq!(decode(&written, NOTHING), Ok(object));
    }
}

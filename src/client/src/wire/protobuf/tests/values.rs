//! Objects of every kind, filled at random as the table allows, as Go's JSON has them: a member that is left out when
//! it is empty is either missing or filled.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::table::{Alternative, Field, ProtobufKind, Shape, TABLE};

/// How deep a value goes before every optional member is left out.
const DEPTH: usize = 7;

pub(super) fn choices() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(any::<u32>(), 0..400)
}

/// Of one of all kinds.
pub(super) fn any_object(at: usize, choices: &[u32]) -> Value {
    let kinds: Vec<_> = TABLE.kinds().filter(|kind| kind.api_version() != "-").collect();
    object_of(kinds[at % kinds.len()], choices)
}

pub(super) fn object_of(kind: ProtobufKind, choices: &[u32]) -> Value {
    let mut object = Choices(choices.iter()).message(kind.message(), 0);
    object.insert("apiVersion".to_owned(), kind.api_version().replace('*', "v1").into());
    object.insert("kind".to_owned(), kind.kind().into());
    Value::Object(object)
}

/// Choices that proptest makes and shrinks; after the last one all are 0.
struct Choices<'a>(std::slice::Iter<'a, u32>);

impl Choices<'_> {
    fn below(&mut self, end: u32) -> u32 {
        self.0.next().map_or(0, |choice| choice % end)
    }

    fn message(&mut self, place: usize, depth: usize) -> Map<String, Value> {
        let fields = &TABLE.message(place).fields;
        fields.iter().filter_map(|field| Some((field.name.to_owned(), self.field(field, depth)?))).collect()
    }

    fn field(&mut self, field: &Field, depth: usize) -> Option<Value> {
        let may_be_null = matches!(
            field.shape,
            Shape::Pointer(_)
                | Shape::List(_)
                | Shape::Map(_)
                | Shape::Wrapped(_)
                | Shape::Bytes
                | Shape::Time
                | Shape::MicroTime
                | Shape::Raw
        );
        let may_be_absent = may_be_null || field.omits_absent();
        if !may_be_absent || depth < DEPTH && self.below(3) > 0 {
            return Some(self.value(&field.shape, depth));
        }
        (!field.omits_absent()).then_some(Value::Null)
    }

    /// A value that is not empty, but for what a pointer may point to.
    fn value(&mut self, shape: &Shape, depth: usize) -> Value {
        match shape {
            Shape::Pointer(inner) if self.below(3) == 0 => match **inner {
                Shape::Text => json!(""),
                Shape::Bool => json!(false),
                Shape::Integer | Shape::IntOrString => json!(0),
                _ => self.value(inner, depth),
            },
            Shape::Pointer(inner) => self.value(inner, depth),
            Shape::List(inner) | Shape::Wrapped(inner) => {
                (0..=self.below(3)).map(|_| self.value(inner, depth + 1)).collect()
            }
            Shape::Map(inner) => {
                (0..=self.below(3)).map(|key| (format!("k{key}"), self.value(inner, depth + 1))).collect()
            }
            Shape::Text => json!(["text", "\"\\\n\u{1}", "é<&>", "1"][self.below(4) as usize]),
            Shape::Bytes => json!(["eA==", "eHk=", "eHl6"][self.below(3) as usize]),
            Shape::Bool => json!(true),
            Shape::Integer => json!((i64::from(self.below(1 << 31)) - 7) | 1),
            Shape::Double => match f64::from(self.below(1_000)) / 4.0 + 0.5 {
                whole if whole.trunc() == whole => json!(whole as i64),
                number => json!(number),
            },
            Shape::Time => json!(format!("20{:02}-01-02T03:04:05Z", self.below(90) + 10)),
            Shape::MicroTime => json!(format!("1969-12-31T23:59:59.{:06}Z", self.below(1_000_000))),
            Shape::Quantity => json!(format!("{}m", self.below(1_000))),
            Shape::IntOrString if self.below(2) == 0 => json!(self.below(1_000)),
            Shape::IntOrString => json!(format!("{}%", self.below(1_000))),
            Shape::Raw => json!({"f:a": [self.below(9), "x", true, 1.5, null, {}]}),
            Shape::SchemaOr(alternative) => self.schema_or(*alternative, depth),
            Shape::Message(place) => Value::Object(self.message(*place, depth + 1)),
        }
    }

    fn schema_or(&mut self, alternative: Alternative, depth: usize) -> Value {
        let schema = Shape::Message(TABLE.schema);
        match alternative {
            _ if depth < DEPTH && self.below(2) == 0 => self.value(&schema, depth),
            Alternative::Schemas => Value::Array(vec![self.value(&schema, depth)]),
            Alternative::Bool => json!(true),
            Alternative::Names => json!(["a", "b"]),
        }
    }
}

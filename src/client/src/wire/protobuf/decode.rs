//! Gives a message to serde, as Go's JSON of it would be: [`Value`] is a deserializer over the table and the bytes.
//!
//! 1. The members come in the order of the Go struct. An absent field is left out, or has Go's zero value, as in Go's JSON. Of a
//!    repeated field the last value counts, a list collects, an unknown number is passed.
//! 2. A field that was cut (`cut.rs`) is absent, not even zero.
//! 3. Depth and number of values are bounded, so a small body cannot become a large value.
//!
//! ```text
//!  Value (shape, bytes) --> Members  of a message: the fields are gathered, then given one by one
//!                       --> Items    of a list     --> Value
//!                       --> Entries  of a map      --> Value
//!                       --> a scalar (`values.rs`), or the text of raw JSON for serde_json
//! ```

use std::cell::{Cell, RefCell};

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::reader::Wire;
use super::table::{Alternative, Shape, TABLE};
use super::{Fault, ProtobufError, values};
use access::{Entries, Items, Members};

mod access;

/// Above the depth of any kind but JSON schemas; those are read as deep as by serde_json, with two brackets each.
const DEPTH: usize = 64;
/// Values in one object; those of lists and maps count twice. An object of etcd's greatest size, 1.5 MiB, has fewer.
const VALUES: usize = 2_000_000;

/// A field that is being read. All of one object are in one stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gathered<'de> {
    pub(super) field: u16,
    pub(super) wire: Option<Wire<'de>>,
}

/// Shared while one object is read.
#[derive(Debug)]
pub(super) struct Context<'de> {
    pub(super) gathered: RefCell<Vec<Gathered<'de>>>,
    left: Cell<usize>,
}

impl Context<'_> {
    pub(super) fn new() -> Self {
        Self { gathered: RefCell::default(), left: Cell::new(VALUES) }
    }

    pub(super) fn count(&self, values: usize) -> std::result::Result<(), Fault> {
        self.left.set(self.left.get().checked_sub(values).ok_or(Fault::TooMany)?);
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Content<'de> {
    /// Absent: Go's zero value.
    Zero,
    One(Wire<'de>),
    /// Of a list or a map: so many in the stack, from this place on.
    Many {
        first: usize,
        count: usize,
    },
    /// The schemas or names of an alternative.
    Alternatives(&'de [u8]),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Value<'c, 'de> {
    pub(super) context: &'c Context<'de>,
    pub(super) shape: &'static Shape,
    pub(super) content: Content<'de>,
    pub(super) depth: usize,
}

/// `kind`, then `apiVersion`: the first members of an object.
pub(super) type Types<'de> = (&'de str, &'de str);

#[derive(Debug)]
pub(super) struct Object<'c, 'de> {
    pub(super) context: &'c Context<'de>,
    pub(super) message: usize,
    pub(super) raw: &'de [u8],
    pub(super) types: Option<Types<'de>>,
}

type Result<T> = std::result::Result<T, ProtobufError>;

impl<'c, 'de> Value<'c, 'de> {
    fn inner(self, shape: &'static Shape) -> Self {
        Self { shape, ..self }
    }

    /// Whether Go's JSON has null here.
    pub(super) fn is_null(self) -> Result<bool> {
        Ok(match (self.shape, self.content) {
            (Shape::Pointer(_), Content::Zero) => true,
            (Shape::Pointer(inner), _) => self.inner(inner).is_null()?,
            (
                Shape::List(_)
                | Shape::Map(_)
                | Shape::Wrapped(_)
                | Shape::Bytes
                | Shape::Time
                | Shape::MicroTime
                | Shape::Raw
                | Shape::SchemaOr(_),
                Content::Zero,
            ) => true,
            (Shape::Time | Shape::MicroTime, Content::One(Wire::Bytes(bytes))) => bytes.is_empty(),
            (Shape::Raw, Content::One(Wire::Bytes(bytes))) => {
                matches!(values::raw(bytes)?.trim_ascii(), b"" | b"null")
            }
            (Shape::SchemaOr(alternative), Content::One(Wire::Bytes(bytes))) => {
                matches!(values::schema_or(*alternative, bytes)?, values::SchemaOr::Null)
            }
            _ => false,
        })
    }

    /// Whether `omitempty` leaves it out.
    pub(super) fn is_empty(self) -> Result<bool> {
        Ok(match (self.shape, self.content) {
            (
                Shape::Text | Shape::Bytes | Shape::Time | Shape::MicroTime,
                Content::One(Wire::Bytes(bytes)),
            ) => bytes.is_empty(),
            (Shape::Bool | Shape::Integer, Content::One(Wire::Varint(number))) => number == 0,
            (Shape::Double, Content::One(Wire::Fixed64(bits))) => f64::from_bits(bits) == 0.0,
            (Shape::Wrapped(_), Content::One(Wire::Bytes(_))) | (Shape::List(_), Content::Many { .. }) => {
                Items::new(self).has_none()?
            }
            (_, Content::Zero) => true,
            _ => false,
        })
    }

    fn message<V: Visitor<'de>>(self, place: usize, raw: &'de [u8], visitor: V) -> Result<V::Value> {
        if self.depth >= DEPTH {
            return Err(Fault::TooDeep.into());
        }
        visitor.visit_map(Members::new(self.context, (place, raw), None, self.depth + 1)?)
    }

    fn schema_or(self, alternative: Alternative, bytes: &'de [u8]) -> Result<Given<'c, 'de>> {
        Ok(match values::schema_or(alternative, bytes)? {
            values::SchemaOr::Null => Given::Null,
            values::SchemaOr::Bool(value) => Given::Bool(value),
            values::SchemaOr::Schema(raw) => Given::Message(TABLE.schema, raw),
            values::SchemaOr::Several => {
                let content = Content::Alternatives(bytes);
                Given::Items(Items::new(Self { content, ..self }))
            }
        })
    }

    fn given(mut self) -> Result<Given<'c, 'de>> {
        while let (Shape::Pointer(inner), Content::One(_)) = (self.shape, self.content) {
            self.shape = inner;
        }
        let wire = match (self.shape, self.content) {
            (Shape::List(_), Content::Many { .. }) => return Ok(Given::Items(Items::new(self))),
            (Shape::Map(_), Content::Many { .. }) => return Ok(Given::Entries(Entries::new(self))),
            (_, Content::One(wire)) => wire,
            _ => return Ok(self.zero()),
        };
        Ok(match (self.shape, wire) {
            (Shape::Message(place), Wire::Bytes(bytes)) => Given::Message(*place, bytes),
            (Shape::Text, Wire::Bytes(bytes)) => Given::text(bytes),
            (Shape::Bool, Wire::Varint(number)) => Given::Bool(number != 0),
            // Negative numbers are sent in two's complement of 64 bits.
            (Shape::Integer, Wire::Varint(number)) => Given::Integer(number.cast_signed()),
            (Shape::Double, Wire::Fixed64(bits)) => match values::double(bits)? {
                values::Number::Integer(number) => Given::Integer(number),
                values::Number::Double(number) => Given::Double(number),
            },
            (Shape::Wrapped(_), Wire::Bytes(_)) => Given::Items(Items::new(self)),
            (Shape::Bytes, Wire::Bytes(bytes)) => Given::Owned(values::base64(bytes)),
            (Shape::Time, Wire::Bytes([])) | (Shape::MicroTime, Wire::Bytes([])) => Given::Null,
            (Shape::Time, Wire::Bytes(bytes)) => Given::Owned(values::time(bytes)?),
            (Shape::MicroTime, Wire::Bytes(bytes)) => Given::Owned(values::micro_time(bytes)?),
            (Shape::Quantity, Wire::Bytes(bytes)) => {
                values::quantity(bytes)?.map_or_else(|| self.zero(), Given::text)
            }
            (Shape::IntOrString, Wire::Bytes(bytes)) => match values::int_or_string(bytes)? {
                values::IntOrString::Int(number) => Given::Integer(number),
                values::IntOrString::Text(bytes) => Given::text(bytes),
            },
            (Shape::Raw, Wire::Bytes(bytes)) => Given::Json(values::raw(bytes)?),
            (Shape::SchemaOr(alternative), Wire::Bytes(bytes)) => self.schema_or(*alternative, bytes)?,
            _ => return Err(Fault::Mismatch.into()),
        })
    }

    fn zero(self) -> Given<'c, 'de> {
        match self.shape {
            Shape::Text => Given::Text(""),
            Shape::Bool => Given::Bool(false),
            Shape::Integer | Shape::Double | Shape::IntOrString => Given::Integer(0),
            Shape::Quantity => Given::Text("0"),
            Shape::Message(place) => Given::Message(*place, &[]),
            _ => Given::Null,
        }
    }
}

/// What a visitor gets. Code with its type is compiled for each field of each kind: this has none.
enum Given<'c, 'de> {
    Null,
    Bool(bool),
    Integer(i64),
    Double(f64),
    Text(&'de str),
    Owned(String),
    /// A text of JSON.
    Json(&'de [u8]),
    Items(Items<'c, 'de>),
    Entries(Entries<'c, 'de>),
    /// The place in the table, and the bytes.
    Message(usize, &'de [u8]),
}

impl<'de> Given<'_, 'de> {
    fn text(bytes: &'de [u8]) -> Self {
        // As Go's JSON writes what is not UTF-8.
        std::str::from_utf8(bytes)
            .map_or_else(|_| Self::Owned(String::from_utf8_lossy(bytes).into_owned()), Self::Text)
    }
}

impl<'de> Deserializer<'de> for Value<'_, 'de> {
    type Error = ProtobufError;

    /// Messages nest, and have a frame of their own: a frame has room for the results of all its calls.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.given()? {
            Given::Message(place, raw) => self.message(place, raw, visitor),
            other => visit(other, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.is_null()? { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.shape {
            Shape::Pointer(inner) => self.inner(inner).deserialize_enum(name, variants, visitor),
            Shape::Map(_) if matches!(self.content, Content::Many { .. }) => {
                MapAccessDeserializer::new(Entries::new(self)).deserialize_enum(name, variants, visitor)
            }
            Shape::Message(place) => {
                let raw = if let Content::One(Wire::Bytes(raw)) = self.content { raw } else { &[] };
                let members = Members::new(self.context, (*place, raw), None, self.depth + 1)?;
                MapAccessDeserializer::new(members).deserialize_enum(name, variants, visitor)
            }
            _ => visitor.visit_enum(StrDeserializer::new(&AsText.deserialize(self)?)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

fn visit<'de, V: Visitor<'de>>(given: Given<'_, 'de>, visitor: V) -> Result<V::Value> {
    match given {
        Given::Null => visitor.visit_unit(),
        Given::Bool(value) => visitor.visit_bool(value),
        // As a JSON parser gives it.
        Given::Integer(number) => match u64::try_from(number) {
            Ok(number) => visitor.visit_u64(number),
            Err(_) => visitor.visit_i64(number),
        },
        Given::Double(number) => visitor.visit_f64(number),
        Given::Text(text) => visitor.visit_borrowed_str(text),
        Given::Owned(text) => visitor.visit_string(text),
        Given::Json(text) => values::visit_json(text, visitor),
        Given::Items(items) => visitor.visit_seq(items),
        Given::Entries(entries) => visitor.visit_map(entries),
        Given::Message(..) => Err(Fault::Mismatch.into()),
    }
}

struct AsText;

impl<'de> DeserializeSeed<'de> for AsText {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<String, D::Error> {
        serde::Deserialize::deserialize(deserializer)
    }
}

impl<'de> Deserializer<'de> for Object<'_, 'de> {
    type Error = ProtobufError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_map(Members::new(self.context, (self.message, self.raw), self.types, 1)?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

pub(super) fn name(text: &str) -> BorrowedStrDeserializer<'_, ProtobufError> {
    BorrowedStrDeserializer::new(text)
}

/// For a key that is not UTF-8.
pub(super) fn owned_name(bytes: &[u8]) -> serde::de::value::StringDeserializer<ProtobufError> {
    String::from_utf8_lossy(bytes).into_owned().into_deserializer()
}

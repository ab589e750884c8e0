//! One message: its fields gathered from the wire, then written as Go's JSON would write them.
//!
//! Answers: which JSON object is this message? The table has its fields, `values.rs` reads the special types.
//! 1. A field that comes twice counts as its last value, a list collects, an unknown number is skipped.
//! 2. `DEPTH` and `VALUES` bound the size to which a small body may expand.
use serde_json::{Map, Value, json};

use super::ProtobufError;
use super::table::{Alternative, Field, Shape, Table};
use super::values;
use super::wire::{Reader, Wire, text};

/// How deep messages may be nested: far above any kind but JSON schemas, and those stay readable too.
const DEPTH: usize = 100;
/// How many values a body may hold: no client sends a list of 100,000 containers.
const VALUES: usize = 1_000_000;

/// Decodes one body.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    table: &'a Table,
    left: usize,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(table: &'a Table) -> Self {
        Self { table, left: VALUES }
    }

    /// Reads the message at this place of the table.
    pub(super) fn message(
        &mut self,
        place: usize,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Map<String, Value>, ProtobufError> {
        if depth == DEPTH {
            return Err(ProtobufError::TooDeep);
        }
        let fields = self.table.message(place);
        self.left = self.left.checked_sub(1 + fields.len()).ok_or(ProtobufError::TooMany)?;
        let mut given: Vec<Option<Value>> = vec![None; fields.len()];
        let mut reader = Reader::new(bytes);
        while let Some((number, wire)) = reader.field()? {
            let Some(at) = fields.iter().position(|field| field.number == number) else { continue };
            self.gather(&fields[at], &mut given[at], wire, depth)?;
        }
        let mut object = Map::new();
        for (field, given) in fields.iter().zip(given) {
            let value = match given {
                Some(value) => value,
                None if field.omit_empty && field.shape.may_be_empty() => continue,
                None => self.zero(&field.shape, depth)?,
            };
            if field.inline {
                object.extend(as_object(value));
            } else if !field.omits(&value) {
                object.insert(field.name.to_owned(), value);
            }
        }
        Ok(object)
    }

    fn gather(
        &mut self,
        field: &Field,
        slot: &mut Option<Value>,
        wire: Wire<'_>,
        depth: usize,
    ) -> Result<(), ProtobufError> {
        self.left = self.left.checked_sub(1).ok_or(ProtobufError::TooMany)?;
        match (&field.shape, wire) {
            (Shape::List(inner), Wire::Bytes(bytes)) if matches!(**inner, Shape::Integer | Shape::Bool) => {
                let mut reader = Reader::new(bytes);
                while let Some(number) = reader.packed()? {
                    self.left = self.left.checked_sub(1).ok_or(ProtobufError::TooMany)?;
                    let value = self.value(inner, Wire::Varint(number), depth, field.name)?;
                    list(slot).push(value);
                }
            }
            (Shape::List(inner), wire) => {
                let value = self.value(inner, wire, depth, field.name)?;
                list(slot).push(value);
            }
            (Shape::Map(inner), Wire::Bytes(bytes)) => {
                let (key, value) = self.entry(inner, bytes, depth)?;
                let map = slot.get_or_insert_with(|| Value::Object(Map::new()));
                map.as_object_mut().expect("a map's slot holds an object").insert(key, value);
            }
            (shape, wire) => *slot = Some(self.value(shape, wire, depth, field.name)?),
        }
        Ok(())
    }

    fn entry(&mut self, inner: &Shape, bytes: &[u8], depth: usize) -> Result<(String, Value), ProtobufError> {
        let (mut key, mut value) = (String::new(), None);
        let mut reader = Reader::new(bytes);
        while let Some((number, wire)) = reader.field()? {
            match (number, wire) {
                (1, Wire::Bytes(bytes)) => key = text(bytes),
                (2, wire) => value = Some(self.value(inner, wire, depth, "value")?),
                _ => {}
            }
        }
        let value = match (value, inner) {
            (Some(value), _) => value,
            // An empty secret value has no bytes on the wire, but is a value.
            (None, Shape::Bytes) => json!(""),
            (None, inner) => self.zero(inner, depth)?,
        };
        Ok((key, value))
    }

    fn value(
        &mut self,
        shape: &Shape,
        wire: Wire<'_>,
        depth: usize,
        name: &str,
    ) -> Result<Value, ProtobufError> {
        Ok(match (shape, wire) {
            (Shape::Pointer(inner), wire) => self.value(inner, wire, depth, name)?,
            (Shape::Text, Wire::Bytes(bytes)) => json!(text(bytes)),
            (Shape::Bytes, Wire::Bytes(bytes)) => values::base64(bytes),
            (Shape::Bool, Wire::Varint(number)) => json!(number != 0),
            // Negative numbers are sent as the 64 bits of their two's complement.
            (Shape::Integer, Wire::Varint(number)) => json!(number.cast_signed()),
            (Shape::Double, Wire::Fixed64(bits)) => values::double(bits)?,
            (Shape::Time, Wire::Bytes(bytes)) => values::time(bytes)?,
            (Shape::MicroTime, Wire::Bytes(bytes)) => values::micro_time(bytes)?,
            (Shape::Quantity, Wire::Bytes(bytes)) => values::quantity(bytes)?,
            (Shape::IntOrString, Wire::Bytes(bytes)) => values::int_or_string(bytes)?,
            (Shape::Raw, Wire::Bytes(bytes)) => values::raw(bytes)?,
            (Shape::SchemaOr(alternative), Wire::Bytes(bytes)) => {
                self.schema_or(*alternative, bytes, depth + 1)?
            }
            (Shape::Message(place), Wire::Bytes(bytes)) => {
                Value::Object(self.message(*place, bytes, depth + 1)?)
            }
            (Shape::Wrapped(inner), Wire::Bytes(bytes)) => {
                let mut items = Vec::new();
                let mut reader = Reader::new(bytes);
                while let Some((_, wire)) = reader.field()? {
                    self.left = self.left.checked_sub(1).ok_or(ProtobufError::TooMany)?;
                    items.push(self.value(inner, wire, depth + 1, name)?);
                }
                Value::Array(items)
            }
            _ => return Err(ProtobufError::Mismatch(name.to_owned())),
        })
    }

    /// One schema, or what may replace it.
    fn schema_or(
        &mut self,
        alternative: Alternative,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        let (mut schema, mut allows, mut others) = (None, false, Vec::new());
        let mut reader = Reader::new(bytes);
        while let Some((number, wire)) = reader.field()? {
            match (alternative, number, wire) {
                (Alternative::Bool, 1, Wire::Varint(number)) => allows = number != 0,
                (Alternative::Bool, 2, Wire::Bytes(bytes))
                | (Alternative::Schemas | Alternative::Names, 1, Wire::Bytes(bytes)) => {
                    schema = Some(Value::Object(self.message(self.table.schema(), bytes, depth)?));
                }
                (Alternative::Schemas, 2, Wire::Bytes(bytes)) => {
                    others.push(Value::Object(self.message(self.table.schema(), bytes, depth)?));
                }
                (Alternative::Names, 2, Wire::Bytes(bytes)) => others.push(json!(text(bytes))),
                _ => {}
            }
        }
        Ok(match (alternative, schema) {
            (Alternative::Bool, None) => json!(allows),
            (_, None) if others.is_empty() => Value::Null,
            (Alternative::Schemas | Alternative::Names, _) if !others.is_empty() => Value::Array(others),
            (_, schema) => schema.unwrap_or(Value::Null),
        })
    }

    /// The JSON of Go's zero value.
    fn zero(&mut self, shape: &Shape, depth: usize) -> Result<Value, ProtobufError> {
        Ok(match shape {
            Shape::Text => json!(""),
            Shape::Bool => json!(false),
            Shape::Integer | Shape::Double | Shape::IntOrString => json!(0),
            Shape::Quantity => json!("0"),
            Shape::Message(place) => Value::Object(self.message(*place, &[], depth + 1)?),
            _ => Value::Null,
        })
    }
}

impl Shape {
    /// Whether Go's `omitempty` can apply: it never does to a struct.
    pub(crate) fn may_be_empty(&self) -> bool {
        matches!(
            self,
            Self::Pointer(_)
                | Self::List(_)
                | Self::Map(_)
                | Self::Wrapped(_)
                | Self::Text
                | Self::Bytes
                | Self::Bool
                | Self::Integer
                | Self::Double
        )
    }
}

impl Field {
    fn omits(&self, value: &Value) -> bool {
        let pointer = matches!(self.shape, Shape::Pointer(_));
        let empty = || match value {
            Value::Null | Value::Bool(false) => true,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        let zero = self.omit_zero && !pointer && empty();
        zero || (self.omit_empty && !pointer && self.shape.may_be_empty() && empty())
    }
}

fn list(slot: &mut Option<Value>) -> &mut Vec<Value> {
    let list = slot.get_or_insert_with(|| Value::Array(Vec::new()));
    list.as_array_mut().expect("a list's slot holds an array")
}

fn as_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

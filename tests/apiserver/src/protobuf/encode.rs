//! One JSON object written as its message: the reverse of `message.rs`.
//!
//! Answers: which bytes does Go write for this object? The table has the fields, `odd.rs` writes the special types.
//! 1. Fields come in the order of their numbers, entries of a map in the order of their keys.
//! 2. A field that is not a pointer is written even if it is zero, as in Go.
//! 3. A value of another type than its field's counts as zero: stored values have been checked before.
use serde_json::{Map, Value};

use super::odd;
use super::table::{Alternative, Field, Shape, Table};
use super::wire::{put_bytes, put_double, put_message, put_number};

/// Writes messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Encoder<'a> {
    table: &'a Table,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(table: &'a Table) -> Self {
        Self { table }
    }

    /// Writes the fields of the message at this place of the table.
    pub(super) fn message(self, place: usize, object: &Map<String, Value>, out: &mut Vec<u8>) {
        for field in self.table.message(place) {
            if field.inline {
                self.inline(field, object, out);
            } else {
                let value = object.get(field.name).unwrap_or(&Value::Null);
                self.field(field.number, &field.shape, value, out);
            }
        }
    }

    fn inline(self, field: &Field, outer: &Map<String, Value>, out: &mut Vec<u8>) {
        if let Shape::Message(place) = field.shape {
            put_message(out, field.number, |out| self.message(place, outer, out));
        }
    }

    /// One field; nothing where Go writes nothing.
    fn field(self, number: u32, shape: &Shape, value: &Value, out: &mut Vec<u8>) {
        match shape {
            Shape::Pointer(_) | Shape::Bytes | Shape::Wrapped(_) if value.is_null() => {}
            Shape::Pointer(inner) => self.one(number, inner, value, out),
            Shape::List(inner) => {
                for item in value.as_array().into_iter().flatten() {
                    self.one(number, inner, item, out);
                }
            }
            Shape::Map(inner) => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    put_message(out, number, |out| {
                        put_bytes(out, 1, key.as_bytes());
                        self.one(2, inner, value, out);
                    });
                }
            }
            shape => self.one(number, shape, value, out),
        }
    }

    /// One value under a number, zero or not.
    fn one(self, number: u32, shape: &Shape, value: &Value, out: &mut Vec<u8>) {
        match shape {
            Shape::Text => put_bytes(out, number, value.as_str().unwrap_or_default().as_bytes()),
            Shape::Bool => put_number(out, number, u64::from(value.as_bool() == Some(true))),
            // Negative numbers are sent as the 64 bits of their two's complement.
            Shape::Integer => put_number(out, number, odd::integer(value).cast_unsigned()),
            Shape::Double => put_double(out, number, value.as_f64().unwrap_or_default()),
            Shape::Bytes => put_bytes(out, number, &odd::bytes(value)),
            Shape::Time => put_message(out, number, |out| odd::time(value, out)),
            Shape::MicroTime => put_message(out, number, |out| odd::micro_time(value, out)),
            Shape::Duration => put_message(out, number, |out| odd::duration(value, out)),
            Shape::Quantity => put_message(out, number, |out| odd::quantity(value, out)),
            Shape::IntOrString => put_message(out, number, |out| odd::int_or_string(value, out)),
            Shape::Raw => put_message(out, number, |out| odd::raw(value, out)),
            Shape::SchemaOr(alternative) => {
                put_message(out, number, |out| self.schema_or(*alternative, value, out));
            }
            Shape::Message(place) => put_message(out, number, |out| {
                let none = Map::new();
                self.message(*place, value.as_object().unwrap_or(&none), out);
            }),
            Shape::Wrapped(inner) => put_message(out, number, |out| {
                for item in value.as_array().into_iter().flatten() {
                    self.one(1, inner, item, out);
                }
            }),
            Shape::Pointer(_) | Shape::List(_) | Shape::Map(_) => self.field(number, shape, value, out),
        }
    }

    fn schema_or(self, alternative: Alternative, value: &Value, out: &mut Vec<u8>) {
        let schema = Shape::Message(self.table.schema());
        match (alternative, value) {
            (Alternative::Bool, Value::Object(_)) => {
                put_number(out, 1, 1);
                self.one(2, &schema, value, out);
            }
            (Alternative::Bool, _) => put_number(out, 1, u64::from(value.as_bool() == Some(true))),
            (_, Value::Object(_)) => self.one(1, &schema, value, out),
            (Alternative::Schemas, Value::Array(items)) => {
                items.iter().for_each(|item| self.one(2, &schema, item, out));
            }
            (Alternative::Names, Value::Array(items)) => {
                items.iter().for_each(|item| self.one(2, &Shape::Text, item, out));
            }
            _ => {}
        }
    }
}

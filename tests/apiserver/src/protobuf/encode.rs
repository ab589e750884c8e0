//! One JSON object written as its message: the reverse of `message.rs`.
//!
//! Answers: which bytes does Go write for this object? The table has the fields.
//! 1. Fields come in the order of their numbers, entries of a map in the order of their keys.
//! 2. A field that is not a pointer is written even if it is zero, as in Go.
//! 3. Times keep whole seconds or microseconds, as Go's types do; an empty time is an empty message.
//! 4. A value of another type than its field's counts as zero: stored values have been checked before.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

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
            Shape::Integer => put_number(out, number, integer(value).cast_unsigned()),
            Shape::Double => put_double(out, number, value.as_f64().unwrap_or_default()),
            Shape::Bytes => put_bytes(out, number, &bytes(value)),
            Shape::Time => put_message(out, number, |out| time(value, out)),
            Shape::MicroTime => put_message(out, number, |out| micro_time(value, out)),
            Shape::Quantity => put_message(out, number, |out| quantity(value, out)),
            Shape::IntOrString => put_message(out, number, |out| int_or_string(value, out)),
            Shape::Raw => put_message(out, number, |out| raw(value, out)),
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

// The types whose message differs from their JSON: each function writes the inside of one message. The reverse of `values.rs`.

fn integer(value: &Value) -> i64 {
    value.as_i64().or_else(|| value.as_f64().map(|number| number as i64)).unwrap_or_default()
}

fn bytes(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default()
}

fn moment(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

fn at(seconds: i64, nanos: i32, out: &mut Vec<u8>) {
    put_number(out, 1, seconds.cast_unsigned());
    put_number(out, 2, i64::from(nanos).cast_unsigned());
}

/// Seconds rounded down, with the nanoseconds above them, as Go counts before 1970 too.
fn parts(moment: Timestamp) -> (i64, i32) {
    match moment.subsec_nanosecond() {
        nanos @ ..0 => (moment.as_second() - 1, nanos + 1_000_000_000),
        nanos => (moment.as_second(), nanos),
    }
}

fn time(value: &Value, out: &mut Vec<u8>) {
    if let Some(moment) = moment(value) {
        at(parts(moment).0, 0, out);
    }
}

fn micro_time(value: &Value, out: &mut Vec<u8>) {
    if let Some((seconds, nanos)) = moment(value).map(parts) {
        at(seconds, nanos / 1_000 * 1_000, out);
    }
}

fn quantity(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::String(text) => put_bytes(out, 1, text.as_bytes()),
        Value::Number(number) => put_bytes(out, 1, number.to_string().as_bytes()),
        _ => put_bytes(out, 1, b"0"),
    }
}

fn int_or_string(value: &Value, out: &mut Vec<u8>) {
    let text = value.as_str();
    put_number(out, 1, u64::from(text.is_some()));
    put_number(out, 2, if text.is_some() { 0 } else { integer(value).cast_unsigned() });
    put_bytes(out, 3, text.unwrap_or_default().as_bytes());
}

fn raw(value: &Value, out: &mut Vec<u8>) {
    if !value.is_null() {
        put_bytes(out, 1, value.to_string().as_bytes());
    }
}

//! The types of the API whose JSON differs from their message: times, quantities, raw JSON and the like.
//!
//! Answers: which JSON value is this small message? Each function reads one type.
//! 1. An empty time is JSON's null, as in Go.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::ProtobufError;
use super::wire::{Reader, Wire, text};

pub(super) fn base64(bytes: &[u8]) -> Value {
    json!(STANDARD.encode(bytes))
}

pub(super) fn double(bits: u64) -> Result<Value, ProtobufError> {
    let number = f64::from_bits(bits);
    if !number.is_finite() {
        return Err(ProtobufError::Unreadable("a number that JSON does not have"));
    }
    // Go writes whole numbers without a fraction.
    let whole = number.trunc() == number && number.abs() < 1e15;
    Ok(if whole { json!(number as i64) } else { json!(number) })
}

/// The numbers of a message of varints, by field: 1 and 2.
fn numbers(bytes: &[u8]) -> Result<(i64, i64), ProtobufError> {
    let mut found = (0, 0);
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Varint(value)) => found.0 = value.cast_signed(),
            (2, Wire::Varint(value)) => found.1 = value.cast_signed(),
            _ => {}
        }
    }
    Ok(found)
}

/// The last bytes under this number.
fn last_bytes(bytes: &[u8], number: u32) -> Result<Option<&[u8]>, ProtobufError> {
    let mut last = None;
    let mut reader = Reader::new(bytes);
    while let Some((field, wire)) = reader.field()? {
        if let Wire::Bytes(found) = wire
            && field == number
        {
            last = Some(found);
        }
    }
    Ok(last)
}

fn at(seconds: i64, nanos: i32) -> Result<Timestamp, ProtobufError> {
    Timestamp::new(seconds, nanos).map_err(|_| ProtobufError::Unreadable("a time out of range"))
}

pub(super) fn time(bytes: &[u8]) -> Result<Value, ProtobufError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (seconds, _) = numbers(bytes)?;
    Ok(json!(at(seconds, 0)?.to_string()))
}

pub(super) fn micro_time(bytes: &[u8]) -> Result<Value, ProtobufError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (seconds, nanos) = numbers(bytes)?;
    let nanos = i32::try_from(nanos).map_err(|_| ProtobufError::Unreadable("a time out of range"))?;
    Ok(json!(format!("{:.6}", at(seconds, nanos)?)))
}

pub(super) fn quantity(bytes: &[u8]) -> Result<Value, ProtobufError> {
    Ok(json!(text(last_bytes(bytes, 1)?.unwrap_or(b"0"))))
}

pub(super) fn int_or_string(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let (kind, number) = numbers(bytes)?;
    let string = last_bytes(bytes, 3)?.unwrap_or_default();
    match kind {
        0 => Ok(json!(number)),
        1 => Ok(json!(text(string))),
        _ => Err(ProtobufError::Unreadable("impossible IntOrString.Type")),
    }
}

/// Bytes that are a JSON text themselves.
pub(super) fn raw(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let found = last_bytes(bytes, 1)?.unwrap_or_default();
    if found.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(found).map_err(|_| ProtobufError::Unreadable("raw bytes that are not JSON"))
}

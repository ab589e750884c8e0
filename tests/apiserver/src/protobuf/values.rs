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

/// The text in field 1.
fn first_text(bytes: &[u8]) -> Result<Option<String>, ProtobufError> {
    let mut found = None;
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        if let (1, Wire::Bytes(bytes)) = (number, wire) {
            found = Some(text(bytes));
        }
    }
    Ok(found)
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

/// A span as Go prints it: `1h0m5s`, `1.5s`; below a second in the unit that fits.
pub(super) fn duration(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let (nanos, _) = numbers(bytes)?;
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let fraction = |whole: u64, rest: u64, width: usize| {
        let digits = format!("{rest:0width$}");
        let digits = digits.trim_end_matches('0');
        if digits.is_empty() { whole.to_string() } else { format!("{whole}.{digits}") }
    };
    let span = match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}µs", fraction(nanos / 1_000, nanos % 1_000, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", fraction(nanos / 1_000_000, nanos % 1_000_000, 6)),
        _ => {
            let seconds = nanos / 1_000_000_000;
            let tail = fraction(seconds % 60, nanos % 1_000_000_000, 9);
            match (seconds / 3_600, seconds / 60 % 60) {
                (0, 0) => format!("{tail}s"),
                (0, minutes) => format!("{minutes}m{tail}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{tail}s"),
            }
        }
    };
    Ok(json!(format!("{sign}{span}")))
}

pub(super) fn quantity(bytes: &[u8]) -> Result<Value, ProtobufError> {
    Ok(json!(first_text(bytes)?.unwrap_or_else(|| "0".to_owned())))
}

pub(super) fn int_or_string(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let (kind, number) = numbers(bytes)?;
    let mut string = String::new();
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        if let (3, Wire::Bytes(bytes)) = (number, wire) {
            string = text(bytes);
        }
    }
    match kind {
        0 => Ok(json!(number)),
        1 => Ok(json!(string)),
        _ => Err(ProtobufError::Unreadable("impossible IntOrString.Type")),
    }
}

/// Bytes that are a JSON text themselves.
pub(super) fn raw(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut found: &[u8] = &[];
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        if let (1, Wire::Bytes(bytes)) = (number, wire) {
            found = bytes;
        }
    }
    if found.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(found).map_err(|_| ProtobufError::Unreadable("raw bytes that are not JSON"))
}

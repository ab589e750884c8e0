//! The types of the API whose JSON differs from their message: times, quantities, raw JSON and the like.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::de::{Deserializer as _, Error as _, Visitor};

use super::reader::{Reader, Wire, last_bytes};
use super::table::Alternative;
use super::{Fault, ProtobufError};

pub(super) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(super) enum Number {
    Integer(i64),
    Double(f64),
}

/// Go writes whole numbers without a fraction.
pub(super) fn double(bits: u64) -> Result<Number, Fault> {
    let number = f64::from_bits(bits);
    if !number.is_finite() {
        return Err(Fault::Number);
    }
    let is_whole = number.trunc() == number && number.abs() < 1e15;
    Ok(if is_whole { Number::Integer(number as i64) } else { Number::Double(number) })
}

/// Varints 1 and 2 of a message.
fn numbers(bytes: &[u8]) -> Result<(i64, i64), Fault> {
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

/// Reads the whole message.
fn checked_bytes(bytes: &[u8], number: u32) -> Result<Option<&[u8]>, Fault> {
    let mut reader = Reader::new(bytes);
    while reader.field()?.is_some() {}
    Ok(last_bytes(bytes, number))
}

fn at(seconds: i64, nanos: i64) -> Result<Timestamp, Fault> {
    let nanos = i32::try_from(nanos).map_err(|_| Fault::Time)?;
    Timestamp::new(seconds, nanos).map_err(|_| Fault::Time)
}

pub(super) fn time(bytes: &[u8]) -> Result<String, Fault> {
    Ok(at(numbers(bytes)?.0, 0)?.to_string())
}

pub(super) fn micro_time(bytes: &[u8]) -> Result<String, Fault> {
    let (seconds, nanos) = numbers(bytes)?;
    Ok(format!("{:.6}", at(seconds, nanos)?))
}

/// `None` is zero.
pub(super) fn quantity(bytes: &[u8]) -> Result<Option<&[u8]>, Fault> {
    checked_bytes(bytes, 1)
}

pub(super) enum IntOrString<'de> {
    Int(i64),
    Text(&'de [u8]),
}

pub(super) fn int_or_string(bytes: &[u8]) -> Result<IntOrString<'_>, Fault> {
    match numbers(bytes)? {
        (0, number) => Ok(IntOrString::Int(number)),
        (1, _) => Ok(IntOrString::Text(last_bytes(bytes, 3).unwrap_or_default())),
        _ => Err(Fault::IntOrString),
    }
}

/// Empty for null.
pub(super) fn raw(bytes: &[u8]) -> Result<&[u8], Fault> {
    Ok(checked_bytes(bytes, 1)?.unwrap_or_default())
}

pub(super) fn visit_json<'de, V: Visitor<'de>>(
    json: &'de [u8],
    visitor: V,
) -> Result<V::Value, ProtobufError> {
    if json.is_empty() {
        return visitor.visit_unit();
    }
    // As a text: for bytes, a second decoder would be compiled for each type.
    let text = std::str::from_utf8(json).map_err(|_| Fault::NotJson)?;
    let mut parser = serde_json::Deserializer::from_str(text);
    let not_json = |error: serde_json::Error| match error.is_data() {
        true => ProtobufError::custom(error),
        false => ProtobufError::from(Fault::NotJson),
    };
    let value = parser.deserialize_any(visitor).map_err(not_json)?;
    parser.end().map_err(not_json)?;
    Ok(value)
}

pub(super) enum SchemaOr<'de> {
    Null,
    Bool(bool),
    Schema(&'de [u8]),
    /// Schemas or names, each under number 2.
    Several,
}

pub(super) fn schema_or(alternative: Alternative, bytes: &[u8]) -> Result<SchemaOr<'_>, Fault> {
    let (mut schema, mut allows, mut is_several) = (None, false, false);
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        match (alternative, number, wire) {
            (Alternative::Bool, 1, Wire::Varint(number)) => allows = number != 0,
            (Alternative::Bool, 2, Wire::Bytes(bytes)) => schema = Some(bytes),
            (Alternative::Schemas | Alternative::Names, 1, Wire::Bytes(bytes)) => schema = Some(bytes),
            (Alternative::Schemas | Alternative::Names, 2, Wire::Bytes(_)) => is_several = true,
            _ => {}
        }
    }
    Ok(match (alternative, schema) {
        (Alternative::Bool, None) => SchemaOr::Bool(allows),
        _ if is_several => SchemaOr::Several,
        (_, None) => SchemaOr::Null,
        (_, Some(schema)) => SchemaOr::Schema(schema),
    })
}

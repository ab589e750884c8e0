//! Conversions between types, and values as text.
//!
//! Answers: what is the result of `int`, `string`, `timestamp` and similar functions for a value?
//! 1. A value that cannot be converted is an error, never an approximate value.
use super::{Given, Library, no_overload};
use crate::cluster::cel::time;
use crate::cluster::cel::types::Type;
use crate::cluster::cel::value::Value;

pub(super) fn add(library: &mut Library) {
    let same: super::Run = |given| Ok(given[0].clone());
    library.globals(&[
        ("type", "type", "A", "type(A)", |given| Ok(Value::Type(given[0].type_of()))),
        ("to_dyn", "dyn", "A", "dyn", same),
        ("bool_to_bool", "bool", "bool", "bool", same),
        ("string_to_bool", "bool", "string", "bool", to_bool),
        ("bytes_to_bytes", "bytes", "bytes", "bytes", same),
        ("string_to_bytes", "bytes", "string", "bytes", |given| match given {
            [Value::Text(text)] => Ok(Value::Bytes(text.as_bytes().into())),
            _ => no_overload(),
        }),
        ("double_to_double", "double", "double", "double", same),
        ("int64_to_double", "double", "int", "double", to_double),
        ("string_to_double", "double", "string", "double", to_double),
        ("uint64_to_double", "double", "uint", "double", to_double),
        ("duration_to_duration", "duration", "duration", "duration", same),
        ("int64_to_duration", "duration", "int", "duration", to_duration),
        ("string_to_duration", "duration", "string", "duration", to_duration),
        ("int64_to_int64", "int", "int", "int", same),
        ("double_to_int64", "int", "double", "int", to_int),
        ("duration_to_int64", "int", "duration", "int", to_int),
        ("string_to_int64", "int", "string", "int", to_int),
        ("timestamp_to_int64", "int", "timestamp", "int", to_int),
        ("uint64_to_int64", "int", "uint", "int", to_int),
        ("timestamp_to_timestamp", "timestamp", "timestamp", "timestamp", same),
        ("int64_to_timestamp", "timestamp", "int", "timestamp", to_timestamp),
        ("string_to_timestamp", "timestamp", "string", "timestamp", to_timestamp),
        ("uint64_to_uint64", "uint", "uint", "uint", same),
        ("double_to_uint64", "uint", "double", "uint", to_uint),
        ("int64_to_uint64", "uint", "int", "uint", to_uint),
        ("string_to_uint64", "uint", "string", "uint", to_uint),
        ("string_to_string", "string", "string", "string", same),
        ("bool_to_string", "string", "bool", "string", to_text),
        ("bytes_to_string", "string", "bytes", "string", to_text),
        ("double_to_string", "string", "double", "string", to_text),
        ("duration_to_string", "string", "duration", "string", to_text),
        ("int64_to_string", "string", "int", "string", to_text),
        ("timestamp_to_string", "string", "timestamp", "string", to_text),
        ("uint64_to_string", "string", "uint", "string", to_text),
        ("ip_to_string", "string", "ip", "string", to_text),
        ("cidr_to_string", "string", "cidr", "string", to_text),
    ]);
}

fn unconverted(from: &Value, to: &Type) -> String {
    format!("type conversion error from '{}' to '{}'", from.type_of().runtime_name(), to.runtime_name())
}

fn to_bool(given: &[Value]) -> Given {
    match super::text(&given[0]) {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Value::Bool(true)),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Value::Bool(false)),
        _ => Err(unconverted(&given[0], &Type::Bool)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a conversion to a float is near, as in Go")]
fn to_double(given: &[Value]) -> Given {
    match given {
        [Value::Int(value)] => Ok(Value::Double(*value as f64)),
        [Value::Uint(value)] => Ok(Value::Double(*value as f64)),
        [Value::Text(text)] => {
            text.parse().map(Value::Double).map_err(|_| unconverted(&given[0], &Type::Double))
        }
        _ => no_overload(),
    }
}

fn to_duration(given: &[Value]) -> Given {
    match given {
        [Value::Int(value)] => Ok(Value::Duration(*value)),
        [Value::Text(text)] => {
            time::duration(text).map(Value::Duration).ok_or_else(|| unconverted(&given[0], &Type::Duration))
        }
        _ => no_overload(),
    }
}

fn to_timestamp(given: &[Value]) -> Given {
    match given {
        [Value::Int(seconds)] => jiff::Timestamp::from_second(*seconds)
            .map(Value::Timestamp)
            .map_err(|_| "timestamp overflow".to_owned()),
        [Value::Text(text)] => time::timestamp(text)
            .map(Value::Timestamp)
            .ok_or_else(|| unconverted(&given[0], &Type::Timestamp)),
        _ => no_overload(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "checked to be in range; the fraction is cut off, as in Go"
)]
fn to_int(given: &[Value]) -> Given {
    let overflow = || "integer overflow".to_owned();
    match given {
        [Value::Double(value)] if value.abs() < 9_223_372_036_854_775_807.0 => Ok(Value::Int(*value as i64)),
        [Value::Double(_)] => Err(overflow()),
        [Value::Uint(value)] => i64::try_from(*value).map(Value::Int).map_err(|_| overflow()),
        [Value::Duration(value)] => Ok(Value::Int(*value)),
        [Value::Timestamp(time)] => Ok(Value::Int(time.as_second())),
        [Value::Text(text)] => text.parse().map(Value::Int).map_err(|_| unconverted(&given[0], &Type::Int)),
        _ => no_overload(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be in range; the fraction is cut off, as in Go"
)]
fn to_uint(given: &[Value]) -> Given {
    let overflow = || "unsigned integer overflow".to_owned();
    match given {
        [Value::Double(value)] if *value >= 0.0 && *value < 18_446_744_073_709_551_615.0 => {
            Ok(Value::Uint(*value as u64))
        }
        [Value::Double(_)] => Err(overflow()),
        [Value::Int(value)] => u64::try_from(*value).map(Value::Uint).map_err(|_| overflow()),
        [Value::Text(text)] => text.parse().map(Value::Uint).map_err(|_| unconverted(&given[0], &Type::Uint)),
        _ => no_overload(),
    }
}

fn to_text(given: &[Value]) -> Given {
    match &given[0] {
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::text(text)),
            Err(_) => Err("invalid UTF-8 in bytes, cannot convert to string".to_owned()),
        },
        value => Ok(Value::text(shown(value))),
    }
}

/// A scalar as text, without quotes.
pub(in crate::cluster::cel) fn shown(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => float(*value),
        Value::Text(text) => text.to_string(),
        Value::Timestamp(time) => time.to_string(),
        Value::Duration(nanos) => time::seconds(*nanos),
        Value::Ip(address) => address.to_string(),
        Value::Cidr(address, bits) => format!("{address}/{bits}"),
        Value::Type(of) => of.runtime_name(),
        other => format!("{other:?}"),
    }
}

/// A float as Go's `%g` writes it.
pub(super) fn float(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e21).contains(&magnitude) {
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    value.to_string()
}

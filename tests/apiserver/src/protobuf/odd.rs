//! Writes the types of the API whose message differs from their JSON; the reverse of `values.rs`.
//!
//! Answers: which bytes are this time, quantity, raw JSON? Each function writes the inside of one message.
//! 1. An empty time is an empty message, as in Go.
//! 2. Times keep whole seconds or microseconds, as Go's types do.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;

use super::wire::{put_bytes, put_number};

pub(super) fn integer(value: &Value) -> i64 {
    value.as_i64().or_else(|| value.as_f64().map(|number| number as i64)).unwrap_or_default()
}

pub(super) fn bytes(value: &Value) -> Vec<u8> {
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

pub(super) fn time(value: &Value, out: &mut Vec<u8>) {
    if let Some(moment) = moment(value) {
        at(parts(moment).0, 0, out);
    }
}

pub(super) fn micro_time(value: &Value, out: &mut Vec<u8>) {
    if let Some((seconds, nanos)) = moment(value).map(parts) {
        at(seconds, nanos / 1_000 * 1_000, out);
    }
}

pub(super) fn duration(value: &Value, out: &mut Vec<u8>) {
    put_number(out, 1, nanoseconds(value.as_str().unwrap_or_default()).cast_unsigned());
}

/// A span as Go prints it, `1h0m5.5s` or `20µs`, in nanoseconds.
fn nanoseconds(text: &str) -> i64 {
    let (sign, mut rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let mut sum = 0_i128;
    while let Some(end) = rest.find(|c: char| !c.is_ascii_digit() && c != '.') {
        let (number, tail) = rest.split_at(end);
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let scale: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return 0,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let fraction = &fraction[..fraction.len().min(18)];
        let part = fraction.parse().unwrap_or(0_i128) * scale / 10_i128.pow(fraction.len() as u32);
        sum += whole.parse().unwrap_or(0_i128) * scale + part;
        rest = tail;
    }
    i64::try_from(sum * sign).unwrap_or_default()
}

pub(super) fn quantity(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::String(text) => put_bytes(out, 1, text.as_bytes()),
        Value::Number(number) => put_bytes(out, 1, number.to_string().as_bytes()),
        _ => put_bytes(out, 1, b"0"),
    }
}

pub(super) fn int_or_string(value: &Value, out: &mut Vec<u8>) {
    let text = value.as_str();
    put_number(out, 1, u64::from(text.is_some()));
    put_number(out, 2, if text.is_some() { 0 } else { integer(value).cast_unsigned() });
    put_bytes(out, 3, text.unwrap_or_default().as_bytes());
}

pub(super) fn raw(value: &Value, out: &mut Vec<u8>) {
    if !value.is_null() {
        put_bytes(out, 1, value.to_string().as_bytes());
    }
}

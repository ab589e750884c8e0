//! JSON as Go reads and writes it, where Rust does it otherwise.
//!
//! Answers: which error text does broken JSON get? Clients show it to users, who search for it. What becomes of a text that
//! is not Unicode, and of a number?
//! 1. The place and the kind of a fault come from serde; only the text is Go's. A fault without a counterpart in Go
//!    has serde's text.
use std::io;

use bytes::Bytes;
use serde_json::ser::Formatter;
use serde_json::{Number, Value};

/// A syntax error with the text of `encoding/json`.
pub(crate) fn syntax(text: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let line = text.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let Some(found) = line.get(error.column().saturating_sub(1)) else { return error.to_string() };
    let message = error.to_string();
    let after = [
        ("expected value", "looking for beginning of value"),
        ("key must be a string", "looking for beginning of object key string"),
        ("expected `:`", "after object key"),
        ("expected `,` or `}`", "after object key:value pair"),
        ("expected `,` or `]`", "after array element"),
        ("trailing characters", "after top-level value"),
    ];
    let context = after.iter().find(|(begin, _)| message.starts_with(begin)).map(|(_, context)| *context);
    context.map_or(message, |context| format!("invalid character {} {context}", quoted(*found)))
}

/// A byte as Go quotes it: taken for a code point, in single quotes.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0x07 => r"'\a'".to_owned(),
        0x08 => r"'\b'".to_owned(),
        0x0b => r"'\v'".to_owned(),
        0x0c => r"'\f'".to_owned(),
        0..=0x1f | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

/// Go's name for the type of a value in "cannot unmarshal ...".
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A number of a custom object as Go reads and writes it again: whole ones without a fraction, and those that do not fit
/// 64 bits with the digits of their nearest float.
pub(crate) fn number(number: &Number) -> Number {
    if number.is_i64() {
        return number.clone();
    }
    let float = number.as_f64().unwrap_or_default();
    serde_json::from_str(&float_text(float)).unwrap_or_else(|_| number.clone())
}

/// The same for all numbers in a value.
pub(crate) fn numbers(value: &mut Value) {
    match value {
        Value::Number(found) => *found = number(found),
        Value::Array(items) => items.iter_mut().for_each(numbers),
        Value::Object(members) => members.values_mut().for_each(numbers),
        _ => {}
    }
}

/// A float as `encoding/json` writes it.
fn float_text(float: f64) -> String {
    let size = float.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if (1e-6..1e21).contains(&size) {
        return float.to_string();
    }
    let text = format!("{float:e}");
    if text.contains("e-") { text } else { text.replace('e', "e+") }
}

/// Writes JSON with the floats of Go.
#[derive(Debug)]
pub(crate) struct Floats;

impl Formatter for Floats {
    fn write_f64<W: io::Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(float_text(value).as_bytes())
    }
}

/// A JSON text whose strings are Unicode, as Go reads it: a byte that belongs to no character, and half a pair of
/// surrogates, count as U+FFFD.
pub(crate) fn mended(text: Bytes) -> Bytes {
    let half =
        |at: usize| surrogate(&text, at).is_some_and(|first| !is_pair(first, surrogate(&text, at + 6)));
    if std::str::from_utf8(&text).is_ok() && !escapes(&text).any(half) {
        return text;
    }
    let mut mended = Vec::with_capacity(text.len() + 16);
    let mut left = &text[..];
    while !left.is_empty() {
        let chunk = left.utf8_chunks().next();
        let valid = chunk.map_or(0, |chunk| chunk.valid().len());
        mended.extend_from_slice(&left[..valid]);
        left = &left[valid..];
        if let Some((_, rest)) = left.split_first() {
            mended.extend_from_slice("\u{fffd}".as_bytes());
            left = rest;
        }
    }
    let places: Vec<usize> = escapes(&mended).collect();
    let mut end_of_pair = 0;
    for at in places {
        let Some(first) = surrogate(&mended, at).filter(|_| at >= end_of_pair) else { continue };
        if is_pair(first, surrogate(&mended, at + 6)) {
            end_of_pair = at + 12;
        } else {
            mended[at..at + 6].copy_from_slice(b"\\ufffd");
        }
    }
    mended.into()
}

/// The places of the escaped characters of a JSON text.
fn escapes(text: &[u8]) -> impl Iterator<Item = usize> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let found = at + text.get(at..)?.iter().position(|byte| *byte == b'\\')?;
        at = found + 2;
        Some(found)
    })
}

/// The surrogate that is escaped at this place.
fn surrogate(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u16::from_str_radix(digits, 16).ok().filter(|code| (0xd800..=0xdfff).contains(code))
}

fn is_pair(first: u16, second: Option<u16>) -> bool {
    first < 0xdc00 && second.is_some_and(|second| second >= 0xdc00)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::syntax;

    #[test]
    fn broken_json_is_refused_with_the_text_of_go() {
        for (text, told) in [
            (&b"\x9e"[..], r"invalid character '\u009e' looking for beginning of value"),
            (b"{\"a\" 1}", "invalid character '1' after object key"),
            (b"{\"a\":1 '}", r"invalid character '\'' after object key:value pair"),
            (b"{\"a\":1", "unexpected end of JSON input"),
            (b"[1 \x01]", r"invalid character '\x01' after array element"),
            (b"{} x", "invalid character 'x' after top-level value"),
        ] {
            let error = serde_json::from_slice::<Value>(text).expect_err("it is broken");
            assert_eq!(syntax(text, &error), told);
        }
    }
}

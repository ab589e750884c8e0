//! The errors of Go's JSON decoder for a text that it cannot read.
//!
//! Answers: which error text does broken JSON get? Clients show it to users, who search for it.
//! 1. The place and the kind of a fault come from serde; only the text is Go's. A fault without a counterpart in Go
//!    has serde's text.
use serde_json::Value;

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

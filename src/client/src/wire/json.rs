//! The JSON encoding: a list is one document, a watch has one event on each line. One scanner finds the ends of values
//! (`block.rs`, `value_scanner.rs`, `cursor.rs`).
//!
//! 1. A scan does not check what it passes. Bytes that are kept without decoding are checked with [`is_document`].
//! 2. A decoding error shows no value, which serde_json's message quotes: it may be a password. The message of a type's own
//!    decoder may quote its input, and is not shown.
//! 3. The error has at most about 250 characters, whatever the document and its keys.

mod block;
mod cursor;
mod cut;
mod event;
mod identify;
mod lengths;
mod place;
mod shown;
mod split;
mod value_scanner;

use std::fmt;

use informer_core::words::shortened;
use serde::de::IgnoredAny;

pub(crate) use cursor::Cursor;
pub(crate) use cut::{Cut, LeftOut, cut, scan};
pub(crate) use event::{Event, EventType, INITIAL_EVENTS_END, bookmark, event, event_head, parsed_event};
pub(crate) use identify::{annotations, generation, identify, labels, member, metadata, owners};
pub(crate) use lengths::from_text;
pub(crate) use shown::{field_bytes, shown};
pub(crate) use split::BracketSplitter;

use super::{Form, RequestedContent};

pub(super) const MEDIA_TYPE: &str = "application/json";

pub(super) fn accept(content: RequestedContent, form: Form) -> &'static str {
    match (content, form) {
        (RequestedContent::Objects, _) => MEDIA_TYPE,
        (RequestedContent::Metadata, Form::List) => {
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
        }
        (RequestedContent::Metadata, Form::Object) => {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        }
    }
}

pub(super) fn is_document(bytes: &[u8]) -> bool {
    document(bytes).is_ok()
}

pub(super) fn document(bytes: &[u8]) -> Result<(), JsonError> {
    let IgnoredAny = serde_json::from_slice(bytes).map_err(|error| JsonError::from(&error))?;
    Ok(())
}

/// For a path, and for what was expected.
const MAX_PART_CHARS: usize = 100;
/// In front of the value in messages of serde and serde_json.
const VALUE_TYPES: [&str; 12] = [
    "boolean",
    "integer",
    "floating point",
    "character",
    "string",
    "byte array",
    "null",
    "unit value",
    "Option value",
    "sequence",
    "map",
    "enum",
];

/// Why a text does not decode: the field, the types, line and column; never the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    path: Option<String>,
    reason: String,
    line: usize,
    column: usize,
}

impl JsonError {
    /// The path of the field, such as `spec.containers[0].image`. `None` if it is not known, or for the whole
    /// text.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// With the field's path. Linear in the text.
    pub(crate) fn in_text(json: &str, error: &serde_json::Error) -> Self {
        Self::at(&place::path_at(json.as_bytes(), (error.line(), error.column())), error)
    }

    pub(crate) fn at(path: &str, error: &serde_json::Error) -> Self {
        let path = Some(path).filter(|path| !matches!(*path, "" | "." | "?"));
        Self { path: path.map(|path| shortened(path, MAX_PART_CHARS)), ..Self::from(error) }
    }

    pub(crate) fn not_text() -> Self {
        Self { path: None, reason: "it is not UTF-8".to_owned(), line: 0, column: 0 }
    }
}

impl From<&serde_json::Error> for JsonError {
    fn from(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let message = text.rsplit_once(" at line ").map_or(&*text, |(message, _)| message);
        // Only errors about data quote values; those about syntax are fixed texts.
        let reason =
            if error.is_data() { without_value(message) } else { shortened(message, MAX_PART_CHARS) };
        Self { path: None, reason, line: error.line(), column: error.column() }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{path}: ")?;
        }
        f.write_str(&self.reason)?;
        match self.line {
            0 => Ok(()),
            line => write!(f, " (line {line}, column {})", self.column),
        }
    }
}

impl std::error::Error for JsonError {}

/// What was expected is a text of the Rust type and comes last.
pub(super) fn without_value(message: &str) -> String {
    let expected = |separator: &str| {
        let expected =
            message.rsplit_once(separator).map(|(_, expected)| shortened(expected, MAX_PART_CHARS));
        expected.map(|expected| format!(", expected {expected}")).unwrap_or_default()
    };
    for begin in ["invalid type: ", "invalid value: "] {
        if let Some(rest) = message.strip_prefix(begin) {
            let found = VALUE_TYPES.into_iter().find(|name| rest.starts_with(name)).unwrap_or("another one");
            return format!("{begin}{found}{}", expected(", expected "));
        }
    }
    for begin in ["unknown variant", "unknown field"] {
        if message.starts_with(begin) {
            return format!("{begin}{}", expected("`, expected "));
        }
    }
    if message.starts_with("invalid length ") {
        return format!("invalid length{}", expected(", expected "));
    }
    let quotes_a_field_name = ["missing field `", "duplicate field `"].into_iter().any(|begin| {
        let name = message.strip_prefix(begin).and_then(|rest| rest.strip_suffix('`'));
        name.is_some_and(|name| {
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-$.".contains(&byte))
        })
    });
    if quotes_a_field_name {
        shortened(message, MAX_PART_CHARS)
    } else {
        "its type does not accept the value".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only decoded")]
    struct Thing {
        count: u8,
        kind: Kind,
        #[serde(default, deserialize_with = "refuses_every_value")]
        own: (),
    }

    #[derive(Debug, Deserialize)]
    enum Kind {
        A,
        B,
    }

    fn refuses_every_value<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
        let text = String::deserialize(deserializer)?;
        Err(serde::de::Error::custom(format!("{text:?} is not good")))
    }

    #[test]
    fn the_error_shows_types_fields_and_positions_and_no_values() {
        for (json, shown) in [
            (r#"{"count":"hunter2"}"#, "invalid type: string, expected u8 (line 1, column 18)"),
            (r#"{"count":"x, expected hunter2"}"#, "invalid type: string, expected u8 (line 1, column 30)"),
            (r#"{"count":70000}"#, "invalid value: integer, expected u8 (line 1, column 14)"),
            (r#"{"count":1,"kind":"hunter2"}"#, "unknown variant, expected `A` or `B` (line 1, column 27)"),
            (r#"{"hunter2":1}"#, "unknown field, expected one of `count`, `kind`, `own` (line 1, column 10)"),
            (r#"{"count":1}"#, "missing field `kind` (line 1, column 11)"),
            (r#"{"own":"hunter2"}"#, "its type does not accept the value (line 1, column 17)"),
            (r#"{"count":hunter2}"#, "expected value (line 1, column 10)"),
            (r#"["hunter2"]"#, "invalid type: string, expected u8 (line 1, column 10)"),
        ] {
            let error = serde_json::from_str::<Thing>(json).unwrap_err();
            assert_eq!(JsonError::from(&error).to_string(), shown, "{json}");
        }
    }

    #[test]
    fn the_length_of_the_error_does_not_grow_with_the_document() {
        let long = "x".repeat(1 << 20);
        let error = serde_json::from_str::<u8>(&format!("{long:?}")).unwrap_err();
        assert!(JsonError::at(&long, &error).to_string().chars().count() < 256);
    }
}

//! Why a document does not fit, without a word of what stands in it.
//!
//! Answers "which field, what was found there, what was expected?" A parser's own words quote the value, which may be
//! a password, and grow with it. Invariants:
//! 1. No value of the document is told: of what was found only its form (`string`, `map`), of what an own decoder of a
//!    type says nothing at all, since it may quote what it was given.
//! 2. At most some 250 characters, however large the document and its keys are.
//!
//! Read next: `prune.rs`, which finds the path.

use std::fmt;

use crate::text::shortened;

/// At most this much of a path, and of what was expected.
const PART: usize = 100;
/// The forms that serde and serde_json name in front of a value.
const FORMS: [&str; 12] = [
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

/// Why a text is not the JSON that was asked for: the field, the forms, the place; never the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    path: Option<String>,
    what: String,
    line: usize,
    column: usize,
}

impl JsonError {
    /// The path of the field, such as `spec.containers[0].image`; `None` where it is not known, or for the whole text.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    pub(crate) fn at(path: &str, error: &serde_json::Error) -> Self {
        let path = Some(path).filter(|path| !matches!(*path, "" | "." | "?"));
        Self { path: path.map(|path| shortened(path, PART)), ..Self::from(error) }
    }
}

impl From<&serde_json::Error> for JsonError {
    fn from(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let words = text.rsplit_once(" at line ").map_or(&*text, |(words, _)| words);
        // Only errors about data quote it; those about syntax are fixed texts.
        let what = if error.is_data() { without_value(words) } else { shortened(words, PART) };
        Self { path: None, what, line: error.line(), column: error.column() }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{path}: ")?;
        }
        f.write_str(&self.what)?;
        match self.line {
            0 => Ok(()),
            line => write!(f, " (line {line}, column {})", self.column),
        }
    }
}

impl std::error::Error for JsonError {}

/// serde's words without the value between them. What is expected is a text of the type and stands last.
fn without_value(words: &str) -> String {
    let expected = |separator: &str| {
        let tail =
            words.rsplit_once(separator).map(|(_, tail)| format!(", expected {}", shortened(tail, PART)));
        tail.unwrap_or_default()
    };
    for begin in ["invalid type: ", "invalid value: "] {
        if let Some(rest) = words.strip_prefix(begin) {
            let form = FORMS.into_iter().find(|form| rest.starts_with(form)).unwrap_or("another one");
            return format!("{begin}{form}{}", expected(", expected "));
        }
    }
    for begin in ["unknown variant", "unknown field"] {
        if words.starts_with(begin) {
            return format!("{begin}{}", expected("`, expected "));
        }
    }
    if words.starts_with("invalid length ") {
        return format!("invalid length{}", expected(", expected "));
    }
    let of_the_type = ["missing field `", "duplicate field `"].into_iter().any(|begin| {
        let name = words.strip_prefix(begin).and_then(|rest| rest.strip_suffix('`'));
        name.is_some_and(|name| {
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-$.".contains(&byte))
        })
    });
    if of_the_type { shortened(words, PART) } else { "its type does not accept the value".to_owned() }
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
        #[serde(default, deserialize_with = "picky")]
        own: (),
    }

    #[derive(Debug, Deserialize)]
    enum Kind {
        A,
        B,
    }

    fn picky<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
        let text = String::deserialize(deserializer)?;
        Err(serde::de::Error::custom(format!("{text:?} is not good")))
    }

    #[test]
    fn forms_fields_and_places_are_told_and_values_are_not() {
        for (json, told) in [
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
            assert_eq!(JsonError::from(&error).to_string(), told, "{json}");
        }
    }

    #[test]
    fn what_is_told_does_not_grow_with_the_document() {
        let long = "x".repeat(1 << 20);
        let error = serde_json::from_str::<u8>(&format!("{long:?}")).unwrap_err();
        assert!(JsonError::at(&long, &error).to_string().chars().count() < 256);
    }
}

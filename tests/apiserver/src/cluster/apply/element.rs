//! One step of a path into an object: a field by name, a list item by its keys or by its value, or an index.
//!
//! Answers: which child is meant, in which order are steps sorted, and how are they written for machines (`f:name`,
//! `k:{"name":"a"}`, `v:"x"`, `i:0`) and for people (`.name`, `[name="a"]`, `[="x"]`, `[0]`)?
//! 1. Fields come before keys, keys before values, values before indices; each in the order of its content.
//! 2. Numbers are compared as numbers, so `1` and `1.0` are one key.
//!
//! Next: `set.rs` makes sets of paths of these.
use std::cmp::Ordering;
use std::fmt::{self, Write as _};

use serde_json::{Number, Value};

use crate::cluster::definition::escaped;
use crate::cluster::go_json::number;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Element {
    Field(Box<str>),
    Key(Box<[(Box<str>, Datum)]>),
    Item(Datum),
    Index(i64),
}

/// A JSON value with an order, as keys need one.
#[derive(Debug, Clone)]
pub(crate) struct Datum(pub(crate) Value);

/// Why a text is not an element.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ElementError {
    #[error("{0:?} is too short for a path element")]
    Short(String),
    #[error("{0:?} has no colon after its type")]
    NoColon(String),
    #[error("{0:?} does not hold what its type says")]
    Content(String),
}

impl Element {
    pub(crate) fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// Reads the form of machines. None for an unknown type of element, which a later version may have added.
    ///
    /// # Errors
    /// If the text is not of this form.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, ElementError> {
        let wrong = || ElementError::Content(text.to_owned());
        let (Some(kind), Some(colon)) = (text.as_bytes().first(), text.as_bytes().get(1)) else {
            return Err(ElementError::Short(text.to_owned()));
        };
        if *colon != b':' {
            return Err(ElementError::NoColon(text.to_owned()));
        }
        let content = &text[2..];
        Ok(Some(match kind {
            b'f' => Self::field(content),
            b'v' => Self::Item(Datum(serde_json::from_str(content).map_err(|_| wrong())?)),
            b'i' => Self::Index(content.parse().map_err(|_| wrong())?),
            b'k' => {
                let Ok(Value::Object(fields)) = serde_json::from_str(content) else { return Err(wrong()) };
                // The map of serde_json is ordered by name, as keys must be.
                Self::Key(fields.into_iter().map(|(name, value)| (name.into(), Datum(value))).collect())
            }
            _ => return Ok(None),
        }))
    }

    /// Writes the form of machines, without quotes around it.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Self::Field(name) => {
                out.push_str("f:");
                out.push_str(name);
            }
            Self::Key(fields) => {
                out.push_str("k:{");
                for (at, (name, value)) in fields.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    write_text(name, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
            Self::Item(value) => {
                out.push_str("v:");
                value.write(out);
            }
            Self::Index(index) => {
                let _infallible = write!(out, "i:{index}");
            }
        }
    }
}

/// Writes a text as Go's JSON, with its quotes.
pub(crate) fn write_text(text: &str, out: &mut String) {
    if text.bytes().all(|byte| byte >= b' ' && !b"\"\\<>&".contains(&byte)) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&escaped(&serde_json::to_string(text).expect("a text always encodes")));
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                for (at, (name, value)) in fields.iter().enumerate() {
                    write!(f, "{}{name}={value}", if at == 0 { "[" } else { "," })?;
                }
                f.write_str(if fields.is_empty() { "[]" } else { "]" })
            }
            Self::Item(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl Datum {
    fn write(&self, out: &mut String) {
        match &self.0 {
            Value::String(text) => write_text(text, out),
            Value::Number(given) => out.push_str(&number(given).to_string()),
            other => {
                let _infallible = write!(out, "{other}");
            }
        }
    }

    /// The rank of this kind of value.
    fn rank(&self) -> u8 {
        match self.0 {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Ord for Datum {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Value::Number(one), Value::Number(other)) => compare_numbers(one, other),
            (Value::String(one), Value::String(other)) => one.cmp(other),
            (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
            // Lists and maps are never keys; they only need some order.
            (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => {
                self.0.to_string().cmp(&other.0.to_string())
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Datum {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Datum {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Datum {}

pub(crate) fn compare_numbers(one: &Number, other: &Number) -> Ordering {
    let integer =
        |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => {
            let float = |number: &Number| number.as_f64().unwrap_or(f64::NAN);
            float(one).partial_cmp(&float(other)).unwrap_or(Ordering::Equal)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_has_a_form_for_machines_and_one_for_people() {
        for (machine, people) in [
            ("f:data", ".data"),
            ("f:", "."),
            (r#"k:{"name":"a"}"#, r#"[name="a"]"#),
            (r#"k:{"containerPort":80,"protocol":"TCP"}"#, r#"[containerPort=80,protocol="TCP"]"#),
            (r#"v:"x""#, r#"[="x"]"#),
            ("v:1", "[=1]"),
            ("i:7", "[7]"),
        ] {
            let element = Element::parse(machine).unwrap().unwrap();
            let mut written = String::new();
            element.write(&mut written);
            assert_eq!((written.as_str(), element.to_string().as_str()), (machine, people));
        }
    }

    #[test]
    fn a_text_that_is_not_an_element_is_refused_and_an_unknown_type_is_skipped() {
        for wrong in ["", "f", "fx", "k:1", "k:{", "v:", "i:x"] {
            assert!(Element::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Element::parse("z:later").unwrap().is_none());
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        let item = |text: &str| Element::parse(text).unwrap().unwrap();
        assert_eq!(item("v:1"), item("v:1.0"));
        assert!(item("v:9") < item("v:10"));
        assert!(item("f:z") < item(r#"k:{"a":1}"#));
    }
}

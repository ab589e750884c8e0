//! `fieldsV1`: the form in which a set of fields stands in `metadata.managedFields`.
//!
//! Answers: which set does this JSON contain, and how is a set written? A member without anything below it is `{}`;
//! one with something below it holds `".": {}` beside that.
//! 1. Reading what was written gives the same set.
//! 2. Elements of an unknown type are skipped, with all below them.
//!
//! Next: `managed.rs` puts manager, operation and time around it.
use serde_json::{Map, Value};

use super::element::{Element, ElementError, write_text};
use super::set::FieldSet;

const SELF: &str = ".";

/// Why a value is not `fieldsV1`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FieldsError {
    #[error("a set of fields is a JSON object")]
    NotAnObject,
    #[error("cannot read a path element")]
    Element(#[from] ElementError),
}

/// Reads a set.
///
/// # Errors
/// If the value is not of this form.
pub(crate) fn decode(value: &Value) -> Result<FieldSet, FieldsError> {
    match value {
        Value::Null => Ok(FieldSet::default()),
        Value::Object(fields) => level(fields),
        _ => Err(FieldsError::NotAnObject),
    }
}

fn level(fields: &Map<String, Value>) -> Result<FieldSet, FieldsError> {
    let mut set = FieldSet::default();
    for (text, below) in fields {
        if text == SELF {
            continue;
        }
        let Some(element) = Element::parse(text)? else { continue };
        let children = decode(below)?;
        let member = children.is_empty() || below.get(SELF).is_some();
        set.insert(element, member, children);
    }
    Ok(set)
}

/// Writes a set.
pub(crate) fn encode(set: &FieldSet, out: &mut String) {
    let mut text = String::new();
    encode_level(set, false, out, &mut text);
}

fn encode_level(set: &FieldSet, member: bool, out: &mut String, text: &mut String) {
    out.push('{');
    let mut first = true;
    if member && !set.is_empty() {
        out.push_str("\".\":{}");
        first = false;
    }
    for node in set.nodes() {
        if !std::mem::take(&mut first) {
            out.push(',');
        }
        text.clear();
        node.element.write(text);
        write_text(text, out);
        out.push(':');
        encode_level(&node.children, node.member, out, text);
    }
    out.push('}');
}

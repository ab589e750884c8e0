//! The values at a path in an object's JSON, without decoding the object.
//!
//! Answers "which texts are at this path?" by a walk that passes everything else by its brackets. Invariants:
//! 1. Of one JSON document without repeated keys it finds what a parser finds; of any other bytes it finds something, and
//!    never panics.
//!
//! Read next: `wire/field_path.rs`, what a value is.

use super::Cursor;
use crate::wire::PathStep;

/// Appends the values at this path.
pub(crate) fn scan(json: &[u8], path: &[PathStep], values: &mut Vec<String>) {
    // What is cut off or invalid gives `None`; the values before that are there.
    let _ = walk(&mut Cursor::new(json), path, values);
}

/// Moves past one value and appends what is at the path in it.
fn walk(cursor: &mut Cursor<'_>, path: &[PathStep], values: &mut Vec<String>) -> Option<()> {
    match (path.split_first(), cursor.peek()?) {
        (None, _) => {
            values.extend(scalar(cursor.value()?));
            Some(())
        }
        (Some((PathStep::Field(name), rest)), b'{') => cursor.members(|key, cursor| {
            match is_named(key, name) {
                true => walk(cursor, rest, values)?,
                false => drop(cursor.value()?),
            }
            Some(true)
        }),
        (Some((PathStep::Elements, rest)), b'[') => {
            cursor.eat(b'[')?;
            while cursor.peek()? != b']' {
                walk(cursor, rest, values)?;
                if cursor.eat(b',').is_none() {
                    break;
                }
            }
            cursor.eat(b']')
        }
        (Some(_), _) => cursor.value().map(drop),
    }
}

fn is_named(key: &[u8], name: &str) -> bool {
    key == name.as_bytes() || key.contains(&b'\\') && Cursor::unescape(key).is_some_and(|key| key == name)
}

/// The text of a string, a number or a boolean.
fn scalar(json: &[u8]) -> Option<String> {
    match json.first()? {
        b'"' => serde_json::from_slice(json).ok(),
        b'{' | b'[' | b'n' => None,
        b't' | b'f' => serde_json::from_slice::<bool>(json).ok().map(|value| value.to_string()),
        _ => serde_json::from_slice::<serde_json::Number>(json).ok().map(|number| number.to_string()),
    }
}

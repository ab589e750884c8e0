//! JSON patch (RFC 6902) as the API server's library implements it, which differs from the RFC in some points.
//!
//! Answers: what does a document look like after these operations, or does one of them fail?
//! 1. `replace` of a member that is not there adds it; `test` of one succeeds against null; a missing value is null.
//! 2. Text before the first slash of a path is ignored; the whole document can only be replaced.
//! 3. Indices count from the end if negative; `-` is after the last item.
//! 4. If one operation fails the patch fails, and the real server does not say which.
use serde_json::{Map, Value};

use super::apply::same;

/// How many operations a patch may have.
pub(crate) const MOST_OPERATIONS: usize = 10_000;

/// An operation that could not be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failed;

type Operation = Map<String, Value>;

/// Applies the operations in their order.
///
/// # Errors If one cannot be applied; the document is then invalid.
pub(crate) fn apply(document: &mut Value, operations: &[Operation]) -> Result<(), Failed> {
    operations.iter().try_for_each(|operation| apply_one(document, operation))
}

fn apply_one(document: &mut Value, operation: &Operation) -> Result<(), Failed> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let value = || operation.get("value").cloned().unwrap_or_default();
    let path = text("path").ok_or(Failed)?;
    match text("op") {
        Some("add") => Place::find(document, path)?.add(value()),
        Some("remove") => Place::find(document, path)?.remove().map(drop),
        Some("replace") if path.is_empty() => {
            *document = value();
            Ok(())
        }
        Some("replace") => Place::find(document, path)?.replace(value()),
        Some("move") => {
            let moved = Place::find(document, text("from").ok_or(Failed)?)?.remove()?;
            Place::find(document, path)?.add(moved)
        }
        Some("copy") => {
            let copied = Place::find(document, text("from").ok_or(Failed)?)?.get()?.cloned();
            Place::find(document, path)?.add(copied.unwrap_or_default())
        }
        Some("test") => {
            let there = Place::find(document, path)?.get()?.cloned().unwrap_or_default();
            if same(&there, &value()) { Ok(()) } else { Err(Failed) }
        }
        _ => Err(Failed),
    }
}

/// A member of a container, existing or not.
enum Place<'d> {
    Member(&'d mut Map<String, Value>, String),
    Item(&'d mut Vec<Value>, String),
}

impl<'d> Place<'d> {
    fn find(document: &'d mut Value, path: &str) -> Result<Self, Failed> {
        let names: Vec<String> =
            path.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
        let (last, way) = names.split_last().ok_or(Failed)?;
        let mut at = document;
        for name in way {
            at = match at {
                Value::Object(members) => members.get_mut(name).ok_or(Failed)?,
                Value::Array(items) => {
                    let index = position(name, items.len())?;
                    items.get_mut(index).ok_or(Failed)?
                }
                _ => return Err(Failed),
            };
        }
        match at {
            Value::Object(members) => Ok(Self::Member(members, last.clone())),
            Value::Array(items) => Ok(Self::Item(items, last.clone())),
            _ => Err(Failed),
        }
    }

    fn get(&self) -> Result<Option<&Value>, Failed> {
        match self {
            Self::Member(members, name) => Ok(members.get(name)),
            Self::Item(items, index) => items.get(position(index, items.len())?).map(Some).ok_or(Failed),
        }
    }

    fn add(self, value: Value) -> Result<(), Failed> {
        match self {
            Self::Member(members, name) => {
                members.insert(name, value);
            }
            Self::Item(items, index) => {
                let end = items.len();
                let at = if index == "-" { end } else { position(&index, end + 1)? };
                if at > end {
                    return Err(Failed);
                }
                items.insert(at, value);
            }
        }
        Ok(())
    }

    fn replace(self, value: Value) -> Result<(), Failed> {
        match self {
            Self::Member(members, name) => {
                members.insert(name, value);
            }
            Self::Item(items, index) => {
                let at = position(&index, items.len())?;
                *items.get_mut(at).ok_or(Failed)? = value;
            }
        }
        Ok(())
    }

    fn remove(self) -> Result<Value, Failed> {
        match self {
            Self::Member(members, name) => members.remove(&name).ok_or(Failed),
            Self::Item(items, index) => {
                let at = position(&index, items.len())?;
                if at < items.len() { Ok(items.remove(at)) } else { Err(Failed) }
            }
        }
    }
}

/// The position an index means in a list of `length` items.
fn position(index: &str, length: usize) -> Result<usize, Failed> {
    let index: i64 = index.parse().map_err(|_| Failed)?;
    let from_end = i64::try_from(length).map_err(|_| Failed)? + index;
    usize::try_from(if index < 0 { from_end } else { index }).map_err(|_| Failed)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Failed, apply};

    fn patched(mut document: Value, operations: &Value) -> Result<Value, Failed> {
        let operations: Vec<_> =
            operations.as_array().unwrap().iter().map(|one| one.as_object().unwrap().clone()).collect();
        apply(&mut document, &operations).map(|()| document)
    }

    #[test]
    fn api_25_operations_work_as_in_the_api() {
        let document = || json!({"a": {"b": "1", "x/y": "2"}, "l": [1, 2]});
        for (operation, at, expected) in [
            (json!({"op": "add", "path": "/a/c", "value": "3"}), "/a/c", json!("3")),
            (json!({"op": "add", "path": "a/c", "value": "3"}), "/c", json!("3")),
            (json!({"op": "add", "path": "/a/c"}), "/a/c", json!(null)),
            (json!({"op": "add", "path": "/l/0", "value": 0}), "/l", json!([0, 1, 2])),
            (json!({"op": "add", "path": "/l/-", "value": 3}), "/l", json!([1, 2, 3])),
            (json!({"op": "replace", "path": "/a/none", "value": "3"}), "/a/none", json!("3")),
            (json!({"op": "replace", "path": "/a/x~1y", "value": "3"}), "/a/x~1y", json!("3")),
            (json!({"op": "replace", "path": "/l/-1", "value": 3}), "/l", json!([1, 3])),
            (json!({"op": "remove", "path": "/l/0"}), "/l", json!([2])),
            (json!({"op": "move", "from": "/a/b", "path": "/b"}), "/b", json!("1")),
            (json!({"op": "copy", "from": "/a/none", "path": "/b"}), "/b", json!(null)),
            (json!({"op": "test", "path": "/l/1", "value": 2.0}), "/l", json!([1, 2])),
            (json!({"op": "test", "path": "/a/none"}), "/l", json!([1, 2])),
        ] {
            let found = patched(document(), &json!([operation])).unwrap();
            assert_eq!(found.pointer(at), Some(&expected), "{operation}");
        }
        for operation in [
            json!({"op": "remove", "path": "/a/none"}),
            json!({"op": "remove", "path": ""}),
            json!({"op": "remove", "path": "/l/2"}),
            json!({"op": "add", "path": "/l/3", "value": 0}),
            json!({"op": "add", "path": "/none/x", "value": 0}),
            json!({"op": "replace", "path": "/l/2", "value": 0}),
            json!({"op": "move", "from": "/a/none", "path": "/b"}),
            json!({"op": "test", "path": "/a/b", "value": "2"}),
            json!({"op": "jump", "path": "/a"}),
            json!({"op": "add"}),
        ] {
            assert_eq!(patched(document(), &json!([operation])), Err(Failed), "{operation}");
        }
    }
}

//! A patched document as a real server quotes it: members in the order of Go's types, or sorted in the parts that the
//! patch has changed.
//!
//! Answers: in which order are the members of this document? The patch is applied elsewhere.
//! 1. What is stored is written from Go's types, field by field; a map is sorted.
//! 2. A patch turns the containers on its path into maps, whose members are sorted; so are its own values.
//! 3. Custom objects are maps at every level.
//!
//! Next: `protobuf/table.rs` has the fields in Go's order.
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::kind::Kind;
use super::patch::PatchKind;
use crate::protobuf::Fields;

/// The parts that a patch has touched.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Opened {
    members: BTreeMap<String, Self>,
    /// Whether the patch set the value here.
    brought: bool,
}

impl Opened {
    /// The path of a patch through a document; only the document itself for a patch that cannot be read.
    pub(super) fn by(language: PatchKind, patch: &[u8]) -> Self {
        let patch: Value = serde_json::from_slice(patch).unwrap_or_default();
        let mut opened = Self::default();
        match (language, &patch) {
            (PatchKind::Json, Value::Array(operations)) => {
                operations.iter().for_each(|operation| opened.open(operation));
            }
            (PatchKind::Merge, Value::Object(members)) => opened.merge(members),
            _ => {}
        }
        opened
    }

    /// The touched parts of an item; `-` is an item that the patch has appended.
    fn item(&self, at: usize, count: usize) -> Option<&Self> {
        let last = self.members.get("-").filter(|_| at + 1 == count);
        last.or_else(|| self.members.get(&at.to_string()))
    }

    fn merge(&mut self, patch: &Map<String, Value>) {
        for (name, value) in patch {
            let member = self.members.entry(name.clone()).or_default();
            match value {
                Value::Object(members) => member.merge(members),
                _ => member.brought = true,
            }
        }
    }

    fn open(&mut self, operation: &Value) {
        let brings = matches!(operation["op"].as_str(), Some("add" | "replace" | "copy" | "move"));
        for (from, brings) in [("from", false), ("path", brings)] {
            let Some((way, last)) = operation[from].as_str().and_then(|path| path.rsplit_once('/')) else {
                continue;
            };
            let mut at = &mut *self;
            for name in way.split('/').skip(1) {
                at = at.members.entry(unescaped(name)).or_default();
            }
            if brings {
                at.members.entry(unescaped(last)).or_default().brought = true;
            }
        }
    }
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

/// The text of a document of this kind after a patch that has touched these parts.
pub(super) fn text(kind: &Kind, document: &Value, opened: &Opened) -> String {
    let fields = Fields::of_kind(&kind.api_version(), &kind.kind).filter(|_| !kind.custom);
    let mut out = String::new();
    write(&mut out, document, fields, Some(opened));
    out
}

fn write(out: &mut String, value: &Value, fields: Option<Fields>, opened: Option<&Opened>) {
    let fields = fields.filter(|_| !opened.is_some_and(|opened| opened.brought));
    match value {
        Value::Object(members) => {
            let names = match opened {
                Some(_) => members.keys().map(String::as_str).collect(),
                None => ordered(members, fields),
            };
            out.push('{');
            for (at, name) in names.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_plain(out, &Value::from(name));
                out.push(':');
                let below = opened.and_then(|opened| opened.members.get(name));
                write(out, &members[name], fields.and_then(|fields| fields.below(name)), below);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                let below = opened.and_then(|opened| opened.item(at, items.len()));
                write(out, item, fields, below);
            }
            out.push(']');
        }
        plain => push_plain(out, plain),
    }
}

/// Go's fields first; unknown members follow unchanged.
fn ordered(members: &Map<String, Value>, fields: Option<Fields>) -> Vec<&str> {
    let place = |name: &str| fields.and_then(|fields| fields.place(name)).unwrap_or(usize::MAX);
    let mut names: Vec<&str> = members.keys().map(String::as_str).collect();
    names.sort_by_key(|name| place(name));
    names
}

/// A text or a number, with what could be HTML escaped.
fn push_plain(out: &mut String, value: &Value) {
    for letter in value.to_string().chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::builtin;

    fn quoted(language: PatchKind, patch: &Value) -> String {
        let maps = builtin::kinds().find(|kind| kind.resource.is("", "configmaps")).unwrap();
        let entry = json!({"fieldsType": "FieldsV1", "manager": "m"});
        let document = json!({"data": {"b": "<", "a": "1"}, "kind": "ConfigMap",
            "metadata": {"labels": {"z": "1", "a": "2"}, "managedFields": [entry], "name": "n", "uid": "u"}});
        text(&maps, &document, &Opened::by(language, patch.to_string().as_bytes()))
    }

    #[test]
    fn api_25_parts_that_a_patch_has_not_touched_have_the_order_of_go() {
        let told = r#"{"data":{"a":"1","b":"\u003c"},"kind":"ConfigMap","metadata":{"name":"n","uid":"u","labels":{"a":"2","z":"1"},"managedFields":[{"manager":"m","fieldsType":"FieldsV1"}]}}"#;
        assert_eq!(quoted(PatchKind::Merge, &json!({"data": {"a": "1"}})), told);
        let add = json!([{"op": "add", "path": "/data/a", "value": "1"}]);
        assert_eq!(quoted(PatchKind::Json, &add), told);
    }

    #[test]
    fn api_25_parts_that_a_patch_has_touched_are_sorted() {
        let told = r#"{"data":{"a":"1","b":"\u003c"},"kind":"ConfigMap","metadata":{"labels":{"a":"2","z":"1"},"managedFields":[{"manager":"m","fieldsType":"FieldsV1"}],"name":"n","uid":"u"}}"#;
        assert_eq!(quoted(PatchKind::Merge, &json!({"metadata": {"uid": "u"}})), told);
        let test = json!([{"op": "test", "path": "/metadata/uid", "value": "u"}]);
        assert_eq!(quoted(PatchKind::Json, &test), told);
    }
}

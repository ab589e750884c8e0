//! The forms in which an object leaves the server as JSON: whole, its metadata only, or as the row of a Table.
//!
//! Answers: which bytes represent this object in a list, a watch line, an answer? Other languages are in
//! `encoding.rs`.
//! 1. An object's own bytes are copied; only a kind stored in another shape is encoded again (`convert.rs`).
//! 2. `Form::Metadata` is `PartialObjectMetadata` of meta.k8s.io/v1, in lists, watches and bookmarks alike.
//! 3. A Table has its columns before its rows; one object alone is a Table of one row.
//!
//! Next: `encoding.rs`; `http/accept.rs` reads the form from the Accept header.
use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Map, Value, json};

use super::convert;
use super::kind::Kind;
use super::object::Object;
use super::printer::TableForm;

/// How an object is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Full,
    Metadata,
    Table(TableForm),
}

impl Form {
    fn body<'a>(self, kind: &Kind, object: &'a Object) -> Cow<'a, [u8]> {
        match self {
            Self::Full => object.body_in(kind),
            Self::Metadata | Self::Table(_) => Cow::Borrowed(object.metadata_only()),
        }
    }

    /// `"kind":..,"apiVersion":..,` as it is written before the members of one object.
    fn type_prefix(self, kind: &Kind) -> String {
        match self {
            Self::Full => format!("\"kind\":\"{}\",\"apiVersion\":\"{}\",", kind.kind, kind.api_version()),
            Self::Metadata => {
                "\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",".to_owned()
            }
            Self::Table(table) => format!("\"kind\":\"Table\",\"apiVersion\":\"{}\",", table.api_version()),
        }
    }

    /// What is written before each object in a list: built-ins have no type there, the other kinds do.
    pub(crate) fn item_prefix(self, kind: &Kind) -> String {
        match self {
            Self::Full if !kind.custom => String::new(),
            Self::Table(_) => String::new(),
            _ => self.type_prefix(kind),
        }
    }

    /// One object of a list, written after the type prefix that `item_prefix` gave.
    pub(crate) fn put_item(self, out: &mut BytesMut, kind: &Kind, prefix: &str, object: &Object) {
        match self {
            Self::Table(table) => out.put_slice(table.row(kind, object).as_bytes()),
            _ => put_with_prefix(out, prefix, &self.body(kind, object)),
        }
    }

    pub(crate) fn item_len(self, kind: &Kind, prefix: &str, object: &Object) -> usize {
        self.body(kind, object).len() + prefix.len()
    }

    /// One whole object, as GET answers it.
    pub(crate) fn object(self, kind: &Kind, object: &Object) -> Bytes {
        if let Self::Table(table) = self {
            let metadata = json!({"resourceVersion": object.revision.to_string()});
            return Bytes::from(self.table(kind, &metadata, &table.row(kind, object)));
        }
        let (prefix, body) = (self.type_prefix(kind), self.body(kind, object));
        let mut out = BytesMut::with_capacity(prefix.len() + body.len());
        put_with_prefix(&mut out, &prefix, &body);
        out.freeze()
    }

    /// What is written before the items of a list.
    pub(crate) fn list_head(self, kind: &Kind, metadata: &Value) -> String {
        let (list_kind, api_version) = match self {
            Self::Full => (kind.list_kind.as_str(), kind.api_version()),
            Self::Metadata => ("PartialObjectMetadataList", "meta.k8s.io/v1".to_owned()),
            Self::Table(table) => {
                let (prefix, columns) = (self.type_prefix(kind), table.columns(kind));
                return format!(
                    "{{{prefix}\"metadata\":{metadata},\"columnDefinitions\":{columns},\"rows\":["
                );
            }
        };
        format!(
            "{{\"kind\":\"{list_kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":["
        )
    }

    /// A Table of one row.
    fn table(self, kind: &Kind, metadata: &Value, row: &str) -> String {
        format!("{}{row}]}}", self.list_head(kind, metadata))
    }
}

fn put_with_prefix(out: &mut BytesMut, prefix: &str, body: &[u8]) {
    out.put_u8(b'{');
    out.put_slice(prefix.as_bytes());
    out.put_slice(&body[1..]);
}

/// The line of a watch event about `object`, with its newline.
pub(crate) fn watch_line(event_type: &str, kind: &Kind, object: &Object, form: Form) -> Bytes {
    if let Form::Table(_) = form {
        let table = form.object(kind, object);
        return Bytes::from(
            [format!("{{\"type\":\"{event_type}\",\"object\":").as_bytes(), &table, b"}\n"].concat(),
        );
    }
    let (prefix, body) = (form.type_prefix(kind), form.body(kind, object));
    let mut out = BytesMut::with_capacity(body.len() + prefix.len() + 40);
    out.put_slice(b"{\"type\":\"");
    out.put_slice(event_type.as_bytes());
    out.put_slice(b"\",\"object\":");
    put_with_prefix(&mut out, &prefix, &body);
    out.put_slice(b"}\n");
    out.freeze()
}

/// A bookmark at `revision`; `initial_end` adds the annotation that ends a watch-list's first part.
pub(crate) fn bookmark_line(kind: &Kind, form: Form, revision: u64, initial_end: bool) -> Bytes {
    if let Form::Table(table) = form {
        let metadata = json!({"resourceVersion": revision.to_string()});
        let table = form.table(kind, &metadata, &table.bookmark_row(kind, revision, initial_end));
        return Bytes::from(format!("{{\"type\":\"BOOKMARK\",\"object\":{table}}}\n"));
    }
    let mut annotations = Map::new();
    if form == Form::Full && convert::counts_templates(kind) {
        annotations.insert(convert::TEMPLATES.into(), json!("0"));
    }
    if initial_end {
        annotations.insert("k8s.io/initial-events-end".into(), json!("true"));
    }
    let annotations = if annotations.is_empty() {
        String::new()
    } else {
        format!(",\"annotations\":{}", Value::Object(annotations))
    };
    let zero = match form {
        Form::Full if !kind.zero.is_empty() => format!(",{}", kind.zero),
        _ => String::new(),
    };
    let prefix = form.type_prefix(kind);
    Bytes::from(format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{{prefix}\"metadata\":{{\"resourceVersion\":\"{revision}\"{annotations}}}{zero}}}}}\n"
    ))
}

/// An ERROR event that carries a Status.
pub(crate) fn error_line(status: &Value) -> Bytes {
    Bytes::from(format!("{}\n", json!({"type": "ERROR", "object": status})))
}

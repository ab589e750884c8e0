//! One stored object: its JSON encoded once, and the few values that can be read without decoding it.
//!
//! Answers: what are the bytes of this object, and which values do selectors see? It is never changed: a write creates
//! a new one.
//! 1. `body` is a JSON object in the stored shape (`convert.rs`), without `kind` and `apiVersion` (as lists of
//!    built-ins need it; other answers put a prefix before it).
//! 2. `metadata.resourceVersion` in `body` equals `revision`.
//! 3. `fields` are in the order of `Kind::fields` of the stored kind.
//!
//! Next: `history.rs`, where objects become events.
use std::borrow::Cow;
use std::sync::OnceLock;

use bytes::Bytes;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::convert;
use super::go_json;
use super::kind::Kind;
use super::metadata::{drop_type, member, set_type, set_version};
use super::rules;
use crate::protobuf::answer::{self, Type};

/// An immutable object with its encoding.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) namespace: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) uid: Box<str>,
    pub(crate) revision: u64,
    pub(crate) labels: Box<[(Box<str>, Box<str>)]>,
    pub(crate) fields: Box<[Box<str>]>,
    pub(crate) body: Bytes,
    /// Whether the stored bytes are read differently now, so that writing the same again is a change.
    pub(crate) reread: bool,
    metadata_only: OnceLock<Bytes>,
    messages: OnceLock<Box<Messages>>,
}

/// The object in protobuf: whole and its metadata, each made at its first use.
#[derive(Debug, Default)]
struct Messages {
    full: OnceLock<Option<Bytes>>,
    metadata: OnceLock<Bytes>,
}

#[derive(Deserialize)]
struct MetadataOnly<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
}

impl Object {
    /// Encodes `value` at `revision`; `kind` and `apiVersion` are dropped, the version is written in.
    pub(crate) fn encode(kind: &Kind, mut value: Value, revision: u64) -> Self {
        set_version(&mut value, revision);
        drop_type(&mut value);
        convert::into_stored(kind, &mut value);
        let labels = match value.pointer("/metadata/labels") {
            Some(Value::Object(map)) => {
                map.iter().map(|(name, value)| (name.as_str().into(), text(value))).collect()
            }
            _ => Box::default(),
        };
        Self {
            namespace: member(&value, "namespace").into(),
            name: member(&value, "name").into(),
            uid: member(&value, "uid").into(),
            revision,
            labels,
            fields: convert::stored_fields(kind)
                .into_iter()
                .map(|at| value.pointer(&at).map_or_else(|| rules::unset(kind, &at).into(), text))
                .collect(),
            body: exact(encoded(&Stored(&value))),
            reread: false,
            metadata_only: OnceLock::new(),
            messages: OnceLock::new(),
        }
    }

    /// The object in its stored shape as a JSON value, without `kind` and `apiVersion`. Costs a parse.
    pub(crate) fn decode(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body was encoded by this crate")
    }

    /// The object in the shape of this kind, without `kind` and `apiVersion`.
    pub(crate) fn decode_in(&self, kind: &Kind) -> Value {
        let mut value = self.decode();
        convert::from_stored(kind, &mut value);
        value
    }

    /// The bytes of the object as this kind shows it: its own, or, if it is stored in another form, new ones.
    pub(crate) fn body_in(&self, kind: &Kind) -> Cow<'_, [u8]> {
        if !convert::is_converted(kind) {
            return Cow::Borrowed(&self.body);
        }
        Cow::Owned(serde_json::to_vec(&self.decode_in(kind)).expect("a JSON value always encodes"))
    }

    /// The object as a JSON value with its `kind` and `apiVersion`.
    pub(crate) fn decode_as(&self, kind: &Kind) -> Value {
        let mut value = self.decode_in(kind);
        set_type(&mut value, &kind.api_version(), &kind.kind);
        value
    }

    /// The same state with another version: what a DELETED event carries.
    pub(crate) fn stamped(&self, kind: &Kind, revision: u64) -> Self {
        Self::encode(kind, self.decode(), revision)
    }

    /// `{"metadata":{...}}`: the body of a `PartialObjectMetadata`. Made once, at the first use.
    pub(crate) fn metadata_only(&self) -> &Bytes {
        self.metadata_only.get_or_init(|| {
            let parsed: MetadataOnly<'_> =
                serde_json::from_slice(&self.body).expect("every stored object has metadata");
            Bytes::from(format!("{{\"metadata\":{}}}", parsed.metadata.get()))
        })
    }

    /// The protobuf message of this object as `kind`, or of its metadata only; none for a kind without messages.
    ///
    /// Made once for the version it is stored in, else each time.
    pub(crate) fn message(&self, kind: &Kind, metadata_only: bool) -> Option<Bytes> {
        let messages = || self.messages.get_or_init(Box::default);
        if metadata_only {
            let metadata = || answer::metadata_message(&self.decode()["metadata"]);
            return Some(messages().metadata.get_or_init(metadata).clone());
        }
        let told = Type { api_version: &kind.api_version(), kind: &kind.kind };
        let full = || answer::message(told, &self.decode_in(kind));
        if convert::is_converted(kind) || kind.version != kind.stored_version {
            return full();
        }
        messages().full.get_or_init(full).clone()
    }

    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| &**label == name).map(|(_, value)| &**value)
    }
}

fn encoded(value: &Stored<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    let mut json = serde_json::Serializer::with_formatter(&mut body, go_json::Floats);
    value.serialize(&mut json).expect("a JSON value always encodes");
    body
}

/// The bytes without spare capacity, which would be kept as long as the object is stored.
fn exact(bytes: Vec<u8>) -> Bytes {
    Bytes::from(bytes.into_boxed_slice())
}

/// An object whose `metadata.managedFields` may be an encoded text, which is written unchanged.
struct Stored<'a>(&'a Value);

struct Metadata<'a>(&'a Map<String, Value>, &'a RawValue);

impl Serialize for Stored<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = self.0.pointer("/metadata/managedFields").and_then(Value::as_str);
        let (Some(root), Some(entries)) = (self.0.as_object(), entries) else {
            return self.0.serialize(serializer);
        };
        let entries: &RawValue = serde_json::from_str(entries).map_err(serde::ser::Error::custom)?;
        serializer.collect_map(root.iter().map(|(name, value)| match value {
            Value::Object(metadata) if name == "metadata" => {
                (name, Member::Metadata(Metadata(metadata, entries)))
            }
            other => (name, Member::Plain(other)),
        }))
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Member<'a> {
    Metadata(Metadata<'a>),
    Plain(&'a Value),
    Raw(&'a RawValue),
}

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| {
            (name, if name == "managedFields" { Member::Raw(self.1) } else { Member::Plain(value) })
        }))
    }
}

fn text(value: &Value) -> Box<str> {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Null => "".into(),
        other => other.to_string().into(),
    }
}

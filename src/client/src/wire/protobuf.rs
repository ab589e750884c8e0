//! The protobuf encoding of built-in kinds. Everything has a length in front, so a list is split, and a field is passed or cut,
//! without a look at its bytes.
//!
//! 1. `messages.txt` holds all knowledge of kinds (made from the Go types).
//! 2. What is read of a message is what is read of the JSON that Go writes for it: the same values, the same fields left out.
//! 3. Whatever the bytes are, the result is a value or an error: no panic, bounded depth and number of values.
//! 4. An error shows no value: it may be a password.

mod cut;
mod decode;
mod identify;
mod json;
mod reader;
mod scan;
mod split;
mod table;
#[cfg(test)]
mod tests;
mod values;

use std::fmt;

use informer_core::words::shortened;
use serde::Deserialize;
use serde::de::{DeserializeOwned, DeserializeSeed as _};

pub(crate) use identify::kind_of;
pub(super) use identify::{
    annotations, bookmark, event, event_head, generation, has_types, identify, labels, metadata, owners,
};
pub(crate) use split::LengthSplitter;
pub use table::ProtobufKind;

use super::json::without_value;
use super::{Form, PathStep, RequestedContent};
use crate::wire::FieldTree;
use decode::{Context, Object};
use identify::{Opened, enveloped, open};
use reader::Reader;
use table::TABLE;

pub(super) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// A server without protobuf of the kind, or a proxy, answers JSON.
pub(super) fn accept(content: RequestedContent, form: Form) -> &'static str {
    match (content, form) {
        (RequestedContent::Objects, _) => "application/vnd.kubernetes.protobuf,application/json",
        (RequestedContent::Metadata, Form::List) => {
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
        }
        (RequestedContent::Metadata, Form::Object) => {
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Fault {
    #[error("the bytes end within a field")]
    Truncated,
    #[error("the bytes are no protobuf message")]
    WireType,
    #[error("a field has another encoding than its type")]
    Mismatch,
    #[error("raw bytes that are not JSON")]
    NotJson,
    #[error("a time out of range")]
    Time,
    #[error("a number that JSON does not have")]
    Number,
    #[error("neither a number nor a text")]
    IntOrString,
    #[error("messages are nested too deeply")]
    TooDeep,
    #[error("too many values")]
    TooMany,
    #[error("a kind that has no known protobuf message")]
    UnknownKind,
    #[error("an event without a type or an object")]
    NoEvent,
    #[error("no metadata.resourceVersion")]
    NoVersion,
}

/// For a path, and for what was expected.
const MAX_PART_CHARS: usize = 100;

/// Why a protobuf message does not decode: the field and the types; never the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtobufError {
    path: Option<String>,
    reason: String,
}

impl ProtobufError {
    /// The path of the field, such as `spec.containers[0].image`. `None` if it is not known, or for the whole
    /// message.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// With a path of bounded length.
    fn brief(self) -> Self {
        Self { path: self.path.map(|path| shortened(&path, MAX_PART_CHARS)), ..self }
    }

    /// Adds the step of the message around.
    #[cold]
    fn within(self, step: &Step<'_>) -> Self {
        let rest = self.path.unwrap_or_default();
        let dot = if rest.is_empty() || rest.starts_with('[') { "" } else { "." };
        let path = match step {
            Step::Member(name) => format!("{name}{dot}{rest}"),
            Step::Entry(key) => format!("{}{dot}{rest}", String::from_utf8_lossy(key)),
            Step::Item(number) => format!("[{number}]{dot}{rest}"),
        };
        Self { path: Some(path), ..self }
    }
}

/// Where a value is in its message.
#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Member(&'a str),
    Entry(&'a [u8]),
    Item(usize),
}

impl From<Fault> for ProtobufError {
    fn from(fault: Fault) -> Self {
        Self { path: None, reason: fault.to_string() }
    }
}

impl fmt::Display for ProtobufError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{path}: ")?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for ProtobufError {}

impl serde::de::Error for ProtobufError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { path: None, reason: without_value(&message.to_string()) }
    }
}

/// Whether its fields and those of its metadata can be passed one by one. No other object can hide in it: its length came before
/// it.
pub(super) fn is_document(kind: ProtobufKind, object: &[u8]) -> bool {
    let passes = |bytes| {
        let mut reader = Reader::new(bytes);
        while reader.field()?.is_some() {}
        Ok::<_, Fault>(())
    };
    let opened = open(kind, object);
    opened.is_ok_and(|opened| passes(opened.raw).is_ok())
        && metadata(object).is_none_or(|metadata| passes(metadata).is_ok())
}

fn read<'de, T>(
    opened: Opened<'de>,
    visit: impl FnOnce(Object<'_, 'de>) -> Result<T, ProtobufError>,
) -> Result<T, ProtobufError> {
    let context = Context::new();
    let Opened { api_version, kind, message, raw } = opened;
    visit(Object { context: &context, message, raw, types: Some((kind, api_version)) })
        .map_err(ProtobufError::brief)
}

impl ProtobufKind {
    pub(crate) fn decode<T: DeserializeOwned>(
        self,
        object: &[u8],
        fields: &FieldTree,
    ) -> Result<T, ProtobufError> {
        let mut rest = Vec::new();
        read(self.open_without(object, fields, &mut rest)?, |object| T::deserialize(object))
    }

    /// As Go writes it.
    pub(crate) fn text(self, object: &[u8], fields: &FieldTree) -> Result<String, ProtobufError> {
        let mut rest = Vec::new();
        let opened = self.open_without(object, fields, &mut rest)?;
        let mut text = Vec::with_capacity(opened.raw.len() * 2);
        read(opened, |object| json::Writer(&mut text).deserialize(object))?;
        // The writer of JSON writes UTF-8.
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The object without these fields, in an envelope with its kind. The content of fields is not looked at.
    pub(crate) fn kept(self, object: &[u8], fields: &FieldTree) -> Result<Box<[u8]>, ProtobufError> {
        let Opened { api_version, kind, message, raw } = open(self, object)?;
        let mut out = Vec::with_capacity(object.len() + ENVELOPE_BYTES);
        enveloped((api_version, kind), &mut out, |out| cut::cut((message, raw), fields, 0, out))?;
        Ok(out.into())
    }

    /// `rest`: the bytes without the cut fields.
    fn open_without<'a>(
        self,
        object: &'a [u8],
        fields: &FieldTree,
        rest: &'a mut Vec<u8>,
    ) -> Result<Opened<'a>, ProtobufError> {
        let mut opened = open(self, object)?;
        if !fields.is_empty() {
            cut::cut((opened.message, opened.raw), fields, 0, rest)?;
            opened.raw = rest;
        }
        Ok(opened)
    }
}

pub(crate) fn decode_metadata<'de, T: Deserialize<'de>>(object: &'de [u8]) -> Result<T, ProtobufError> {
    let context = Context::new();
    let raw = metadata(object).unwrap_or_default();
    T::deserialize(Object { context: &context, message: TABLE.object_meta, raw, types: None })
        .map_err(ProtobufError::brief)
}

/// Most envelopes have fewer.
const ENVELOPE_BYTES: usize = 64;

/// If the bytes are no object, the values before the fault.
pub(crate) fn values_at(kind: ProtobufKind, object: &[u8], path: &[PathStep], values: &mut Vec<String>) {
    let Ok(opened) = open(kind, object) else { return };
    let _ = read(opened, |object| scan::ValuesAt { path, values }.deserialize(object));
}

/// Each with the bytes of its number, its length and its value.
pub(in crate::wire) fn field_bytes(kind: ProtobufKind, object: &[u8]) -> Option<Vec<(String, u64)>> {
    let opened = open(kind, object).ok()?;
    scan::field_bytes(opened.message, opened.raw).ok()
}

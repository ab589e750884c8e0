//! What is written around a message in an answer: the envelope of an object or a list, the frame of a watch event.
//!
//! Answers: which bytes does a client get for this object, list or event? The messages themselves are `encode.rs`.
//! 1. An envelope contains the type, then the message, then empty fields for its encoding and content type.
//! 2. A list's length is written before its items, so the messages of all items must be known when its head is
//!    written.
//! 3. An event is a message around an envelope, with its length in four bytes before it.
use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::{Map, Value};

use super::MAGIC;
use super::encode::Encoder;
use super::table::TABLE;
use super::wire::{put_bytes, put_message, put_varint, varint_len};

/// What ends an envelope: an empty `contentEncoding` and an empty `contentType`.
pub(crate) const TAIL: &[u8] = &[0x1a, 0, 0x22, 0];

/// The type of a message in its envelope.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Type<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
}

impl Type<'static> {
    /// The type of an object that is sent as metadata only.
    pub(crate) const METADATA: Self = Self { api_version: "meta.k8s.io/v1", kind: "PartialObjectMetadata" };
    pub(crate) const METADATA_LIST: Self =
        Self { api_version: "meta.k8s.io/v1", kind: "PartialObjectMetadataList" };
}

/// The message of an object of this type; none where the type has no message.
pub(crate) fn message(told: Type<'_>, object: &Value) -> Option<Bytes> {
    let place = TABLE.kind(told.api_version, told.kind)?;
    let mut out = Vec::new();
    Encoder::new(&TABLE).message(place, object.as_object()?, &mut out);
    Some(out.into())
}

/// The message of a `PartialObjectMetadata` with this metadata.
pub(crate) fn metadata_message(metadata: &Value) -> Bytes {
    let (none, mut out) = (Map::new(), Vec::new());
    let metadata = metadata.as_object().unwrap_or(&none);
    put_message(&mut out, 1, |out| Encoder::new(&TABLE).message(TABLE.metadata(false), metadata, out));
    out.into()
}

/// A message in its envelope.
pub(crate) fn enveloped(told: Type<'_>, message: &[u8]) -> Bytes {
    let mut out = head(told, message.len());
    out.extend_from_slice(message);
    out.extend_from_slice(TAIL);
    out.into()
}

/// The envelope up to a message of this length.
fn head(told: Type<'_>, len: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(len + 96);
    out.extend_from_slice(MAGIC);
    put_message(&mut out, 1, |out| {
        put_bytes(out, 1, told.api_version.as_bytes());
        put_bytes(out, 2, told.kind.as_bytes());
    });
    out.push(0x12);
    put_varint(&mut out, len as u64);
    out
}

/// A value that contains its own type, in its envelope; none where the type has no message.
pub(crate) fn value(value: &Value) -> Option<Bytes> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let told = Type { api_version: text("apiVersion"), kind: text("kind") };
    if let Some(message) = message(told, value) {
        return Some(enveloped(told, &message));
    }
    let item = Type { kind: told.kind.strip_suffix("List")?, ..told };
    let items: Option<Vec<Bytes>> =
        value.get("items")?.as_array()?.iter().map(|it| message(item, it)).collect();
    let items = items?;
    let mut out = list_head(
        told,
        value.get("metadata").unwrap_or(&Value::Null),
        items.iter().map(Bytes::len).map(item_len).sum(),
    );
    items.iter().for_each(|item| put_item(&mut out, item));
    out.put_slice(TAIL);
    Some(out.freeze())
}

/// What is written before the items of a list; `items` is the sum of their `item_len`.
pub(crate) fn list_head(told: Type<'_>, metadata: &Value, items: usize) -> BytesMut {
    let none = Map::new();
    let mut meta = Vec::new();
    let metadata = metadata.as_object().unwrap_or(&none);
    put_message(&mut meta, 1, |out| Encoder::new(&TABLE).message(TABLE.metadata(true), metadata, out));
    let mut out = head(told, meta.len() + items);
    out.extend_from_slice(&meta);
    BytesMut::from(out.as_slice())
}

/// How long an item of a list with a message of this length is.
pub(crate) fn item_len(message: usize) -> usize {
    1 + varint_len(message as u64) + message
}

pub(crate) fn put_item(out: &mut BytesMut, message: &[u8]) {
    let mut head = vec![0x12];
    put_varint(&mut head, message.len() as u64);
    out.put_slice(&head);
    out.put_slice(message);
}

/// About this many bytes after an envelope's `TAIL`, which readers skip.
pub(crate) fn padding(bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + 8);
    put_bytes(&mut out, 15, &vec![b' '; bytes]);
    out
}

/// An event of a watch about an object in its envelope.
pub(crate) fn event(event_type: &str, object: &[u8]) -> Bytes {
    let mut event = Vec::with_capacity(object.len() + 32);
    put_bytes(&mut event, 1, event_type.as_bytes());
    put_message(&mut event, 2, |out| put_bytes(out, 1, object));
    let mut out = BytesMut::with_capacity(event.len() + 4);
    out.put_u32(u32::try_from(event.len()).unwrap_or(u32::MAX));
    out.put_slice(&event);
    out.freeze()
}

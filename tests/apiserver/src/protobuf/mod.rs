//! The protobuf of built-in kinds: bodies are read into the JSON that a Go client would have sent, answers are written
//! from our JSON.
//!
//! Answers: what does this body contain, and which bytes does Go write for this object? The language is chosen
//! elsewhere.
//! 1. `messages.txt` holds all knowledge of kinds (generated from the Go types); the code knows only the format of a
//!    line.
//! 2. Whatever the bytes, the answer is a value or an error: no panic, bounded depth, bounded number of values.
//! 3. Zero values are left out or kept as Go's JSON does, so that a body means the same in both encodings.
//! 4. A written value reads back as the same value, and has the bytes that Go writes.
//!
//! Next: `table.rs` reads the table, `wire.rs` the bytes; `message.rs` and `values.rs` (the odd types) read, `encode.rs`
//! writes; `answer.rs` wraps objects, lists and events.
pub(crate) mod answer;
mod encode;
mod message;
mod table;
#[cfg(test)]
mod tests;
mod values;
pub(crate) mod wire;

use serde_json::Value;

use message::Decoder;
pub(crate) use table::{Field, Shape, TABLE};
use wire::{Reader, Wire};

/// Where a real server keeps its built-in types, as in its refusals.
pub(crate) const SCHEME: &str = " in scheme \"pkg/runtime/scheme.go:111\"";
const MAGIC: &[u8] = b"k8s\0";

/// Why a body cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtobufError {
    #[error("empty data")]
    Empty,
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Magic,
    #[error("unexpected EOF")]
    Truncated,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: illegal tag or wireType {0}")]
    WireType(u8),
    #[error("proto: wrong wireType for field {0}")]
    Mismatch(String),
    #[error("proto: {0}")]
    Unreadable(&'static str),
    #[error("proto: nested too deeply")]
    TooDeep,
    #[error("proto: too many values")]
    TooMany,
    #[error("no kind {kind:?} is registered for version {api_version:?}{}", SCHEME)]
    UnknownKind { api_version: String, kind: String },
}

/// Which part could not be read: clients get different texts for the two.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("the envelope cannot be read")]
    Envelope(#[source] ProtobufError),
    #[error("the message cannot be read as a {kind}")]
    Message {
        api_version: String,
        kind: String,
        #[source]
        error: ProtobufError,
    },
}

/// The envelope of a body.
#[derive(Debug, Default)]
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

/// The kind and version as which a body is read if it does not contain them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
}

/// Reads an answer, a list too.
///
/// # Errors
/// If it is not one of a built-in kind.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn decode_answer(body: &[u8]) -> Result<Value, Refused> {
    let Envelope { api_version, kind, raw } = envelope(body).map_err(Refused::Envelope)?;
    let item = kind.strip_suffix("List").and_then(|item| TABLE.kind(&api_version, item));
    let Some(item) = item.filter(|_| TABLE.kind(&api_version, &kind).is_none()) else {
        return decode(body, Expected { api_version: "", kind: "" });
    };
    let mut list = serde_json::Map::new();
    let mut items = Vec::new();
    let mut read = || {
        let mut reader = Reader::new(raw);
        while let Some((number, wire)) = reader.field()? {
            match (number, wire) {
                (1, Wire::Bytes(bytes)) => {
                    let metadata = Decoder::new(&TABLE).message(TABLE.metadata(true), bytes, 0)?;
                    list.insert("metadata".into(), metadata.into());
                }
                (2, Wire::Bytes(bytes)) => {
                    items.push(Value::Object(Decoder::new(&TABLE).message(item, bytes, 0)?));
                }
                _ => {}
            }
        }
        Ok(())
    };
    read().map_err(|error| Refused::Message {
        api_version: api_version.clone(),
        kind: kind.clone(),
        error,
    })?;
    list.insert("apiVersion".into(), api_version.into());
    list.insert("kind".into(), kind.into());
    list.insert("items".into(), items.into());
    Ok(Value::Object(list))
}

/// Reads a body: four magic bytes, an envelope (`runtime.Unknown`), and in it the message.
///
/// # Errors
/// If it is not such a body, or of a kind that is not built in.
pub(crate) fn decode(body: &[u8], expected: Expected<'_>) -> Result<Value, Refused> {
    let Envelope { mut api_version, mut kind, raw } = envelope(body).map_err(Refused::Envelope)?;
    if kind.is_empty() {
        expected.kind.clone_into(&mut kind);
    }
    if api_version.is_empty() {
        expected.api_version.clone_into(&mut api_version);
    }
    let unknown = || ProtobufError::UnknownKind { api_version: api_version.clone(), kind: kind.clone() };
    let place = TABLE.kind(&api_version, &kind).ok_or_else(unknown);
    let message = place.and_then(|place| Decoder::new(&TABLE).message(place, raw, 0));
    match message {
        Ok(mut object) => {
            object.insert("apiVersion".into(), api_version.into());
            object.insert("kind".into(), kind.into());
            Ok(Value::Object(object))
        }
        Err(error) => Err(Refused::Message { api_version, kind, error }),
    }
}

fn envelope(body: &[u8]) -> Result<Envelope<'_>, ProtobufError> {
    if body.is_empty() {
        return Err(ProtobufError::Empty);
    }
    let mut reader = Reader::new(body.strip_prefix(MAGIC).ok_or(ProtobufError::Magic)?);
    let mut envelope = Envelope::default();
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Bytes(meta)) => (envelope.api_version, envelope.kind) = type_meta(meta)?,
            (2, Wire::Bytes(bytes)) => envelope.raw = bytes,
            _ => {}
        }
    }
    Ok(envelope)
}

fn type_meta(bytes: &[u8]) -> Result<(String, String), ProtobufError> {
    let (mut api_version, mut kind) = (String::new(), String::new());
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => api_version = wire::text(bytes),
            (2, Wire::Bytes(bytes)) => kind = wire::text(bytes),
            _ => {}
        }
    }
    Ok((api_version, kind))
}

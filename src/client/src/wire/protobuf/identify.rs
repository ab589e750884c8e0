//! Reads the envelope of an object and the metadata of its message. All other fields are passed by their length.
//!
//! 1. Of incomplete bytes it returns what came before the cut; an incomplete text is absent.
//! 2. Of a repeated field the last one counts.
//! 3. An envelope is four bytes, then the kind and the message (`runtime.Unknown`). An object is a message in its envelope (an
//!    answer, the object of an event, a kept object), or the message alone (an item of a list). The first byte tells which: no
//!    message begins with that of an envelope.

use std::borrow::Cow;

use super::reader::{IsWhole, Reader, Wire, all_bytes, last_bytes, put_bytes, put_message};
use super::table::ProtobufKind;
use super::{Fault, ProtobufError};
use crate::wire::frame::{MetaScan, Owner};
use crate::wire::json::{Event, EventType, INITIAL_EVENTS_END};

pub(super) const MAGIC: &[u8] = b"k8s\0";

#[derive(Debug, Clone, Copy)]
pub(super) struct Opened<'a> {
    pub(super) api_version: &'a str,
    pub(super) kind: &'a str,
    /// The message's place in the table.
    pub(super) message: usize,
    pub(super) raw: &'a [u8],
}

/// `expected`: the kind without an envelope.
pub(super) fn open(expected: ProtobufKind, object: &[u8]) -> Result<Opened<'_>, Fault> {
    let Some(mut reader) = object.strip_prefix(MAGIC).map(Reader::new) else {
        let (api_version, kind) = (expected.api_version(), expected.kind());
        return Ok(Opened { api_version, kind, message: expected.message(), raw: object });
    };
    let (mut types, mut raw): (&[u8], &[u8]) = (&[], &[]);
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => types = bytes,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let api_version = type_text(types, 1).unwrap_or_else(|| expected.api_version());
    let kind = type_text(types, 2).unwrap_or_else(|| expected.kind());
    let found = ProtobufKind::of_types(api_version, kind).ok_or(Fault::UnknownKind)?;
    Ok(Opened { api_version, kind, message: found.message(), raw })
}

/// `None` if absent, empty, or not UTF-8.
pub(super) fn type_text(types: &[u8], number: u32) -> Option<&str> {
    let text = std::str::from_utf8(last_bytes(types, number)?).ok();
    text.filter(|text| !text.is_empty())
}

/// `None` if the bytes are no envelope of a known kind.
pub(crate) fn kind_of(kept: &[u8]) -> Option<ProtobufKind> {
    let types = last_bytes(kept.strip_prefix(MAGIC)?, 1)?;
    ProtobufKind::of_types(type_text(types, 1)?, type_text(types, 2)?)
}

/// Appends an envelope around what `write` writes.
pub(super) fn enveloped<T>(
    (api_version, kind): (&str, &str),
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> T,
) -> T {
    out.extend_from_slice(MAGIC);
    put_message(out, 1, |out| {
        put_bytes(out, 1, api_version.as_bytes());
        put_bytes(out, 2, kind.as_bytes());
    });
    put_message(out, 2, write)
}

const NAME: u32 = 1;
const NAMESPACE: u32 = 3;
const UID: u32 = 5;
const VERSION: u32 = 6;
const GENERATION: u32 = 7;
const LABELS: u32 = 11;
const ANNOTATIONS: u32 = 12;
const OWNERS: u32 = 13;

/// Allocates nothing.
pub(in crate::wire) fn identify(object: &[u8]) -> MetaScan<'_> {
    let mut found = MetaScan::default();
    let mut message = object;
    if let Some(inside) = object.strip_prefix(MAGIC) {
        let mut reader = Reader::new(inside);
        message = &[];
        while let Some((number, wire, is_whole)) = reader.field_or_part() {
            match (number, wire, is_whole) {
                (1, Wire::Bytes(types), true) => {
                    found.api_version = type_text(types, 1).map(Cow::Borrowed);
                    found.kind = type_text(types, 2).map(Cow::Borrowed);
                }
                (2, Wire::Bytes(bytes), _) => message = bytes,
                _ => {}
            }
        }
    }
    found.rest = metadata_or_part(message);
    let mut reader = Reader::new(found.rest.unwrap_or_default());
    while let Some((number, wire, is_whole)) = reader.field_or_part() {
        let text = text_of(wire, is_whole).map(Cow::Borrowed);
        match number {
            NAME => found.name = text,
            NAMESPACE => found.namespace = text.filter(|text| !text.is_empty()),
            UID => found.uid = text,
            VERSION => found.version = text,
            _ => {}
        }
    }
    found
}

fn metadata_or_part(message: &[u8]) -> Option<&[u8]> {
    let (mut reader, mut found) = (Reader::new(message), None);
    while let Some((number, wire, _)) = reader.field_or_part() {
        if let (1, Wire::Bytes(bytes)) = (number, wire) {
            found = Some(bytes);
        }
    }
    found
}

fn text_of(wire: Wire<'_>, is_whole: IsWhole) -> Option<&str> {
    match wire {
        Wire::Bytes(bytes) if is_whole => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

fn message_of(object: &[u8]) -> Option<&[u8]> {
    match object.strip_prefix(MAGIC) {
        Some(inside) => last_bytes(inside, 2),
        None => Some(object),
    }
}

pub(in crate::wire) fn metadata(object: &[u8]) -> Option<&[u8]> {
    last_bytes(message_of(object)?, 1)
}

pub(crate) fn has_types(object: &[u8]) -> bool {
    object.starts_with(MAGIC)
}

pub(in crate::wire) fn labels<'a>(
    found: &MetaScan<'a>,
) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + use<'a> {
    texts(found.rest.unwrap_or_default(), LABELS)
}

pub(in crate::wire) fn annotations(object: &[u8]) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    texts(metadata(object).unwrap_or_default(), ANNOTATIONS)
}

fn texts(metadata: &[u8], number: u32) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    let text = |bytes| std::str::from_utf8(bytes).ok().map(Cow::Borrowed);
    all_bytes(metadata, number).filter_map(move |entry| {
        Some((
            text(last_bytes(entry, 1).unwrap_or_default())?,
            text(last_bytes(entry, 2).unwrap_or_default())?,
        ))
    })
}

/// JSON leaves zero out.
pub(in crate::wire) fn generation(object: &[u8]) -> Option<i64> {
    let (mut reader, mut found) = (Reader::new(metadata(object)?), None);
    while let Some((number, wire)) = reader.field().ok()? {
        if let (GENERATION, Wire::Varint(value)) = (number, wire) {
            found = Some(value.cast_signed());
        }
    }
    found.filter(|generation| *generation != 0)
}

pub(in crate::wire) fn owners<'a>(found: &MetaScan<'a>) -> impl Iterator<Item = Owner<'a>> + use<'a> {
    all_bytes(found.rest.unwrap_or_default(), OWNERS).map(|bytes| {
        let (mut owner, mut reader) = (Owner::default(), Reader::new(bytes));
        while let Ok(Some((number, wire))) = reader.field() {
            let text = text_of(wire, true).map(Cow::Borrowed);
            match (number, wire) {
                (1, _) => owner.kind = text,
                (3, _) => owner.name = text,
                (4, _) => owner.uid = text,
                (5, _) => owner.api_version = text,
                (6, Wire::Varint(value)) => owner.is_controller = value != 0,
                _ => {}
            }
        }
        owner
    })
}

/// A frame is a `metav1.WatchEvent`, whose object has its own envelope.
pub(in crate::wire) fn event(frame: &[u8]) -> Result<Event<'_>, ProtobufError> {
    let (mut reader, mut event_type, mut object) = (Reader::new(frame), None, None);
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Bytes(text)) => event_type = Some(text),
            (2, Wire::Bytes(extension)) => object = last_bytes(extension, 1),
            _ => {}
        }
    }
    let (event_type, object) = event_type.zip(object).ok_or(Fault::NoEvent)?;
    Ok(Event { event_type: EventType::of(String::from_utf8_lossy(event_type)), object, is_certain: true })
}

/// Also for the first bytes of a frame.
pub(in crate::wire) fn event_head(head: &[u8]) -> Option<Event<'_>> {
    let (mut reader, mut event_type, mut object) = (Reader::new(head), None, None);
    while let Some((number, wire, is_whole)) = reader.field_or_part() {
        match (number, wire) {
            (1, Wire::Bytes(text)) if is_whole => event_type = Some(text),
            (2, Wire::Bytes(extension)) => {
                let inner = Reader::new(extension).field_or_part();
                object = inner.and_then(|found| match found {
                    (1, Wire::Bytes(object), _) => Some(object),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    let (event_type, object) = event_type.zip(object)?;
    Some(Event { event_type: EventType::of(String::from_utf8_lossy(event_type)), object, is_certain: true })
}

/// The version, and whether the initial events end.
pub(in crate::wire) fn bookmark(object: &[u8]) -> Result<(String, bool), ProtobufError> {
    let version = identify(object).version.ok_or(Fault::NoVersion)?.into_owned();
    let ends_initial_events =
        annotations(object).any(|(key, value)| key == INITIAL_EVENTS_END && value == "true");
    Ok((version, ends_initial_events))
}

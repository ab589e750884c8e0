//! The envelope of a body: four bytes, then what kind it is of and its message (`runtime.Unknown`).
//!
//! An object is either a message in its envelope (an answer, the object of an event, a kept object), or the message
//! alone (an item of a list). The first byte tells which: no message begins with that of an envelope.

use super::Fault;
use super::reader::{Reader, Wire, last_bytes, put_bytes, put_message};
use super::table::ProtobufKind;

pub(super) const MAGIC: &[u8] = b"k8s\0";

/// An object out of its envelope.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opened<'a> {
    pub(super) api_version: &'a str,
    pub(super) kind: &'a str,
    /// The place of its message in the table.
    pub(super) message: usize,
    pub(super) raw: &'a [u8],
}

/// `expected`: of which kind it is if it does not say.
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

/// `None` if it is not there, empty, or not UTF-8.
pub(super) fn type_text(types: &[u8], number: u32) -> Option<&str> {
    let text = std::str::from_utf8(last_bytes(types, number)?).ok();
    text.filter(|text| !text.is_empty())
}

/// Of which kind the bytes of a kept object are; `None` if they are no envelope of a known kind.
pub(crate) fn kind_of(kept: &[u8]) -> Option<ProtobufKind> {
    let types = last_bytes(kept.strip_prefix(MAGIC)?, 1)?;
    ProtobufKind::of_types(type_text(types, 1)?, type_text(types, 2)?)
}

/// Appends an envelope around the message that `write` writes.
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

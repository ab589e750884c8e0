//! Answers in other languages than JSON, read into JSON so that they can be compared member by member.
//!
//! Answers: what is the content of this body, in any language? It relies on the content type.
//! 1. A body that cannot be read in its language stays a text, or is shown as binary.
//! 2. Documents of OpenAPI in protobuf contain nothing specific to a run: they are compared byte for byte, by a
//!    checksum.
//! 3. Of YAML the value is compared, not the style.
use informer_apiserver::fuzzing;
use serde_json::{Value, json};

use super::wire::Head;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Whether an answer comes in protobuf.
pub(crate) fn is_protobuf(head: &Head) -> bool {
    head.header("content-type").is_some_and(|media| media.starts_with(PROTOBUF))
}

fn is_yaml(head: &Head) -> bool {
    head.header("content-type").is_some_and(|media| media.starts_with("application/yaml"))
}

/// The value of a body.
pub(crate) fn value(head: &Head, body: &[u8]) -> Value {
    if head.header("content-type").is_some_and(|media| media.contains("proto-openapi")) {
        return json!({"bytes": body.len(), "checksum": crc32fast::hash(body)});
    }
    let read = if is_protobuf(head) {
        fuzzing::protobuf_answer(body)
    } else if is_yaml(head) {
        fuzzing::yaml(body)
    } else {
        serde_json::from_slice(body).ok()
    };
    read.unwrap_or_else(|| text(body))
}

fn text(body: &[u8]) -> Value {
    match std::str::from_utf8(body) {
        Ok(text) if !text.contains('\0') => text.into(),
        _ => "(binary)".into(),
    }
}

/// An event of a watch in protobuf: its type, and an object in an envelope.
pub(crate) fn event(frame: &[u8]) -> Value {
    let read = || {
        let (event_type, rest) = field(1, frame)?;
        let (extension, _) = field(2, rest)?;
        let (object, _) = field(1, extension)?;
        let event_type = String::from_utf8_lossy(event_type);
        Some(json!({"type": event_type, "object": fuzzing::protobuf_answer(object)?}))
    };
    read().unwrap_or_else(|| "(unreadable)".into())
}

/// The first field of a message, which must have this number and a length, and the rest.
fn field(number: u8, message: &[u8]) -> Option<(&[u8], &[u8])> {
    let (tag, rest) = message.split_first()?;
    let end = rest.iter().position(|byte| *byte < 0x80)?;
    let length = rest[..=end].iter().rev().fold(0, |length, byte| length << 7 | usize::from(byte & 0x7f));
    let (value, rest) = rest[end + 1..].split_at_checked(length)?;
    (*tag == number << 3 | 2).then_some((value, rest))
}

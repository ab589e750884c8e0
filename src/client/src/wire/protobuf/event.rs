//! Reads one frame of a watch: `metav1.WatchEvent`, whose object is in an envelope of its own.

use super::reader::{Reader, Wire, last_bytes};
use super::{Fault, ProtobufError, annotations, identify};
use crate::wire::json::{Event, EventType, INITIAL_EVENTS_END};

pub(crate) fn event(frame: &[u8]) -> Result<Event<'_>, ProtobufError> {
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

/// Also of a frame of which only the first bytes were kept.
pub(crate) fn event_head(head: &[u8]) -> Option<Event<'_>> {
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
pub(crate) fn bookmark(object: &[u8]) -> Result<(String, bool), ProtobufError> {
    let version = identify(object).version.ok_or(Fault::NoVersion)?.into_owned();
    let ends_initial_events =
        annotations(object).any(|(key, value)| key == INITIAL_EVENTS_END && value == "true");
    Ok((version, ends_initial_events))
}

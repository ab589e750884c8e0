//! Decides what one event of a watch means. If the split by position (`wire/json/event.rs`) returns neither
//! an object nor a bookmark, a parser splits the event again; its split is used if the object has another
//! length.
//!
//! 1. The object of an unknown event type, or of an event above the limit, counts as undecodable: a GET of
//!    the object follows.
//! 2. Only an event that names no object, or is no document, ends the watch: a line that has lost its newline
//!    holds two events, and only a list brings the second one back.

use std::sync::Arc;

use informer_core::delta::{Undecodable, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::ResourceVersion;
use informer_core::words::shortened;

use super::decode::{Decoding, Observed, unreadable};
use crate::error::status;
use crate::representation::Representation;
use crate::wire::{Event, EventType, Frame};

const MAX_EVENT_TYPE_CHARS: usize = 40;

type Part<S> = Result<WatchPart<S>, ListWatchError>;

impl<R: Representation> Decoding<'_, R> {
    /// An error ends the watch.
    pub(crate) fn event(&self, frame: &Frame) -> Part<R::Body> {
        let bytes = match frame {
            Frame::Whole(bytes) => bytes,
            Frame::Oversize { head, size } => return self.oversize_event(head, *size),
        };
        let unreadable = |error| ListWatchError::Unreadable(unreadable(&error, bytes));
        let event = self.wire.event(bytes).map_err(unreadable)?;
        let part = self.part(&event);
        if event.is_certain || proves_split(&part) {
            return part;
        }
        match self.wire.parsed_event(bytes) {
            Ok(parsed) if parsed.object.len() != event.object.len() => self.part(&parsed),
            _ => part,
        }
    }

    fn part(&self, event: &Event<'_>) -> Part<R::Body> {
        let object = event.object;
        match &event.event_type {
            EventType::Added | EventType::Modified => match self.scanned(object)? {
                Observed::Object(applied) => {
                    self.note_state(&applied, object, false);
                    Ok(WatchPart::Applied(applied))
                }
                Observed::Undecodable(undecodable) => Ok(WatchPart::Undecodable(undecodable)),
                Observed::Passed(version) => Ok(passing(version)),
                Observed::Unreadable(why) | Observed::NotADocument(why) => {
                    Err(ListWatchError::Unreadable(why))
                }
            },
            // A known object is decoded, too: the event brings its last state.
            EventType::Deleted => {
                match self.decoder.decoding(self.wire, &self.known.anew()).scanned(object)? {
                    Observed::Object(last) => {
                        self.note_state(&last, object, true);
                        Ok(WatchPart::Deleted(last))
                    }
                    Observed::Undecodable(undecodable) => Ok(WatchPart::DeletedUndecodable(undecodable)),
                    Observed::Passed(version) => Ok(passing(version)),
                    Observed::Unreadable(why) | Observed::NotADocument(why) => {
                        Err(ListWatchError::Unreadable(why))
                    }
                }
            }
            EventType::Bookmark => self.bookmark(object),
            EventType::Error => {
                Err(status::into_error(status::of_frame(&self.wire.error_text(object)), false))
            }
            EventType::Other(other) => match self.named(&self.wire.identify(object)) {
                Ok((key, version)) if self.wire.is_document(object) => {
                    let event_type = shortened(other, MAX_EVENT_TYPE_CHARS);
                    let error = format!("unknown event type {event_type:?}").into();
                    Ok(WatchPart::Undecodable(Undecodable { key, version, error }))
                }
                Ok(_) => Err(ListWatchError::Unreadable(unreadable(&self.not_a_document(), object))),
                Err(error) => Err(ListWatchError::Unreadable(unreadable(&error, object))),
            },
        }
    }

    fn not_a_document(&self) -> String {
        format!("not {}", self.wire.name())
    }

    fn scanned(&self, object: &[u8]) -> Result<Observed<R::Body>, ListWatchError> {
        let object = self.encoded(object);
        let scan = object.meta();
        let is_table = scan.kind.as_deref() == Some("Table")
            && scan.api_version.as_deref().is_some_and(|version| version.starts_with("meta.k8s.io/"));
        if is_table {
            return Err(ListWatchError::Protocol(
                "a Table is not supported: the server must send objects".into(),
            ));
        }
        Ok(self.observe(&object))
    }

    fn oversize_event(&self, head: &[u8], size: usize) -> Part<R::Body> {
        let event = self.wire.event_head(head);
        let is_deleted = event.as_ref().is_some_and(|event| event.event_type == EventType::Deleted);
        match self.oversize(event.map_or(head, |event| event.object), size) {
            Observed::Undecodable(undecodable) if is_deleted => {
                Ok(WatchPart::DeletedUndecodable(undecodable))
            }
            Observed::Undecodable(undecodable) => Ok(WatchPart::Undecodable(undecodable)),
            Observed::Unreadable(why) | Observed::NotADocument(why) => Err(ListWatchError::Unreadable(why)),
            Observed::Object(_) | Observed::Passed(_) => {
                Err(ListWatchError::Unreadable("more than the limit".into()))
            }
        }
    }

    fn bookmark(&self, object: &[u8]) -> Part<R::Body> {
        let broken =
            |error: Arc<str>| ListWatchError::Protocol(format!("a bookmark cannot be read: {error}").into());
        let read = self.wire.bookmark(object).map_err(|error| broken(unreadable(&error, object)));
        let (version, initial_events_end) = read?;
        let version = version.parse().map_err(|error| broken(unreadable(&error, object)))?;
        Ok(WatchPart::Bookmark { version, initial_events_end })
    }
}

fn passing<S>(version: ResourceVersion) -> WatchPart<S> {
    WatchPart::Bookmark { version, initial_events_end: false }
}

/// Such a part can only come from one document.
fn proves_split<S>(part: &Part<S>) -> bool {
    matches!(part, Ok(WatchPart::Applied(_) | WatchPart::Deleted(_) | WatchPart::Bookmark { .. }))
}

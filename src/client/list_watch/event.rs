//! Reads one line of a watch: `{"type":"ADDED","object":{...}}`.
//!
//! Answers "what happened to which object?" A line is split into type and object in one of two ways:
//! - By position: the line begins with `{"type":"X","object":`, as every server writes it. Everything behind it,
//!   without the last `}`, is taken for the object. This parses nothing, so the object is parsed only once, by its
//!   decoder.
//! - By a parser: for any other line, and to check a split by position that may be wrong.
//!
//! A split by position is wrong if members follow the object (`"object":{...},"x":1}`): what is taken for the object is
//! then not one JSON document. Decoding such bytes fails, so an object that decodes proves the split right. An object
//! that is already known is not decoded; `decode.rs` says why its length proves the split right. Only when an event
//! gives neither an object nor a bookmark is the line split again by the parser. If the parser finds an object of
//! another length, its split is used. Invariants:
//! 1. Bookmarks and errors are read without decoding the kind: a bookmark of pods contains `"containers":null`.
//! 2. The object of an event of an unknown type, or of one that is too long to be read, counts as undecodable: a GET of
//!    the object follows.
//! 3. Only a line that names no object, or is not JSON, ends the watch: a line that has lost its newline holds two
//!    events, and only a list brings the second one back.
//!
//! Read next: `decode.rs`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use informer_actors::list_watch::KnownObjects;
use informer_core::delta::{Undecodable, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use memchr::memchr;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::decode::{Decoder, Observed, is_json, unreadable};
use crate::client::frames::Frame;
use crate::client::status;
use crate::representation::{JsonError, Representation, meta_scan};
use crate::text::shortened;

/// At most this many characters of an unknown event type are shown in an error.
const MAX_EVENT_TYPE_CHARS: usize = 40;
/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

type Part<S> = Result<WatchPart<S>, ListWatchError>;

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    event_type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMetadata {
    resource_version: String,
    annotations: Option<BTreeMap<String, String>>,
}

impl<R: Representation> Decoder<R> {
    /// Reads one event; an error ends the watch.
    pub(crate) fn event(&self, frame: &Frame, known: &KnownObjects<R::Body>) -> Part<R::Body> {
        let bytes = match frame {
            Frame::Whole(bytes) => bytes,
            Frame::Oversize { head, size } => return self.oversize_event(head, *size),
        };
        let Some((event_type, object)) = split_by_position(bytes) else {
            let (event_type, object) = split_by_parser(bytes)?;
            return self.part(&event_type, object, known);
        };
        let part = self.part(event_type, object, known);
        if proves_split_by_position(&part) {
            return part;
        }
        match split_by_parser(bytes) {
            Ok((event_type, parsed)) if parsed.len() != object.len() => self.part(&event_type, parsed, known),
            _ => part,
        }
    }

    fn part(&self, event_type: &str, object: &[u8], known: &KnownObjects<R::Body>) -> Part<R::Body> {
        match event_type {
            "ADDED" | "MODIFIED" => match self.scanned(object, known)? {
                Observed::Object(object) => Ok(WatchPart::Applied(object)),
                Observed::Undecodable(undecodable) => Ok(WatchPart::Undecodable(undecodable)),
                Observed::Unreadable(why) | Observed::NotJson(why) => Err(ListWatchError::Unreadable(why)),
            },
            "DELETED" => match self.scanned(object, &KnownObjects::nothing())? {
                Observed::Object(object) => Ok(WatchPart::Deleted(object)),
                Observed::Undecodable(undecodable) => Ok(WatchPart::DeletedUndecodable(undecodable)),
                Observed::Unreadable(why) | Observed::NotJson(why) => Err(ListWatchError::Unreadable(why)),
            },
            "BOOKMARK" => bookmark(object),
            "ERROR" => Err(status::into_error(status::of_frame(&String::from_utf8_lossy(object)), false)),
            other => match self.named(&meta_scan(object)) {
                Ok((key, version)) if is_json(object) => {
                    let event_type = shortened(other, MAX_EVENT_TYPE_CHARS);
                    let error = format!("unknown event type {event_type:?}").into();
                    Ok(WatchPart::Undecodable(Undecodable { key, version, error }))
                }
                Ok(_) => Err(ListWatchError::Unreadable(unreadable(&"not JSON", object))),
                Err(error) => Err(ListWatchError::Unreadable(unreadable(&error, object))),
            },
        }
    }

    fn scanned(
        &self,
        object: &[u8],
        known: &KnownObjects<R::Body>,
    ) -> Result<Observed<R::Body>, ListWatchError> {
        let scan = meta_scan(object);
        let is_table = scan.kind.as_deref() == Some("Table")
            && scan.api_version.as_deref().is_some_and(|version| version.starts_with("meta.k8s.io/"));
        if is_table {
            return Err(ListWatchError::Protocol(
                "a Table is not supported: the server must send objects".into(),
            ));
        }
        Ok(self.observe(object, &scan, known))
    }

    fn oversize_event(&self, head: &[u8], size: usize) -> Part<R::Body> {
        let (event_type, object) = split_head_by_position(head).unwrap_or(("", head));
        match self.oversize(object, size) {
            Observed::Undecodable(undecodable) if event_type == "DELETED" => {
                Ok(WatchPart::DeletedUndecodable(undecodable))
            }
            Observed::Undecodable(undecodable) => Ok(WatchPart::Undecodable(undecodable)),
            Observed::Unreadable(why) | Observed::NotJson(why) => Err(ListWatchError::Unreadable(why)),
            Observed::Object(_) => Err(ListWatchError::Unreadable("more than the limit".into())),
        }
    }
}

/// Whether this part can only come from bytes that are one JSON document, so that the split was right.
fn proves_split_by_position<S>(part: &Part<S>) -> bool {
    matches!(part, Ok(WatchPart::Applied(_) | WatchPart::Deleted(_) | WatchPart::Bookmark { .. }))
}

fn bookmark<S>(object: &[u8]) -> Part<S> {
    let broken = |error: &dyn std::fmt::Display| {
        ListWatchError::Protocol(format!("a bookmark cannot be read: {}", unreadable(error, object)).into())
    };
    let Bookmark { metadata } =
        serde_json::from_slice(object).map_err(|error| broken(&JsonError::from(&error)))?;
    let version = metadata.resource_version.parse().map_err(|error| broken(&error))?;
    let annotations = metadata.annotations.unwrap_or_default();
    let initial_events_end = annotations.get(INITIAL_EVENTS_END).is_some_and(|value| value == "true");
    Ok(WatchPart::Bookmark { version, initial_events_end })
}

/// Splits `{"type":"X","object":...}` into the type and the object without reading the object.
fn split_by_position(line: &[u8]) -> Option<(&str, &[u8])> {
    let (event_type, rest) = split_head_by_position(line)?;
    Some((event_type, rest.trim_ascii_end().strip_suffix(b"}")?))
}

/// As [`split_by_position`], for a line of which only the first bytes were kept. A type with other characters than
/// letters is left to the parser: it may contain escapes.
fn split_head_by_position(line: &[u8]) -> Option<(&str, &[u8])> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let (event_type, rest) = rest.split_at(memchr(b'"', rest)?);
    if !event_type.iter().all(u8::is_ascii_alphabetic) {
        return None;
    }
    Some((std::str::from_utf8(event_type).ok()?, rest.strip_prefix(br#"","object":"#)?))
}

fn split_by_parser(line: &[u8]) -> Result<(Cow<'_, str>, &[u8]), ListWatchError> {
    match serde_json::from_slice::<Event<'_>>(line) {
        Ok(event) => Ok((event.event_type, event.object.get().as_bytes())),
        Err(error) => Err(ListWatchError::Unreadable(unreadable(&JsonError::from(&error), line))),
    }
}

//! One line of a watch.
//!
//! Answers "what happened?" Lines as every server writes them are taken apart by position, without parsing; others by
//! a parser. Invariants:
//! 1. Bookmarks and errors are read without decoding the kind: a bookmark of pods carries `"containers":null`.
//! 2. An event of an unknown type, or too long to be read, is its object set aside: a GET will tell.
//! 3. Only a line that names no object, or is no JSON, ends the watch: a line that has lost its newline holds two
//!    events, and only a list brings the second back.
//!
//! Read next: `decode.rs`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use informer_actors::list_watch::Known;
use informer_core::delta::{SetAside, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use memchr::memchr;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::decode::{Decoder, Observed, is_json, unreadable};
use crate::client::frames::Frame;
use crate::client::status::Status;
use crate::representation::{JsonError, Representation, meta_scan};
use crate::text::shortened;

/// At most this much of an unknown event type is told.
const EVENT_TYPE: usize = 40;
/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

type Part<S> = Result<WatchPart<S>, ListWatchError>;

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
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
    pub(crate) fn event(&self, frame: &Frame, known: &Known<R::Body>) -> Part<R::Body> {
        let bytes = match frame {
            Frame::Whole(bytes) => bytes,
            Frame::Oversize { head, size } => return self.oversize_event(head, *size),
        };
        let Some((kind, object)) = by_position(bytes) else {
            let (kind, object) = by_parser(bytes)?;
            return self.part(&kind, object, known);
        };
        let part = self.part(kind, object, known);
        if matches!(part, Ok(WatchPart::Applied(_) | WatchPart::Deleted(_) | WatchPart::Bookmark { .. })) {
            return part;
        }
        // By position, a member behind the object counts as a part of it: only a parser sees where the object ends.
        match by_parser(bytes) {
            Ok((kind, parsed)) if parsed.len() != object.len() => self.part(&kind, parsed, known),
            _ => part,
        }
    }

    fn part(&self, kind: &str, object: &[u8], known: &Known<R::Body>) -> Part<R::Body> {
        match kind {
            "ADDED" | "MODIFIED" => match self.scanned(object, known)? {
                Observed::Object(object) => Ok(WatchPart::Applied(object)),
                Observed::SetAside(aside) => Ok(WatchPart::SetAside(aside)),
                Observed::Unreadable(why) | Observed::NotJson(why) => Err(ListWatchError::Unreadable(why)),
            },
            "DELETED" => match self.scanned(object, &Known::nothing())? {
                Observed::Object(object) => Ok(WatchPart::Deleted(object)),
                Observed::SetAside(aside) => Ok(WatchPart::DeletedUnread(aside)),
                Observed::Unreadable(why) | Observed::NotJson(why) => Err(ListWatchError::Unreadable(why)),
            },
            "BOOKMARK" => bookmark(object),
            "ERROR" => Err(Status::from_frame(&String::from_utf8_lossy(object)).into_error(false)),
            other => match self.named(&meta_scan(object)) {
                Ok((key, version)) if is_json(object) => {
                    let error = format!("unknown event type {:?}", shortened(other, EVENT_TYPE)).into();
                    Ok(WatchPart::SetAside(SetAside { key, version, error }))
                }
                Ok(_) => Err(ListWatchError::Unreadable(unreadable(&"no JSON", object))),
                Err(error) => Err(ListWatchError::Unreadable(unreadable(&error, object))),
            },
        }
    }

    fn scanned(&self, object: &[u8], known: &Known<R::Body>) -> Result<Observed<R::Body>, ListWatchError> {
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
        let (kind, object) = cut_by_position(head).unwrap_or(("", head));
        match self.oversize(object, size) {
            Observed::SetAside(aside) if kind == "DELETED" => Ok(WatchPart::DeletedUnread(aside)),
            Observed::SetAside(aside) => Ok(WatchPart::SetAside(aside)),
            Observed::Unreadable(why) | Observed::NotJson(why) => Err(ListWatchError::Unreadable(why)),
            Observed::Object(_) => Err(ListWatchError::Unreadable("more than the limit".into())),
        }
    }
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

/// Takes `{"type":"X","object":...}` apart without reading the object; a type of other than letters is a parser's.
fn by_position(line: &[u8]) -> Option<(&str, &[u8])> {
    let (kind, rest) = cut_by_position(line)?;
    Some((kind, rest.trim_ascii_end().strip_suffix(b"}")?))
}

/// The same for a line whose end is not there.
fn cut_by_position(line: &[u8]) -> Option<(&str, &[u8])> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let (kind, rest) = rest.split_at(memchr(b'"', rest)?);
    if !kind.iter().all(u8::is_ascii_alphabetic) {
        return None;
    }
    Some((std::str::from_utf8(kind).ok()?, rest.strip_prefix(br#"","object":"#)?))
}

fn by_parser(line: &[u8]) -> Result<(Cow<'_, str>, &[u8]), ListWatchError> {
    match serde_json::from_slice::<Event<'_>>(line) {
        Ok(event) => Ok((event.kind, event.object.get().as_bytes())),
        Err(error) => Err(ListWatchError::Unreadable(unreadable(&JsonError::from(&error), line))),
    }
}

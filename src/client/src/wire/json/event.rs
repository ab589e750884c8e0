//! Reads one line of a watch: `{"type":"ADDED","object":{...}}`.
//!
//! - By position, if it begins with `{"type":"X","object":`, as every server writes it: the bytes after it, without the last `}`,
//!   are taken for the object. Only the object's decoder parses them.
//! - By a parser otherwise, and to check a doubtful split.
//!
//! A split by position is wrong if members follow the object (`"object":{...},"x":1}`). Such bytes are not one JSON document: an
//! object that decodes proves the split right.

use std::borrow::Cow;
use std::collections::BTreeMap;

use memchr::memchr;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::JsonError;

/// On the bookmark that ends the initial events.
pub(crate) const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EventType<'a> {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
    Other(Cow<'a, str>),
}

#[derive(Debug)]
pub(crate) struct Event<'a> {
    pub(crate) event_type: EventType<'a>,
    pub(crate) object: &'a [u8],
    /// A parser has split the line.
    pub(crate) is_certain: bool,
}

impl<'a> EventType<'a> {
    pub(crate) fn of(text: Cow<'a, str>) -> Self {
        match &*text {
            "ADDED" => Self::Added,
            "MODIFIED" => Self::Modified,
            "DELETED" => Self::Deleted,
            "BOOKMARK" => Self::Bookmark,
            "ERROR" => Self::Error,
            _ => Self::Other(text),
        }
    }
}

pub(crate) fn event(line: &[u8]) -> Result<Event<'_>, JsonError> {
    let by_position = event_head(line)
        .and_then(|event| Some(Event { object: event.object.trim_ascii_end().strip_suffix(b"}")?, ..event }));
    by_position.map_or_else(|| parsed_event(line), Ok)
}

/// Also for the first bytes of a line. A parser reads a type with other characters than letters: it may contain escapes.
pub(crate) fn event_head(line: &[u8]) -> Option<Event<'_>> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let (event_type, rest) = rest.split_at(memchr(b'"', rest)?);
    if !event_type.iter().all(u8::is_ascii_alphabetic) {
        return None;
    }
    let event_type = EventType::of(std::str::from_utf8(event_type).ok()?.into());
    Some(Event { event_type, object: rest.strip_prefix(br#"","object":"#)?, is_certain: false })
}

pub(crate) fn parsed_event(line: &[u8]) -> Result<Event<'_>, JsonError> {
    #[derive(Deserialize)]
    struct Line<'a> {
        #[serde(rename = "type", borrow)]
        event_type: Cow<'a, str>,
        #[serde(borrow)]
        object: &'a RawValue,
    }

    let Line { event_type, object } =
        serde_json::from_slice(line).map_err(|error| JsonError::from(&error))?;
    Ok(Event { event_type: EventType::of(event_type), object: object.get().as_bytes(), is_certain: true })
}

/// The version, and whether the initial events end. A bookmark of pods contains `"containers":null`, so the kind is not decoded.
pub(crate) fn bookmark(object: &[u8]) -> Result<(String, bool), JsonError> {
    #[derive(Deserialize)]
    struct Bookmark {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: String,
        annotations: Option<BTreeMap<String, String>>,
    }

    let Bookmark { metadata } = serde_json::from_slice(object).map_err(|error| JsonError::from(&error))?;
    let annotations = metadata.annotations.unwrap_or_default();
    let ends_initial_events = annotations.get(INITIAL_EVENTS_END).is_some_and(|value| value == "true");
    Ok((metadata.resource_version, ends_initial_events))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Option<(EventType<'_>, &str, bool)> {
        let Event { event_type, object, is_certain } = event(line.as_bytes()).ok()?;
        Some((event_type, std::str::from_utf8(object).unwrap(), is_certain))
    }

    #[test]
    fn a_line_is_split_by_position_as_servers_write_it_and_by_a_parser_otherwise() {
        let added = |object, is_certain| Some((EventType::Added, object, is_certain));
        assert_eq!(split(r#"{"type":"ADDED","object":{"a":1}}"#), added(r#"{"a":1}"#, false));
        assert_eq!(split("{\"type\":\"ADDED\",\"object\":{} } \r"), added("{} ", false));
        assert_eq!(split(r#"{"object":{"a":1},"type":"ADDED"}"#), added(r#"{"a":1}"#, true));
        assert_eq!(split(r#" {"type":"\u0041DDED","object":7}"#), added("7", true));
        let other = Some((EventType::Other("added".into()), "{}", false));
        assert_eq!(split(r#"{"type":"added","object":{}}"#), other);
        for broken in ["", "{}", r#"{"type":"ADDED"}"#, r#"{"type":"A-B","object":{}"#] {
            assert_eq!(split(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_split_by_position_that_took_too_much_is_corrected_by_the_parser() {
        let line = r#"{"type":"DELETED","object":{"a":1},"x":{}}"#;
        assert_eq!(split(line), Some((EventType::Deleted, r#"{"a":1},"x":{}"#, false)));
        let parsed = parsed_event(line.as_bytes()).unwrap();
        assert_eq!((parsed.event_type, parsed.object), (EventType::Deleted, &br#"{"a":1}"#[..]));
    }

    #[test]
    fn a_bookmark_needs_a_version_and_says_if_it_ends_the_initial_events() {
        let read = |more: &str| bookmark(format!(r#"{{"metadata":{{{more}}}}}"#).as_bytes());
        assert_eq!(read(r#""resourceVersion":"7""#), Ok(("7".to_owned(), false)));
        let end = r#""resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}"#;
        assert_eq!(read(end), Ok(("7".to_owned(), true)));
        assert!(read("").is_err());
    }
}

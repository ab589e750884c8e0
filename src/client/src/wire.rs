//! How a server writes objects: one [`WireKind`] for each Content-Type. Without decoding it finds the objects
//! of a body, which objects they are, and what happened to them.
//!
//! 1. All that knows JSON is in `json/`. Frames, scans and paths are the same for every kind.
//! 2. No function panics, whatever the bytes are, and what is kept of them is bounded.
//! 3. Nothing is allocated for a name, a uid or a version without escapes.
//! 4. The Content-Type of an answer decides how it is read. Without one the answer is what was requested, as
//!    in client-go.
//! 5. Where metadata was requested, whole objects are refused, because of their cost. A Table is always
//!    refused.
//!
//! Custom resources have no protobuf. CBOR is alpha, and writes texts as byte strings, which k8s-openapi's
//! types cannot read.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, header};
use informer_core::words::shortened;

mod field_path;
mod frame;
mod json;

pub use field_path::{FieldPath, FieldPathError};
pub(crate) use field_path::{FieldTree, PathStep, Step};
pub use frame::{Frame, ListHead, MetaScan, Owner, SplitError, UnnamedError};
pub(crate) use json::{Cut, Event, EventType, INITIAL_EVENTS_END, LeftOut};
pub use json::{JsonError, Splitter};

/// How the bytes of a body are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WireKind {
    /// JSON documents; a watch is one event a line.
    Json,
}

/// What is requested from the server for each object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequestedContent {
    /// Whole objects.
    Objects,
    /// Only their metadata, as `PartialObjectMetadata`.
    Metadata,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    List,
    /// A single object, or watch events of them.
    Object,
}

impl WireKind {
    /// Ignores parameters (`charset=utf-8`, `stream=watch`): JSON is UTF-8, and the request tells what is a
    /// stream.
    pub(crate) fn of(content_type: &str) -> Option<Self> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        media_type.eq_ignore_ascii_case(json::MEDIA_TYPE).then_some(Self::Json)
    }

    pub(crate) fn accept(self, content: RequestedContent, form: Form) -> &'static str {
        match self {
            Self::Json => json::accept(content, form),
        }
    }

    /// Keeps at most `limit` bytes of one item.
    pub(crate) fn list(self, limit: usize) -> Splitter {
        match self {
            Self::Json => Splitter::list(limit),
        }
    }

    /// Keeps at most `limit` bytes of one event.
    pub(crate) fn watch(self, limit: usize) -> Splitter {
        match self {
            Self::Json => Splitter::watch(limit),
        }
    }

    /// If the bytes are cut off: what stands before the cut.
    pub(crate) fn identify(self, object: &[u8]) -> MetaScan<'_> {
        match self {
            Self::Json => json::identify(object),
        }
    }

    pub(crate) fn labels<'a>(
        self,
        found: &MetaScan<'a>,
    ) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + use<'a> {
        match self {
            Self::Json => json::labels(found),
        }
    }

    pub(crate) fn annotations<'a>(
        self,
        object: &'a [u8],
    ) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + use<'a> {
        match self {
            Self::Json => json::annotations(object),
        }
    }

    pub(crate) fn generation(self, object: &[u8]) -> Option<i64> {
        match self {
            Self::Json => json::generation(object),
        }
    }

    /// The first member with one of these names, encoded.
    pub(crate) fn member<'a>(self, object: &'a [u8], names: &[&str]) -> Option<&'a [u8]> {
        match self {
            Self::Json => json::member(object, names),
        }
    }

    pub(crate) fn owners<'a>(self, found: &MetaScan<'a>) -> impl Iterator<Item = Owner<'a>> + use<'a> {
        match self {
            Self::Json => json::owners(found),
        }
    }

    pub(crate) fn scan(self, object: &[u8], path: &FieldPath) -> Vec<String> {
        let mut values = Vec::new();
        match self {
            Self::Json => json::scan(object, path.steps(), &mut values),
        }
        values
    }

    /// Not parsed: see [`Event::is_certain`].
    pub(crate) fn event(self, frame: &[u8]) -> Result<Event<'_>, JsonError> {
        match self {
            Self::Json => json::event(frame),
        }
    }

    pub(crate) fn parsed_event(self, frame: &[u8]) -> Result<Event<'_>, JsonError> {
        match self {
            Self::Json => json::parsed_event(frame),
        }
    }

    /// If only the first bytes of an event are there.
    pub(crate) fn event_head(self, head: &[u8]) -> Option<Event<'_>> {
        match self {
            Self::Json => json::event_head(head),
        }
    }

    /// The version of a bookmark, and whether it ends the initial events.
    pub(crate) fn bookmark(self, object: &[u8]) -> Result<(String, bool), JsonError> {
        match self {
            Self::Json => json::bookmark(object),
        }
    }

    /// By syntax alone: strings that are not UTF-8, numbers of any size and any depth are accepted. A decoder
    /// may still refuse them.
    pub(crate) fn is_document(self, bytes: &[u8]) -> bool {
        match self {
            Self::Json => json::is_document(bytes),
        }
    }

    /// What may be shown of an object of this kind, as JSON: of a Secret no value. `None` if it may be a Secret, or
    /// is no document.
    pub(crate) fn shown(self, object: &[u8], kind: Option<&str>) -> Option<Arc<str>> {
        match self {
            Self::Json => json::shown(object, kind),
        }
    }

    /// The paths of its fields, each with the bytes of its name and its value: members of the object, and of its
    /// `metadata`, `spec` and `status`. `None` if it is no document.
    pub(crate) fn field_bytes(self, object: &str) -> Option<Vec<(String, u64)>> {
        match self {
            Self::Json => json::field_bytes(object),
        }
    }

    /// Appends the rest of the object to `out`.
    pub(crate) fn cut(self, object: &[u8], fields: &FieldTree, left_out: LeftOut, out: &mut Vec<u8>) -> Cut {
        match self {
            Self::Json => json::cut(object, fields, left_out, out),
        }
    }
}

const MAX_TYPE_CHARS: usize = 100;
const META: &str = "meta.k8s.io/v1";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) content: RequestedContent,
    pub(crate) form: Form,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unexpected {
    pub(crate) asked: &'static str,
    pub(crate) received: String,
}

impl fmt::Display for Unexpected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server sent {}, where {} was asked for", self.received, self.asked)
    }
}

impl Asked {
    pub(crate) const OBJECT: Self = Self { content: RequestedContent::Objects, form: Form::Object };

    pub(crate) fn accept(self) -> &'static str {
        WireKind::Json.accept(self.content, self.form)
    }

    pub(crate) fn wire(self, headers: &HeaderMap) -> Result<WireKind, Unexpected> {
        let Some(received) = headers.get(header::CONTENT_TYPE).filter(|value| !value.is_empty()) else {
            return Ok(WireKind::Json);
        };
        let text = received.to_str().unwrap_or("a Content-Type that is no text");
        WireKind::of(text)
            .ok_or_else(|| Unexpected { asked: self.accept(), received: shortened(text, MAX_TYPE_CHARS) })
    }

    pub(crate) fn check_kind(self, api_version: Option<&str>, kind: Option<&str>) -> Result<(), Unexpected> {
        let (version, named) = (api_version.unwrap_or_default(), kind.unwrap_or("an object without a kind"));
        let is_expected = match (self.content, self.form) {
            (RequestedContent::Objects, _) => !(named == "Table" && version.starts_with("meta.k8s.io/")),
            (RequestedContent::Metadata, Form::List) => {
                version == META && named == "PartialObjectMetadataList"
            }
            (RequestedContent::Metadata, Form::Object) => version == META && named == "PartialObjectMetadata",
        };
        let received = || shortened(format!("{version} {named}").trim_start(), MAX_TYPE_CHARS);
        is_expected.then_some(()).ok_or_else(|| Unexpected { asked: self.accept(), received: received() })
    }
}

/// Whether a refusal's body may be quoted, and may be a `Status`: JSON, text, or without a type.
pub(crate) fn is_readable(headers: &HeaderMap) -> bool {
    let Some(received) = headers.get(header::CONTENT_TYPE).filter(|value| !value.is_empty()) else {
        return true;
    };
    let text = received.to_str().unwrap_or_default();
    WireKind::of(text).is_some() || text.trim_start().to_ascii_lowercase().starts_with("text/")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const LIST: Asked = Asked { content: RequestedContent::Objects, form: Form::List };
    const METADATA: Asked = Asked { content: RequestedContent::Metadata, form: Form::Object };
    const METADATA_LIST: Asked = Asked { content: RequestedContent::Metadata, form: Form::List };

    fn headers(content_type: &str) -> HeaderMap {
        let value = HeaderValue::from_bytes(content_type.as_bytes()).expect("a value");
        HeaderMap::from_iter([(header::CONTENT_TYPE, value)])
    }

    #[test]
    fn rest_45_the_content_type_of_an_answer_decides_how_it_is_read() {
        assert_eq!(LIST.wire(&HeaderMap::new()), Ok(WireKind::Json), "what was asked for");
        for json in [
            "application/json",
            "application/json;stream=watch",
            "Application/JSON; charset=utf-8",
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            " application/json ;charset=UTF-8",
            "",
        ] {
            assert_eq!(METADATA.wire(&headers(json)), Ok(WireKind::Json), "{json:?}");
        }
        let long = "x".repeat(500);
        for other in [
            "text/html",
            "application/yaml",
            "application/jsonp",
            "application/problem+json",
            "json",
            "\u{e9}",
            &long,
        ] {
            let error = LIST.wire(&headers(other)).expect_err(other).to_string();
            assert!(
                error.ends_with(", where application/json was asked for") && error.len() < 200,
                "{error}"
            );
        }
    }

    #[test]
    fn rest_45_protobuf_and_cbor_are_not_read_yet() {
        for other in
            ["application/vnd.kubernetes.protobuf;stream=watch", "application/cbor-seq", "application/cbor"]
        {
            assert_eq!(WireKind::of(other), None, "a second kind of wire belongs here: {other}");
            let error = METADATA.wire(&headers(other)).expect_err(other).to_string();
            assert!(error.contains(other) && error.contains("as=PartialObjectMetadata;"), "{error}");
            assert!(!is_readable(&headers(other)));
        }
    }

    #[test]
    fn dyn_02_metadata_is_asked_for_and_a_whole_object_or_a_table_is_refused() {
        let cases = [
            (METADATA, Some("meta.k8s.io/v1"), Some("PartialObjectMetadata"), true),
            (METADATA_LIST, Some("meta.k8s.io/v1"), Some("PartialObjectMetadataList"), true),
            (METADATA_LIST, Some("meta.k8s.io/v1"), Some("PartialObjectMetadata"), false),
            (METADATA, Some("meta.k8s.io/v1beta1"), Some("PartialObjectMetadata"), false),
            (METADATA, Some("v1"), Some("Pod"), false),
            (METADATA_LIST, Some("v1"), Some("PodList"), false),
            (METADATA, None, None, false),
            (LIST, Some("v1"), Some("PodList"), true),
            (LIST, Some("meta.k8s.io/v1"), Some("Table"), false),
            (LIST, Some("example.org/v1"), Some("Table"), true),
            (Asked::OBJECT, None, None, true),
        ];
        for (asked, version, kind, is_expected) in cases {
            let found = asked.check_kind(version, kind);
            assert_eq!(found.is_ok(), is_expected, "{asked:?} {version:?} {kind:?}");
        }
        let error = METADATA.check_kind(Some("v1"), Some("Pod")).expect_err("a whole object").to_string();
        assert_eq!(
            error,
            "the server sent v1 Pod, where application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1 was asked for"
        );
    }
}

//! How a server writes objects: one kind of wire for each Content-Type.
//!
//! Answers "which bytes are one object, which object is it, and what happened to it?" without decoding its body, by a
//! match on [`WireKind`]. It knows neither connections nor what is kept of an object. Invariants:
//! 1. All that knows JSON is in `json/`. What stands beside it (frames, scans, paths) is the same for every kind.
//! 2. No function panics, whatever the bytes are, and what is kept of them is bounded.
//! 3. Nothing is allocated for a name, a uid or a version without escapes.
//!
//! There is one kind. The second will be protobuf, which Kubernetes' own kinds have and custom resources have not: its
//! place is `protobuf/`, beside `json/`, and each match below. Read next: `json.rs`; `negotiation.rs`, which
//! chooses the kind of an answer; `list_watch.rs`, which reads the answer with it.

use std::borrow::Cow;

mod field_path;
mod fields;
mod frame;
mod json;

pub(crate) use field_path::PathStep;
pub use field_path::{FieldPath, FieldPathError};
pub(crate) use fields::{FieldTree, Step};
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

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    List,
    /// A single object, or watch events of them.
    Object,
}

impl WireKind {
    /// The kind of a Content-Type. Parameters (`charset=utf-8`, `stream=watch`) change nothing: JSON is UTF-8, and what
    /// is a stream is known from the request.
    pub(crate) fn of(content_type: &str) -> Option<Self> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        media_type.eq_ignore_ascii_case(json::MEDIA_TYPE).then_some(Self::Json)
    }

    /// The Accept header that asks for this kind.
    pub(crate) fn accept(self, content: RequestedContent, form: Form) -> &'static str {
        match self {
            Self::Json => json::accept(content, form),
        }
    }

    /// Splits the body of a list into its items. Of one item at most `limit` bytes are kept.
    pub(crate) fn list(self, limit: usize) -> Splitter {
        match self {
            Self::Json => Splitter::list(limit),
        }
    }

    /// Splits the body of a watch into its events. Of one event at most `limit` bytes are kept.
    pub(crate) fn watch(self, limit: usize) -> Splitter {
        match self {
            Self::Json => Splitter::watch(limit),
        }
    }

    /// Which object these bytes are, or begin with: bytes that are cut off give what comes before the cut.
    pub(crate) fn identify(self, object: &[u8]) -> MetaScan<'_> {
        match self {
            Self::Json => json::identify(object),
        }
    }

    /// The labels of a scanned object.
    pub(crate) fn labels<'a>(
        self,
        found: &MetaScan<'a>,
    ) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + use<'a> {
        match self {
            Self::Json => json::labels(found),
        }
    }

    /// The owners of a scanned object.
    pub(crate) fn owners<'a>(self, found: &MetaScan<'a>) -> impl Iterator<Item = Owner<'a>> + use<'a> {
        match self {
            Self::Json => json::owners(found),
        }
    }

    /// The values at a path in an object.
    pub(crate) fn scan(self, object: &[u8], path: &FieldPath) -> Vec<String> {
        let mut values = Vec::new();
        match self {
            Self::Json => json::scan(object, path.steps(), &mut values),
        }
        values
    }

    /// What an event says, and its object, at first sight: see [`Event::is_certain`].
    pub(crate) fn event(self, frame: &[u8]) -> Result<Event<'_>, JsonError> {
        match self {
            Self::Json => json::event(frame),
        }
    }

    /// What an event says, and its object, by a parser.
    pub(crate) fn parsed_event(self, frame: &[u8]) -> Result<Event<'_>, JsonError> {
        match self {
            Self::Json => json::parsed_event(frame),
        }
    }

    /// The same of an event of which only the first bytes are there; its object is cut off.
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

    /// Whether these bytes are one document by their syntax. Strings that are not UTF-8, numbers of any size and any
    /// depth are accepted here; a decoder may still refuse them.
    pub(crate) fn is_document(self, bytes: &[u8]) -> bool {
        match self {
            Self::Json => json::is_document(bytes),
        }
    }

    /// Appends the object without these fields to `out`.
    pub(crate) fn cut(self, object: &[u8], fields: &FieldTree, left_out: LeftOut, out: &mut Vec<u8>) -> Cut {
        match self {
            Self::Json => json::cut(object, fields, left_out, out),
        }
    }
}

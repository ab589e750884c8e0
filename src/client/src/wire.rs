//! How a server writes objects: one [`WireKind`] for each Content-Type. Without decoding it finds the objects of a body, their
//! identity, and what happened to them.
//!
//! 1. `json/` knows JSON, `protobuf/` knows protobuf. Frames, scans and paths are the same for every kind.
//! 2. No function panics, whatever the bytes are, and what is kept of them is bounded.
//! 3. Nothing is allocated for a name, a uid or a version without escapes.
//! 4. The Content-Type of an answer decides how it is read. Without one the answer is what was requested, as in client-go.
//!    Protobuf is read only where it was asked for.
//! 5. Where metadata was requested, whole objects are refused, because of their cost. A Table is always refused.
//!
//! Custom resources have no protobuf. CBOR is alpha, and writes texts as byte strings, which k8s-openapi's types cannot read.

use std::borrow::Cow;
use std::sync::Arc;

#[cfg(feature = "protobuf")]
use http::{HeaderMap, header};
use serde::de::DeserializeOwned;

mod asked;
mod field_path;
mod frame;
mod json;
#[cfg(feature = "protobuf")]
mod protobuf;
mod splitter;

pub(crate) use asked::{Asked, Unexpected, is_readable};
pub use field_path::{FieldPath, FieldPathError};
pub(crate) use field_path::{FieldTree, PathStep, Step};
pub use frame::{Frame, ListHead, MetaScan, Owner, SplitError, UnnamedError};
pub use json::JsonError;
pub(crate) use json::{Cut, Event, EventType, INITIAL_EVENTS_END, LeftOut, cut as cut_json, from_text};
#[cfg(feature = "protobuf")]
pub use protobuf::{ProtobufError, ProtobufKind};
pub use splitter::Splitter;

/// How the bytes of a body are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WireKind {
    /// JSON documents; a watch is one event a line.
    Json,
    /// Messages of this built-in kind; each event of a watch has its length in front.
    #[cfg(feature = "protobuf")]
    Protobuf(ProtobufKind),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error(transparent)]
    Json(#[from] JsonError),
    #[cfg(feature = "protobuf")]
    #[error(transparent)]
    Protobuf(#[from] ProtobufError),
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
    /// Protobuf, where the kind is known.
    #[cfg(feature = "protobuf")]
    pub(crate) fn preferring_protobuf((api_version, kind): (&str, &str), content: RequestedContent) -> Self {
        let known = match content {
            RequestedContent::Objects => ProtobufKind::of(api_version, kind),
            // For every kind, also custom ones.
            RequestedContent::Metadata => ProtobufKind::metadata(),
        };
        known.map_or(Self::Json, Self::Protobuf)
    }

    #[cfg(feature = "protobuf")]
    pub(crate) fn of_kept(bytes: &[u8]) -> Self {
        protobuf::kind_of(bytes).map_or(Self::Json, Self::Protobuf)
    }

    /// Ignores parameters (`charset=utf-8`, `stream=watch`): JSON is UTF-8, and the request tells what is a stream.
    pub(crate) fn is_of(self, content_type: &str) -> bool {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        media_type.eq_ignore_ascii_case(match self {
            Self::Json => json::MEDIA_TYPE,
            #[cfg(feature = "protobuf")]
            Self::Protobuf(_) => protobuf::MEDIA_TYPE,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            #[cfg(feature = "protobuf")]
            Self::Protobuf(_) => "protobuf",
        }
    }

    pub(crate) fn accept(self, content: RequestedContent, form: Form) -> &'static str {
        match self {
            Self::Json => json::accept(content, form),
            #[cfg(feature = "protobuf")]
            Self::Protobuf(_) => protobuf::accept(content, form),
        }
    }

    /// If the bytes are incomplete: what stands before the cut.
    pub(crate) fn identify(self, object: &[u8]) -> MetaScan<'_> {
        match self {
            Self::Json => json::identify(object),
            #[cfg(feature = "protobuf")]
            Self::Protobuf(_) => protobuf::identify(object),
        }
    }

    pub(crate) fn labels<'a>(
        self,
        found: &MetaScan<'a>,
    ) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + use<'a> {
        let is_json = self == Self::Json;
        let all = is_json.then(|| json::labels(found)).into_iter().flatten();
        #[cfg(feature = "protobuf")]
        let all = all.chain((!is_json).then(|| protobuf::labels(found)).into_iter().flatten());
        all
    }

    pub(crate) fn annotations<'a>(
        self,
        object: &'a [u8],
    ) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + use<'a> {
        let is_json = self == Self::Json;
        let all = is_json.then(|| json::annotations(object)).into_iter().flatten();
        #[cfg(feature = "protobuf")]
        let all = all.chain((!is_json).then(|| protobuf::annotations(object)).into_iter().flatten());
        all
    }

    pub(crate) fn generation(self, object: &[u8]) -> Option<i64> {
        match self {
            Self::Json => json::generation(object),
            #[cfg(feature = "protobuf")]
            Self::Protobuf(_) => protobuf::generation(object),
        }
    }

    /// Whether it has `kind` or `apiVersion`.
    pub(crate) fn has_types(self, object: &[u8]) -> bool {
        match self {
            Self::Json => json::member(object, &["kind", "apiVersion"]).is_some(),
            #[cfg(feature = "protobuf")]
            Self::Protobuf(_) => protobuf::has_types(object),
        }
    }

    pub(crate) fn metadata<T: DeserializeOwned + Default>(self, object: &[u8]) -> Result<T, WireError> {
        Ok(match self {
            Self::Json => json::metadata(object)?,
            #[cfg(feature = "protobuf")]
            Self::Protobuf(_) => protobuf::decode_metadata(object)?,
        })
    }

    pub(crate) fn owners<'a>(self, found: &MetaScan<'a>) -> impl Iterator<Item = Owner<'a>> + use<'a> {
        let is_json = self == Self::Json;
        let all = is_json.then(|| json::owners(found)).into_iter().flatten();
        #[cfg(feature = "protobuf")]
        let all = all.chain((!is_json).then(|| protobuf::owners(found)).into_iter().flatten());
        all
    }

    pub(crate) fn scan(self, object: &[u8], path: &FieldPath) -> Vec<String> {
        let mut values = Vec::new();
        match self {
            Self::Json => json::scan(object, path.steps(), &mut values),
            #[cfg(feature = "protobuf")]
            Self::Protobuf(kind) => protobuf::values_at(kind, object, path.steps(), &mut values),
        }
        values
    }

    /// Not parsed: see [`Event::is_certain`].
    pub(crate) fn event(self, frame: &[u8]) -> Result<Event<'_>, WireError> {
        Ok(match self {
            Self::Json => json::event(frame)?,
            #[cfg(feature = "protobuf")]
            Self::Protobuf(_) => protobuf::event(frame)?,
        })
    }

    /// For JSON; other events are certain.
    pub(crate) fn parsed_event(self, frame: &[u8]) -> Result<Event<'_>, JsonError> {
        json::parsed_event(frame)
    }

    /// For an ERROR event.
    pub(crate) fn error_text(self, object: &[u8]) -> Cow<'_, str> {
        #[cfg(feature = "protobuf")]
        if let Self::Protobuf(kind) = self
            && let Ok(text) = kind.text(object, &FieldTree::default())
        {
            return Cow::Owned(text);
        }
        String::from_utf8_lossy(object)
    }

    /// For the first bytes of an event.
    pub(crate) fn event_head(self, head: &[u8]) -> Option<Event<'_>> {
        match self {
            Self::Json => json::event_head(head),
            #[cfg(feature = "protobuf")]
            Self::Protobuf(_) => protobuf::event_head(head),
        }
    }

    /// The version of a bookmark, and whether it ends the initial events.
    pub(crate) fn bookmark(self, object: &[u8]) -> Result<(String, bool), WireError> {
        Ok(match self {
            Self::Json => json::bookmark(object)?,
            #[cfg(feature = "protobuf")]
            Self::Protobuf(_) => protobuf::bookmark(object)?,
        })
    }

    /// Checks only syntax. A decoder may refuse strings that are not UTF-8, large numbers, or depth.
    pub(crate) fn is_document(self, bytes: &[u8]) -> bool {
        match self {
            Self::Json => json::is_document(bytes),
            #[cfg(feature = "protobuf")]
            Self::Protobuf(kind) => protobuf::is_document(kind, bytes),
        }
    }

    /// The fault that [`Self::is_document`] finds in JSON. In protobuf no object can hide: its length came before it.
    pub(crate) fn hides_nothing(self, bytes: &[u8]) -> Result<(), WireError> {
        match self {
            Self::Json => Ok(json::document(bytes)?),
            #[cfg(feature = "protobuf")]
            Self::Protobuf(_) => Ok(()),
        }
    }

    /// JSON, of a Secret without values. `None` if it may be a Secret, or is no document.
    pub(crate) fn shown(self, object: &[u8], kind: Option<&str>) -> Option<Arc<str>> {
        match self {
            Self::Json => json::shown(object, kind),
            #[cfg(feature = "protobuf")]
            Self::Protobuf(of) => {
                let text = of.text(object, &FieldTree::default()).ok()?;
                json::shown(text.as_bytes(), kind)
            }
        }
    }

    /// Members of the object, and of its `metadata`, `spec` and `status`, with the bytes of name and value. `None` if it is no
    /// document.
    pub(crate) fn field_bytes(self, object: &[u8]) -> Option<Vec<(String, u64)>> {
        match self {
            Self::Json => json::field_bytes(std::str::from_utf8(object).ok()?),
            #[cfg(feature = "protobuf")]
            Self::Protobuf(kind) => protobuf::field_bytes(kind, object),
        }
    }
}

/// For a refusal with a `Status` in protobuf.
#[cfg(feature = "protobuf")]
pub(crate) fn status_as_json(headers: &HeaderMap, body: &[u8]) -> Option<String> {
    let kind = protobuf::kind_of(body)?;
    let content_type = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    WireKind::Protobuf(kind).is_of(content_type).then_some(())?;
    kind.text(body, &FieldTree::default()).ok()
}

//! Decodes the bytes of one list item or one watch event.
//!
//! Answers "which object is this, and what is its body?", one frame at a time, on any thread. It does not know streams.
//!
//! An object that is already known with the same uid, version and source is returned as it is, without decoding
//! (`Decoder::meta`). Its bytes must still be one JSON document, because they may also hold a second object: an item
//! or a line that has lost its separator, or members behind the object of an event that was split by position. The
//! check is skipped if the frame has the same length as the known object had. Objects of the same uid and version have
//! the same text, so a frame of that length holds this text and nothing more; a frame with a second object is longer.
//!
//! Invariants:
//! 1. Name, uid and version come from a scan of the metadata, before the body is decoded and even if it cannot be.
//! 2. An object that is known in this version is returned and not decoded; at most its syntax is checked.
//! 3. A frame that cannot be used affects no other frame: it counts as undecodable if it has a name, and as unreadable
//!    if not. A panic in a representation makes only its frame unusable.
//! 4. Bytes that are not one JSON document are not an object, even if a name is found in them: they may hold two.
//! 5. The error of such a frame quotes no value of it and is at most about 256 characters long.
//! 6. `Representation::keep` is called at most once for a frame that it accepts.
//!
//! Read next: `event.rs` for watch frames.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use informer_actors::list_watch::KnownObjects;
use informer_core::delta::Undecodable;
use informer_core::meta::{ClusterName, Meta, Object, ObjectKey, ResourceVersion, SourceId, Uid};
use informer_core::words::panic_text;
use serde::de::IgnoredAny;

use super::scopes::Scopes;
use crate::client::frames::Frame;
use crate::representation::{DecodeError, MetaScan, Prune, Representation, UnnamedError, meta_scan};
use crate::text::shortened;

/// At most this many characters of the error of a frame are kept.
const MAX_ERROR_CHARS: usize = 256;

/// Makes objects of frames; shared by all requests of a source.
#[derive(Debug)]
pub(crate) struct Decoder<R> {
    pub(crate) representation: Arc<R>,
    pub(crate) prune: Prune,
    pub(crate) source: SourceId,
    /// The cluster in the keys, if the informer has several clusters.
    pub(crate) cluster: Option<ClusterName>,
    pub(crate) scopes: Scopes,
}

/// The result of decoding one object's bytes.
#[derive(Debug)]
pub(crate) enum Observed<S> {
    Object(Object<S>),
    Undecodable(Undecodable),
    /// It is JSON, but has no name or version.
    Unreadable(Arc<str>),
    /// It is not one JSON document: where the object ends, and what else the bytes hold, is unknown.
    NotJson(Arc<str>),
}

impl<R: Representation> Decoder<R> {
    /// Reads one item of a list. Also returns whether the item named its kind.
    pub(crate) fn item(&self, frame: &Frame, known: &KnownObjects<R::Body>) -> (Observed<R::Body>, bool) {
        match frame {
            Frame::Whole(bytes) => {
                let scan = meta_scan(bytes);
                let has_kind = scan.kind.is_some();
                (self.observe(bytes, &scan, known), has_kind)
            }
            Frame::Oversize { head, size } => (self.oversize(head, *size), true),
        }
    }

    /// Reads one object whose metadata has been scanned.
    pub(crate) fn observe(
        &self,
        bytes: &[u8],
        scan: &MetaScan<'_>,
        known: &KnownObjects<R::Body>,
    ) -> Observed<R::Body> {
        let meta = match self.meta(bytes, scan, known) {
            Ok(Named::New(meta)) => meta,
            Ok(Named::Known(object)) => return Observed::Object(object),
            Err(error) if is_json(bytes) => return Observed::Unreadable(unreadable(&error, bytes)),
            Err(error) => return Observed::NotJson(unreadable(&error, bytes)),
        };
        match self.check_kind(scan).and_then(|()| self.body(bytes)) {
            Ok(body) => Observed::Object(Object::new(meta, body)),
            Err(error) if !is_json(bytes) => Observed::NotJson(unreadable(&error, bytes)),
            Err(error) => {
                let error = shortened(&error, MAX_ERROR_CHARS).into();
                Observed::Undecodable(Undecodable { key: meta.key, version: meta.version, error })
            }
        }
    }

    /// What is known about an object before its body is read. The published object is found by the texts of the scan.
    /// The new object takes its key and uid from the published one: each text is held once, however many states of the
    /// object exist, and comparing two keys usually compares two pointers.
    fn meta(
        &self,
        bytes: &[u8],
        scan: &MetaScan<'_>,
        known: &KnownObjects<R::Body>,
    ) -> Result<Named<R::Body>, NoObject> {
        let (name, version) = (scan.name()?, scan.version()?);
        let wire_bytes = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let Some(published) = known.named(self.cluster.as_ref(), scan.namespace.as_deref(), name) else {
            let (key, uid, source) = (self.key(scan)?, scan.uid(), self.source.clone());
            return Ok(Named::New(Meta::new(key, version, source).uid(uid).wire_bytes(wire_bytes)));
        };
        let has_same_uid = published.object_uid().map(Uid::as_str) == scan.uid_text();
        if has_same_uid && *published.version() == version && *published.source() == self.source {
            // The same length means the same text: see the header.
            let is_one_document = published.wire_bytes() == wire_bytes || is_json(bytes);
            return if is_one_document { Ok(Named::Known(published)) } else { Err(NoObject::NotJson) };
        }
        let uid = if has_same_uid { published.object_uid().cloned() } else { scan.uid() };
        let (key, source) = (published.key().clone(), self.source.clone());
        Ok(Named::New(Meta::new(key, version, source).uid(uid).wire_bytes(wire_bytes)))
    }

    /// Names an object that is longer than the limit, by its first bytes.
    pub(crate) fn oversize(&self, head: &[u8], size: usize) -> Observed<R::Body> {
        match self.named(&meta_scan(head)) {
            Ok((key, version)) => {
                let error = format!("the object has {size} bytes, more than the limit").into();
                Observed::Undecodable(Undecodable { key, version, error })
            }
            Err(error) => {
                let error = shortened(&error.to_string(), MAX_ERROR_CHARS);
                Observed::Unreadable(
                    format!("an object has {size} bytes, more than the limit, and {error}").into(),
                )
            }
        }
    }

    /// The key, with the source's cluster in it, and the version.
    pub(crate) fn named(&self, scan: &MetaScan<'_>) -> Result<(ObjectKey, ResourceVersion), UnnamedError> {
        Ok((self.key(scan)?, scan.version()?))
    }

    fn key(&self, scan: &MetaScan<'_>) -> Result<ObjectKey, UnnamedError> {
        Ok(self.scopes.key(self.cluster.as_ref(), scan.namespace.as_deref(), scan.name()?))
    }

    fn check_kind(&self, scan: &MetaScan<'_>) -> Result<(), Arc<str>> {
        let (Some(expected), Some(kind)) = (self.representation.expected(), scan.kind.as_deref()) else {
            return Ok(());
        };
        let version = scan.api_version.as_deref().unwrap_or(&expected.api_version);
        if kind == expected.kind && version == expected.api_version {
            return Ok(());
        }
        let error = DecodeError::WrongKind {
            expected: format!("{} {}", expected.api_version, expected.kind),
            found: format!("{version} {kind}"),
        };
        Err(error.to_string().into())
    }

    fn body(&self, bytes: &[u8]) -> Result<R::Body, Arc<str>> {
        match catch_unwind(AssertUnwindSafe(|| self.representation.keep_bytes(bytes, &self.prune))) {
            Ok(body) => Ok(body.map_err(|error| error.to_string())?),
            Err(panic) => Err(format!("decoding panicked: {}", panic_text(&*panic)).into()),
        }
    }
}

/// An object whose metadata has been read.
enum Named<S> {
    /// It is published in this very state.
    Known(Object<S>),
    New(Meta),
}

/// Why these bytes are not an object, whatever their body.
#[derive(Debug, thiserror::Error)]
enum NoObject {
    #[error(transparent)]
    Scan(#[from] UnnamedError),
    #[error("not JSON")]
    NotJson,
}

/// Whether these bytes are one JSON document by their syntax. Strings that are not UTF-8, numbers of any size and any
/// depth are accepted here; a decoder may still refuse them.
pub(crate) fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

/// The error of bytes that cannot be used, and how many bytes they are. None of them is quoted: they hold values.
pub(crate) fn unreadable(error: &dyn std::fmt::Display, bytes: &[u8]) -> Arc<str> {
    format!("{} in {} bytes", shortened(&error.to_string(), MAX_ERROR_CHARS), bytes.len()).into()
}

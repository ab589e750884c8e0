//! From the bytes of an item or an event to a part that the machinery understands.
//!
//! Answers "what does this frame say?", one frame at a time, on any thread. It knows nothing of streams. Invariants:
//! 1. Name, uid and version come from a scan of the metadata, before and whether or not the body decodes.
//! 2. An object that is known in this very version is given back, not decoded; at most its syntax is checked.
//! 3. A frame that cannot be used costs itself alone: set aside if it has a name, unreadable if not; a panic in a
//!    representation is a frame that cannot be used.
//! 4. Bytes that are not one JSON document are no object, whatever name stands in them: they may hold two.
//! 5. What is told of such a frame quotes no value of it and is at most some 256 characters long.
//! 6. `Representation::keep` is called at most once for a frame that it accepts.
//!
//! Read next: `event.rs` for watch frames.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use informer_actors::list_watch::Known;
use informer_core::delta::SetAside;
use informer_core::meta::{ClusterName, Meta, Object, ObjectKey, ResourceVersion, SourceId, Uid};
use serde::de::IgnoredAny;

use crate::client::frames::Frame;
use crate::representation::{DecodeError, MetaScan, Prune, Representation, UnnamedError, meta_scan};
use crate::text::shortened;

/// At most this much is told of a frame that cannot be used.
const WORDS: usize = 256;

/// What makes objects of frames; shared by all requests of a source.
#[derive(Debug)]
pub(crate) struct Decoder<R> {
    pub(crate) representation: R,
    pub(crate) prune: Prune,
    pub(crate) source: SourceId,
    /// The cluster that keys name, if the informer has several.
    pub(crate) cluster: Option<ClusterName>,
}

/// What one object's bytes turned out to be.
#[derive(Debug)]
pub(crate) enum Observed<S> {
    Object(Object<S>),
    SetAside(SetAside),
    /// An object that nobody can name.
    Unreadable(Arc<str>),
    /// No JSON: where it ends, and what else is in it, is anybody's guess.
    NotJson(Arc<str>),
}

impl<R: Representation> Decoder<R> {
    /// Reads one item of a list. Also says whether the item named its kind.
    pub(crate) fn item(&self, frame: &Frame, known: &Known<R::Body>) -> (Observed<R::Body>, bool) {
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
        known: &Known<R::Body>,
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
                let error = shortened(&error, WORDS).into();
                Observed::SetAside(SetAside { key: meta.key, version: meta.version, error })
            }
        }
    }

    /// What is known of an object before its body is read. The published state is found by the texts of the scan; names
    /// are taken from it: each text is held once, however many states of the object are about, and comparing two of
    /// them reads no text.
    fn meta(
        &self,
        bytes: &[u8],
        scan: &MetaScan<'_>,
        known: &Known<R::Body>,
    ) -> Result<Named<R::Body>, Unnamed> {
        let (name, version) = (scan.name()?, scan.version()?);
        let wire_bytes = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let Some(published) = known.named(self.cluster.as_ref(), scan.namespace.as_deref(), name) else {
            let (key, uid, source) = (self.key(scan)?, scan.uid(), self.source.clone());
            return Ok(Named::New(Meta { key, uid, version, source, wire_bytes }));
        };
        let is_same_life = published.uid().map(Uid::as_str) == scan.uid_text();
        if is_same_life && *published.version() == version && *published.source() == self.source {
            // Of the same length it is the same text; an item that has swallowed its neighbour is longer.
            let is_whole = published.wire_bytes() == wire_bytes || is_json(bytes);
            return if is_whole { Ok(Named::Known(published)) } else { Err(Unnamed::NotJson) };
        }
        let uid = if is_same_life { published.uid().cloned() } else { scan.uid() };
        let (key, source) = (published.key().clone(), self.source.clone());
        Ok(Named::New(Meta { key, uid, version, source, wire_bytes }))
    }

    /// What the head of an object says that is too long to be read.
    pub(crate) fn oversize(&self, head: &[u8], size: usize) -> Observed<R::Body> {
        match self.named(&meta_scan(head)) {
            Ok((key, version)) => {
                let error = format!("its {size} bytes are more than the limit").into();
                Observed::SetAside(SetAside { key, version, error })
            }
            Err(error) => {
                let error = shortened(&error.to_string(), WORDS);
                Observed::Unreadable(format!("{size} bytes are more than the limit, and {error}").into())
            }
        }
    }

    /// The key, which names the source's cluster, and the version.
    pub(crate) fn named(&self, scan: &MetaScan<'_>) -> Result<(ObjectKey, ResourceVersion), UnnamedError> {
        Ok((self.key(scan)?, scan.version()?))
    }

    fn key(&self, scan: &MetaScan<'_>) -> Result<ObjectKey, UnnamedError> {
        Ok(self.cluster.iter().fold(scan.key()?, ObjectKey::in_cluster))
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

/// Why no object can be made of bytes, whatever their body.
#[derive(Debug, thiserror::Error)]
enum Unnamed {
    #[error(transparent)]
    Scan(#[from] UnnamedError),
    #[error("no JSON")]
    NotJson,
}

/// Whether these bytes are one JSON document, in syntax: texts that are no UTF-8, numbers without bounds and any depth
/// count, which a decoder may still refuse.
pub(crate) fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

/// Why nothing can be done with these bytes, and how many they are. None of them is quoted: they hold values.
pub(crate) fn unreadable(error: &dyn std::fmt::Display, bytes: &[u8]) -> Arc<str> {
    format!("{} in {} bytes", shortened(&error.to_string(), WORDS), bytes.len()).into()
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a text")
}

//! The frames of a body (the bytes of one watch event or one list item), and the metadata that a scan finds in one.
//!
//! A frame within one body chunk is a slice of it; one that crosses chunks is copied once. Above the limit only the first `limit`
//! bytes are kept: memory is bounded, and the object's name can be read.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use informer_core::meta::{ObjectKey, ParseVersionError, ResourceVersion, Uid};

/// The bytes of one watch event or one list item.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Frame {
    /// The complete frame.
    Whole(Bytes),
    /// The frame is longer than the limit: only its first bytes were kept.
    Oversize {
        /// The first bytes, as many as the limit allows.
        head: Bytes,
        /// How long the frame was.
        size: usize,
    },
}

impl Frame {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) | Self::Oversize { head: bytes, .. } => bytes.len(),
        }
    }
}

/// The fields of a list besides its items. Empty for a watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListHead {
    /// Its `kind`.
    pub kind: Option<String>,
    /// Its `apiVersion`.
    pub api_version: Option<String>,
    /// `metadata.resourceVersion`.
    pub version: Option<String>,
    /// `metadata.continue`, unless empty.
    pub token: Option<String>,
    /// Whether there was a field `items`, even if it was `null`.
    pub has_items: bool,
}

/// Why a body is not a list, or not a whole number of events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// The body ended before the document closed.
    #[error("the list ends after {0} bytes, before its document closes")]
    Truncated(u64),
    /// The body ended within an event, this many bytes after its beginning.
    #[error("the watch ends {0} bytes behind the beginning of an event")]
    HalfEvent(usize),
    /// The document is not a JSON object with the fields of a list.
    #[error("the list is invalid at byte {at}: {what}")]
    InvalidDocument {
        /// The position of the byte in the body.
        at: u64,
        /// What is wrong there.
        what: &'static str,
    },
}

/// The most that is reserved by the size of the last frame.
const MOST_EXPECTED: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct PartialFrame {
    kept: BytesMut,
    /// Received bytes, kept or not.
    pub(super) size: usize,
    limit: usize,
    /// The size of the last frame: the next one may be as large.
    expected: usize,
}

impl PartialFrame {
    pub(super) fn new(limit: usize) -> Self {
        Self { kept: BytesMut::new(), size: 0, limit, expected: 0 }
    }

    pub(super) fn push(&mut self, piece: &[u8]) {
        self.size += piece.len();
        let room = self.limit.saturating_sub(self.kept.len()).min(piece.len());
        if self.kept.is_empty() && room > 0 {
            self.kept.reserve(self.expected.max(room));
        }
        self.kept.extend_from_slice(&piece[..room]);
    }

    pub(super) fn finish(&mut self, chunk: &Bytes, start: usize, end: usize) -> Frame {
        if self.size == 0 && end - start <= self.limit {
            return Frame::Whole(chunk.slice(start..end));
        }
        self.push(&chunk[start..end]);
        let size = std::mem::take(&mut self.size);
        self.expected = size.min(self.limit).min(MOST_EXPECTED);
        let head = self.kept.split().freeze();
        // The frame has the allocation: a rare large one must not be kept for the whole watch.
        self.kept = BytesMut::new();
        if size > head.len() { Frame::Oversize { head, size } } else { Frame::Whole(head) }
    }
}

// A scan stops when name, namespace, uid and version are known, usually after a few hundred bytes; labels and owners are read
// from there if needed. An object above the limit still has its name. Of a repeated field the last value counts, or the first if
// the scan then had everything.

/// The metadata of one object, as far as it was read. A field that is missing or not a string is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetaScan<'a> {
    /// `apiVersion`, if it comes before the end of the metadata.
    pub api_version: Option<Cow<'a, str>>,
    /// `kind`, if it comes before the end of the metadata.
    pub kind: Option<Cow<'a, str>>,
    /// `metadata.name`.
    pub name: Option<Cow<'a, str>>,
    /// `metadata.namespace`; an empty one counts as missing.
    pub namespace: Option<Cow<'a, str>>,
    /// `metadata.uid`.
    pub uid: Option<Cow<'a, str>>,
    /// `metadata.resourceVersion`.
    pub version: Option<Cow<'a, str>>,
    /// Encoded, if the scan passed them.
    pub(super) labels: Option<&'a [u8]>,
    pub(super) owners: Option<&'a [u8]>,
    /// What follows where the scan stopped in the metadata.
    pub(super) rest: Option<&'a [u8]>,
}

/// One of `metadata.ownerReferences`. A field that is missing or not a string is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Owner<'a> {
    /// Its `apiVersion`.
    pub api_version: Option<Cow<'a, str>>,
    /// Its `kind`.
    pub kind: Option<Cow<'a, str>>,
    /// Its `name`.
    pub name: Option<Cow<'a, str>>,
    /// Its `uid`.
    pub uid: Option<Cow<'a, str>>,
    /// Whether it is the controller of the object.
    pub is_controller: bool,
}

/// Why the scanned metadata names no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnnamedError {
    /// No readable `metadata.name`.
    #[error("no metadata.name")]
    Name,
    /// No readable `metadata.resourceVersion`.
    #[error("no metadata.resourceVersion")]
    NoVersion,
    /// A resource version that is not a number.
    #[error(transparent)]
    Version(#[from] ParseVersionError),
}

impl<'a> MetaScan<'a> {
    pub(super) fn is_complete(&self) -> bool {
        self.name.is_some() && self.namespace.is_some() && self.uid.is_some() && self.version.is_some()
    }

    pub(crate) fn name(&self) -> Result<&str, UnnamedError> {
        self.name.as_deref().filter(|name| !name.is_empty()).ok_or(UnnamedError::Name)
    }

    /// The object's key.
    ///
    /// # Errors
    /// When there is no name.
    pub fn key(&self) -> Result<ObjectKey, UnnamedError> {
        let name = self.name()?;
        Ok(match self.namespace.as_deref() {
            Some(namespace) => ObjectKey::namespaced(namespace, name),
            None => ObjectKey::cluster(name),
        })
    }

    /// The object's version.
    ///
    /// # Errors
    /// When there is none, or one that is not a number.
    pub fn version(&self) -> Result<ResourceVersion, UnnamedError> {
        Ok(self.version.as_deref().filter(|text| !text.is_empty()).ok_or(UnnamedError::NoVersion)?.parse()?)
    }

    /// The object's uid, if it has one.
    pub fn uid(&self) -> Option<Uid> {
        Uid::new(self.uid_text().unwrap_or_default())
    }

    pub(crate) fn uid_text(&self) -> Option<&str> {
        self.uid.as_deref().filter(|uid| !uid.is_empty())
    }
}

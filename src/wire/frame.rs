//! The frames of a body: the bytes of one watch event or one list item.
//!
//! Answers "what does a splitter give?" and collects frames that cross body chunks. It neither decodes nor checks the
//! content of a frame. Invariants:
//! 1. A frame that lies within one body chunk is a slice of it; only a frame that crosses chunks is copied, once.
//! 2. Memory is bounded: of a frame above the limit only the first `limit` bytes are kept, so that the object's name
//!    can be read.
//!
//! Read next: `json/split.rs`, which finds the frames of JSON.

use bytes::{Bytes, BytesMut};

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
    /// How many bytes are held.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) | Self::Oversize { head: bytes, .. } => bytes.len(),
        }
    }
}

/// What a list says about itself. A watch says nothing.
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
    /// The body ended within an event, so many bytes behind its beginning.
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

/// Room for at most this many bytes is made for a frame of which the first ones have come.
const MOST_EXPECTED: usize = 64 << 10;

/// Collects the bytes of a frame that crosses chunks, up to a limit.
#[derive(Debug)]
pub(super) struct PartialFrame {
    kept: BytesMut,
    /// How many bytes of the frame have come, kept or not.
    pub(super) size: usize,
    limit: usize,
    /// How large the frame before was: the next one is expected to be as large.
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

    /// Ends the frame with the part of `chunk` between `start` and `end`. A frame that lies within the chunk is a slice
    /// of it.
    pub(super) fn finish(&mut self, chunk: &Bytes, start: usize, end: usize) -> Frame {
        if self.size == 0 && end - start <= self.limit {
            return Frame::Whole(chunk.slice(start..end));
        }
        self.push(&chunk[start..end]);
        let size = std::mem::take(&mut self.size);
        self.expected = size.min(self.limit).min(MOST_EXPECTED);
        let head = self.kept.split().freeze();
        // The frame takes the allocation with it: a rare large one must not be kept as long as the watch lasts.
        self.kept = BytesMut::new();
        if size > head.len() { Frame::Oversize { head, size } } else { Frame::Whole(head) }
    }
}

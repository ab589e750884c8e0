//! Where one object ends and the next begins in the body of an answer.
//!
//! Answers "which bytes are one frame?" for watches ([`LineSplitter`]: a line each) and lists ([`ListSplitter`]: an
//! item each), while the body arrives. It decodes nothing and judges nothing inside a frame. Invariants:
//! 1. A frame that lies within one body chunk is a slice of it; only a frame that crosses chunks is copied, once.
//! 2. Memory is bounded: of a frame above the limit only a head of that size is kept, so that its name can be read.
//! 3. Every way of cutting the same bytes into chunks gives the same frames.
//!
//! Read next: `frames/list.rs`, the harder of the two.

use bytes::{Bytes, BytesMut};

mod lines;
mod list;

pub use lines::LineSplitter;
pub use list::{ListHead, ListSplitter, SplitError};

/// The bytes of one watch event or one list item.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Frame {
    /// All of it.
    Whole(Bytes),
    /// Longer than the limit: only its head was kept.
    Oversize {
        /// The first bytes, as many as the limit allows.
        head: Bytes,
        /// How long the frame was.
        size: usize,
    },
}

impl Frame {
    /// How many bytes are held.
    pub fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) | Self::Oversize { head: bytes, .. } => bytes.len(),
        }
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Collects a frame across chunks, up to a limit.
#[derive(Debug)]
struct Carry {
    kept: BytesMut,
    size: usize,
    limit: usize,
}

impl Carry {
    fn new(limit: usize) -> Self {
        Self { kept: BytesMut::new(), size: 0, limit }
    }

    fn push(&mut self, piece: &[u8]) {
        self.size += piece.len();
        let room = self.limit.saturating_sub(self.kept.len()).min(piece.len());
        self.kept.extend_from_slice(&piece[..room]);
    }

    /// Ends a frame with the part of `chunk` between `start` and `end`; slices it when nothing was carried.
    fn finish(&mut self, chunk: &Bytes, start: usize, end: usize) -> Frame {
        if self.size == 0 && end - start <= self.limit {
            return Frame::Whole(chunk.slice(start..end));
        }
        self.push(&chunk[start..end]);
        let size = std::mem::take(&mut self.size);
        let head = self.kept.split().freeze();
        // The allocation goes with the frame: a rare large one must not stay for the life of the watch.
        self.kept = BytesMut::new();
        if size > head.len() { Frame::Oversize { head, size } } else { Frame::Whole(head) }
    }
}

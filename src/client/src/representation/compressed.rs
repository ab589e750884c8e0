//! Texts and messages that are compressed with zstd.
//!
//! 1. Each keeps its dictionary, so it can always be read.
//! 2. The tools of zstd are larger than what they compress: a thread has them once.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zstd_safe::{CCtx, CDict, DCtx, DDict};

/// The fastest level that makes full use of a dictionary; higher ones win a few per cent for twice the time.
const LEVEL: i32 = 1;
pub(super) const DICTIONARY_BYTES: usize = 64 << 10;
/// Of a longer text, this much is a sample.
pub(super) const SAMPLE_BYTES: usize = 16 << 10;

/// What a thread keeps for the next text.
const MOST_ROOM: usize = 1 << 20;

pub(super) struct Dictionary {
    /// None for the first texts.
    pub(super) trained: Option<(CDict<'static>, DDict<'static>)>,
    #[cfg(feature = "persist")]
    pub(super) content: Box<[u8]>,
}

impl Dictionary {
    pub(super) fn none() -> Self {
        Self {
            trained: None,
            #[cfg(feature = "persist")]
            content: Box::default(),
        }
    }

    pub(super) fn of(content: &[u8]) -> Option<Self> {
        let (write, read) = (CDict::try_create(content, LEVEL)?, DDict::try_create(content)?);
        Some(Self {
            trained: Some((write, read)),
            #[cfg(feature = "persist")]
            content: content.into(),
        })
    }
}

#[derive(Clone)]
pub(super) struct Frame {
    pub(super) bytes: Box<[u8]>,
    pub(super) dictionary: Arc<Dictionary>,
}

thread_local! {
    /// To compress, to read, and room for one text.
    static TOOLS: RefCell<(CCtx<'static>, DCtx<'static>, Vec<u8>)> = RefCell::default();
}

impl Frame {
    /// `None` for want of memory alone.
    pub(super) fn of(text: &[u8], dictionary: Arc<Dictionary>) -> Option<Self> {
        TOOLS.with_borrow_mut(|(tool, _, room)| {
            room.reserve(zstd_safe::compress_bound(text.len()));
            let done = match &dictionary.trained {
                Some((write, _)) => tool.compress_using_cdict(room, text, write),
                None => tool.compress(room, text, LEVEL),
            };
            let bytes = room.as_slice().into();
            room.clear();
            room.shrink_to(MOST_ROOM);
            done.ok().map(|_| Self { bytes, dictionary })
        })
    }

    /// A sample for the next dictionary.
    pub(super) fn sample(&self, text: &[u8]) -> Option<Self> {
        match text.get(..SAMPLE_BYTES) {
            None => Some(self.clone()),
            Some(begin) => Self::of(begin, Arc::clone(&self.dictionary)),
        }
    }

    /// `None` for want of memory, or if it is damaged. Only a bug or damaged memory causes that: a file is checked when opened.
    pub(super) fn content(&self) -> Option<Vec<u8>> {
        TOOLS.with_borrow_mut(|(_, tool, _)| {
            let length = zstd_safe::get_frame_content_size(&self.bytes).ok().flatten().unwrap_or_default();
            let mut text = Vec::new();
            // The length may come from a file.
            text.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX)).ok()?;
            let read = match &self.dictionary.trained {
                Some((_, read)) => tool.decompress_using_ddict(&mut text, &self.bytes, read),
                None => tool.decompress(&mut text, &self.bytes),
            };
            read.ok().map(|_| text)
        })
    }
}

/// What a body keeps. It is replaced when it is compressed again.
pub(super) struct PackedBytes(Mutex<Frame>);

impl PackedBytes {
    pub(super) fn new(frame: Frame) -> Self {
        Self(Mutex::new(frame))
    }

    pub(super) fn frame(&self) -> MutexGuard<'_, Frame> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Empty if it cannot be read now: see [`Frame::content`].
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.frame().content().unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.frame().bytes.len()
    }
}

impl Clone for PackedBytes {
    fn clone(&self) -> Self {
        Self::new(self.frame().clone())
    }
}

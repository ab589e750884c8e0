//! Splits the body of a list or a watch into frames: `json/split.rs` looks at every byte, `protobuf/split.rs` goes from length to
//! length.

use bytes::Bytes;

use super::WireKind;
use super::frame::{Frame, ListHead, SplitError};
use super::json::BracketSplitter;
#[cfg(feature = "protobuf")]
use super::protobuf::LengthSplitter;

/// Turns body chunks into the items of a list or the events of a watch.
///
/// ```
/// # #[cfg(feature = "unstable")] {
/// use actix_informer::representation::WireKind;
/// use actix_informer::unstable::{Frame, Splitter};
/// use bytes::Bytes;
///
/// let (mut watch, mut lines) = (Splitter::watch(WireKind::Json, 1024), Vec::new());
/// watch.push(&Bytes::from_static(b"one\ntw"), &mut lines)?;
/// watch.push(&Bytes::from_static(b"o\nhalf"), &mut lines)?;
/// assert_eq!(lines, [Frame::Whole(Bytes::from_static(b"one")), Frame::Whole(Bytes::from_static(b"two"))]);
/// assert!(watch.finish().is_err(), "the last event is not complete");
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Splitter(By);

#[derive(Debug)]
enum By {
    Brackets(BracketSplitter),
    #[cfg(feature = "protobuf")]
    Length(LengthSplitter),
}

impl Splitter {
    /// For a list. Keeps at most `limit` bytes of one item.
    pub fn list(wire: WireKind, limit: usize) -> Self {
        Self(match wire {
            WireKind::Json => By::Brackets(BracketSplitter::list(limit)),
            #[cfg(feature = "protobuf")]
            WireKind::Protobuf(_) => By::Length(LengthSplitter::list(limit)),
        })
    }

    /// For a watch. Keeps at most `limit` bytes of one event.
    pub fn watch(wire: WireKind, limit: usize) -> Self {
        Self(match wire {
            WireKind::Json => By::Brackets(BracketSplitter::watch(limit)),
            #[cfg(feature = "protobuf")]
            WireKind::Protobuf(_) => By::Length(LengthSplitter::watch(limit)),
        })
    }

    /// Appends the frames that this chunk completes.
    ///
    /// # Errors
    /// When the document is not a list; the splitter cannot be used afterwards. A watch has no such error.
    pub fn push(&mut self, chunk: &Bytes, frames: &mut Vec<Frame>) -> Result<(), SplitError> {
        match &mut self.0 {
            By::Brackets(splitter) => splitter.push(chunk, frames),
            #[cfg(feature = "protobuf")]
            By::Length(splitter) => splitter.push(chunk, frames),
        }
    }

    /// Whether the document of a list has closed: no item may follow. A watch never closes.
    pub fn is_closed(&self) -> bool {
        match &self.0 {
            By::Brackets(splitter) => splitter.is_closed(),
            #[cfg(feature = "protobuf")]
            By::Length(splitter) => splitter.is_closed(),
        }
    }

    /// The head of the list; empty for a watch.
    ///
    /// # Errors
    /// When the document of the list never closed, or the watch has ended within an event.
    pub fn finish(self) -> Result<ListHead, SplitError> {
        match self.0 {
            By::Brackets(splitter) => splitter.finish(),
            #[cfg(feature = "protobuf")]
            By::Length(splitter) => splitter.finish(),
        }
    }
}

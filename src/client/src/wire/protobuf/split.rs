//! Splits the body of a list or a watch into frames while it arrives, by their lengths.
//!
//! ```text
//!  list:  Magic     4 bytes  --> Envelope
//!         Envelope  field 2  --> List(its length)      field 1: the kind      others: passed
//!         List      field 2  --> an item               field 1: the metadata  others: passed
//!                   its end  --> Envelope, closed
//!  watch: Length    4 bytes  --> a frame of that length --> Length
//! ```
//!
//! 1. A list is complete only with the last byte of its message, a frame with its last byte.
//! 2. The frames do not depend on the chunks.
//! 3. What is kept is bounded: one unfinished frame up to the limit, and a head of at most 1 MiB.

use bytes::Bytes;

use super::identify::{MAGIC, type_text};
use super::reader::last_bytes;
use crate::wire::frame::{Frame, ListHead, PartialFrame, SplitError};

/// For the kind and the metadata of a list. Real ones are shorter than 1 KiB.
const HEAD_LIMIT: usize = 1 << 20;
const MOST_VARINT_BYTES: usize = 10;

#[derive(Debug)]
pub(crate) struct LengthSplitter {
    state: State,
    /// The received bytes of a number, or of the first four.
    number: Vec<u8>,
    /// An unfinished item or event.
    frame: PartialFrame,
    /// Unfinished kind or metadata.
    part: PartialFrame,
    head: ListHead,
    /// What is left of the list's message.
    left: Option<u64>,
    is_closed: bool,
    has_types: bool,
    has_metadata: bool,
    /// Of earlier chunks.
    bytes_before: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Magic,
    /// Number and encoding.
    Tag,
    FieldLength(Part),
    /// A number that is passed.
    Number,
    /// So many bytes are still to come.
    Reading(Part, u64),
    EventLength,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Types,
    Metadata,
    List,
    Item,
    Event,
    Other,
}

impl LengthSplitter {
    /// Keeps at most `limit` bytes of one item.
    pub(crate) fn list(limit: usize) -> Self {
        Self::new(State::Magic, limit)
    }

    /// Keeps at most `limit` bytes of one event.
    pub(crate) fn watch(limit: usize) -> Self {
        Self::new(State::EventLength, limit)
    }

    fn new(state: State, limit: usize) -> Self {
        Self {
            state,
            number: Vec::with_capacity(MOST_VARINT_BYTES),
            frame: PartialFrame::new(limit),
            part: PartialFrame::new(HEAD_LIMIT),
            head: ListHead::default(),
            left: None,
            is_closed: false,
            has_types: false,
            has_metadata: false,
            bytes_before: 0,
        }
    }

    pub(crate) fn push(&mut self, chunk: &Bytes, frames: &mut Vec<Frame>) -> Result<(), SplitError> {
        let mut at = 0;
        while at < chunk.len() {
            let next = match self.state {
                State::Reading(part, left) => self.part(part, left, (chunk, at), frames)?,
                _ => {
                    self.byte(chunk[at], at, frames)?;
                    at + 1
                }
            };
            if !matches!(self.state, State::EventLength) {
                self.count((next - at) as u64, at)?;
            }
            at = next;
        }
        self.bytes_before += chunk.len() as u64;
        Ok(())
    }

    /// A watch never closes.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Empty for a watch. Only in the message of a list, items are items.
    pub(crate) fn finish(mut self) -> Result<ListHead, SplitError> {
        self.head.has_items &= self.head.kind.as_deref().is_some_and(|kind| kind.ends_with("List"));
        match self.state {
            State::EventLength if self.number.is_empty() => Ok(self.head),
            State::EventLength => Err(SplitError::HalfEvent(self.number.len())),
            State::Reading(Part::Event, _) => Err(SplitError::HalfEvent(self.frame.size)),
            State::Tag if self.is_closed && self.number.is_empty() => Ok(self.head),
            _ => Err(SplitError::Truncated(self.bytes_before)),
        }
    }

    fn invalid(&self, at: usize, what: &'static str) -> SplitError {
        SplitError::InvalidDocument { at: self.bytes_before + at as u64, what }
    }

    /// The list's message must end where a field ends.
    fn count(&mut self, bytes: u64, at: usize) -> Result<(), SplitError> {
        let Some(left) = self.left else { return Ok(()) };
        let left =
            left.checked_sub(bytes).ok_or_else(|| self.invalid(at, "a field is longer than the list"))?;
        self.left = Some(left);
        if left == 0 {
            if self.state != State::Tag || !self.number.is_empty() {
                return Err(self.invalid(at, "the list ends within a field"));
            }
            (self.left, self.is_closed) = (None, true);
        }
        Ok(())
    }

    fn byte(&mut self, byte: u8, at: usize, frames: &mut Vec<Frame>) -> Result<(), SplitError> {
        self.number.push(byte);
        match self.state {
            State::Magic => {
                if !MAGIC.starts_with(&self.number) {
                    return Err(self.invalid(at, "it does not begin as protobuf of Kubernetes does"));
                }
                if self.number.len() == MAGIC.len() {
                    self.next(State::Tag);
                }
                Ok(())
            }
            State::EventLength => {
                if let Ok(length) = <[u8; 4]>::try_from(&*self.number) {
                    let length = u32::from_be_bytes(length);
                    self.next(State::Reading(Part::Event, length.into()));
                    if length == 0 {
                        frames.push(Frame::Whole(Bytes::new()));
                        self.next(State::EventLength);
                    }
                }
                Ok(())
            }
            _ if byte < 0x80 => self.number(at, frames),
            _ if self.number.len() < MOST_VARINT_BYTES => Ok(()),
            _ => Err(self.invalid(at, "a number has more than ten bytes")),
        }
    }

    fn next(&mut self, state: State) {
        self.state = state;
        self.number.clear();
    }

    /// After the last byte of a number.
    fn number(&mut self, at: usize, frames: &mut Vec<Frame>) -> Result<(), SplitError> {
        let value = self.number.iter().rev().fold(0_u64, |value, byte| value << 7 | u64::from(byte & 0x7f));
        match self.state {
            State::Tag => {
                let state = match (value & 7, value >> 3) {
                    // The kind, the list, its metadata and its items are texts and messages.
                    (0 | 1 | 5, 0..=2) => {
                        return Err(self.invalid(at, "a field has another encoding than its type"));
                    }
                    (0, _) => State::Number,
                    (1, _) => State::Reading(Part::Other, 8),
                    (2, number) => State::FieldLength(self.part_of(number, at)?),
                    (5, _) => State::Reading(Part::Other, 4),
                    _ => return Err(self.invalid(at, "an unknown encoding of a field")),
                };
                self.next(state);
            }
            State::FieldLength(Part::List) => {
                self.next(State::Tag);
                self.head.has_items = true;
                // The byte before is not of the list.
                self.left = Some(value.saturating_add(1));
            }
            State::FieldLength(part) => {
                self.next(State::Reading(part, value));
                if value == 0 {
                    self.next(State::Tag);
                    frames.extend((part == Part::Item).then(|| Frame::Whole(Bytes::new())));
                    return self.ended(part, None, at);
                }
            }
            _ => self.next(State::Tag),
        }
        Ok(())
    }

    fn part_of(&mut self, number: u64, at: usize) -> Result<Part, SplitError> {
        let is_in_list = self.left.is_some();
        let (part, is_first) = match (number, is_in_list) {
            (1, false) => (Part::Types, !std::mem::replace(&mut self.has_types, true)),
            (2, false) => (Part::List, !self.is_closed),
            (1, true) => (Part::Metadata, !std::mem::replace(&mut self.has_metadata, true)),
            (2, true) => (Part::Item, true),
            _ => (Part::Other, true),
        };
        // Of two, it is unknown which one counts.
        if is_first {
            Ok(part)
        } else {
            Err(self.invalid(at, "the kind, the list or its metadata is there twice"))
        }
    }

    /// Returns where to continue.
    fn part(
        &mut self,
        part: Part,
        left: u64,
        (chunk, start): (&Bytes, usize),
        frames: &mut Vec<Frame>,
    ) -> Result<usize, SplitError> {
        let there = chunk.len() - start;
        let length = usize::try_from(left).unwrap_or(usize::MAX);
        if there < length {
            if let Some(partial) = self.partial_frame(part) {
                partial.push(&chunk[start..]);
            }
            self.state = State::Reading(part, left - there as u64);
            return Ok(chunk.len());
        }
        let end = start + length;
        let frame = self.partial_frame(part).map(|partial| partial.finish(chunk, start, end));
        match part {
            Part::Event => {
                frames.extend(frame);
                self.next(State::EventLength);
            }
            Part::Item => {
                frames.extend(frame);
                self.next(State::Tag);
            }
            _ => {
                self.next(State::Tag);
                self.ended(part, frame, start)?;
            }
        }
        Ok(end)
    }

    /// `None` for what is passed.
    fn partial_frame(&mut self, part: Part) -> Option<&mut PartialFrame> {
        match part {
            Part::Item | Part::Event => Some(&mut self.frame),
            Part::Types | Part::Metadata => Some(&mut self.part),
            Part::List | Part::Other => None,
        }
    }

    fn ended(&mut self, part: Part, frame: Option<Frame>, at: usize) -> Result<(), SplitError> {
        let bytes = match frame {
            None => Bytes::new(),
            Some(Frame::Whole(bytes)) => bytes,
            Some(Frame::Oversize { .. }) => {
                return Err(self.invalid(at, "a kind or metadata longer than 1 MiB"));
            }
        };
        let text = |number| type_text(&bytes, number).map(str::to_owned);
        match part {
            Part::Types => (self.head.api_version, self.head.kind) = (text(1), text(2)),
            Part::Metadata => {
                if last_bytes(&bytes, 1).is_none() && last_bytes(&bytes, 2).is_none() && !bytes.is_empty() {
                    return Err(self.invalid(at, "list metadata that cannot be read"));
                }
                (self.head.version, self.head.token) = (text(2), text(3));
                // Without its token a page would be the last one.
                if self.head.token.is_none() && last_bytes(&bytes, 3).is_some_and(|token| !token.is_empty()) {
                    return Err(self.invalid(at, "a continue token that is no text"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

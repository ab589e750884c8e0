//! Splits the body of a list or a watch into frames while it arrives, without a copy of the body. `ValueScanner` finds the ends.
//!
//! ```text
//!  list:  BeforeDocument    {   --> BeforeKey
//!         BeforeKey         "   --> Reading(Key)    --> BeforeColon
//!                           }   --> Closed                  (an empty object; not behind a comma)
//!         BeforeColon       :   --> BeforeValue
//!         BeforeValue       [   --> BeforeItem              (the value of `items`)
//!                           any --> Reading(Value)  --> AfterValue
//!         BeforeItem        ]   --> AfterValue              (an empty array; not behind a comma)
//!                           any --> Reading(Item)   --> AfterItem
//!         AfterItem         ,   --> BeforeItem
//!                           ]   --> AfterValue
//!         AfterValue        ,   --> BeforeKey
//!                           }   --> Closed
//!  watch: BeforeLine        \n  --> BeforeLine
//!                           any --> Reading(Line)   --> BeforeLine
//! ```
//!
//! Only the bytes between these parts are read one by one. A `PartialFrame` collects a part that crosses body chunks.
//!
//! 1. Top-level fields of a list may come in any order: custom resources send `items` before `metadata`.
//! 2. A list is complete only when its document has closed, a line only with its newline.
//! 3. Inside an item only quotes and brackets are read: the decoder finds other faults.
//! 4. The frames do not depend on the chunks.

use bytes::Bytes;
use serde::Deserialize;

use super::value_scanner::ValueScanner;
use crate::wire::frame::{Frame, ListHead, PartialFrame, SplitError};

/// For a key, `kind`, `apiVersion` or `metadata` of a list. Real ones are shorter than 1 KiB.
const HEAD_LIMIT: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct BracketSplitter {
    state: State,
    frame: PartialFrame,
    key_or_value: PartialFrame,
    head: ListHead,
    fields: Vec<Field>,
    /// Of earlier chunks.
    bytes_before: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    BeforeDocument,
    /// False after a comma.
    BeforeKey {
        may_close: bool,
    },
    BeforeColon(Field),
    BeforeValue(Field),
    AfterValue,
    /// False after a comma.
    BeforeItem {
        may_close: bool,
    },
    AfterItem,
    BeforeLine,
    Reading(Part, ValueScanner),
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Key,
    Value(Field),
    Item,
    Line,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Kind,
    ApiVersion,
    Metadata,
    Items,
    Other,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(rename = "resourceVersion")]
    version: Option<String>,
    #[serde(rename = "continue")]
    token: Option<String>,
}

impl BracketSplitter {
    /// Keeps at most `limit` bytes of one item.
    pub(crate) fn list(limit: usize) -> Self {
        Self::new(State::BeforeDocument, limit)
    }

    /// Keeps at most `limit` bytes of one event.
    pub(crate) fn watch(limit: usize) -> Self {
        Self::new(State::BeforeLine, limit)
    }

    fn new(state: State, limit: usize) -> Self {
        Self {
            state,
            frame: PartialFrame::new(limit),
            key_or_value: PartialFrame::new(HEAD_LIMIT),
            head: ListHead::default(),
            fields: Vec::new(),
            bytes_before: 0,
        }
    }

    /// Appends the frames that this chunk completes. After an error (the document is no list) the splitter cannot be used.
    pub(crate) fn push(&mut self, chunk: &Bytes, frames: &mut Vec<Frame>) -> Result<(), SplitError> {
        let mut at = 0;
        while at < chunk.len() {
            at = match self.state {
                State::Reading(part, scanner) => self.part(part, scanner, (chunk, at), frames)?,
                State::BeforeLine => self.before_line(chunk[at], at),
                _ => self.structural_byte(chunk[at], at)?,
            };
        }
        self.bytes_before += chunk.len() as u64;
        Ok(())
    }

    /// Only white space may follow. A watch never closes.
    pub(crate) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Empty for a watch. Fails if the list never closed, or the watch has ended within an event.
    pub(crate) fn finish(self) -> Result<ListHead, SplitError> {
        match self.state {
            State::Closed | State::BeforeLine => Ok(self.head),
            State::Reading(Part::Line, _) => Err(SplitError::HalfEvent(self.frame.size)),
            _ => Err(SplitError::Truncated(self.bytes_before)),
        }
    }

    fn before_line(&mut self, byte: u8, at: usize) -> usize {
        if byte == b'\n' {
            return at + 1;
        }
        self.state = State::Reading(Part::Line, ValueScanner::line());
        at
    }

    fn invalid(&self, at: usize, what: &'static str) -> SplitError {
        SplitError::InvalidDocument { at: self.bytes_before + at as u64, what }
    }

    /// Returns where to continue. The scanner needs the first byte of a part: it is not consumed.
    fn structural_byte(&mut self, byte: u8, at: usize) -> Result<usize, SplitError> {
        if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            return Ok(at + 1);
        }
        let reading = |part| (State::Reading(part, ValueScanner::default()), at);
        let (state, next) = match (self.state, byte) {
            (State::BeforeDocument, b'{') => (State::BeforeKey { may_close: true }, at + 1),
            (State::BeforeKey { .. }, b'"') => reading(Part::Key),
            (State::BeforeKey { may_close: true } | State::AfterValue, b'}') => (State::Closed, at + 1),
            (State::BeforeColon(field), b':') => (State::BeforeValue(field), at + 1),
            (State::BeforeValue(Field::Items), b'[') => {
                self.head.has_items = true;
                (State::BeforeItem { may_close: true }, at + 1)
            }
            // `null` means no items. Anything else is refused at its end.
            (State::BeforeValue(Field::Items), b'n') => reading(Part::Value(Field::Items)),
            (State::BeforeValue(field), byte) if field != Field::Items && begins_value(byte) => {
                reading(Part::Value(field))
            }
            (State::AfterValue, b',') => (State::BeforeKey { may_close: false }, at + 1),
            (State::BeforeItem { may_close: true } | State::AfterItem, b']') => (State::AfterValue, at + 1),
            (State::AfterItem, b',') => (State::BeforeItem { may_close: false }, at + 1),
            (State::BeforeItem { .. }, byte) if begins_value(byte) => reading(Part::Item),
            (State::Closed, _) => return Err(self.invalid(at, "more data after the end of the document")),
            _ => return Err(self.invalid(at, "unexpected character")),
        };
        self.state = state;
        Ok(next)
    }

    /// Returns where to continue.
    fn part(
        &mut self,
        part: Part,
        mut scanner: ValueScanner,
        (chunk, start): (&Bytes, usize),
        frames: &mut Vec<Frame>,
    ) -> Result<usize, SplitError> {
        let Some(length) = scanner.advance(&chunk[start..]) else {
            if let Some(partial) = self.partial_frame(part) {
                partial.push(&chunk[start..]);
            }
            self.state = State::Reading(part, scanner);
            return Ok(chunk.len());
        };
        let end = start + length;
        let frame = self.partial_frame(part).map(|partial| partial.finish(chunk, start, end));
        self.state = match part {
            Part::Key => State::BeforeColon(self.key(frame, start)?),
            Part::Value(field) => {
                self.value(field, frame, start)?;
                State::AfterValue
            }
            Part::Item => {
                frames.extend(frame);
                State::AfterItem
            }
            Part::Line => {
                frames.extend(frame);
                State::BeforeLine
            }
        };
        Ok(end)
    }

    /// `None` for values that are skipped.
    fn partial_frame(&mut self, part: Part) -> Option<&mut PartialFrame> {
        match part {
            Part::Item | Part::Line => Some(&mut self.frame),
            Part::Value(Field::Other) => None,
            Part::Key | Part::Value(_) => Some(&mut self.key_or_value),
        }
    }

    fn key(&mut self, frame: Option<Frame>, at: usize) -> Result<Field, SplitError> {
        let Some(Frame::Whole(text)) = frame else { return Err(self.invalid(at, "key longer than 1 MiB")) };
        let key: String =
            serde_json::from_slice(&text).map_err(|_| self.invalid(at, "key is not a valid string"))?;
        let field = match key.as_str() {
            "kind" => Field::Kind,
            "apiVersion" => Field::ApiVersion,
            "metadata" => Field::Metadata,
            "items" => Field::Items,
            _ => return Ok(Field::Other),
        };
        // Of two, it is unknown which one counts.
        match self.fields.contains(&field) {
            true => Err(self.invalid(at, "kind, apiVersion, metadata or items is there twice")),
            false => {
                self.fields.push(field);
                Ok(field)
            }
        }
    }

    fn value(&mut self, field: Field, frame: Option<Frame>, at: usize) -> Result<(), SplitError> {
        let Some(frame) = frame else { return Ok(()) };
        let Frame::Whole(json) = frame else {
            return Err(self.invalid(at, "kind, apiVersion or metadata longer than 1 MiB"));
        };
        let text = || serde_json::from_slice::<Option<String>>(&json);
        match field {
            Field::Kind => self.head.kind = text().map_err(|_| self.invalid(at, "kind is not a string"))?,
            Field::ApiVersion => {
                self.head.api_version = text().map_err(|_| self.invalid(at, "apiVersion is not a string"))?;
            }
            Field::Metadata => {
                let metadata: Option<Metadata> = serde_json::from_slice(&json)
                    .map_err(|_| self.invalid(at, "list metadata has an unexpected type"))?;
                let (version, token) = metadata.map_or((None, None), |found| (found.version, found.token));
                self.head.version = version.filter(|text| !text.is_empty());
                self.head.token = token.filter(|text| !text.is_empty());
            }
            Field::Items if *json == *b"null" => self.head.has_items = true,
            Field::Items => return Err(self.invalid(at, "items is neither an array nor null")),
            Field::Other => {}
        }
        Ok(())
    }
}

fn begins_value(byte: u8) -> bool {
    matches!(byte, b'"' | b'{' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n')
}

#[cfg(test)]
mod tests;

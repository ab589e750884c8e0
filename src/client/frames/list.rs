//! Splits the body of a list into its items while the body arrives.
//!
//! Answers "which items are complete, and what does the list say about itself?" without a copy of the page. A state
//! machine follows the top level of the document; `ValueScanner` finds where each key, value and item ends.
//!
//! ```text
//!  BeforeDocument    {   --> BeforeKey
//!  BeforeKey         "   --> Reading(Key)    --> BeforeColon
//!                    }   --> Closed                  (an empty object; not behind a comma)
//!  BeforeColon       :   --> BeforeValue
//!  BeforeValue       [   --> BeforeItem              (the value of `items`)
//!                    any --> Reading(Value)  --> AfterValue
//!  BeforeItem        ]   --> AfterValue              (an empty array; not behind a comma)
//!                    any --> Reading(Item)   --> AfterItem
//!  AfterItem         ,   --> BeforeItem
//!                    ]   --> AfterValue
//!  AfterValue        ,   --> BeforeKey
//!                    }   --> Closed
//! ```
//!
//! Only the bytes between keys, values and items are read one by one, by `structural_byte`. In the state `Reading`,
//! `part` takes all bytes of the chunk that belong to the key, value or item; one that crosses body chunks is collected
//! in a `PartialFrame`. Invariants:
//! 1. Top-level fields may come in any order: custom resources send `items` before `metadata`.
//! 2. A list is complete only when its document has closed; anything else is a [`SplitError`].
//! 3. Inside an item only quotes and brackets are looked at. The decoder finds what else is wrong with an item.
//!
//! Read next: `list_watch/list.rs`, which feeds it.

use bytes::Bytes;
use serde::Deserialize;

use super::{Frame, PartialFrame};
use crate::client::frames::list::value_scanner::ValueScanner;

mod block;
mod value_scanner;

/// At most this many bytes of a key, of `kind`, `apiVersion` or `metadata` of a list are read: a real one is shorter
/// than 1 KiB.
const HEAD_LIMIT: usize = 1 << 20;

/// What a list says about itself.
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

/// Why a body is not a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// The body ended before the document closed.
    #[error("the list ends after {0} bytes, before its document closes")]
    Truncated(u64),
    /// The document is not a JSON object with the fields of a list.
    #[error("the list is invalid at byte {at}: {what}")]
    InvalidDocument {
        /// The position of the byte in the body.
        at: u64,
        /// What is wrong there.
        what: &'static str,
    },
}

/// Turns body chunks into items.
#[derive(Debug)]
pub struct ListSplitter {
    state: State,
    /// The bytes of an unfinished item.
    item: PartialFrame,
    /// The bytes of an unfinished key or value.
    key_or_value: PartialFrame,
    head: ListHead,
    /// The length of the chunks before the current one.
    bytes_before: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    BeforeDocument,
    /// `may_close`: the object may also end here; after a comma it must not.
    BeforeKey {
        may_close: bool,
    },
    BeforeColon(Field),
    BeforeValue(Field),
    AfterValue,
    /// `may_close`: the array of items may also end here; after a comma it must not.
    BeforeItem {
        may_close: bool,
    },
    AfterItem,
    /// Inside a key, a value or an item; the scanner finds its end.
    Reading(Part, ValueScanner),
    Closed,
}

/// The parts of a list that span several bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Key,
    Value(Field),
    Item,
}

/// A top-level field of a list.
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

impl ListSplitter {
    /// Keeps at most `limit` bytes of one item.
    pub fn new(limit: usize) -> Self {
        Self {
            state: State::BeforeDocument,
            item: PartialFrame::new(limit),
            key_or_value: PartialFrame::new(HEAD_LIMIT),
            head: ListHead::default(),
            bytes_before: 0,
        }
    }

    /// Appends the items that this chunk completes.
    ///
    /// # Errors
    /// When the document is not a list; the splitter cannot be used afterwards.
    pub fn push(&mut self, chunk: &Bytes, items: &mut Vec<Frame>) -> Result<(), SplitError> {
        let mut at = 0;
        while at < chunk.len() {
            at = match self.state {
                State::Reading(part, scanner) => self.part(part, scanner, (chunk, at), items)?,
                _ => self.structural_byte(chunk[at], at)?,
            };
        }
        self.bytes_before += chunk.len() as u64;
        Ok(())
    }

    /// Whether the document has closed: only white space may follow.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// What the list said about itself.
    ///
    /// # Errors
    /// When its document never closed.
    pub fn finish(self) -> Result<ListHead, SplitError> {
        if self.is_closed() { Ok(self.head) } else { Err(SplitError::Truncated(self.bytes_before)) }
    }

    fn invalid(&self, at: usize, what: &'static str) -> SplitError {
        SplitError::InvalidDocument { at: self.bytes_before + at as u64, what }
    }

    /// Reads one byte outside of keys, values and items; returns the position at which to continue. The first byte of
    /// a part is not consumed here: the scanner needs it.
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
            // Either `null`, which means no items, or refused when its end is found.
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

    /// Reads the bytes of a key, value or item that lie in this chunk; returns the position at which to continue.
    fn part(
        &mut self,
        part: Part,
        mut scanner: ValueScanner,
        (chunk, start): (&Bytes, usize),
        items: &mut Vec<Frame>,
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
                items.extend(frame);
                State::AfterItem
            }
        };
        Ok(end)
    }

    /// Where the bytes of this part are collected; `None` for values that are skipped.
    fn partial_frame(&mut self, part: Part) -> Option<&mut PartialFrame> {
        match part {
            Part::Item => Some(&mut self.item),
            Part::Value(Field::Other) => None,
            Part::Key | Part::Value(_) => Some(&mut self.key_or_value),
        }
    }

    fn key(&self, frame: Option<Frame>, at: usize) -> Result<Field, SplitError> {
        let Some(Frame::Whole(text)) = frame else { return Err(self.invalid(at, "key longer than 1 MiB")) };
        let key: String =
            serde_json::from_slice(&text).map_err(|_| self.invalid(at, "key is not a valid string"))?;
        Ok(match key.as_str() {
            "kind" => Field::Kind,
            "apiVersion" => Field::ApiVersion,
            "metadata" => Field::Metadata,
            "items" => Field::Items,
            _ => Field::Other,
        })
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

//! Splits the body of a list into its items while it arrives.
//!
//! Answers "which items are complete, and what does the list say of itself?" without a copy of the page: a small
//! automaton follows the top level of the document and only balances what lies inside. Invariants:
//! 1. Top-level fields may come in any order: custom resources send `items` before `metadata`.
//! 2. A list is whole only when its document has closed; anything else is [`SplitError`].
//! 3. Inside an item only quotes and brackets are looked at; a broken item is found by whoever decodes it.
//!
//! Read next: `list_watch/list.rs`, which feeds it.

use bytes::Bytes;
use serde::Deserialize;

use super::{Carry, Frame};
use crate::client::frames::list::nest::Nest;

mod block;
mod nest;

/// At most this much of `kind`, `apiVersion` or `metadata` of a list is read: a real one is below 1 KiB.
const HEAD_LIMIT: usize = 1 << 20;

/// What a list says of itself.
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
    /// Whether there were `items`, be it `null`.
    pub has_items: bool,
}

/// Why a body is no list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// The body ended before the document closed.
    #[error("the list ends after {0} bytes, before its document closes")]
    Truncated(u64),
    /// The document is not a JSON object of the form of a list.
    #[error("the list is broken at byte {at}: {what}")]
    Broken {
        /// Where.
        at: u64,
        /// What is wrong there.
        what: &'static str,
    },
}

/// Turns body chunks into items.
#[derive(Debug)]
pub struct ListSplitter {
    state: State,
    field: Field,
    item: Carry,
    head: Carry,
    found: ListHead,
    read: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Key { may_close: bool },
    InKey(Nest),
    Colon,
    Value,
    InValue(Nest),
    BehindValue,
    Item { may_close: bool },
    InItem(Nest),
    BehindItem,
    Closed,
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

impl ListSplitter {
    /// Keeps at most `limit` bytes of one item.
    pub fn new(limit: usize) -> Self {
        Self {
            state: State::Start,
            field: Field::Other,
            item: Carry::new(limit),
            head: Carry::new(HEAD_LIMIT),
            found: ListHead::default(),
            read: 0,
        }
    }

    /// Appends the items that this chunk completes.
    ///
    /// # Errors
    /// When the document is no list; the splitter is of no use afterwards.
    pub fn push(&mut self, chunk: &Bytes, items: &mut Vec<Frame>) -> Result<(), SplitError> {
        let mut at = 0;
        while at < chunk.len() {
            at = match self.state {
                State::InKey(nest) | State::InValue(nest) | State::InItem(nest) => {
                    self.inside(nest, chunk, at, items)?
                }
                _ => self.between(chunk[at], at)?,
            };
        }
        self.read += chunk.len() as u64;
        Ok(())
    }

    /// Whether the document has closed: what may still come is white space.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// What the list said of itself.
    ///
    /// # Errors
    /// When its document never closed.
    pub fn finish(self) -> Result<ListHead, SplitError> {
        if self.is_closed() { Ok(self.found) } else { Err(SplitError::Truncated(self.read)) }
    }

    fn broken(&self, at: usize, what: &'static str) -> SplitError {
        SplitError::Broken { at: self.read + at as u64, what }
    }

    /// One byte outside every key, value and item; gives where to go on.
    fn between(&mut self, byte: u8, at: usize) -> Result<usize, SplitError> {
        if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            return Ok(at + 1);
        }
        let stay = |state| Ok::<_, SplitError>((state, at));
        let (state, next) = match (self.state, byte) {
            (State::Start, b'{') => (State::Key { may_close: true }, at + 1),
            (State::Key { .. }, b'"') => (State::InKey(Nest::default()), at),
            (State::Key { may_close: true } | State::BehindValue, b'}') => (State::Closed, at + 1),
            (State::Colon, b':') => (State::Value, at + 1),
            (State::Value, b'[') if self.field == Field::Items => {
                self.found.has_items = true;
                (State::Item { may_close: true }, at + 1)
            }
            (State::Value, b'n') if self.field == Field::Items => stay(State::InValue(Nest::default()))?,
            (State::Value, byte) if self.field != Field::Items && begins_value(byte) => {
                stay(State::InValue(Nest::default()))?
            }
            (State::BehindValue, b',') => (State::Key { may_close: false }, at + 1),
            (State::Item { may_close: true } | State::BehindItem, b']') => (State::BehindValue, at + 1),
            (State::BehindItem, b',') => (State::Item { may_close: false }, at + 1),
            (State::Item { .. }, byte) if begins_value(byte) => stay(State::InItem(Nest::default()))?,
            (State::Closed, _) => return Err(self.broken(at, "something behind the document")),
            _ => return Err(self.broken(at, "an unexpected character")),
        };
        self.state = state;
        Ok(next)
    }

    /// The part of a key, value or item that lies in this chunk; gives where to go on.
    fn inside(
        &mut self,
        mut nest: Nest,
        chunk: &Bytes,
        start: usize,
        items: &mut Vec<Frame>,
    ) -> Result<usize, SplitError> {
        let end = nest.advance(&chunk[start..]).map(|length| start + length);
        let kept = match self.state {
            State::InItem(_) => Some(&mut self.item),
            State::InValue(_) if self.field == Field::Other => None,
            _ => Some(&mut self.head),
        };
        let Some(end) = end else {
            if let Some(carry) = kept {
                carry.push(&chunk[start..]);
            }
            self.state = match self.state {
                State::InKey(_) => State::InKey(nest),
                State::InItem(_) => State::InItem(nest),
                _ => State::InValue(nest),
            };
            return Ok(chunk.len());
        };
        let frame = kept.map(|carry| carry.finish(chunk, start, end));
        self.state = match self.state {
            State::InItem(_) => {
                items.extend(frame);
                State::BehindItem
            }
            State::InKey(_) => {
                self.field = self.key(frame, start)?;
                State::Colon
            }
            _ => {
                self.value(frame, start)?;
                State::BehindValue
            }
        };
        Ok(end)
    }

    fn key(&self, frame: Option<Frame>, at: usize) -> Result<Field, SplitError> {
        let Some(Frame::Whole(text)) = frame else { return Err(self.broken(at, "a key of a megabyte")) };
        let key: String =
            serde_json::from_slice(&text).map_err(|_| self.broken(at, "a key that is no text"))?;
        Ok(match key.as_str() {
            "kind" => Field::Kind,
            "apiVersion" => Field::ApiVersion,
            "metadata" => Field::Metadata,
            "items" => Field::Items,
            _ => Field::Other,
        })
    }

    fn value(&mut self, frame: Option<Frame>, at: usize) -> Result<(), SplitError> {
        let Some(frame) = frame else { return Ok(()) };
        let Frame::Whole(json) = frame else { return Err(self.broken(at, "list metadata of a megabyte")) };
        let text = || serde_json::from_slice::<Option<String>>(&json);
        match self.field {
            Field::Kind => self.found.kind = text().map_err(|_| self.broken(at, "a kind that is no text"))?,
            Field::ApiVersion => {
                self.found.api_version =
                    text().map_err(|_| self.broken(at, "an apiVersion that is no text"))?;
            }
            Field::Metadata => {
                let metadata: Option<Metadata> = serde_json::from_slice(&json)
                    .map_err(|_| self.broken(at, "list metadata of another form"))?;
                let (version, token) = metadata.map_or((None, None), |found| (found.version, found.token));
                self.found.version = version.filter(|text| !text.is_empty());
                self.found.token = token.filter(|text| !text.is_empty());
            }
            Field::Items if *json == *b"null" => self.found.has_items = true,
            Field::Items => return Err(self.broken(at, "items that are no list")),
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

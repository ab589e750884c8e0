//! What is measured of a recorder.
//!
//! Answers "what became of the events?". Invariant: each call of emit counts once as emitted, and at most once as
//! dropped before it was sent. Requests are counted by their last answer. Read next: `events.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

/// How many different words of servers are counted by themselves.
const MOST_REASONS: usize = 16;

/// Why an event was not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// Too many events waited to be sent.
    Full,
    /// Its object had too many events lately. A repeat is still counted, and told with the next one that is sent.
    Spam,
    /// No server would accept it.
    Invalid,
    /// The recorder was shut down.
    Closed,
    /// The server refused it.
    Refused,
    /// The server failed too often.
    GaveUp,
    /// The repeats of a series were forgotten, because too many series were there and too many events waited.
    Forgotten,
}

/// The newest failure.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastError {
    /// What went wrong.
    pub text: String,
    /// When: the time since 1970.
    pub wall: Duration,
}

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Figures {
    /// Events that the program gave.
    pub emitted: u64,
    /// Of these, repeats of one that is still told.
    pub merged: u64,
    /// Events that were created on the server.
    pub created: u64,
    /// Repeats that were told by a patch.
    pub patched: u64,
    /// Requests that failed and were sent again.
    pub retries: u64,
    /// Events that wait to be sent.
    pub waiting: usize,
    /// Requests that wait for their answer.
    pub in_flight: usize,
    /// Events whose repeats are recognized.
    pub known: usize,
    /// What was not told, and why.
    pub dropped: BTreeMap<DropReason, u64>,
    /// What the server refused, by its words: `Forbidden`, `NotFound`.
    pub refused: BTreeMap<String, u64>,
    /// The newest failure, also of a request that succeeded later.
    pub last_error: Option<LastError>,
}

impl Figures {
    /// How many were dropped for this reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped.get(&reason).copied().unwrap_or(0)
    }

    pub(super) fn drop_one(&mut self, reason: DropReason) {
        *self.dropped.entry(reason).or_default() += 1;
    }

    /// Counts a refusal by the server's word for it.
    pub(super) fn refuse(&mut self, word: String) {
        let is_room = self.refused.len() < MOST_REASONS || self.refused.contains_key(&word);
        *self.refused.entry(if is_room { word } else { "Other".to_owned() }).or_default() += 1;
    }
}

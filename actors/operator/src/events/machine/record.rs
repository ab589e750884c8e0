//! One event on the server, and what still has to be sent of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::event::{Event, Identity};

/// How repeats are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repeats {
    /// As events.k8s.io does: the first repeat begins a series, which is sent again every half an hour and at
    /// its end.
    Series,
    /// As core/v1 does: each repeat that the spam filter lets through is sent.
    Count,
}

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verb {
    /// The event is not there yet.
    Create,
    /// Its count, its last time and its note have changed.
    Patch,
}

/// The number of a request; that of its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub(super) u64);

/// A request to send.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventRequest {
    /// Its number, for the answer.
    pub id: RequestId,
    /// What to do.
    pub verb: Verb,
    /// The name of the event on the server.
    pub name: String,
    /// What it says, except the note.
    pub event: Arc<Event>,
    /// The note.
    pub note: String,
    /// When it was emitted first: the time since 1970.
    pub first: Duration,
    /// When it was emitted last.
    pub last: Duration,
    /// How often.
    pub count: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    pub(super) count: u32,
    pub(super) at: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    Waiting,
    /// The request in flight has this `count`; `again`: another one follows.
    InFlight {
        count: u32,
        again: bool,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) identity: Arc<Identity>,
    /// Whether repeats still find it. If not, it is removed after its request.
    pub(super) is_known: bool,
    pub(super) name: String,
    pub(super) event: Arc<Event>,
    pub(super) note: String,
    pub(super) first: Duration,
    pub(super) last: Duration,
    /// `last` on the clock of the runtime.
    pub(super) seen: Duration,
    /// Never less than the count on the server, or in the request in flight.
    pub(super) count: u32,
    /// None: not on the server.
    pub(super) told: Option<Told>,
    /// A create with this count got no clear answer.
    pub(super) unclear: Option<u32>,
    pub(super) tries: u32,
    pub(super) state: State,
    /// For a known one of a series.
    pub(super) timer: Option<Duration>,
}

impl Record {
    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Whether one more repeat needs a request, if none waits.
    pub(super) fn wants(&self, repeats: Repeats) -> bool {
        let said = match self.state {
            State::InFlight { count, .. } => Some(count),
            _ => self.told.map(|told| told.count),
        };
        repeats == Repeats::Count || said.is_none_or(|said| said < 2)
    }

    /// Whether a later request contains the present repeats.
    pub(super) fn is_told_later(&self) -> bool {
        matches!(self.state, State::Waiting | State::InFlight { again: true, .. })
    }

    pub(super) fn untold(&self) -> u32 {
        self.told.map_or(0, |told| self.count - told.count)
    }

    pub(super) fn request(&mut self, id: u64) -> EventRequest {
        self.state = State::InFlight { count: self.count, again: false };
        EventRequest {
            id: RequestId(id),
            verb: if self.told.is_some() { Verb::Patch } else { Verb::Create },
            name: self.name.clone(),
            event: Arc::clone(&self.event),
            note: self.note.clone(),
            first: self.first,
            last: self.last,
            count: self.count,
        }
    }
}

// Each emit counts at most once as dropped before it was sent.

/// Further words of servers count as `Other`.
const MOST_REASONS: usize = 16;

/// Why an event was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// Too many events waited to be sent.
    Full,
    /// Its object had too many events lately. A repeat is still counted, and included in the next
    /// one that is sent.
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
pub struct RecorderFigures {
    /// Events that the program gave.
    pub emitted: u64,
    /// Of these, repeats that another request still sends.
    pub merged: u64,
    /// Events that were created on the server.
    pub created: u64,
    /// Repeats that were sent by a patch.
    pub patched: u64,
    /// Requests that failed and were sent again.
    pub retries: u64,
    /// Events that wait to be sent.
    pub waiting: usize,
    /// Requests that wait for their answer.
    pub in_flight: usize,
    /// Events whose repeats are recognized.
    pub known: usize,
    /// What was not sent, and why.
    pub dropped: BTreeMap<DropReason, u64>,
    /// What the server refused, by its words: `Forbidden`, `NotFound`.
    pub refused: BTreeMap<String, u64>,
    /// The newest failure, also of a request that succeeded later.
    pub last_error: Option<LastError>,
}

impl RecorderFigures {
    /// How many were dropped for this reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped.get(&reason).copied().unwrap_or(0)
    }

    pub(super) fn drop_one(&mut self, reason: DropReason) {
        *self.dropped.entry(reason).or_default() += 1;
    }

    pub(super) fn refuse(&mut self, word: String) {
        let is_room = self.refused.len() < MOST_REASONS || self.refused.contains_key(&word);
        *self.refused.entry(if is_room { word } else { "Other".to_owned() }).or_default() += 1;
    }
}

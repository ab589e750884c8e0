//! How events wait that a subscriber has not taken yet, and the figures about them.
//!
//! Answers "what can a user choose, and which figures are shown?". `listener.rs` implements both.

use std::time::Duration;

use super::cursor::{Cursor, Purpose};
use super::line::WhenFull;
use super::{Backlog, Waiting};

/// How events wait that the subscriber has not taken yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// The newest state of each key: a recipient that lags does not receive the states between. It does receive the
    /// last object of a key that was created and deleted meanwhile ([`MOST_BRIEF_LIVES`]). One that keeps up receives
    /// every event as it came.
    #[default]
    Coalesce,
    /// Every event, one by one, in order, none coalesced.
    Every {
        /// How much may wait: for each event the object's bytes as they came from the wire and 64 more. An event
        /// that is larger than this is taken if none other waits. A list is a cursor, and weighs nothing.
        bytes: usize,
        /// What happens beyond it.
        when_full: WhenFull,
    },
    /// Every key that was touched, and no object: what waits keeps none alive. A key waits once, however often it is
    /// touched; also one whose object came and went. For whoever looks objects up when it gets to them, as a work queue
    /// does.
    Keys,
}

/// For so many keys at most the last object that was created and deleted while the recipient was behind is kept to be
/// delivered.
pub const MOST_BRIEF_LIVES: usize = 4_096;

/// The numbers of one backlog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BacklogStats {
    /// Keys with something that waits, each counted once (under `Every`, events): those whose events are written out,
    /// and those that a first list has yet to deliver. Of a resync, and while other lists wait, the larger of both
    /// numbers: they may have keys in common. What other lists and restarts still have is not known before their cursor
    /// gets there, and not counted. A filter is asked when a cursor gets to a key, so keys that it will drop are counted
    /// until then.
    pub depth: usize,
    /// Events written out, or keys under `Keys`: under `Coalesce` at most four a key, besides those of one publish, at
    /// most 250, that are delivered as they came if nothing follows them.
    pub events: usize,
    /// Unfinished cursors: at most four, and while they are walked what lists have added, one for each gap between
    /// them; under `Every` besides those of first lists and of a resync, and of lists that may have nothing to tell.
    pub cursors: usize,
    /// Events that were left out because a newer one replaced them.
    pub coalesced: u64,
    /// Events that were dropped because the backlog was full: under `Coalesce` those of brief lives beyond the bound.
    pub dropped: u64,
    /// Changes that a filter dropped: they cost nothing but the question. An object of a list that does not pass counts,
    /// too.
    pub filtered: u64,
    /// What the events written out weigh, as [`Policy::Every`] counts it; zero under `Coalesce`.
    pub bytes: usize,
    /// Events handed out.
    pub delivered: u64,
    /// Changes that could not follow what was pending: zero, or the store has a fault.
    pub impossible: u64,
    /// The number of the oldest waiting entry; entries are numbered in order of arrival.
    pub oldest: Option<u64>,
    /// When the oldest entry arrived.
    pub oldest_since: Option<Duration>,
}

// The figures of a backlog.
//
// Answers "how much waits, and since when?". Nothing is counted that would need a walk: see `BacklogStats::depth`.

impl<S> Backlog<S> {
    /// The filter has dropped so many changes.
    pub(super) fn count_filtered(&mut self, changes: u64) {
        if let Some(filtering) = &mut self.filter {
            filtering.dropped += changes;
        }
    }

    /// A change that the filter has dropped joins an event that waits.
    pub(super) fn uncount_filtered(&mut self) {
        if let Some(filtering) = &mut self.filter {
            filtering.dropped = filtering.dropped.saturating_sub(1);
        }
    }

    /// The numbers. It walks nothing but what is ready to be delivered: at most what one publish brought.
    pub fn stats(&self) -> BacklogStats {
        let oldest = self.oldest();
        let (events, bytes) = match &self.waiting {
            Waiting::Coalesced { pending, .. } => (pending.as_ref().map_or(0, |pending| pending.events()), 0),
            Waiting::Every(line) => (line.len(), line.bytes),
            Waiting::Keys(keys) => (keys.len(), 0),
        };
        BacklogStats {
            depth: self.depth(),
            events: self.ready.len() + events,
            cursors: self.cursors.len(),
            coalesced: self.counters.coalesced,
            dropped: self.counters.dropped,
            filtered: self.filter.as_ref().map_or(0, |filtering| filtering.dropped),
            bytes,
            delivered: self.counters.delivered,
            impossible: self.counters.impossible,
            oldest: oldest.map(|(arrival, _)| arrival),
            oldest_since: oldest.map(|(_, since)| since),
        }
    }

    /// How many keys have something that waits, each counted once; under `Every` how many events wait.
    fn depth(&self) -> usize {
        let remaining = self.cursors.iter().map(Cursor::remaining);
        if self.waiting.is_every() {
            return self.ready.len() + self.waiting.len() + remaining.sum::<usize>();
        }
        let (written, ahead) = (self.ready_keys() + self.waiting.len(), remaining.max().unwrap_or(0));
        match self.cursors.front() {
            // What is written out lies behind it.
            Some(only) if self.cursors.len() == 1 && only.is_alone && only.purpose != Purpose::Resync => {
                written + ahead
            }
            // They may have keys in common.
            _ => written.max(ahead),
        }
    }

    fn ready_keys(&self) -> usize {
        if self.ready.len() < 2 {
            return self.ready.len();
        }
        let mut keys: Vec<_> = self.ready.iter().map(|(_, _, change)| change.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len()
    }
}

//! How events wait that a subscriber has not taken yet, and the figures about them.

use std::time::Duration;

/// How events wait that the subscriber has not taken yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// The newest state of each key: a recipient that lags does not receive the states between. It does
    /// receive the last object of a key that was created and deleted in between ([`MOST_BRIEF_LIVES`]). One
    /// that keeps up receives every event as it came.
    #[default]
    Coalesce,
    /// Every event, one by one, in order, none coalesced.
    Every {
        /// How much may wait: for each event the object's bytes as they came from the wire and 64 more. An
        /// event that is larger than this is taken if no other waits. A list is a cursor, and counts as
        /// nothing.
        bytes: usize,
        /// What happens beyond it.
        when_full: WhenFull,
    },
    /// Every key that was touched, and no object: what waits keeps none alive. A key waits once, however
    /// often it is touched; also one whose object came and went. For a subscriber that looks objects up when
    /// it gets to them, as a work queue does.
    Keys,
}

/// What becomes of a subscription to every event whose backlog is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenFull {
    /// It ends, and says how many events were dropped, at least. It also ends when more than four lists with
    /// events wait, since each keeps a state of the store in memory.
    Disconnect,
    /// What waits is dropped and counted; then the difference between the delivered and the current state is
    /// delivered, with cause `Relist`.
    Restate,
}

/// The most keys for which the last object is kept that was created and deleted while the recipient was
/// behind.
pub const MOST_BRIEF_LIVES: usize = 4_096;

/// The numbers of one backlog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BacklogStats {
    /// Keys with something that waits, each counted once (under `Every`, events): those whose events are
    /// written out, and those that a first list has yet to deliver. During a resync, and while other lists
    /// wait, the larger of both numbers: they may have keys in common. What other lists and restarts have yet
    /// to deliver is not known before their cursor gets there, and is not counted. A filter judges a key when
    /// a cursor gets there, so keys that it will drop are counted until then.
    pub depth: usize,
    /// Events written out, or keys under `Keys`: under `Coalesce` at most four a key, besides those of one
    /// publish, at most 250, that are delivered as they came if nothing follows them.
    pub events: usize,
    /// Unfinished cursors: at most four, and while they are walked one more for each gap between them; under
    /// `Every` besides those of first lists and of a resync, and of lists that may have no events.
    pub cursors: usize,
    /// Events that were left out because a newer one replaced them.
    pub coalesced: u64,
    /// Events that were dropped because the backlog was full: under `Coalesce` those of brief lives beyond
    /// the bound.
    pub dropped: u64,
    /// Changes that a filter dropped. An object of a list that does not pass counts too.
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

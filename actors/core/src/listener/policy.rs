//! How a subscription is owed what its recipient has not taken yet, and the numbers of it.
//!
//! Answers "what may be chosen, and what is shown?"; what follows from it is `listener.rs`.

use std::time::Duration;

/// How a subscription is owed what its recipient has not taken yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// The newest state of each key: a recipient that lags is spared what lies between, but for the last life of a
    /// key that came and went meanwhile, of which it is told ([`MOST_BRIEF_LIVES`]). One that keeps up is told every
    /// event as it came.
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
}

/// What becomes of a subscription to every event whose backlog is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenFull {
    /// It ends, and says how many events were dropped.
    Disconnect,
    /// What waits is dropped and counted; then the difference between what was told and the current state is told,
    /// with cause `Relist`.
    Restate,
}

/// Of so many keys at most a life that came and went while the recipient was behind is kept to be told.
pub const MOST_BRIEF_LIVES: usize = 4_096;

/// The numbers of one backlog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BacklogStats {
    /// Keys that are owed something (under `Every`, events): what is written out, and what a first list or a resync
    /// has yet to tell. An event that is ready to be told next counts beside what its key is owed after it. What other
    /// lists and restarts still owe is not known before their cursor gets there, and not counted.
    pub depth: usize,
    /// Events written out: under `Coalesce` at most four a key.
    pub events: usize,
    /// Unfinished cursors.
    pub cursors: usize,
    /// Events that the recipient was spared because a newer one said more.
    pub coalesced: u64,
    /// Events that were dropped because the backlog was full: under `Coalesce` those of brief lives beyond the bound.
    pub dropped: u64,
    /// What the events written out weigh, as [`Policy::Every`] counts it; zero under `Coalesce`.
    pub bytes: usize,
    /// Events handed out.
    pub delivered: u64,
    /// Changes that could not follow what was pending: zero, or the store has a fault.
    pub impossible: u64,
    /// The number of the oldest debt; debts are numbered in order of arrival.
    pub oldest: Option<u64>,
    /// When the oldest debt arrived.
    pub oldest_since: Option<Duration>,
}

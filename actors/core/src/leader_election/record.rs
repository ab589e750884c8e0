//! What stands in a lease and in the registration of a candidate, and for how long a lease that was seen is held.
//!
//! Answers "may another candidate take this lease?". Invariants:
//! 1. The times in a record are of its writer's clock. They are compared for equality, never with a clock here: a lease
//!    lasts from when its record was first seen here.
//! 2. A record without a holder is free at once.
//!
//! Read next: `../leader_election.rs`.

use std::sync::Arc;
use std::time::Duration;

/// What a lease says about its holder. Times of day are durations since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Who holds it; empty if nobody does.
    pub holder: Arc<str>,
    /// How long it is held after a renewal, in seconds.
    pub duration_seconds: u32,
    /// The time of day at which the holder took it.
    pub acquired: Option<Duration>,
    /// The time of day of the last renewal.
    pub renewed: Option<Duration>,
    /// How often it has begun to be held anew: the fencing number of its holder.
    pub transitions: u64,
    /// Who is to hold it next, as the controller of a coordinated election says; empty if nobody else is.
    pub preferred_holder: Arc<str>,
}

/// What the registration of a candidate says. Times of day are durations since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CandidateRecord {
    /// When the controller asked whether the candidate is there.
    pub pinged: Option<Duration>,
    /// When the candidate said so.
    pub renewed: Option<Duration>,
}

impl CandidateRecord {
    /// The time to answer with, if the question was not answered yet. It is never before the question, whatever the two
    /// clocks show: else the controller would not take it for an answer.
    pub(super) fn answer(self, wall: Duration) -> Option<Duration> {
        let pinged = self.pinged?;
        (self.renewed < Some(pinged)).then(|| wall.max(pinged))
    }
}

/// A record, and since when it stands as it is, by the clock here.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    pub(super) record: LeaseRecord,
    pub(super) since: Duration,
}

impl Observed {
    /// Whether nobody has renewed it for as long as it is held.
    pub(super) fn has_expired(&self, now: Duration) -> bool {
        self.kept_until() <= now
    }

    /// Until when it is held if nobody renews it.
    pub(super) fn kept_until(&self) -> Duration {
        self.since.saturating_add(Duration::from_secs(self.record.duration_seconds.into()))
    }

    /// Whether somebody else may still work under it.
    pub(super) fn is_held_by_other(&self, identity: &str, now: Duration) -> bool {
        !self.record.holder.is_empty() && &*self.record.holder != identity && !self.has_expired(now)
    }
}

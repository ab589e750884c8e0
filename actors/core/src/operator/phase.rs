//! The phases of an operator, in the order in which they start, and how long each may take to drain.
//!
//! Answers "what comes before what?". Read next: `operator.rs`, which goes through them.

use std::fmt;
use std::time::Duration;

/// When a part starts, and in reverse when it stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// What tells others how the operator is doing: first to start and last to stop.
    Probes,
    /// Informers and factories.
    Caches,
    /// Controllers and other work that every replica does.
    Work,
    /// The election. As a part it starts behind the caches; the election itself campaigns from its own start, or, if it was
    /// declared, from then on. It stops, which releases the lease, when the leader's work has ended, also if it was not
    /// started yet as a part. If something of that work cannot be ended, the lease is not released.
    Election,
    /// Recorders of events about the leader's work. They start behind the caches, and send what waits when that work has
    /// ended, before the lease is released.
    Events,
    /// Controllers and other work that only the leader does.
    LeaderWork,
}

impl Phase {
    /// All, in the order in which they start.
    pub const ALL: [Self; 6] =
        [Self::Probes, Self::Caches, Self::Work, Self::Election, Self::Events, Self::LeaderWork];

    /// The phase that starts before this one and stops after it.
    pub(super) fn before(self) -> Option<Self> {
        Self::ALL.into_iter().rev().find(|phase| *phase < self)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Probes => "probes",
            Self::Caches => "caches",
            Self::Work => "work",
            Self::Election => "election",
            Self::Events => "events",
            Self::LeaderWork => "work of the leader",
        })
    }
}

/// How long the parts of each phase may take to end what they have begun. A phase of which something still runs after its
/// limit is waited for one second more. Unless set, all of that together is 29 s: a kubelet waits 30 s before it kills a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainLimits {
    limits: [Duration; Phase::ALL.len()],
}

impl Default for DrainLimits {
    fn default() -> Self {
        Self { limits: [1, 2, 8, 2, 2, 8].map(Duration::from_secs) }
    }
}

impl DrainLimits {
    /// The limit of this phase.
    pub fn of(&self, phase: Phase) -> Duration {
        self.limits[phase as usize]
    }

    /// The same with another limit for this phase.
    #[must_use]
    pub fn with(mut self, phase: Phase, limit: Duration) -> Self {
        self.limits[phase as usize] = limit;
        self
    }
}

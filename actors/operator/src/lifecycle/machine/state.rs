//! The states of a part, as they are decided and as they are shown, and the phases.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::restart::{Exit, RestartHistory, RestartPolicy};

/// What the operator is doing as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Parts start and run.
    Running,
    /// This phase ends. Later ones have ended, earlier ones run.
    Stopping(Phase),
    /// Nothing runs any more.
    Stopped,
}

/// What one part is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartState {
    /// It starts when the caches are filled.
    WaitsForCaches,
    /// It starts when this process leads.
    Standby,
    /// It runs, and has not reported that it is ready.
    Starting,
    /// Others may rely on it.
    Ready,
    /// It has failed and starts again.
    Backoff {
        /// When, as time since the runtime's start.
        until: Duration,
    },
    /// It has ended by itself, without a failure.
    Done,
    /// It has failed too often and is not started again.
    GivenUp,
    /// It ends what it has begun.
    Draining {
        /// When it is dropped if it has not ended.
        until: Duration,
    },
    /// It was dropped, and something of it still runs.
    Ending,
    /// It is not started any more.
    Stopped {
        /// Whether it had ended by itself, within its time and without a failure.
        clean: bool,
    },
}

/// What follows from the end of one life of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartEnded {
    /// It has failed, and starts again after this wait.
    Restarts {
        /// How long it waits.
        after: Duration,
    },
    /// It has failed, and is not started again.
    GivenUp {
        /// Why.
        reason: Arc<str>,
    },
    /// Its work is done.
    Done,
    /// It was dropped because the lease was lost. It starts again with the next one.
    LeaseLost,
    /// It was asked to end, and has.
    Drained,
    /// It was dropped because its time was over.
    TimeOver,
}

#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) phase: Phase,
    pub(super) run: Run,
    pub(super) lives: u64,
    pub(super) history: RestartHistory,
    pub(super) was_ready: bool,
    /// It holds something while it does not run.
    pub(super) holds: bool,
    /// Its last life only ends what it holds.
    pub(super) closes: bool,
    pub(super) was_given_up: bool,
    /// Dropped and not awaited: something of it may still run.
    pub(super) is_abandoned: bool,
    pub(super) since: Duration,
    pub(super) last_error: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    Off,
    Runs { life: u64, ready: bool },
    Backoff { until: Duration },
    Done,
    GivenUp,
    Draining { life: u64, until: Duration },
    Ending { life: u64, since: Duration, lease_lost: bool },
    Stopped { clean: bool },
}

impl Run {
    /// Until it has ended.
    pub(super) fn life(self) -> Option<u64> {
        match self {
            Self::Runs { life, .. } | Self::Draining { life, .. } | Self::Ending { life, .. } => Some(life),
            _ => None,
        }
    }
}

impl Part {
    pub(super) fn new(phase: Phase, policy: RestartPolicy) -> Self {
        Self {
            phase,
            run: Run::Off,
            lives: 0,
            history: RestartHistory::new(policy),
            was_ready: false,
            holds: false,
            closes: false,
            was_given_up: false,
            is_abandoned: false,
            since: Duration::ZERO,
            last_error: None,
        }
    }

    pub(super) fn note(&mut self, exit: &Exit) {
        match exit {
            Exit::Failed(why) => self.last_error = Some(Arc::clone(why)),
            Exit::Panicked(text) => self.last_error = Some(format!("panicked: {text}").into()),
            _ => {}
        }
    }

    /// Whether something of this leader's work is left.
    pub(super) fn works(&self) -> bool {
        self.works_on() || (self.phase == Phase::LeaderWork && self.run.life().is_some())
    }

    pub(super) fn works_on(&self) -> bool {
        self.phase == Phase::LeaderWork && self.is_abandoned
    }

    pub(super) fn state(&self, may_start: bool, leads: bool) -> PartState {
        match self.run {
            Run::Off | Run::Backoff { .. } if self.phase == Phase::LeaderWork && !leads => PartState::Standby,
            Run::Off if may_start => PartState::Starting,
            Run::Off => PartState::WaitsForCaches,
            Run::Runs { ready, .. } => {
                if ready {
                    PartState::Ready
                } else {
                    PartState::Starting
                }
            }
            Run::Backoff { until } => PartState::Backoff { until },
            Run::Done => PartState::Done,
            Run::GivenUp => PartState::GivenUp,
            Run::Draining { until, .. } => PartState::Draining { until },
            Run::Ending { .. } => PartState::Ending,
            Run::Stopped { clean } => PartState::Stopped { clean },
        }
    }
}

/// When a part starts, and in reverse when it stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// What reports the state of the operator: first to start and last to stop.
    Probes,
    /// Informers and factories.
    Caches,
    /// Controllers and other work that every replica does.
    Work,
    /// The election. As a part it starts after the caches. The election itself takes part from its own start,
    /// or, if it was declared, from then on. Its stop releases the lease when the leader's work has ended,
    /// even if it was not started yet as a part. If something of that work cannot be ended, the lease is not
    /// released.
    Election,
    /// Recorders of events about the leader's work. They start after the caches. When that work has ended,
    /// they send what waits, before the lease is released.
    Events,
    /// Controllers and other work that only the leader does.
    LeaderWork,
}

impl Phase {
    /// All, in the order in which they start.
    pub const ALL: [Self; 6] =
        [Self::Probes, Self::Caches, Self::Work, Self::Election, Self::Events, Self::LeaderWork];

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

/// How long the parts of each phase may take to end what they have begun. If something of a phase still runs
/// after its limit, one more second is waited. Unless set, all phases together take 29 s: a kubelet waits 30
/// s before it kills a pod.
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

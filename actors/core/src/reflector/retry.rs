//! Failures: which wait each one asks for, and what comes after it.
//!
//! Answers "when, and with what, is the source asked again?"; what counts as a failure is decided where it happens
//! (`list.rs`, `watch_list.rs`, `watch.rs`). Invariants:
//! 1. One failure is one wait: a backoff step, the wait that the server named (never earlier, at most 1 s later),
//!    or 30 to 60 s where we are refused or the kind is gone.
//! 2. What sends the source to a relist at once (expired, unreadable, stale, rewind) does so once; the second time
//!    before an object or bookmark came through it is a failure.
//! 3. A relist at once begins no sooner than `reconnect_interval` after the last one began, except for rewinds, which
//!    the connects before them already space. (The list that a server answers with "expired" starts over without a
//!    wait, once: `list.rs`.)

use std::time::Duration;

use super::{ListWatchMachine, Moment, Phase, RelistCounters, SourceState};
use crate::backoff::spread;
use crate::list_watch_error::{ErrorClass, ListWatchError};

/// The most by which a wait that the server named is exceeded.
const TOLD_WAIT_SPREAD: Duration = Duration::from_secs(1);

/// The least wait after a failure, also where the server names none at all.
const LEAST_WAIT: Duration = Duration::from_millis(500);

/// What is asked after a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Everything: a list or watch-list.
    Listing,
    /// What came since the newest version.
    Watch,
}

/// Why a source that has delivered is listed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RelistReason {
    Resumed,
    Expired,
    Failed,
    Refused,
    Unreadable,
    Stale,
    Rewind,
}

impl RelistReason {
    /// Whether it leads to a relist without a wait, the first time.
    pub(super) fn needs_no_wait(self) -> bool {
        matches!(self, Self::Expired | Self::Unreadable | Self::Stale | Self::Rewind)
    }

    pub(super) fn count(self, counters: &mut RelistCounters) {
        let counter = match self {
            Self::Resumed => &mut counters.resumed,
            Self::Expired => &mut counters.expired,
            Self::Failed => &mut counters.failed,
            Self::Refused => &mut counters.refused,
            Self::Unreadable => &mut counters.unreadable,
            Self::Stale => &mut counters.stale,
            Self::Rewind => &mut counters.rewind,
        };
        *counter += 1;
    }
}

impl<S> ListWatchMachine<S> {
    /// Waits as the failure asks, then goes on with `next`.
    pub(super) fn fail(&mut self, error: ListWatchError, next: Next, at: Moment) {
        let until = self.count_failure(error, at);
        self.phase = Phase::Waiting { until, next };
    }

    /// Counts a failure, shows it, and draws its wait; the answer is when the wait is over.
    pub(super) fn count_failure(&mut self, error: ListWatchError, at: Moment) -> Duration {
        self.counters.failures += 1;
        self.failed_in_a_row = self.failed_in_a_row.saturating_add(1);
        self.counters.overloaded += u64::from(matches!(error, ListWatchError::Overloaded { .. }));
        let class = error.class();
        let wait = match class {
            ErrorClass::Denied | ErrorClass::Gone => {
                spread(self.config.refused_wait, self.config.refused_wait, at.chance)
            }
            ErrorClass::RetryAfter(told) => {
                let least = told.max(LEAST_WAIT);
                let wait =
                    spread(least, (told.saturating_add(TOLD_WAIT_SPREAD)).saturating_sub(least), at.chance);
                self.backoff.count_told(wait);
                wait
            }
            _ => self.backoff.next_wait(at.chance),
        };
        let until = at.now.saturating_add(wait);
        self.log.failed(&error, until, at);
        self.last_error = Some(error.clone());
        self.state = match class {
            ErrorClass::Denied => {
                self.counters.denied += 1;
                SourceState::Denied { error }
            }
            ErrorClass::Gone => {
                self.counters.gone += 1;
                SourceState::Gone { error }
            }
            _ => SourceState::Backoff { attempts: self.failed_in_a_row, error, until },
        };
        until
    }

    /// Lists again at once; if the same already happened since the last object or bookmark, it is a failure.
    pub(super) fn relist_unless_repeated(&mut self, reason: RelistReason, error: ListWatchError, at: Moment) {
        self.lessons.reason = reason;
        if !self.lessons.relisted_for.insert(reason) {
            return self.fail(error, Next::Listing, at);
        }
        let earliest = self.last_relist_at.map(|last| last.saturating_add(self.config.reconnect_interval));
        match earliest {
            Some(earliest) if at.now < earliest && reason != RelistReason::Rewind => {
                self.phase = Phase::Waiting { until: earliest, next: Next::Listing };
            }
            _ => self.begin_listing(),
        }
    }

    /// A stream ended well: the next failure is the first one again.
    pub(super) fn forget_failures(&mut self) {
        self.backoff.reset();
        self.failed_in_a_row = 0;
    }

    /// An answer that is not what was asked for.
    pub(super) fn unexpected(&self, what: &str) -> ListWatchError {
        ListWatchError::Protocol(format!("{}: {what}", self.config.resource).into())
    }

    /// Something that did not come in time.
    pub(super) fn late(&self, what: &str, bound: Duration) -> ListWatchError {
        ListWatchError::Timeout(
            format!("{}: {what} did not come within {bound:?}", self.config.resource).into(),
        )
    }
}

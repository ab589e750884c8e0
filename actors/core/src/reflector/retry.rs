//! Failures: how long to wait after each, and what to ask next.
//!
//! Answers "when, and with what, is the source asked again?". The files of the phases decide what counts as a failure
//! (`list.rs`, `watch_list.rs`, `watch.rs`). Invariants:
//! 1. One failure is one wait: a backoff step, the wait that the server named (never earlier, at most 1 s later),
//!    or 30 to 60 s where the server rejects the selector. Where the kind is missing or the server refuses us,
//!    it is an early retry.
//! 2. Expired versions, unreadable frames, stale frames and rewinds lead to a relist without a wait, once. The second
//!    time before an object or bookmark arrives, the same reason is a failure.
//! 3. A relist without a wait begins no sooner than `reconnect_interval` after the last one began. Rewinds are exempt:
//!    the connects before them are already spaced. (A list that is answered with "expired" starts over without a
//!    wait, once: `list.rs`.)
//!
//! Early retries: what is missing or refused for a reason that often ends within seconds is asked for again soon. That is a kind
//! that is not on the server yet (404: an operator is often installed before its CRD), credentials that the server refuses
//! (401: a renewed token may be there a moment later), and what we may not do (403: `kubectl apply -f folder/` often makes a
//! Deployment before its role binding, and an API server that has just started forbids everything until it knows its roles). A
//! rejected selector is not among them: a person has to change it first.
//! 4. An episode is what follows a first failure of the class; each class has one of its own. In its first `early_for`, waits
//!    are those of `early_backoff`: 1 to 2 s, then twice that each time, up to 15 to 30 s. After that each wait is from
//!    `refused_wait` to twice that.
//! 5. An early wait is never longer than a late one could be.
//! 6. An episode ends only with a watch that was open for a while or ended without a failure. So a source that lists
//!    and is then refused at once, again and again, is asked early for `early_for` only.

use std::time::Duration;

use super::phase::{Next, RelistReason};
use super::{ListWatchMachine, Moment, Phase, ReflectorConfig, SourceState};
use crate::backoff::{Backoff, BackoffPolicy, spread};
use crate::list_watch_error::{ErrorClass, ListWatchError};

/// The most that is added to a wait that the server named.
const SERVER_WAIT_SPREAD: Duration = Duration::from_secs(1);

/// The least wait after a failure, also where the server names none at all.
const LEAST_WAIT: Duration = Duration::from_millis(500);

impl<S> ListWatchMachine<S> {
    /// Waits as the failure asks, then goes on with `next`.
    pub(super) fn fail(&mut self, error: ListWatchError, next: Next, at: Moment) {
        let until = self.count_failure(error, at);
        self.phase = Phase::Waiting { until, next };
    }

    /// Counts a failure, shows it in the state and the log, and draws its wait. Gives the time when the wait is over.
    pub(super) fn count_failure(&mut self, error: ListWatchError, at: Moment) -> Duration {
        self.counters.failures += 1;
        self.failed_in_a_row = self.failed_in_a_row.saturating_add(1);
        self.counters.overloaded += u64::from(matches!(error, ListWatchError::Overloaded { .. }));
        let class = error.class();
        let until = at.now.saturating_add(self.wait_after(class, at));
        self.log.failed(&error, until, at);
        self.last_error = Some(error.clone());
        let attempts = self.failed_in_a_row;
        self.state = match class {
            ErrorClass::Denied | ErrorClass::Unauthorized => {
                self.counters.denied += 1;
                SourceState::Denied { attempts, error, until }
            }
            ErrorClass::Gone => {
                self.counters.gone += 1;
                SourceState::Gone { attempts, error, until }
            }
            ErrorClass::SelectorRejected => {
                self.counters.rejected_selectors += 1;
                // What had refused the watch-list was the selector, and not a server that knows no watch-lists.
                (self.hints.watch_list_refused, self.hints.skip_watch_list) = (false, true);
                SourceState::SelectorRejected { attempts, error, until }
            }
            _ => SourceState::Backoff { attempts, error, until },
        };
        until
    }

    fn wait_after(&mut self, class: ErrorClass, at: Moment) -> Duration {
        if let Some(wait) = self.early.wait(class, &self.config, at) {
            return wait;
        }
        match class {
            ErrorClass::SelectorRejected => late_wait(&self.config, at),
            ErrorClass::RetryAfter(named) => {
                let least = named.max(LEAST_WAIT);
                let latest = named.saturating_add(SERVER_WAIT_SPREAD);
                let wait = spread(least, latest.saturating_sub(least), at.chance);
                self.backoff.count_told(wait);
                wait
            }
            _ => self.backoff.next_wait(at.chance),
        }
    }

    /// Lists again without a wait. It is a failure if this reason did the same since the last object or bookmark.
    pub(super) fn relist_unless_repeated(&mut self, reason: RelistReason, error: ListWatchError, at: Moment) {
        self.hints.relist_reason = reason;
        if !self.hints.relisted_for.insert(reason) {
            return self.fail(error, Next::Listing, at);
        }
        self.list_again(at);
    }

    /// The caller wants the source to be listed again, without a failure. Does nothing while a list is under way or due.
    pub fn handle_list_wanted(&mut self, at: Moment) {
        match &self.phase {
            Phase::Watching(_) => {
                self.close_watch();
                self.hints.relist_reason = RelistReason::Asked;
                self.list_again(at);
            }
            Phase::Waiting { until, next: Next::Watch } => {
                self.phase = Phase::Waiting { until: *until, next: Next::Listing };
                self.hints.relist_reason = RelistReason::Asked;
            }
            _ => {}
        }
    }

    /// Lists without a failure, spaced from the list before.
    fn list_again(&mut self, at: Moment) {
        let reason = self.hints.relist_reason;
        let earliest = self.last_relist_at.map(|last| last.saturating_add(self.config.reconnect_interval));
        match earliest {
            Some(earliest) if at.now < earliest && reason != RelistReason::Rewind => {
                self.phase = Phase::Waiting { until: earliest, next: Next::Listing };
            }
            _ => self.begin_listing(),
        }
    }

    /// A stream ended without a failure: the next failure counts as the first one.
    pub(super) fn forget_failures(&mut self) {
        self.backoff.reset();
        self.early.end_episodes();
        self.failed_in_a_row = 0;
    }

    /// The error for an answer that is not what was asked for.
    pub(super) fn unexpected(&self, what: &str) -> ListWatchError {
        ListWatchError::Protocol(format!("{}: {what}", self.config.resource).into())
    }

    /// The error for an answer that did not come in time.
    pub(super) fn timed_out(&self, what: &str, bound: Duration) -> ListWatchError {
        ListWatchError::Timeout(
            format!("{}: {what} did not come within {bound:?}", self.config.resource).into(),
        )
    }
}

/// The episodes of one source.
#[derive(Debug, Default)]
pub(super) struct EarlyRetries {
    missing: Option<Episode>,
    unauthorized: Option<Episode>,
    denied: Option<Episode>,
}

/// The failures of one class in a row.
#[derive(Debug)]
struct Episode {
    since: Duration,
    backoff: Backoff,
}

impl EarlyRetries {
    /// The wait after a failure of this class; `None` if the class has no early retries.
    pub(super) fn wait(
        &mut self,
        class: ErrorClass,
        config: &ReflectorConfig,
        at: Moment,
    ) -> Option<Duration> {
        let episode = match class {
            ErrorClass::Gone => &mut self.missing,
            ErrorClass::Unauthorized => &mut self.unauthorized,
            ErrorClass::Denied => &mut self.denied,
            _ => return None,
        };
        let episode = episode.get_or_insert_with(|| Episode::begin(config, at));
        if at.now.saturating_sub(episode.since) < config.early_for {
            return Some(episode.backoff.next_wait(at.chance));
        }
        Some(late_wait(config, at))
    }

    /// The source was followed: the next failure begins an episode.
    pub(super) fn end_episodes(&mut self) {
        *self = Self::default();
    }
}

impl Episode {
    fn begin(config: &ReflectorConfig, at: Moment) -> Self {
        let BackoffPolicy { base, cap } = config.early_backoff;
        let cap = cap.min(config.refused_wait);
        Self { since: at.now, backoff: Backoff::new(BackoffPolicy { base, cap }) }
    }
}

/// The wait where nothing is expected to change soon.
fn late_wait(config: &ReflectorConfig, at: Moment) -> Duration {
    spread(config.refused_wait, config.refused_wait, at.chance)
}

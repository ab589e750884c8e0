//! Failures: how long the source waits after each, and what it requests next. Invariants:
//! 1. One failure is one wait: a backoff step, the wait that the server named (never less, at most 1 s more), or 30
//!    to 60 s for a rejected selector, which a person has to change.
//! 2. Expired versions, unreadable or stale frames and rewinds lead to a relist without a wait. A second relist for
//!    one reason, with no frame of a watch in between, is a failure.
//! 3. A relist without a wait begins at least `reconnect_interval` after the last one. Rewinds are exempt, because
//!    the connects before them are spaced. So is a list answered with "expired", once (`list.rs`).
//!
//! Early retries are for failures that often end within seconds: 404 (no CRD yet), 401 (a token is renewed) and 403
//! (no role binding yet, or a new API server, which forbids everything until it knows its roles).
//!
//! 4. Each of these classes has an episode, which its first failure begins. For `early_for`, waits are those of
//!    `early_backoff`; then each is from `refused_wait` to twice that.
//! 5. An episode ends only with a watch that was open for a while or ended without a failure, not with a list.

use std::time::Duration;

use super::phase::{Next, RelistReason};
use super::{ListWatchMachine, Moment, Phase, ReflectorConfig, SourceState};
use crate::backoff::{Backoff, BackoffPolicy, spread};
use crate::list_watch_error::{ErrorClass, ListWatchError};

/// The most that is added to a wait which the server named.
const SERVER_WAIT_SPREAD: Duration = Duration::from_secs(1);

/// The least wait where the server names one.
const LEAST_SERVER_WAIT: Duration = Duration::from_millis(500);

impl<S> ListWatchMachine<S> {
    pub(super) fn fail(&mut self, error: ListWatchError, next: Next, at: Moment) {
        let until = self.count_failure(error, at);
        self.phase = Phase::Waiting { until, next };
    }

    /// Returns when its wait ends.
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
                // The selector may be why the watch-list was refused: a later relist tries again.
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
                let least = named.max(LEAST_SERVER_WAIT);
                let latest = named.saturating_add(SERVER_WAIT_SPREAD);
                let wait = spread(least, latest.saturating_sub(least), at.chance);
                self.backoff.count_told(wait);
                wait
            }
            _ => self.backoff.next_wait(at.chance),
        }
    }

    pub(super) fn relist_unless_repeated(&mut self, reason: RelistReason, error: ListWatchError, at: Moment) {
        self.hints.relist_reason = reason;
        if !self.hints.relisted_for.insert(reason) {
            return self.fail(error, Next::Listing, at);
        }
        self.list_again(at);
    }

    /// Lists the source again without a failure. Does nothing while a list is under way or due.
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

    /// The next failure counts as the first.
    pub(super) fn forget_failures(&mut self) {
        self.backoff.reset();
        self.early.end_episodes();
        self.failed_in_a_row = 0;
    }

    pub(super) fn unexpected(&self, what: &str) -> ListWatchError {
        ListWatchError::Protocol(format!("{}: {what}", self.config.resource).into())
    }

    pub(super) fn timed_out(&self, what: &str, bound: Duration) -> ListWatchError {
        ListWatchError::Timeout(
            format!("{}: {what} did not come within {bound:?}", self.config.resource).into(),
        )
    }
}

#[derive(Debug, Default)]
pub(super) struct EarlyRetries {
    missing: Option<Episode>,
    unauthorized: Option<Episode>,
    denied: Option<Episode>,
}

#[derive(Debug)]
struct Episode {
    since: Duration,
    backoff: Backoff,
}

impl EarlyRetries {
    /// `None` if the class has no early retries.
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

fn late_wait(config: &ReflectorConfig, at: Moment) -> Duration {
    spread(config.refused_wait, config.refused_wait, at.chance)
}

//! Early retries: what is missing or refused for a reason that often ends within seconds is asked for again soon.
//!
//! Answers "how long until the next try?" for a kind that is not on the server yet (404: an operator is often installed
//! before its CRD), for credentials that the server refuses (401: a renewed token may be there a moment later), and for
//! what we may not do (403: `kubectl apply -f folder/` often makes a Deployment before its role binding, and an API server
//! that has just started forbids everything until it knows its roles). A rejected selector is not among them: a person
//! has to change it first.
//! Invariants:
//! 1. An episode is what follows a first failure of the class. In its first `early_for`, waits are those of
//!    `early_backoff`: 1 to 2 s, then twice that each time, up to 15 to 30 s. After that each wait is from `refused_wait`
//!    to twice that.
//! 2. An early wait is never longer than a late one could be.
//! 3. An episode ends only with a watch that was open for a while or ended without a failure. So a source that lists
//!    and is then refused at once, again and again, is asked early for `early_for` only.
//! 4. Each class has an episode of its own.
//!
//! Read next: `retry.rs`, which asks for the wait.

use std::time::Duration;

use super::{Moment, ReflectorConfig};
use crate::backoff::{Backoff, BackoffPolicy, spread};
use crate::list_watch_error::ErrorClass;

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
pub(super) fn late_wait(config: &ReflectorConfig, at: Moment) -> Duration {
    spread(config.refused_wait, config.refused_wait, at.chance)
}

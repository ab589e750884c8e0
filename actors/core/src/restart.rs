//! The supervisor's decision: what follows when an actor ends.
//!
//! Answers "restart it, restart its group, give up, or is it done?" as a pure function of the exit, the role and
//! the history. The supervisor actor carries the decision out. A role is data: the owner of the children says what
//! follows when one of them fails. Invariants:
//! 1. An actor that was asked to stop, or has finished its work, is never restarted.
//! 2. A child whose role says [`OnFailure::GiveUp`] is never restarted.
//! 3. After `limit` restarts within `window` the next failure gives up, and the history stays given up. A child that is
//!    revived, or added again after its removal, gets a new history.
//! 4. Each restart waits. The waits grow until the actor has run for a whole `window` without a failure.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::backoff::{Backoff, BackoffPolicy};
use crate::reflector::Moment;

/// How an actor ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// Its work is done.
    Finished,
    /// It was asked to stop.
    Asked,
    /// It stopped itself, for this reason.
    Failed(Arc<str>),
    /// It panicked, with this text.
    Panicked(Arc<str>),
}

/// What follows when a child fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFailure {
    /// It is restarted alone, within the limits of the policy.
    RestartAlone,
    /// Every child that follows the group is restarted with it, since their states belong together: none may keep what
    /// another has lost. The group has one history.
    RestartGroup,
    /// It is never restarted: nothing could restore the state that is lost with it.
    GiveUp,
}

/// How one kind of child is supervised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// What follows when it fails.
    pub on_failure: OnFailure,
    /// Whether it is restarted whenever the group is.
    pub follows_group: bool,
    /// Whether its owner is notified of its restarts and when it is given up. Waiting for the end of one child works
    /// in any case.
    pub tells_owner: bool,
}

/// How many restarts are tolerated, and how they are spaced. Every duration is valid: with a `window` of
/// `Duration::MAX` restarts are counted for ever, with a `window` of zero none is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartPolicy {
    /// So many restarts within `window` are tolerated. Default 5.
    pub limit: u32,
    /// The time in which restarts are counted. Default 10 minutes.
    pub window: Duration,
    /// The wait before each restart.
    pub backoff: BackoffPolicy,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self { limit: 5, window: Duration::from_secs(600), backoff: BackoffPolicy::default() }
    }
}

/// What the supervisor does about an exit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Build it anew after this wait.
    Restart {
        /// How long to wait first.
        after: Duration,
    },
    /// Build the whole group anew, in a new epoch, after this wait.
    RestartGroup {
        /// How long to wait first.
        after: Duration,
    },
    /// Restart nothing; report the failure to the owner.
    GiveUp {
        /// The reason to report.
        reason: Arc<str>,
    },
    /// Nothing is left to do.
    Done,
}

/// The restarts of one actor, or of one group.
#[derive(Debug, Clone)]
pub struct RestartHistory {
    policy: RestartPolicy,
    backoff: Backoff,
    /// When the restarts of the last `window` were decided, oldest first; at most `limit` entries.
    recent: VecDeque<Duration>,
    restarts: u32,
    gave_up: Option<Arc<str>>,
}

impl RestartHistory {
    /// A history without an exit.
    pub fn new(policy: RestartPolicy) -> Self {
        let backoff = Backoff::new(policy.backoff);
        Self { policy, backoff, recent: VecDeque::new(), restarts: 0, gave_up: None }
    }

    /// What follows from one exit. Counts it when the answer is a restart.
    pub fn decide(&mut self, on_failure: OnFailure, exit: &Exit, at: Moment) -> Verdict {
        let words = match exit {
            Exit::Finished | Exit::Asked => return Verdict::Done,
            Exit::Failed(reason) => format!("failed: {reason}"),
            Exit::Panicked(text) => format!("panicked: {text}"),
        };
        if let Some(reason) = &self.gave_up {
            return Verdict::GiveUp { reason: Arc::clone(reason) };
        }
        if on_failure == OnFailure::GiveUp {
            return self.give_up(words);
        }
        self.forget_before(at.now);
        if self.recent.len() >= self.policy.limit as usize {
            let (limit, window) = (self.policy.limit, self.policy.window);
            return self.give_up(format!("{words} (after {limit} restarts within {window:?})"));
        }
        self.recent.push_back(at.now);
        self.restarts = self.restarts.saturating_add(1);
        let after = self.backoff.next_wait(at.chance);
        if on_failure == OnFailure::RestartGroup {
            Verdict::RestartGroup { after }
        } else {
            Verdict::Restart { after }
        }
    }

    /// How many restarts were decided in all.
    pub fn restarts(&self) -> u32 {
        self.restarts
    }

    fn give_up(&mut self, reason: String) -> Verdict {
        let reason: Arc<str> = reason.into();
        self.gave_up = Some(Arc::clone(&reason));
        Verdict::GiveUp { reason }
    }

    fn forget_before(&mut self, now: Duration) {
        while self.recent.front().is_some_and(|at| now.saturating_sub(*at) >= self.policy.window) {
            self.recent.pop_front();
        }
        if self.recent.is_empty() {
            self.backoff.reset();
        }
    }
}

#[cfg(test)]
mod tests;

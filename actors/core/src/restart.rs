//! The supervisor's decision when an actor ends, and the watchdog's about stalls. Invariants:
//! 1. After `limit` restarts within `window` the next failure gives up for good. A revived or added child has a new
//!    history.
//! 2. Each restart waits. Waits grow until the actor has run for a whole `window` without a failure.

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
    /// Every child that follows the group is restarted with it, since their states belong together: none may
    /// keep what another has lost. The group has one history.
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
    /// Whether its owner is notified of its restarts and when it is given up. Waiting for the end of one
    /// child works in any case.
    pub tells_owner: bool,
}

/// How many restarts are tolerated, and how they are spaced. Every duration is valid: with a `window` of
/// `Duration::MAX` restarts are counted for ever, with a `window` of zero none is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartPolicy {
    /// This many restarts within `window` are tolerated. Default 5.
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
#[expect(clippy::exhaustive_enums, reason = "a supervisor that knows not each verdict is wrong")]
pub enum RestartVerdict {
    /// Build it again after this wait.
    Restart {
        /// How long to wait first.
        after: Duration,
    },
    /// Build the whole group again, in a new epoch, after this wait.
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
    /// Of the last `window`; at most `limit`.
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
    pub fn decide(&mut self, on_failure: OnFailure, exit: &Exit, at: Moment) -> RestartVerdict {
        let words = match exit {
            Exit::Finished | Exit::Asked => return RestartVerdict::Done,
            Exit::Failed(reason) => format!("failed: {reason}"),
            Exit::Panicked(text) => format!("panicked: {text}"),
        };
        if let Some(reason) = &self.gave_up {
            return RestartVerdict::GiveUp { reason: Arc::clone(reason) };
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
            RestartVerdict::RestartGroup { after }
        } else {
            RestartVerdict::Restart { after }
        }
    }

    /// How many restarts were decided in all.
    pub fn restarts(&self) -> u32 {
        self.restarts
    }

    fn give_up(&mut self, reason: String) -> RestartVerdict {
        let reason: Arc<str> = reason.into();
        self.gave_up = Some(Arc::clone(&reason));
        RestartVerdict::GiveUp { reason }
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

// Stalls are counted in turns of the thread, not in seconds: a blocked thread or a stopped process does not turn, and
// is not reported.

/// This many turns of the thread with work and without progress are a stall. The thread shows at most one
/// turn a second.
pub const TURNS: u32 = 10;

/// The state of a pipeline at one moment, as the watchdog reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the whole input of the rule: a caller must give all of it")]
pub struct Sample {
    /// Whether anything waits to be done, or is being done.
    pub has_work: bool,
    /// How much was done so far; grows with everything that is done.
    pub done: u64,
    /// The newest turn of its thread: another value each time the thread turns.
    pub turn: u64,
}

/// The samples seen so far, as one count.
#[derive(Debug, Clone, Copy, Default)]
pub struct StallWatch {
    done: u64,
    turn: u64,
    turns: u32,
    since: Duration,
}

impl StallWatch {
    /// Nothing was seen yet.
    pub const fn new() -> Self {
        Self { done: 0, turn: 0, turns: 0, since: Duration::ZERO }
    }

    /// Takes the next sample. Returns since when nothing was done, if that is a stall.
    ///
    /// ```
    /// # use informer_core::restart::{Sample, StallWatch, TURNS};
    /// use std::time::Duration;
    /// let mut watch = StallWatch::new();
    /// let at = |second| (Duration::from_secs(second), Sample { has_work: true, done: 7, turn: second });
    /// let mut look = |(now, sample)| watch.observe(now, sample);
    /// let seen: Vec<_> = (1..=12).map(|second| look(at(second))).collect();
    /// assert_eq!(seen.iter().position(Option::is_some), Some(TURNS as usize));
    /// assert_eq!(seen[11], Some(Duration::from_secs(1)));
    /// ```
    pub fn observe(&mut self, now: Duration, sample: Sample) -> Option<Duration> {
        if !sample.has_work || sample.done != self.done || self.turn == 0 {
            *self = Self { done: sample.done, turn: sample.turn.max(1), turns: 0, since: now };
            return None;
        }
        if sample.turn != self.turn {
            self.turn = sample.turn;
            self.turns = self.turns.saturating_add(1);
        }
        (self.turns >= TURNS).then_some(self.since)
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod stall_tests {
    use std::time::Duration;

    use super::{Sample, StallWatch, TURNS};

    /// Looks once a second at `(has_work, done, turn)` and gives the seconds at which it saw a stall, with
    /// its since.
    fn stalls(samples: impl IntoIterator<Item = (bool, u64, u64)>) -> Vec<(u64, u64)> {
        let mut watch = StallWatch::new();
        let seen = samples.into_iter().zip(1..).filter_map(|((has_work, done, turn), second)| {
            let since = watch.observe(Duration::from_secs(second), Sample { has_work, done, turn })?;
            Some((second, since.as_secs()))
        });
        seen.collect()
    }

    const LONG: u64 = 10_000;

    #[test]
    fn work_without_progress_is_a_stall_at_the_tenth_turn_and_stays_one() {
        let seen = stalls((1..=13).map(|turn| (true, 5, turn)));
        assert_eq!(seen, [(11, 1), (12, 1), (13, 1)]);
    }

    #[test]
    fn a_pipeline_without_work_never_stalls_however_long_its_source_is_silent() {
        assert_eq!(stalls((1..=LONG).map(|turn| (false, 5, turn))), []);
    }

    #[test]
    fn a_list_that_advances_by_one_slice_in_nine_turns_never_stalls() {
        assert_eq!(stalls((1..=LONG).map(|turn| (true, turn / 9, turn))), []);
    }

    #[test]
    fn work_that_comes_and_is_done_between_two_looks_never_stalls() {
        assert_eq!(stalls((1..=LONG).map(|turn| (turn % 2 == 0, turn / 2, turn))), []);
    }

    #[test]
    fn a_thread_that_does_not_turn_is_blocked_and_not_reported_as_a_stall() {
        assert_eq!(stalls((1..=LONG).map(|_| (true, 5, 3))), []);
    }

    #[test]
    fn a_process_that_was_stopped_for_an_hour_in_mid_work_is_not_stalled_when_it_goes_on() {
        let mut watch = StallWatch::new();
        let sample = |turn| Sample { has_work: true, done: 5, turn };
        assert_eq!(watch.observe(Duration::from_secs(1), sample(1)), None);
        assert_eq!(watch.observe(Duration::from_secs(3_601), sample(2)), None);
    }

    #[test]
    fn a_stall_is_over_with_the_first_progress_and_is_counted_anew() {
        let stalled = (1..=12).map(|turn| (true, 5, turn));
        let moved = (13..=23).map(|turn| (true, 6, turn));
        assert_eq!(stalls(stalled.chain(moved)), [(11, 1), (12, 1), (23, 13)]);
    }

    #[test]
    fn a_rest_without_work_begins_the_count_anew() {
        let worked = (1..=u64::from(TURNS)).map(|turn| (true, 5, turn));
        let rested = [(false, 5, 11)];
        let works = (12..=20).map(|turn| (true, 5, turn));
        assert_eq!(stalls(worked.chain(rested).chain(works)), []);
    }
}

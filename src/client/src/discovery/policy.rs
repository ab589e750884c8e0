//! Decides when a server is asked again for its discovery documents.
//!
//! Answers "is what is known still good for this question?" It reads no clock: each function is given the time.
//! Invariants:
//! 1. What is known serves until it is older than its time to live, counted from when it was begun to be asked for. An
//!    incomplete answer lives shorter, since a group that did not answer may answer soon; that is counted from when it
//!    arrived, because it is the slow answers that are incomplete.
//! 2. An answer that was begun to be asked for after a question answers it, however long it took: no question asks twice.
//! 3. A name that is not found asks once more, unless what is known is such an answer; so a kind that exists when a
//!    question begins is found.
//! 4. Questions for names that do not exist ask at most [`BURST`] times at once, and once each [`BETWEEN`] for long.
//!
//! Read next: `memory.rs`, which holds what is known.

use std::time::Duration;

use tokio::time::Instant;

/// How long an answer serves in memory unless set otherwise. A later one costs two requests, which a server that knows
/// ETags answers with 304 and no body.
pub(crate) const TTL: Duration = Duration::from_secs(10 * 60);
/// How long an incomplete answer serves at most.
pub(crate) const INCOMPLETE_TTL: Duration = Duration::from_secs(30);
/// How often names that are not found may ask at once.
pub(crate) const BURST: u32 = 8;
/// How often they may ask for long.
pub(crate) const BETWEEN: Duration = Duration::from_secs(2);

/// What a question needs. Questions, answers and invalidations have one order, which is counted: a clock may stand still
/// between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Question {
    /// Its place in that order.
    pub(crate) order: u64,
    /// Whether only an answer will do that was begun to be asked for after it.
    pub(crate) newer: bool,
    /// How old another answer may be.
    pub(crate) ttl: Duration,
}

/// When and how what is known was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Its place in the order: when it was begun to be asked for. Of a cache on disk 0, before every question.
    pub(crate) order: u64,
    /// When it was begun to be asked for.
    pub(crate) at: Instant,
    /// How old it was then: nothing, but for a cache on disk.
    pub(crate) age: Duration,
    /// When it was there. That may be long after: a caller that is not polled asks, and reads no answer.
    pub(crate) arrived: Instant,
    /// Whether something could not be discovered.
    pub(crate) is_incomplete: bool,
}

impl Origin {
    /// Whether it answers a question; `invalidated` is the place of the last invalidation.
    pub(crate) fn answers(self, question: Question, invalidated: Option<u64>, now: Instant) -> bool {
        let is_valid = invalidated.is_none_or(|at| at < self.order);
        let is_newer = self.order > question.order;
        is_valid && (is_newer || (!question.newer && self.is_younger_than(question.ttl, now)))
    }

    fn is_younger_than(self, ttl: Duration, now: Instant) -> bool {
        let age = self.age.saturating_add(now.saturating_duration_since(self.at));
        let is_good = !self.is_incomplete || now.saturating_duration_since(self.arrived) < INCOMPLETE_TTL;
        age < ttl && is_good
    }
}

/// How many questions for unknown names may still ask.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MissBudget {
    /// When the questions so far would have been asked, one after another with [`BETWEEN`] between them.
    spread_until: Option<Instant>,
}

impl MissBudget {
    /// Takes one; if none is left, says how long until there is one.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let begins = self.spread_until.unwrap_or(now).max(now);
        let ahead = begins.saturating_duration_since(now);
        let most = BETWEEN * (BURST - 1);
        if ahead > most {
            return Err(ahead - most);
        }
        self.spread_until = Some(begins + BETWEEN);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(order: u64, is_incomplete: bool) -> Origin {
        let now = Instant::now();
        Origin { order, at: now, age: Duration::ZERO, arrived: now, is_incomplete }
    }

    fn asked(order: u64, newer: bool, ttl: Duration) -> Question {
        Question { order, newer, ttl }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_known_serves_until_its_time_to_live_and_shorter_if_it_is_incomplete() {
        let begun = Instant::now();
        let (second, question) = (Duration::from_secs(1), asked(2, false, TTL));
        for (is_incomplete, lives) in [(false, TTL), (true, INCOMPLETE_TTL)] {
            let known = found(1, is_incomplete);
            assert!(known.answers(question, None, begun + lives - second));
            assert!(!known.answers(question, None, begun + lives));
        }
        let strict = asked(2, false, second);
        assert!(!found(1, true).answers(strict, None, begun + second), "a shorter one is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_is_as_old_as_its_asking_and_an_incomplete_one_lives_from_its_arrival() {
        let (begun, question) = (Instant::now(), asked(2, false, TTL));
        let slow = |is_incomplete, took| Origin { arrived: begun + took, ..found(1, is_incomplete) };
        let took = INCOMPLETE_TTL * 2;
        assert!(slow(true, took).answers(question, None, begun + took));
        assert!(!slow(true, took).answers(question, None, begun + took + INCOMPLETE_TTL));
        for is_incomplete in [false, true] {
            assert!(!slow(is_incomplete, TTL).answers(question, None, begun + TTL));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_asked_for_before_it_was_invalidated_does_not_serve() {
        let (now, question) = (Instant::now(), asked(6, false, TTL));
        assert!(!found(3, false).answers(question, Some(4), now));
        assert!(found(5, false).answers(question, Some(4), now));
        assert!(found(0, false).answers(question, None, now), "a cache on disk");
        assert!(!found(0, false).answers(question, Some(1), now));
        assert!(!found(7, false).answers(question, Some(8), now), "also if it is newer than the question");
    }

    #[tokio::test(start_paused = true)]
    async fn only_an_answer_that_was_begun_after_the_question_proves_that_a_name_is_missing() {
        let (now, question) = (Instant::now(), asked(7, true, TTL));
        assert!(found(8, false).answers(question, None, now));
        assert!(
            !found(6, false).answers(question, None, now) && !found(0, false).answers(question, None, now)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_was_begun_after_the_question_answers_it_however_old_it_is() {
        let later = Instant::now() + TTL;
        for newer in [false, true] {
            assert!(found(8, true).answers(asked(7, newer, Duration::ZERO), None, later));
        }
        assert!(!found(6, true).answers(asked(7, false, Duration::ZERO), None, later));
    }

    #[tokio::test(start_paused = true)]
    async fn unknown_names_ask_eight_times_at_once_and_then_once_each_two_seconds() {
        let (mut budget, begun) = (MissBudget::default(), Instant::now());
        for _ in 0..BURST {
            assert_eq!(budget.take(begun), Ok(()));
        }
        assert_eq!(budget.take(begun), Err(BETWEEN));
        assert_eq!(budget.take(begun + BETWEEN), Ok(()));
        assert_eq!(budget.take(begun + BETWEEN), Err(BETWEEN));
        let later = begun + BETWEEN * 100;
        assert_eq!(
            (0..BURST + 3).filter(|_| budget.take(later).is_ok()).count(),
            BURST as usize,
            "no more than a burst is saved"
        );
    }
}

//! Decides when a server is asked again for its discovery documents.
//!
//! Answers "is what is known still good for this question?" It reads no clock: each function is given the time.
//! Invariants:
//! 1. What is known serves until it is older than its time to live. An incomplete answer lives shorter, since a group
//!    that did not answer may answer soon.
//! 2. A name that is not found asks once more, unless what is known was begun to be asked for after the question; so a
//!    kind that exists when a question begins is found. A question never asks twice for that.
//! 3. Questions for names that do not exist ask at most [`BURST`] times at once, and once each [`BETWEEN`] for long.
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

/// When and how what is known was found. Questions, answers and invalidations have one order, which is counted: a clock
/// may stand still between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Its place in that order: when it was begun to be asked for. Of a cache on disk 0, before every question.
    pub(crate) order: u64,
    /// When it was obtained: of an answer, when it was begun to be asked for.
    pub(crate) at: Instant,
    /// How old it was then: nothing, but for a cache on disk.
    pub(crate) age: Duration,
    /// Whether something could not be discovered.
    pub(crate) is_incomplete: bool,
}

impl Origin {
    /// Whether it still answers a question; `invalidated` is the place of the last invalidation.
    pub(crate) fn serves(self, invalidated: Option<u64>, ttl: Duration, now: Instant) -> bool {
        let ttl = if self.is_incomplete { ttl.min(INCOMPLETE_TTL) } else { ttl };
        let age = self.age.saturating_add(now.saturating_duration_since(self.at));
        invalidated.is_none_or(|at| at < self.order) && age < ttl
    }

    /// Whether a name that is not in it certainly did not exist when the question was asked.
    pub(crate) fn is_newer_than(self, question: u64) -> bool {
        self.order > question
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
        Origin { order, at: Instant::now(), age: Duration::ZERO, is_incomplete }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_known_serves_until_its_time_to_live_and_shorter_if_it_is_incomplete() {
        let begun = Instant::now();
        let second = Duration::from_secs(1);
        for (is_incomplete, lives) in [(false, TTL), (true, INCOMPLETE_TTL)] {
            let known = found(1, is_incomplete);
            assert!(known.serves(None, TTL, begun + lives - second));
            assert!(!known.serves(None, TTL, begun + lives));
        }
        assert!(!found(1, true).serves(None, second, begun + second), "a shorter one is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_asked_for_before_it_was_invalidated_does_not_serve() {
        let now = Instant::now();
        assert!(!found(3, false).serves(Some(4), TTL, now));
        assert!(found(5, false).serves(Some(4), TTL, now));
        assert!(found(0, false).serves(None, TTL, now), "a cache on disk");
        assert!(!found(0, false).serves(Some(1), TTL, now));
    }

    #[test]
    fn only_an_answer_that_was_begun_after_the_question_proves_that_a_name_is_missing() {
        let at = Instant::now();
        let of = |order| Origin { order, at, age: Duration::ZERO, is_incomplete: false };
        assert!(of(8).is_newer_than(7));
        assert!(!of(6).is_newer_than(7) && !of(0).is_newer_than(7));
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

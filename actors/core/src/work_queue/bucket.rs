//! A bucket of tokens: so many at once, then one per interval.
//!
//! Answers "how long until the next token?". It keeps one time, in whole nanoseconds: when the bucket will be full
//! again. Nothing is rounded, so a rate holds for ever (client-go computes with floating point numbers, and lost tokens
//! by it). Read next: `limiter.rs`, which limits keys by it.

use std::time::Duration;

use super::limiter::RateLimiter;
use crate::reflector::Moment;

/// A token would not come in time; none was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the next token comes in {wait:?}, which is later than allowed")]
#[non_exhaustive]
pub struct TooLong {
    /// How long the wait would be.
    pub wait: Duration,
}

/// The tokens of all keys together. Its memory does not grow.
///
/// ```
/// use informer_core::work_queue::Bucket;
/// use std::time::Duration;
/// let second = Duration::from_secs;
/// let mut bucket = Bucket::new(second(1), 3);
/// assert!((0..3).all(|_| bucket.try_take(second(0))) && !bucket.try_take(second(0)));
/// assert!(bucket.try_take(second(1)));
/// assert_eq!(bucket.take(second(1)), second(1), "a token of the future");
/// ```
#[derive(Debug, Clone)]
pub struct Bucket {
    interval: Duration,
    /// The time in which an empty bucket is filled but for one token.
    slack: Duration,
    full_at: Duration,
}

impl Bucket {
    /// A full bucket of `burst` tokens, at least one, which gets one more per `interval`.
    pub fn new(interval: Duration, burst: u32) -> Self {
        Self { interval, slack: interval.saturating_mul(burst.saturating_sub(1)), full_at: Duration::ZERO }
    }

    /// Takes a token and gives how long to wait for it. Waits queue up: each later one is longer by the interval.
    pub fn take(&mut self, now: Duration) -> Duration {
        let wait = self.wait(now);
        self.full_at = self.full_at.max(now).saturating_add(self.interval);
        wait
    }

    /// Takes a token if there is one now.
    pub fn try_take(&mut self, now: Duration) -> bool {
        self.take_within(Duration::ZERO, now).is_ok()
    }

    /// Takes a token and gives how long to wait for it.
    ///
    /// # Errors
    /// It would take longer than `limit`: then nothing is taken, and nobody needs to wait to learn it.
    pub fn take_within(&mut self, limit: Duration, now: Duration) -> Result<Duration, TooLong> {
        let wait = self.wait(now);
        if wait > limit { Err(TooLong { wait }) } else { Ok(self.take(now)) }
    }

    fn wait(&self, now: Duration) -> Duration {
        self.full_at.saturating_sub(self.slack).saturating_sub(now)
    }
}

impl<K> RateLimiter<K> for Bucket {
    fn when(&mut self, _key: &K, moment: Moment) -> Duration {
        self.take(moment.now)
    }

    /// Tokens are not given back.
    fn forget(&mut self, _key: &K) {}

    /// It does not count by key.
    fn failures(&self, _key: &K) -> u32 {
        0
    }
}

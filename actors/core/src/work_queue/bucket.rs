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
/// # use informer_core::face as actix_informer;
/// use actix_informer::work_queue::Bucket;
/// use std::time::Duration;
/// let second = Duration::from_secs;
/// let mut bucket = Bucket::new(second(1), 3);
/// assert!((0..3).all(|_| bucket.try_take(second(0))) && !bucket.try_take(second(0)));
/// assert!(bucket.try_take(second(1)));
/// assert_eq!(bucket.take(second(1)), second(1), "a token of the future");
/// ```
#[derive(Debug, Clone)]
pub struct Bucket {
    /// All in nanoseconds: of the longest interval and the most tokens, too, their products are whole numbers of this size.
    interval: u128,
    /// The time in which an empty bucket is filled but for one token.
    slack: u128,
    full_at: u128,
}

impl Bucket {
    /// A full bucket of `burst` tokens, at least one, which gets one more per `interval`.
    pub fn new(interval: Duration, burst: u32) -> Self {
        let interval = interval.as_nanos();
        Self { interval, slack: interval.saturating_mul(u128::from(burst.saturating_sub(1))), full_at: 0 }
    }

    /// Takes a token and gives how long to wait for it. Waits queue up: each later one is longer by the interval.
    pub fn take(&mut self, now: Duration) -> Duration {
        let wait = self.wait(now);
        self.full_at = self.full_at.max(now.as_nanos()).saturating_add(self.interval);
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
        duration(self.full_at.saturating_sub(self.slack).saturating_sub(now.as_nanos()))
    }
}

/// The longest duration if there is none of so many nanoseconds.
fn duration(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    let below = u32::try_from(nanos % SECOND).unwrap_or(0);
    u64::try_from(nanos / SECOND).map_or(Duration::MAX, |seconds| Duration::new(seconds, below))
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

//! How long a key waits after a failure: the rate limiters of client-go's workqueue.
//!
//! The caller must forget each key in the end, as the queue does when a key is done: a limiter holds at most
//! the queue's keys. No number of failures and no duration overflows: a wait is at most the limiter's bound.

use std::collections::BTreeMap;
use std::time::Duration;

use informer_core::reflector::Moment;

/// Decides how long a key waits after a failure. A queue calls it while it is locked: it must not use that
/// queue, nor block.
///
/// ```
/// use actix_informer::work_queue::{ExponentialPerKey, Moment, RateLimiter};
/// use std::time::Duration;
/// let mut limiter = ExponentialPerKey::new(Duration::from_millis(1), Duration::from_secs(1));
/// let moment = Moment { now: Duration::ZERO, chance: 0.0 };
/// assert_eq!(limiter.when(&"x", moment), Duration::from_millis(1));
/// assert_eq!(limiter.when(&"x", moment), Duration::from_millis(2));
/// assert_eq!(limiter.failures(&"x"), 2);
/// limiter.forget(&"x");
/// assert_eq!(limiter.when(&"x", moment), Duration::from_millis(1));
/// ```
pub trait RateLimiter<K> {
    /// Counts a failure of this key and returns its wait.
    fn when(&mut self, key: &K, moment: Moment) -> Duration;

    /// The key is in order: its failures are forgotten.
    fn forget(&mut self, key: &K);

    /// How many failures of this key are counted.
    fn failures(&self, key: &K) -> u32;
}

impl<K, L: RateLimiter<K> + ?Sized> RateLimiter<K> for Box<L> {
    fn when(&mut self, key: &K, moment: Moment) -> Duration {
        (**self).when(key, moment)
    }

    fn forget(&mut self, key: &K) {
        (**self).forget(key);
    }

    fn failures(&self, key: &K) -> u32 {
        (**self).failures(key)
    }
}

/// The limiter that is used unless another one is set: 5 ms, doubled with each failure of the key, at most
/// 1,000 s. Each wait is shortened by up to a half, drawn at random, so that keys that failed together are
/// not all tried together.
///
/// No key waits for the failures of others. client-go's older controllers also have a
/// [`Bucket`](super::Bucket) of ten tries a second: its debt has no bound, so the keys of an outage of
/// seconds wait for minutes after it.
pub fn default_limiter<K: Ord + Clone + Send + 'static>() -> impl RateLimiter<K> + Send {
    Jittered(ExponentialPerKey::new(Duration::from_millis(5), Duration::from_secs(1_000)))
}

/// Shortens each wait by up to a half, at random: a longer wait would exceed the bound of `L`.
struct Jittered<L>(L);

impl<K, L: RateLimiter<K>> RateLimiter<K> for Jittered<L> {
    fn when(&mut self, key: &K, moment: Moment) -> Duration {
        let whole = self.0.when(key, moment);
        whole.saturating_sub((whole / 2).mul_f64(moment.chance.clamp(0.0, 1.0)))
    }

    fn forget(&mut self, key: &K) {
        self.0.forget(key);
    }

    fn failures(&self, key: &K) -> u32 {
        self.0.failures(key)
    }
}

#[derive(Debug, Clone)]
struct Failures<K>(BTreeMap<K, u32>);

impl<K: Ord + Clone> Failures<K> {
    fn count(&mut self, key: &K) -> u32 {
        if let Some(failures) = self.0.get_mut(key) {
            *failures = failures.saturating_add(1);
            return *failures - 1;
        }
        self.0.insert(key.clone(), 1);
        0
    }

    fn of(&self, key: &K) -> u32 {
        self.0.get(key).copied().unwrap_or(0)
    }
}

/// Waits of `base`, `2 × base`, `4 × base` and so on, at most `cap`, for each key by itself.
#[derive(Debug, Clone)]
pub struct ExponentialPerKey<K> {
    base: Duration,
    cap: Duration,
    failures: Failures<K>,
}

impl<K> ExponentialPerKey<K> {
    /// The first wait and the longest one.
    pub const fn new(base: Duration, cap: Duration) -> Self {
        Self { base, cap, failures: Failures(BTreeMap::new()) }
    }
}

impl<K: Ord + Clone> RateLimiter<K> for ExponentialPerKey<K> {
    fn when(&mut self, key: &K, _moment: Moment) -> Duration {
        let doublings = self.failures.count(key);
        // Two steps, because one shifts by at most 31: 2^62 nanoseconds are 146 years.
        let once = self.base.saturating_mul(1 << doublings.min(31));
        once.saturating_mul(1 << doublings.saturating_sub(31).min(31)).min(self.cap)
    }

    fn forget(&mut self, key: &K) {
        self.failures.0.remove(key);
    }

    fn failures(&self, key: &K) -> u32 {
        self.failures.of(key)
    }
}

/// Some fast tries of each key, then slow ones.
#[derive(Debug, Clone)]
pub struct FastSlow<K> {
    fast: Duration,
    slow: Duration,
    fast_tries: u32,
    failures: Failures<K>,
}

impl<K> FastSlow<K> {
    /// The wait of the first `fast_tries` failures, and that of all later ones.
    pub const fn new(fast: Duration, slow: Duration, fast_tries: u32) -> Self {
        Self { fast, slow, fast_tries, failures: Failures(BTreeMap::new()) }
    }
}

impl<K: Ord + Clone> RateLimiter<K> for FastSlow<K> {
    fn when(&mut self, key: &K, _moment: Moment) -> Duration {
        if self.failures.count(key) < self.fast_tries { self.fast } else { self.slow }
    }

    fn forget(&mut self, key: &K) {
        self.failures.0.remove(key);
    }

    fn failures(&self, key: &K) -> u32 {
        self.failures.of(key)
    }
}

/// The longer wait, and the larger count, of two limiters. Both count each failure.
#[derive(Debug, Clone)]
pub struct MaxOf<A, B> {
    one: A,
    other: B,
}

impl<A, B> MaxOf<A, B> {
    /// Of these two. More than two are nested.
    pub const fn new(one: A, other: B) -> Self {
        Self { one, other }
    }
}

impl<K, A: RateLimiter<K>, B: RateLimiter<K>> RateLimiter<K> for MaxOf<A, B> {
    fn when(&mut self, key: &K, moment: Moment) -> Duration {
        self.one.when(key, moment).max(self.other.when(key, moment))
    }

    fn forget(&mut self, key: &K) {
        self.one.forget(key);
        self.other.forget(key);
    }

    fn failures(&self, key: &K) -> u32 {
        self.one.failures(key).max(self.other.failures(key))
    }
}

/// A limiter whose waits are cut off at a bound.
#[derive(Debug, Clone)]
pub struct MaxWait<L> {
    inner: L,
    most: Duration,
}

impl<L> MaxWait<L> {
    /// The waits of this limiter, at most as long as this.
    pub const fn new(inner: L, most: Duration) -> Self {
        Self { inner, most }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for MaxWait<L> {
    fn when(&mut self, key: &K, moment: Moment) -> Duration {
        self.inner.when(key, moment).min(self.most)
    }

    fn forget(&mut self, key: &K) {
        self.inner.forget(key);
    }

    fn failures(&self, key: &K) -> u32 {
        self.inner.failures(key)
    }
}

// Whole nanoseconds: nothing is rounded, so a rate holds for ever (client-go loses tokens by floating point
// numbers).

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
    /// All three in nanoseconds: the product of the longest interval and the most tokens fits.
    interval: u128,
    /// Fills an empty bucket except for one token.
    slack: u128,
    /// When the bucket is full again.
    full_at: u128,
}

impl Bucket {
    /// A full bucket of `burst` tokens, at least one, which gets one more per `interval`.
    pub fn new(interval: Duration, burst: u32) -> Self {
        let interval = interval.as_nanos();
        Self { interval, slack: interval.saturating_mul(u128::from(burst.saturating_sub(1))), full_at: 0 }
    }

    /// Takes a token and returns how long to wait for it. Waits queue up: each later one is longer by the
    /// interval.
    pub fn take(&mut self, now: Duration) -> Duration {
        let wait = self.wait(now);
        self.full_at = self.full_at.max(now.as_nanos()).saturating_add(self.interval);
        wait
    }

    /// Takes a token if there is one now.
    pub fn try_take(&mut self, now: Duration) -> bool {
        self.take_within(Duration::ZERO, now).is_ok()
    }

    /// Takes a token and returns how long to wait for it.
    ///
    /// # Errors
    /// It would take longer than `limit`: then nothing is taken, and nobody needs to wait to learn it.
    pub fn take_within(&mut self, limit: Duration, now: Duration) -> Result<Duration, TooLong> {
        let wait = self.wait(now);
        if wait > limit { Err(TooLong { wait }) } else { Ok(self.take(now)) }
    }

    fn wait(&self, now: Duration) -> Duration {
        let nanos = self.full_at.saturating_sub(self.slack).saturating_sub(now.as_nanos());
        Duration::from_nanos_u128(nanos.min(Duration::MAX.as_nanos()))
    }
}

impl<K> RateLimiter<K> for Bucket {
    fn when(&mut self, _key: &K, moment: Moment) -> Duration {
        self.take(moment.now)
    }

    fn forget(&mut self, _key: &K) {}

    fn failures(&self, _key: &K) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests;

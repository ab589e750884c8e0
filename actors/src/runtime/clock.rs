//! Time and chance, for everything in the pipeline.
//!
//! Answers "what time is it, and how lucky are we?". The clock is tokio's, so that a paused runtime pauses it; chance
//! is a seeded stream per asker. This is the one file that reads a clock. Invariants:
//! 1. Time is a `Duration` since the runtime's start and never goes back.
//! 2. Equal seed and stream number give equal chances.
//! 3. Every duration is taken: what lies further ahead than [`FOREVER`], up to `Duration::MAX`, never comes.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use informer_core::reflector::Moment;
use tokio::time::Instant;

/// A wait of a century and more never ends: no `Instant` has to hold its end, and no timer is set.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Time since a beginning.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn started_now() -> Self {
        Self { start: Instant::now() }
    }

    pub(crate) fn now(&self) -> Duration {
        Instant::now().saturating_duration_since(self.start)
    }

    /// The instant at which it shows `at`; none if that never comes.
    fn instant(&self, at: Duration) -> Option<Instant> {
        self.start.checked_add(at).filter(|_| at < FOREVER)
    }
}

/// Waits until the clock shows `at`.
pub(crate) async fn sleep_until(clock: &Clock, at: Duration) {
    match clock.instant(at) {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Waits for so long.
pub(crate) async fn sleep(wait: Duration) {
    if wait < FOREVER {
        tokio::time::sleep(wait).await;
    } else {
        std::future::pending().await
    }
}

/// Awaits `future` for at most `limit`; `None` when the time is up.
pub(crate) async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    if limit < FOREVER { tokio::time::timeout(limit, future).await.ok() } else { Some(future.await) }
}

/// A seeded stream of chances.
#[derive(Debug, Clone)]
pub struct Chance(fastrand::Rng);

impl Chance {
    /// The `stream`th stream of `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// The next number in `[0, 1)`.
    pub fn draw(&mut self) -> f64 {
        self.0.f64()
    }

    pub(crate) fn moment(&mut self, clock: &Clock) -> Moment {
        Moment { now: clock.now(), chance: self.draw() }
    }
}

/// A seed that differs from process to process.
pub(crate) fn seed_from_system() -> u64 {
    RandomState::new().build_hasher().finish()
}

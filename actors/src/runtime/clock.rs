//! The clock and the random numbers of the pipeline.
//!
//! Only this file reads a clock: tokio's, so that a paused runtime pauses it. Each user of random numbers has its own
//! seeded stream. Every duration is valid: a time [`FOREVER`] or more ahead never comes.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, SystemTime};

use informer_core::reflector::Moment;
use tokio::time::Instant;

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
mod suspension {
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    #[cfg(not(target_vendor = "apple"))]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(target_vendor = "apple")]
    const CLOCK: ClockId = ClockId::Monotonic;

    pub(super) fn now() -> Option<Duration> {
        Duration::try_from(clock_gettime(CLOCK)).ok()
    }
}
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
mod suspension {
    //! No such clock can be read here.
    pub(super) fn now() -> Option<std::time::Duration> {
        None
    }
}

/// A wait this long never ends: no timer is set, so no `Instant` must represent its end.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// 2020-01-01T00:00:00Z. A simulation's time of day begins within 16 years from here.
#[cfg(any(test, feature = "testing"))]
const FIRST_SIMULATED: Duration = Duration::from_secs(1_577_836_800);
#[cfg(any(test, feature = "testing"))]
const SIMULATED_RANGE: Duration = Duration::from_secs(16 * 365 * 24 * 60 * 60);
/// No other user's stream number is that high.
#[cfg(any(test, feature = "testing"))]
const TIME_OF_DAY: u64 = u64::MAX;

/// The time since the clock was started, and the time of day.
#[derive(Debug, Clone)]
pub struct Clock {
    start: Instant,
    /// `None` if the system's clock shows the time of day.
    started_at: Option<SystemTime>,
}

impl Clock {
    pub(crate) fn started_now() -> Self {
        Self { start: Instant::now(), started_at: None }
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn simulated(seed: u64) -> Self {
        let into = SIMULATED_RANGE.mul_f64(RandomNumbers::new(seed, TIME_OF_DAY).draw());
        Self::simulated_from(SystemTime::UNIX_EPOCH + FIRST_SIMULATED + into)
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn simulated_from(wall_time: SystemTime) -> Self {
        Self { start: Instant::now(), started_at: Some(wall_time) }
    }

    /// The time of day: the system's, or in simulation a start that the seed chooses plus the simulated time.
    #[expect(clippy::disallowed_methods, reason = "the one place where the machine's time of day is read")]
    pub fn wall_time(&self) -> SystemTime {
        match self.started_at {
            // It stands still at the end of the representable range.
            Some(start) => start.checked_add(self.now()).unwrap_or(start),
            None => SystemTime::now(),
        }
    }

    pub(crate) const fn is_simulated(&self) -> bool {
        self.started_at.is_some()
    }

    /// Time since its start.
    pub fn now(&self) -> Duration {
        Instant::now().saturating_duration_since(self.start)
    }

    /// Time since some fixed moment that also passes while the machine is suspended; it never goes back. On
    /// Linux and Android it is the system's `CLOCK_BOOTTIME`, on Apple's systems its `CLOCK_MONOTONIC`.
    /// Elsewhere it is [`Self::now`], which may stand still during a suspension. In simulation it is the
    /// simulated time.
    pub fn with_suspension(&self) -> Duration {
        match self.started_at {
            Some(_) => self.now(),
            None => suspension::now().unwrap_or_else(|| self.now()),
        }
    }

    fn instant(&self, at: Duration) -> Option<Instant> {
        self.start.checked_add(at).filter(|_| at < FOREVER)
    }
}

/// Waits until the clock shows `at`.
pub async fn sleep_until(clock: &Clock, at: Duration) {
    match clock.instant(at) {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Waits for this duration.
pub async fn sleep(wait: Duration) {
    if wait < FOREVER {
        tokio::time::sleep(wait).await;
    } else {
        std::future::pending().await
    }
}

/// Awaits `future` for at most `limit`; `None` when the time is up.
pub async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    if limit < FOREVER { tokio::time::timeout(limit, future).await.ok() } else { Some(future.await) }
}

/// A seeded stream of random numbers.
#[derive(Debug, Clone)]
pub struct RandomNumbers(fastrand::Rng);

impl RandomNumbers {
    /// The `stream`th stream of `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// The next number in `[0, 1)`.
    pub fn draw(&mut self) -> f64 {
        self.0.f64()
    }

    /// The current time, with the next number.
    #[doc(hidden)]
    pub fn moment(&mut self, clock: &Clock) -> Moment {
        Moment { now: clock.now(), chance: self.draw() }
    }
}

pub(crate) fn seed_from_system() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_simulated_time_of_day_comes_from_the_seed_and_moves_with_the_paused_clock() {
        let (clock, same, other) = (Clock::simulated(7), Clock::simulated(7), Clock::simulated(8));
        let start = clock.wall_time();
        assert_eq!(start, same.wall_time());
        assert_ne!(start, other.wall_time());
        assert!(start >= SystemTime::UNIX_EPOCH + FIRST_SIMULATED);
        let year = Duration::from_secs(365 * 24 * 60 * 60);
        sleep(year).await;
        assert_eq!(clock.wall_time(), start + year);
        assert_eq!((clock.wall_time(), other.now()), (same.wall_time(), year));
    }

    #[tokio::test(start_paused = true)]
    #[expect(clippy::disallowed_methods, reason = "what is compared with")]
    async fn a_real_time_of_day_is_the_systems_whatever_tokio_s_clock_shows() {
        let clock = Clock::started_now();
        let before = SystemTime::now();
        sleep(Duration::from_secs(3_600)).await;
        let shown = clock.wall_time();
        assert!((before..=SystemTime::now()).contains(&shown), "{shown:?}");
    }
}

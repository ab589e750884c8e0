//! How long to wait after a failure: exponential, jittered, capped. Invariants:
//! 1. The n-th wait since the last reset is between d and 2d, with d = base × 2ⁿ⁻¹, at most `cap`: clients that
//!    failed together come back apart.
//! 2. Only [`Backoff::reset`] makes waits shorter. (client-go forgets after two minutes, and asks a dead server too
//!    often.)

use std::time::Duration;

/// The shortest wait: without it, a policy of zeros would try again without any pause.
pub const LEAST_WAIT: Duration = Duration::from_millis(1);

/// The numbers of a backoff. Every duration is valid: after a wait of `Duration::MAX` nothing is tried again,
/// and less than [`LEAST_WAIT`] is taken as [`LEAST_WAIT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackoffPolicy {
    /// The lower end of the first wait. Default 0.8 s.
    pub base: Duration,
    /// The largest lower end of a wait; every wait is below twice this. Default 30 s.
    pub cap: Duration,
}

impl Default for BackoffPolicy {
    fn default() -> Self {
        Self { base: Duration::from_millis(800), cap: Duration::from_secs(30) }
    }
}

/// The waits after the failures of one source or actor: how many there were, and how long the next one is.
///
/// ```
/// # use informer_core::backoff::{Backoff, BackoffPolicy};
/// use std::time::Duration;
/// let mut backoff = Backoff::new(BackoffPolicy::default());
/// assert_eq!(backoff.next_wait(0.0), Duration::from_millis(800));
/// assert_eq!(backoff.next_wait(0.5), Duration::from_millis(2_400));   // 1.6 s to 3.2 s
/// backoff.reset();
/// assert_eq!(backoff.next_wait(0.0), Duration::from_millis(800));
/// ```
#[derive(Debug, Clone)]
pub struct Backoff {
    policy: BackoffPolicy,
    attempts: u32,
    last_wait: Option<Duration>,
}

impl Backoff {
    /// A backoff that has not waited yet.
    pub fn new(policy: BackoffPolicy) -> Self {
        Self { policy, attempts: 0, last_wait: None }
    }

    /// Counts one failure and draws its wait; `chance` is in [0, 1), values outside are clamped.
    pub fn next_wait(&mut self, chance: f64) -> Duration {
        let doublings = self.attempts.min(31);
        let step = self.policy.base.saturating_mul(1 << doublings).min(self.policy.cap);
        let floor = step.max(LEAST_WAIT);
        self.attempts = self.attempts.saturating_add(1);
        let wait = spread(floor, floor, chance);
        self.last_wait = Some(wait);
        wait
    }

    /// Counts one failure whose wait the server named (Retry-After). The next drawn wait does not grow by it,
    /// since a server that names a wait is reachable.
    pub fn count_told(&mut self, wait: Duration) {
        self.last_wait = Some(wait);
    }

    /// Forgets all failures: the next wait is the first one again.
    pub fn reset(&mut self) {
        self.attempts = 0;
        self.last_wait = None;
    }

    /// How many waits were drawn since the last reset.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The newest wait since the last reset.
    pub fn last_wait(&self) -> Option<Duration> {
        self.last_wait
    }
}

/// `chance` is from 0 to 1.
pub(crate) fn spread(floor: Duration, width: Duration, chance: f64) -> Duration {
    let chance = if chance.is_finite() { chance.clamp(0.0, 1.0) } else { 0.0 };
    // Not `mul_f64`, which panics above `Duration::MAX`.
    let part = Duration::try_from_secs_f64(width.as_secs_f64() * chance).unwrap_or(Duration::MAX);
    floor.saturating_add(part)
}

#[cfg(test)]
mod tests;

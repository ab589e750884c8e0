//! How often, and after which waits, a write that met a conflict is tried again.
//!
//! Answers "is there another attempt, and when?" for read-modify-write loops; it does not say which errors are
//! conflicts. As client-go's `util/retry`: five attempts unless said otherwise. Invariants:
//! 1. The number of attempts is bounded.
//! 2. Waits are those of `backoff.rs`: two writers that met each other do not meet again at once.

use std::time::Duration;

use crate::backoff::{Backoff, BackoffPolicy};

/// The numbers of the attempts.
///
/// ```
/// # use informer_core::face as actix_informer;
/// use actix_informer::client::api::ConflictPolicy;
/// let patient = ConflictPolicy { attempts: 20, ..ConflictPolicy::default() };
/// assert_eq!(patient.backoff.base.as_millis(), 10);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConflictPolicy {
    /// How many attempts there are in all; 0 is taken as 1. Default 5.
    pub attempts: u32,
    /// The waits between them: from 10 to 20 ms, then doubled, the last from 0.5 to 1 s.
    pub backoff: BackoffPolicy,
}

impl Default for ConflictPolicy {
    fn default() -> Self {
        let backoff = BackoffPolicy { base: Duration::from_millis(10), cap: Duration::from_millis(500) };
        Self { attempts: 5, backoff }
    }
}

/// The attempts of one write.
///
/// ```
/// # use informer_core::conflict::{ConflictPolicy, Conflicts};
/// use std::time::Duration;
/// let mut conflicts = Conflicts::new(ConflictPolicy { attempts: 2, ..ConflictPolicy::default() });
/// assert_eq!(conflicts.handle_conflict(0.0), Some(Duration::from_millis(10)));
/// assert_eq!(conflicts.handle_conflict(0.0), None); // that was the second
/// ```
#[derive(Debug, Clone)]
pub struct Conflicts {
    attempts: u32,
    backoff: Backoff,
}

impl Conflicts {
    /// No attempt has failed yet.
    pub fn new(policy: ConflictPolicy) -> Self {
        Self { attempts: policy.attempts, backoff: Backoff::new(policy.backoff) }
    }

    /// An attempt met a conflict: the wait before the next one, or `None` if it was the last.
    pub fn handle_conflict(&mut self, chance: f64) -> Option<Duration> {
        let left = self.attempts.saturating_sub(self.backoff.attempts()).saturating_sub(1);
        (left > 0).then(|| self.backoff.next_wait(chance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_attempts_as_the_policy_says_and_the_waits_grow_to_the_cap() {
        for (attempts, waits) in [(0, 0), (1, 0), (5, 4), (12, 11)] {
            let mut conflicts = Conflicts::new(ConflictPolicy { attempts, ..ConflictPolicy::default() });
            let found: Vec<_> = std::iter::from_fn(|| conflicts.handle_conflict(0.0)).collect();
            let expected = (0..waits).map(|n| Duration::from_millis((10 << n).min(500)));
            assert_eq!(found, expected.collect::<Vec<_>>(), "{attempts} attempts");
        }
    }
}

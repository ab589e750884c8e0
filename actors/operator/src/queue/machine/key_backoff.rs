//! Growing waits by key with jitter, as client-go's `flowcontrol.Backoff`, for work that is in no queue.
//!
//! The first wait is `base`; each later one is at least twice the one before, and at most `cap`. Jitter only
//! lengthens waits. A key without a failure for twice `cap` is forgotten at the next call, so memory is
//! bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use informer_core::reflector::Moment;

/// The numbers of a [`KeyBackoff`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeyBackoffPolicy {
    /// The first wait.
    pub base: Duration,
    /// The longest wait.
    pub cap: Duration,
    /// The most by which a wait is lengthened, as a part of the wait before it (for the first wait: of
    /// itself).
    pub jitter: f64,
}

/// The waits of many keys.
///
/// ```
/// use actix_informer::work_queue::{KeyBackoff, KeyBackoffPolicy, Moment};
/// use std::time::Duration;
/// let second = Duration::from_secs;
/// let mut backoff = KeyBackoff::new(KeyBackoffPolicy { base: second(1), cap: second(50), jitter: 0.0 });
/// let at = |now| Moment { now, chance: 0.0 };
/// assert_eq!(backoff.next(&"x", at(second(0))), second(1));
/// assert_eq!(backoff.next(&"x", at(second(1))), second(2));
/// assert!(backoff.is_backing_off(&"x", second(2)) && !backoff.is_backing_off(&"x", second(3)));
/// backoff.reset(&"x");
/// assert_eq!(backoff.wait(&"x"), second(0));
/// ```
#[derive(Debug, Clone)]
pub struct KeyBackoff<K> {
    policy: KeyBackoffPolicy,
    entries: BTreeMap<K, Entry>,
    by_update: BTreeSet<(Duration, K)>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    wait: Duration,
    updated_at: Duration,
}

impl<K: Ord + Clone> KeyBackoff<K> {
    /// No key has failed yet.
    pub const fn new(policy: KeyBackoffPolicy) -> Self {
        Self { policy, entries: BTreeMap::new(), by_update: BTreeSet::new() }
    }

    /// Counts a failure of this key now, and returns its wait from here.
    pub fn next(&mut self, key: &K, Moment { now, chance }: Moment) -> Duration {
        self.forget_expired(now);
        let former = self.entries.get(key).copied();
        let (floor, width) = match former {
            Some(Entry { wait, .. }) => (wait.saturating_mul(2), wait),
            None => (self.policy.base, self.policy.base),
        };
        let wait = floor.saturating_add(self.jitter(width, chance)).min(self.policy.cap);
        if let Some(former) = former {
            self.by_update.remove(&(former.updated_at, key.clone()));
        }
        self.by_update.insert((now, key.clone()));
        self.entries.insert(key.clone(), Entry { wait, updated_at: now });
        wait
    }

    /// The newest wait of this key; zero if it has not failed.
    pub fn wait(&self, key: &K) -> Duration {
        self.entries.get(key).map_or(Duration::ZERO, |entry| entry.wait)
    }

    /// Whether the key's wait, from its last failure on, has not passed at this time.
    pub fn is_backing_off(&self, key: &K, now: Duration) -> bool {
        self.entries.get(key).is_some_and(|entry| now.saturating_sub(entry.updated_at) < entry.wait)
    }

    /// Forgets the failures of this key.
    pub fn reset(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.by_update.remove(&(entry.updated_at, key.clone()));
        }
    }

    /// Forgets what is older than twice the longest wait. [`Self::next`] does it, too.
    pub fn forget_expired(&mut self, now: Duration) {
        let longest = self.policy.cap.saturating_mul(2);
        while let Some((updated_at, _)) = self.by_update.first()
            && now.saturating_sub(*updated_at) > longest
            && let Some((_, key)) = self.by_update.pop_first()
        {
            self.entries.remove(&key);
        }
    }

    /// How many keys are held.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no key has failed.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Never zero if there is any jitter: `chance` is below one.
    fn jitter(&self, width: Duration, chance: f64) -> Duration {
        let factor = self.policy.jitter * (1.0 - chance.clamp(0.0, 1.0));
        let most = Duration::try_from_secs_f64(width.as_secs_f64() * factor.max(0.0));
        most.unwrap_or(if factor > 0.0 { Duration::MAX } else { Duration::ZERO })
    }
}

//! Keys that have failed: when they are added again, and which of them still wait for that.
//!
//! Answers "after which delay is a failed key tried again?" with what the limiter says (`limiter.rs`). Invariants:
//! 1. A failure is counted by the limiter unless the queue is shut down: then it forgets the key.
//! 2. A key is noted as one that is retried until its delayed add is due, or until it has come back for another reason.
//!
//! Read next: `work_queue.rs`, which says what a delayed add is.

use std::time::Duration;

use super::{Merge, Priority, RateLimiter, WorkQueue};
use crate::reflector::Moment;

impl<K: Ord + Clone, P: Merge> WorkQueue<K, P> {
    /// Adds a key after the delay that the limiter says, which counts a failure of the key. Gives the delay; `None` if
    /// the add is refused, and then the limiter forgets the key.
    pub fn add_rate_limited(
        &mut self,
        key: K,
        priority: Priority,
        limiter: &mut (impl RateLimiter<K> + ?Sized),
        moment: Moment,
    ) -> Option<Duration> {
        if self.is_shut_down() {
            self.cells.refused += 1;
            limiter.forget(&key);
            return None;
        }
        let delay = limiter.when(&key, moment);
        self.add_after(key.clone(), delay, priority, moment.now);
        self.note_retry(&key);
        Some(delay)
    }

    /// A key comes back after a failure, and is added after the delay that the limiter says. Gives the delay. `None` after
    /// a shutdown: it comes back, the add is refused, and the limiter forgets the key. `None`, and nothing happens, if
    /// the key is not being processed.
    pub fn retry(
        &mut self,
        key: &K,
        limiter: &mut (impl RateLimiter<K> + ?Sized),
        moment: Moment,
    ) -> Option<Duration> {
        self.retry_with(key, P::default(), limiter, moment)
    }

    /// As [`Self::retry`], with a note that is handed out with the key then.
    pub fn retry_with(
        &mut self,
        key: &K,
        note: P,
        limiter: &mut (impl RateLimiter<K> + ?Sized),
        moment: Moment,
    ) -> Option<Duration> {
        if !self.is_processing(key) {
            return None;
        }
        if self.is_shut_down() {
            self.done(key, moment.now);
            self.cells.refused += 1;
            limiter.forget(key);
            return None;
        }
        let delay = limiter.when(key, moment);
        self.retry_after_with(key, delay, note, moment.now);
        self.note_retry(key);
        Some(delay)
    }

    /// A failure has led to an add. One without a delay waits already.
    fn note_retry(&mut self, key: &K) {
        self.cells.retries += 1;
        if let Some(id) = self.find(key)
            && self.slots.get(id).is_some_and(|slot| slot.delay.is_some())
        {
            self.retrying.insert(id);
        }
    }
}

//! Keys that have failed: when they are added again, and which of them still wait for that.
//!
//! Answers "after which delay is a failed key tried again?" with what the limiter says (`limiter.rs`). Invariants:
//! 1. A failure is counted by the limiter unless the queue is shut down: then it forgets the key.
//! 2. A key is noted as one that is retried until its delayed add is due, or until it has come back for another reason.
//! 3. When it has come back in order, there is nothing to retry: its delayed add goes, unless something else has asked for
//!    it, too.
//!
//! Read next: `machine.rs`, which says what a delayed add is.

use std::time::Duration;

use super::slots::Processing;
use super::{Merge, Priority, QueueMachine, RateLimiter};
use informer_core::reflector::Moment;

impl<K: Ord + Clone, P: Merge> QueueMachine<K, P> {
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
        self.note_retry(&key, false);
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
        let (id, Processing { priority, .. }) = self.processed(key)?;
        if self.is_shut_down() {
            self.done(key, moment.now);
            self.cells.refused += 1;
            limiter.forget(key);
            return None;
        }
        let delay = limiter.when(key, moment);
        let former = self.slots.get(id).and_then(|slot| slot.delay);
        self.add_after_with(key.clone(), delay, (priority, note), moment.now);
        self.come_back(key, false, moment.now);
        self.note_retry(key, former.is_none_or(|former| former.is_retry));
        Some(delay)
    }

    /// A failure has led to an add, or nothing but failures has. One without a delay waits already.
    fn note_retry(&mut self, key: &K, is_retry: bool) {
        self.cells.retries += 1;
        let Some(id) = self.find(key) else { return };
        if let Some(delay) = self.slots.get_mut(id).and_then(|slot| slot.delay.as_mut()) {
            delay.is_retry = is_retry;
            self.retrying.insert(id);
        }
    }

    /// The key of this slot is in order: it is not tried again.
    pub(super) fn drop_retry(&mut self, id: u32) {
        if self.slots.get(id).and_then(|slot| slot.delay).is_some_and(|delay| delay.is_retry) {
            self.drop_delay(id);
        }
    }
}

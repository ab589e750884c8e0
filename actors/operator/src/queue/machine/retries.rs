//! Keys that have failed: when they are added again, and which of them still wait for that.
//!
//! A key counts as retried until its delayed add is due or it has come back. When it comes back in order, its
//! delayed add is removed, unless something other than a failure has requested it, too.

use std::time::Duration;

use super::slots::Processing;
use super::{Merge, Priority, QueueMachine, RateLimiter};
use informer_core::reflector::Moment;

impl<K: Ord + Clone, P: Merge> QueueMachine<K, P> {
    /// Adds a key after the delay that the limiter says, which counts a failure of the key. Returns the
    /// delay; `None` if the add is refused, and then the limiter forgets the key.
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

    /// A key comes back after a failure, and is added after the delay that the limiter says, which is
    /// returned. `None` after a shutdown: the key comes back, the add is refused, and the limiter forgets the
    /// key. `None`, and nothing changes, if the key is not being processed.
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

    /// An add without a delay waits already.
    fn note_retry(&mut self, key: &K, is_retry: bool) {
        self.cells.retries += 1;
        let Some(id) = self.find(key) else { return };
        if let Some(delay) = self.slots.get_mut(id).and_then(|slot| slot.delay.as_mut()) {
            delay.is_retry = is_retry;
            self.retrying.insert(id);
        }
    }

    pub(super) fn drop_retry(&mut self, id: u32) {
        if self.slots.get(id).and_then(|slot| slot.delay).is_some_and(|delay| delay.is_retry) {
            self.drop_delay(id);
        }
    }
}

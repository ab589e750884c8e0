//! Keys on their way to a worker, which may have gone by then.
//!
//! Answers "has somebody got this key?". Invariant:
//! 1. While a key is on its way, the queue is not over: it may wait again.
//!
//! Read next: `shutdown.rs`, when a queue is over.

use std::time::Duration;

use super::{Taken, WorkQueue};

impl<K: Ord + Clone> WorkQueue<K> {
    /// As [`Self::take`], for a worker that may have gone: until [`Self::accept`] or [`Self::take_back`] is called for the
    /// key, the queue is not over, since the key may wait again.
    pub fn offer(&mut self, now: Duration) -> Option<Taken<K>> {
        let taken = self.take(now)?;
        self.offered += 1;
        Some(taken)
    }

    /// A worker has one of the keys that were offered.
    pub fn accept(&mut self) {
        self.offered = self.offered.saturating_sub(1);
    }

    /// The worker to whom this key was offered has gone: as [`Self::put_back`].
    pub fn take_back(&mut self, key: &K, now: Duration) -> bool {
        self.accept();
        self.put_back(key, now)
    }
}

//! Keys on their way to a worker, which may have gone by then.
//!
//! Answers "has somebody got this key?". Invariant:
//! 1. While a key is on its way, the queue is not over: it may wait again.
//!
//! Read next: `shutdown.rs`, when a queue is over.

use std::time::Duration;

use super::{Merge, Taken, WorkQueue};

impl<K: Ord + Clone, P: Merge> WorkQueue<K, P> {
    /// As [`Self::take`] without delayed adds, which [`Self::release_due`] makes wait before; for a worker that may have gone: until [`Self::accept`] or [`Self::take_back`] is called for the
    /// key, the queue is not over, since the key may wait again.
    pub fn offer(&mut self, now: Duration) -> Option<Taken<K, P>> {
        let taken = self.take_ready(now)?;
        self.offered += 1;
        Some(taken)
    }

    /// A worker has one of the keys that were offered.
    pub fn accept(&mut self) {
        self.offered = self.offered.saturating_sub(1);
    }

    /// The worker to whom this key was offered has gone: as [`Self::put_back`].
    pub fn take_back(&mut self, key: &K, note: P, now: Duration) -> bool {
        self.accept();
        self.put_back(key, note, now)
    }
}

//! How streams of the scripted server learn that something has happened.
//!
//! Answers "has anything changed since I looked?". Streams are woken in the order in which they began to wait: the
//! receivers of a `watch` channel are woken in random order, and a simulation in which two sources follow one server
//! would not repeat. Read next: `live.rs`, a stream that waits.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Counts what has happened.
#[derive(Debug, Default)]
pub(super) struct News {
    count: AtomicU64,
    moved: Notify,
}

impl News {
    /// Something has happened.
    pub(super) fn tell(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        self.moved.notify_waiters();
    }

    /// How often something has happened; to be read before looking.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Waits until something has happened after the count was `seen`.
    pub(super) async fn after(&self, seen: u64) {
        loop {
            // It is woken by all that happens from here on, so nothing is missed after the look.
            let moved = self.moved.notified();
            if self.count() != seen {
                return;
            }
            moved.await;
        }
    }

    /// Waits while this holds; it is looked at whenever something has happened.
    pub(super) async fn wait_while(&self, holds: impl Fn() -> bool) {
        loop {
            let seen = self.count();
            if !holds() {
                return;
            }
            self.after(seen).await;
        }
    }
}

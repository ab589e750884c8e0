//! How streams of the scripted server are woken when something has happened.
//!
//! Answers "has anything changed since this stream looked?". Streams are woken in the order in which they began to
//! wait. The receivers of a `watch` channel would be woken in random order, and a simulation in which two sources
//! follow one server would not repeat. Read next: `live.rs`, a stream that waits.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Counts the changes of the server's state.
#[derive(Debug, Default)]
pub(super) struct Changes {
    count: AtomicU64,
    moved: Notify,
}

impl Changes {
    /// Something has happened: wakes every stream that waits.
    pub(super) fn notify(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        self.moved.notify_waiters();
    }

    /// How often something has happened. A stream reads this before it looks at the state.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Waits until something has happened after the count was `seen`.
    pub(super) async fn after(&self, seen: u64) {
        loop {
            // Every notification from here on wakes it, so none is missed between the look and the wait.
            let moved = self.moved.notified();
            if self.count() != seen {
                return;
            }
            moved.await;
        }
    }

    /// Waits while `holds` is true; it is checked again whenever something has happened.
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

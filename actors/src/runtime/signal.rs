//! A count of changes on which tasks wait. It grows after the change: a task that reads it, looks, then waits for a
//! higher count misses no change.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Notify, oneshot};

/// How often something has changed.
#[derive(Debug, Default)]
pub struct Signal {
    count: AtomicU64,
    changed: Notify,
}

impl Signal {
    /// Read it before you look at what may change.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Waits until something has changed after the count was `seen`.
    pub async fn since(&self, seen: u64) {
        loop {
            // Every change from here on wakes it.
            let changed = self.changed.notified();
            if self.count() != seen {
                return;
            }
            changed.await;
        }
    }

    /// Looks now and after each change, until a look has an outcome. Misses no change that is raised after it.
    pub async fn until<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        loop {
            let seen = self.count();
            if let Some(outcome) = look() {
                return outcome;
            }
            self.since(seen).await;
        }
    }

    /// Something has changed.
    pub fn raise(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_waiters();
    }
}

/// Wakes one wait, once.
pub(crate) type WakeOnce = oneshot::Sender<()>;
/// Ready when it is woken, or nobody can wake it.
pub(crate) type WokenOnce = oneshot::Receiver<()>;

pub(crate) fn wake_once() -> (WakeOnce, WokenOnce) {
    oneshot::channel()
}

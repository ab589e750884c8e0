//! The epoch of a group of children that are restarted together.
//!
//! Answers "how often was the group restarted?". Every message of a member carries its epoch, so that a message from
//! before a restart is recognized and dropped. Invariants:
//! 1. The epoch grows exactly once for each restart of the group, whichever member caused it.
//! 2. Guards are woken in the order in which they began to wait. The receivers of a `watch` channel would be woken in
//!    random order, and a simulation would not repeat.
//!
//! Read next: `guard.rs`, which advances the epoch and follows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// The number of restarts of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Epoch(pub(crate) u64);

/// Stores the epoch of a group. It may also store the state that only members of the current epoch may change.
pub(crate) trait EpochCell: Send + Sync + 'static {
    /// The epoch now.
    fn epoch(&self) -> Epoch;

    /// Begins the epoch after `current`; false if another guard has begun it already.
    fn begin_epoch_after(&self, current: Epoch) -> bool;
}

/// A group, as guards use it.
#[derive(Clone)]
pub struct Group {
    cell: Arc<dyn EpochCell>,
    moved: Arc<Notify>,
}

/// The epoch of an owner without a group: nobody begins another one.
#[derive(Default)]
struct NoGroup(AtomicU64);

impl EpochCell for NoGroup {
    fn epoch(&self) -> Epoch {
        Epoch(self.0.load(Ordering::Acquire))
    }

    fn begin_epoch_after(&self, current: Epoch) -> bool {
        self.0.compare_exchange(current.0, current.0 + 1, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl Group {
    /// That of an owner whose children are restarted alone.
    pub fn none() -> Self {
        Self::new(Arc::new(NoGroup::default()))
    }

    /// The group whose epoch this cell stores.
    pub(crate) fn new(cell: Arc<dyn EpochCell>) -> Self {
        Self { cell, moved: Arc::default() }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.cell.epoch()
    }

    /// Begins the epoch after `epoch`, unless another guard has.
    pub(crate) fn begin_after(&self, epoch: Epoch) {
        if self.cell.begin_epoch_after(epoch) {
            self.moved.notify_waiters();
        }
    }

    /// Waits until the group is in another epoch than this.
    pub(crate) async fn changed_from(&self, epoch: Epoch) {
        loop {
            // Every restart from here on wakes it, so none is missed between the look and the wait.
            let moved = self.moved.notified();
            if self.epoch() != epoch {
                return;
            }
            moved.await;
        }
    }
}

informer_core::debug_as!(Group, self, epoch = self.epoch());

//! The epoch of a group of children that are restarted together.
//!
//! Every message of a member carries its epoch, so that a message from before a restart is recognized and
//! dropped. The epoch grows once per restart of the group, whichever member caused it. Guards wake in the
//! order in which they began to wait: the random order of a `watch` channel would make simulations differ.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Epoch(pub(crate) u64);

/// The epoch of a group, and perhaps state that only members of the current epoch may change.
pub(crate) trait EpochCell: Send + Sync + 'static {
    fn epoch(&self) -> Epoch;

    /// Begins the epoch after `current`; false if another guard has already begun it.
    fn begin_epoch_after(&self, current: Epoch) -> bool;
}

/// A group, as guards use it.
#[derive(Clone)]
pub struct Group {
    cell: Arc<dyn EpochCell>,
    moved: Arc<Notify>,
}

/// For an owner without a group.
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
    /// For an owner whose children are restarted alone.
    pub fn none() -> Self {
        Self::new(Arc::new(NoGroup::default()))
    }

    pub(crate) fn new(cell: Arc<dyn EpochCell>) -> Self {
        Self { cell, moved: Arc::default() }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.cell.epoch()
    }

    pub(crate) fn begin_after(&self, epoch: Epoch) {
        if self.cell.begin_epoch_after(epoch) {
            self.moved.notify_waiters();
        }
    }

    pub(crate) async fn changed_from(&self, epoch: Epoch) {
        loop {
            // Every restart from here on wakes it, so none is missed between the check and the wait.
            let moved = self.moved.notified();
            if self.epoch() != epoch {
                return;
            }
            moved.await;
        }
    }
}

informer_core::debug_as!(Group, self, epoch = self.epoch());

//! The epoch of a group of children that are restarted together.
//!
//! Answers "which life of the group is this?". Whatever a member sends carries its epoch, so that a message of an older
//! life is recognized. Invariants:
//! 1. The epoch moves on exactly once for each restart of the group, whoever caused it.
//! 2. Guards are woken in the order in which they began to wait: receivers of a `watch` channel are woken in random
//!    order, and a simulation would not repeat.
//!
//! Read next: `guard.rs`, who moves it and follows it.

use std::sync::Arc;

use tokio::sync::Notify;

/// Counts the lives of a group: it moves on when the group is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Epoch(pub(crate) u64);

/// Where the epoch of a group is kept. It may be kept beside what only members of the current epoch may change.
pub(crate) trait EpochCell: Send + Sync + 'static {
    /// The epoch now.
    fn epoch(&self) -> Epoch;

    /// Begins the epoch after `current`; false if somebody else has begun it already.
    fn begin_epoch_after(&self, current: Epoch) -> bool;
}

/// A group, as guards see it.
#[derive(Clone)]
pub(crate) struct Group {
    cell: Arc<dyn EpochCell>,
    moved: Arc<Notify>,
}

impl Group {
    /// The group whose epoch is kept there.
    pub(crate) fn new(cell: Arc<dyn EpochCell>) -> Self {
        Self { cell, moved: Arc::default() }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.cell.epoch()
    }

    /// Begins the epoch after `epoch`, unless somebody has.
    pub(crate) fn begin_after(&self, epoch: Epoch) {
        if self.cell.begin_epoch_after(epoch) {
            self.moved.notify_waiters();
        }
    }

    /// Waits until the group is in another epoch than this.
    pub(crate) async fn changed_from(&self, epoch: Epoch) {
        loop {
            // It is woken by every move from here on, so none is missed after the look.
            let moved = self.moved.notified();
            if self.epoch() != epoch {
                return;
            }
            moved.await;
        }
    }
}

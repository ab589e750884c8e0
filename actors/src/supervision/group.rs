//! The epoch of a group of children that are restarted together.
//!
//! Every message of a member carries its epoch: one from before a restart is dropped. The epoch grows once per
//! restart, whichever member caused it. Guards wake in the order in which they began to wait: the random order of a
//! `watch` channel would make simulations differ.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::runtime::signal::Signal;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Epoch(pub(crate) u64);

/// A group. Cloning copies a pointer.
#[derive(Clone, Default)]
pub struct Group(Arc<Inner>);

#[derive(Default)]
struct Inner {
    epoch: AtomicU64,
    /// Raised when an epoch has begun.
    moved: Signal,
}

impl Group {
    /// For an owner whose children are restarted alone.
    pub fn none() -> Self {
        Self::default()
    }

    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.0.epoch.load(Ordering::Acquire))
    }

    /// Begins the next epoch, unless another guard has.
    pub(crate) fn begin_after(&self, Epoch(epoch): Epoch) {
        let begun = self.0.epoch.compare_exchange(epoch, epoch + 1, Ordering::AcqRel, Ordering::Acquire);
        if begun.is_ok() {
            self.0.moved.raise();
        }
    }

    pub(crate) async fn changed_from(&self, epoch: Epoch) {
        self.0.moved.until(|| (self.epoch() != epoch).then_some(())).await;
    }
}

informer_core::debug_as!(Group, self, epoch = self.epoch());

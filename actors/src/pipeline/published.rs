//! The published cell: the newest snapshot, readable from any thread. It survives the restarts of actors.
//!
//! Answers "what does a reader see, and how does it learn of a newer snapshot?". The Indexer is the only writer.
//! Invariants:
//! 1. Reading takes no lock and no mailbox; a reader never waits for the writer, nor the writer for a reader.
//! 2. Only the Indexer of the current epoch publishes: a publish of an older epoch is refused, so that what a
//!    restarted group reads here at its birth stays the newest until it publishes itself.
//! 3. The count rises with every publish, after the snapshot is readable.
//!
//! Read next: `indexer.rs`, the writer; `lister.rs`, the readers' handle.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use informer_core::index::AnyIndex;
use informer_core::meta::{ClusterName, Object, ObjectKey};
use informer_core::off_arbiter::Release;
use informer_core::snapshot::{Kept, Snapshot};
use tokio::sync::watch;

use crate::pipeline::messages::Body;
use crate::supervision::group::{Epoch, EpochCell};

/// The newest snapshot of one informer, and a count of publishes to wait on.
pub(crate) struct Published<S> {
    newest: ArcSwap<Kept<S>>,
    count: watch::Sender<u64>,
    epoch: AtomicU64,
}

impl<S: Body> Published<S> {
    /// Publishes the empty snapshot, which knows these indices already. It and all that follow are freed by `release`.
    pub(crate) fn new(indices: impl IntoIterator<Item = AnyIndex<S>>, release: Arc<dyn Release>) -> Self {
        let newest = Snapshot::empty_with_indices(indices).releasing_to(release);
        let newest = ArcSwap::new(newest.into_kept());
        Self { newest, count: watch::Sender::new(0), epoch: AtomicU64::new(0) }
    }
}

impl<S> Published<S> {
    /// The newest snapshot; a pointer copy.
    pub(crate) fn snapshot(&self) -> Snapshot<S> {
        Snapshot::from(self.newest.load_full())
    }

    /// One object of the newest snapshot, without counting a reference to the whole.
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Object<S>> {
        self.newest.load().get(key).cloned()
    }

    /// One object of the newest snapshot, by the texts of its key.
    pub(crate) fn named(
        &self,
        (cluster, namespace): (Option<&ClusterName>, Option<&str>),
        name: &str,
    ) -> Option<Object<S>> {
        self.newest.load().named(cluster, namespace, name).cloned()
    }

    /// Makes `snapshot` the newest one, unless a newer epoch has begun.
    pub(crate) fn publish(&self, epoch: Epoch, snapshot: Snapshot<S>) -> bool {
        if self.epoch() != epoch {
            return false;
        }
        self.newest.store(snapshot.into_kept());
        true
    }

    /// Wakes who waits for a publish. Not done by [`Self::publish`], since that is called under the status board's
    /// lock, and waking may run code of others.
    pub(crate) fn wake(&self) {
        self.count.send_modify(|count| *count += 1);
    }

    /// The epoch that may publish.
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    /// Sees every publish from now on (several at once count as one).
    pub(crate) fn publishes(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }
}

/// Nothing is published any more: what the last snapshot holds is shared with no newer one.
impl<S> Drop for Published<S> {
    fn drop(&mut self) {
        self.snapshot().weigh_whole();
    }
}

impl<S: Body> EpochCell for Published<S> {
    fn epoch(&self) -> Epoch {
        Self::epoch(self)
    }

    fn begin_epoch_after(&self, current: Epoch) -> bool {
        self.epoch.compare_exchange(current.0, current.0 + 1, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl<S> fmt::Debug for Published<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Published").field("epoch", &self.epoch()).finish_non_exhaustive()
    }
}

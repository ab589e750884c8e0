//! The published cell: the newest snapshot, readable from any thread. It survives the restarts of actors.
//!
//! Answers "what does a reader see, and how does it learn of a newer snapshot?". The Indexer is the only writer.
//! Invariants:
//! 1. Reading takes no lock and no mailbox; a reader never waits for the writer, nor the writer for a reader.
//! 2. Only the Indexer of the current epoch publishes: a publish of an older epoch is refused, so that what a
//!    restarted group reads here at its birth stays the newest until it publishes itself.
//! 3. A wait for a version is woken after a snapshot is readable that has reached it, and by no other publish that moves
//!    its source, as long as the store holds its source. A wait for a change of one object is woken by the publish that
//!    shows it.
//! 4. A publish wakes at most [`AT_ONCE`] waits in its turn; the others follow in later ones.
//!
//! Read next: `waits.rs`, the waits; `indexer.rs`, the writer; `lister.rs`, the readers' handle.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use arc_swap::ArcSwap;
use futures_util::FutureExt;
use informer_core::delta::Changes;
use informer_core::index::AnyIndex;
use informer_core::meta::{ClusterName, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::off_arbiter::Release;
use informer_core::snapshot::{Kept, Snapshot};
use tokio::sync::oneshot;

use crate::pipeline::messages::Body;
use crate::pipeline::waits::{NewObjects, News, Place, Waits};
use crate::runtime::locked::locked;
use crate::supervision::group::{Epoch, EpochCell};

/// How many waits are woken, or looked at, in one turn.
const AT_ONCE: usize = 250;

/// The newest snapshot of one informer, and the waits for newer ones.
pub(crate) struct Published<S> {
    newest: ArcSwap<Kept<S>>,
    epoch: AtomicU64,
    waits: Mutex<Waits>,
}

/// Ready when the publish has come that it waits for. Its drop forgets the wait.
#[must_use = "a wait that is dropped is over"]
pub(crate) struct Woken<S> {
    published: Arc<Published<S>>,
    place: Place,
    reached: oneshot::Receiver<()>,
}

impl<S> Future for Woken<S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // The waker is dropped only when it is used.
        self.reached.poll_unpin(cx).map(drop)
    }
}

impl<S> Drop for Woken<S> {
    fn drop(&mut self) {
        locked(&self.published.waits).remove(&self.place);
    }
}

impl<S: Body> Published<S> {
    /// Publishes the empty snapshot, which knows these indices already. It and all that follow are freed by `release`.
    pub(crate) fn new(indices: impl IntoIterator<Item = AnyIndex<S>>, release: Arc<dyn Release>) -> Self {
        let newest = Snapshot::empty_with_indices(indices).releasing_to(release);
        let newest = ArcSwap::new(newest.into_kept());
        Self { newest, epoch: AtomicU64::new(0), waits: Mutex::default() }
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

    /// What a publish of this snapshot means to waits: `sources` have reached other versions or are gone, and these are
    /// its changes. `None` if nobody waits: whoever begins to wait from now on sees the snapshot itself.
    pub(crate) fn news(
        &self,
        snapshot: &Snapshot<S>,
        sources: &[SourceId],
        changes: Option<&Changes<S>>,
    ) -> Option<News<S>> {
        let (for_versions, for_changes) = locked(&self.waits).are_there();
        if !for_versions && !for_changes {
            return None;
        }
        let sources = if for_versions { sources.to_vec() } else { Vec::new() };
        let objects = match changes.filter(|_| for_changes) {
            None => NewObjects::These(Vec::new()),
            Some(Changes::Parts(changes)) => {
                NewObjects::These(changes.iter().map(|change| change.key().clone()).collect())
            }
            Some(Changes::Listed { .. }) => NewObjects::Any(None),
        };
        Some(News { snapshot: snapshot.clone(), sources, objects })
    }

    /// Wakes who waits for this news, at most [`AT_ONCE`] waits; true if there may be more. Not done by
    /// [`Self::publish`], since that is called under the status board's lock, and waking may run code of others.
    pub(crate) fn wake(&self, news: &mut News<S>) -> bool {
        let woken = locked(&self.waits).take(news, AT_ONCE);
        for waker in woken {
            // A wait that is over has dropped its receiver.
            let _woken = waker.send(());
        }
        !news.is_over()
    }

    /// Ready after the next publish with which the source has reached the version, or without the source. To be called
    /// before the look at the newest snapshot.
    pub(crate) fn reaching(self: &Arc<Self>, source: &SourceId, version: &ResourceVersion) -> Woken<S> {
        self.awaiting(|waits, waker| waits.for_version(source, version, waker))
    }

    /// Ready after the next publish in which the object of this key is at another version than `known`, or is absent
    /// or there where it was not. To be called before the look at the newest snapshot.
    pub(crate) fn changing(self: &Arc<Self>, key: &ObjectKey, known: Option<ResourceVersion>) -> Woken<S> {
        self.awaiting(|waits, waker| waits.for_change(key, known, waker))
    }

    fn awaiting(self: &Arc<Self>, add: impl FnOnce(&mut Waits, oneshot::Sender<()>) -> Place) -> Woken<S> {
        let (waker, reached) = oneshot::channel();
        let place = add(&mut locked(&self.waits), waker);
        Woken { published: Arc::clone(self), place, reached }
    }

    /// The epoch that may publish.
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
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

#[cfg(test)]
mod tests;

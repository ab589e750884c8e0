//! The published cell: the newest snapshot, readable from any thread. It survives the restarts of actors.
//!
//! Answers "what does a reader see, and how does it learn of a newer snapshot?". The Indexer is the only writer.
//! Invariants:
//! 1. Reading takes no lock and no mailbox; a reader never waits for the writer, nor the writer for a reader.
//! 2. Only the Indexer of the current epoch publishes: a publish of an older epoch is refused, so that what a
//!    restarted group reads here at its birth stays the newest until it publishes itself.
//! 3. A wait for a version is woken after a snapshot is readable that has reached it, and by no other publish, as long
//!    as the store holds its source. A wait for a change of one object is woken by the publish that shows it.
//!
//! Read next: `indexer.rs`, the writer; `lister.rs`, the readers' handle.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use informer_core::index::AnyIndex;
use informer_core::meta::{ClusterName, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::off_arbiter::Release;
use informer_core::snapshot::{Kept, Snapshot};
use tokio::sync::oneshot;

use crate::pipeline::messages::Body;
use crate::runtime::locked::locked;
use crate::supervision::group::{Epoch, EpochCell};

/// The newest snapshot of one informer, and the waits for newer ones.
pub(crate) struct Published<S> {
    newest: ArcSwap<Kept<S>>,
    epoch: AtomicU64,
    waits: Mutex<Vec<Wait>>,
}

/// A task waits for a newer snapshot.
struct Wait {
    awaited: Awaited,
    reached: oneshot::Sender<()>,
}

/// What a snapshot has to show.
enum Awaited {
    /// This source has reached this version.
    Version(SourceId, ResourceVersion),
    /// The object of this key is at another version than this one; absent objects have none.
    Change(ObjectKey, Option<ResourceVersion>),
}

impl Awaited {
    fn is_in<S>(&self, snapshot: &Snapshot<S>) -> bool {
        match self {
            Self::Version(source, version) => {
                snapshot.version(source).is_none_or(|reached| *reached >= *version)
            }
            Self::Change(key, known) => snapshot.get(key).map(|object| object.version()) != known.as_ref(),
        }
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

    /// Wakes who waits for what is in this snapshot, or for a source that is not in it. Not done by [`Self::publish`],
    /// since that is called under the status board's lock, and waking may run code of others.
    pub(crate) fn wake(&self, snapshot: &Snapshot<S>) {
        let ends = |wait: &mut Wait| wait.awaited.is_in(snapshot) || wait.reached.is_closed();
        let ended: Vec<Wait> = locked(&self.waits).extract_if(.., ends).collect();
        for wait in ended {
            // A wait that is over has dropped its receiver.
            let _woken = wait.reached.send(());
        }
    }

    /// Ready after the next publish with which the source has reached the version, or without the source. To be called
    /// before the look at the newest snapshot.
    pub(crate) fn reaching(&self, source: &SourceId, version: &ResourceVersion) -> oneshot::Receiver<()> {
        self.awaiting(Awaited::Version(source.clone(), version.clone()))
    }

    /// Ready after the next publish in which the object of this key is at another version than `known`, or is absent
    /// or there where it was not. To be called before the look at the newest snapshot.
    pub(crate) fn changing(&self, key: &ObjectKey, known: Option<ResourceVersion>) -> oneshot::Receiver<()> {
        self.awaiting(Awaited::Change(key.clone(), known))
    }

    fn awaiting(&self, awaited: Awaited) -> oneshot::Receiver<()> {
        let (reached, woken) = oneshot::channel();
        let wait = Wait { awaited, reached };
        let mut waits = locked(&self.waits);
        waits.retain(|wait| !wait.reached.is_closed());
        waits.push(wait);
        woken
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

impl<S> fmt::Debug for Published<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Published").field("epoch", &self.epoch()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use informer_core::delta::WatchPart;
    use informer_core::indexer::Store;
    use informer_core::meta::{ResourceVersion, SourceId};
    use informer_core::off_arbiter::{PendingFree, Release};
    use informer_core::snapshot::Snapshot;
    use tokio::sync::oneshot::error::TryRecvError;

    use super::{Epoch, Published};

    struct Here;

    impl Release for Here {
        fn release(&self, pending: PendingFree) {
            drop(pending);
        }
    }

    #[test]
    fn a_wait_for_a_version_is_woken_by_the_publish_that_reaches_it_and_by_none_before() {
        let published = Published::<()>::new([], Arc::new(Here));
        let mut store = Store::new(published.snapshot(), Vec::new());
        let (here, other) = (SourceId::new("here"), SourceId::new("other"));
        let version = |number| ResourceVersion::from_number(number).expect("not zero");
        let mut reach = |source: &SourceId, number| -> Snapshot<()> {
            let part = WatchPart::Bookmark { version: version(number), initial_events_end: false };
            let snapshot = store.apply_parts([(source.clone(), part)]).snapshot;
            assert!(published.publish(Epoch(0), snapshot.clone()));
            published.wake(&snapshot);
            snapshot
        };
        reach(&here, 1);
        let (mut five, mut seven) =
            (published.reaching(&here, &version(5)), published.reaching(&here, &version(7)));
        reach(&here, 4);
        reach(&other, 9);
        assert_eq!(five.try_recv(), Err(TryRecvError::Empty));
        reach(&here, 6);
        assert_eq!((five.try_recv(), seven.try_recv()), (Ok(()), Err(TryRecvError::Empty)));
        drop(seven);
        let mut gone = published.reaching(&SourceId::new("gone"), &version(1));
        assert_eq!(
            published.waits.lock().expect("no panic").len(),
            1,
            "a wait that was dropped is forgotten"
        );
        reach(&here, 7);
        assert_eq!(gone.try_recv(), Ok(()), "the wait looks again whether its source is still there");
    }
}

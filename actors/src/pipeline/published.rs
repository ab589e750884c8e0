//! The published cell: the newest snapshot, readable from any thread. Only the Indexer writes it. It survives
//! restarts.
//!
//! 1. Reading takes no lock and no mailbox. Readers and the writer never wait for each other.
//! 2. A publish of an older epoch is refused: what a restarted group reads here is the newest until it publishes.
//! 3. A wait for a version is woken after a snapshot that has reached it is readable, and by no other publish that
//!    moves its source, as long as the store holds that source. A wait for a change of an object is woken by the
//!    publish that shows it.
//! 4. A publish wakes at most [`AT_ONCE`] waits in its turn; later turns wake the others.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use arc_swap::{ArcSwap, Guard};
use futures_util::FutureExt;
use informer_core::delta::Changes;
use informer_core::index::AnyIndex;
use informer_core::meta::{ClusterName, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::off_arbiter::Release;
use informer_core::snapshot::{Kept, Snapshot};

use crate::pipeline::messages::Body;
use crate::pipeline::waits::{NewObjects, News, Place, Waits};
use crate::runtime::locked::Guarded;
use crate::runtime::signal::{WakeOnce, WokenOnce, wake_once};
use crate::supervision::group::{Epoch, Group};

const AT_ONCE: usize = 250;

pub(crate) struct Published<S> {
    newest: ArcSwap<Kept<S>>,
    group: Group,
    waits: Guarded<Waits>,
    replaced: AtomicU64,
    /// Snapshots that readers may be the last to hold, each with `replaced` as read just before.
    given_back: Guarded<Vec<(Arc<Kept<S>>, u64)>>,
}

/// Ready after the publish that it waits for. Its drop removes the wait.
#[must_use = "a wait that is dropped is over"]
pub(crate) struct Woken<S> {
    published: Arc<Published<S>>,
    place: Place,
    reached: WokenOnce,
}

impl<S> Future for Woken<S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Never an error: the waker is dropped only when used.
        self.reached.poll_unpin(cx).map(drop)
    }
}

impl<S> Drop for Woken<S> {
    fn drop(&mut self) {
        // Otherwise the drop of the waker under the lock would wake this task.
        self.reached.close();
        self.published.waits.with(|waits| waits.remove(&self.place));
    }
}

impl<S: Body> Published<S> {
    /// `release` frees this snapshot and all that follow.
    pub(crate) fn new(indices: impl IntoIterator<Item = AnyIndex<S>>, release: Arc<dyn Release>) -> Self {
        let newest = Snapshot::empty_with_indices(indices).releasing_to(release);
        let newest = ArcSwap::new(newest.into_kept());
        let (waits, given_back) = (Guarded::default(), Guarded::new(Vec::new()));
        Self { newest, group: Group::default(), waits, replaced: AtomicU64::new(0), given_back }
    }
}

impl<S> Published<S> {
    pub(crate) fn snapshot(&self) -> Snapshot<S> {
        Snapshot::from(self.newest.load_full())
    }

    /// Counts no reference to the whole snapshot.
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Object<S>> {
        self.read(|newest| newest.get(key).cloned())
    }

    /// A reader that the system has paused may be the last to hold a snapshot. It must not free it: newer snapshots
    /// share less and less with it, so that it would free, late and alone, all that is replaced meanwhile.
    fn read<T>(&self, read: impl FnOnce(&Kept<S>) -> T) -> T {
        let replaced = self.replaced.load(Ordering::Acquire);
        let newest = self.newest.load();
        let found = read(&newest);
        if !Arc::ptr_eq(&newest, &self.newest.load()) {
            self.given_back.with(|given_back| given_back.push((Guard::into_inner(newest), replaced)));
        }
        found
    }

    /// After a publish that has replaced so many objects, before the next one. What keeps more objects than a turn
    /// may free, such as a snapshot before a list, is freed elsewhere.
    pub(crate) fn free_given_back(&self, replaced: usize) {
        let now = self.replaced.fetch_add(replaced as u64, Ordering::AcqRel) + replaced as u64;
        for (kept, then) in self.given_back.with(std::mem::take) {
            match Snapshot::from(kept) {
                few if now - then <= AT_ONCE as u64 => few.free_here(),
                many => drop(many),
            }
        }
    }

    pub(crate) fn named(
        &self,
        (cluster, namespace): (Option<&ClusterName>, Option<&str>),
        name: &str,
    ) -> Option<Object<S>> {
        self.read(|newest| newest.named(cluster, namespace, name).cloned())
    }

    /// False if a newer epoch has begun.
    pub(crate) fn publish(&self, epoch: Epoch, snapshot: Snapshot<S>) -> bool {
        if self.epoch() != epoch {
            return false;
        }
        self.newest.store(snapshot.into_kept());
        true
    }

    /// `None` if nobody waits. Call it after [`Self::publish`]: a wait that begins in between would be missed.
    pub(crate) fn news(
        &self,
        snapshot: &Snapshot<S>,
        sources: &[SourceId],
        changes: Option<&Changes<S>>,
    ) -> Option<News<S>> {
        let (for_versions, for_changes) = self.waits.with(|waits| waits.are_there());
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

    /// True if more waits may be left. Not in [`Self::publish`], which runs under the board's lock: waking may run
    /// code of others.
    pub(crate) fn wake(&self, news: &mut News<S>) -> bool {
        let woken = self.waits.with(|waits| waits.take(news, AT_ONCE));
        for waker in woken {
            // A wait that is over has dropped its receiver.
            let _woken = waker.send(());
        }
        !news.is_over()
    }

    /// Ready after the next publish in which the source has reached the version, or is gone. Call it before you read
    /// the newest snapshot.
    pub(crate) fn reaching(self: &Arc<Self>, source: &SourceId, version: &ResourceVersion) -> Woken<S> {
        self.awaiting(|waits, waker| waits.for_version(source, version, waker))
    }

    /// As [`Self::reaching`], when the object's version is not `known` (`None`: absent).
    pub(crate) fn changing(self: &Arc<Self>, key: &ObjectKey, known: Option<ResourceVersion>) -> Woken<S> {
        self.awaiting(|waits, waker| waits.for_change(key, known, waker))
    }

    fn awaiting(self: &Arc<Self>, add: impl FnOnce(&mut Waits, WakeOnce) -> Place) -> Woken<S> {
        let (waker, reached) = wake_once();
        let place = self.waits.with(|waits| add(waits, waker));
        Woken { published: Arc::clone(self), place, reached }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.group.epoch()
    }

    pub(crate) fn group(&self) -> &Group {
        &self.group
    }
}

/// No newer snapshot shares anything with the last one, so it is weighed as a whole.
impl<S> Drop for Published<S> {
    fn drop(&mut self) {
        self.snapshot().weigh_whole();
    }
}

/// An object of an informer of any type, without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "known to our own crates alone")]
pub struct ListedObject {
    /// Its key.
    pub key: ObjectKey,
    /// Its version.
    pub version: ResourceVersion,
    /// The source that brought it.
    pub source: SourceId,
}

/// Some objects of an informer, in the order of their keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "known to our own crates alone")]
pub struct ListedPage {
    /// These.
    pub objects: Vec<ListedObject>,
    /// Go on behind this key. `None` at the end.
    pub more: Option<ObjectKey>,
}

/// The objects of an informer of any type.
pub trait Listing: Send + Sync {
    /// At most `most` objects behind this key whose keys contain `text`, of the next 50,000.
    fn page(&self, behind: Option<&ObjectKey>, text: &str, most: usize) -> ListedPage;
}

/// Keys that one page looks at.
const MOST_LOOKED_AT: usize = 50_000;

impl<S: Body> Listing for Published<S> {
    fn page(&self, behind: Option<&ObjectKey>, text: &str, most: usize) -> ListedPage {
        let snapshot = self.snapshot();
        let mut page = ListedPage::default();
        for (looked_at, object) in snapshot.objects_behind(behind).enumerate() {
            if page.objects.len() == most || looked_at == MOST_LOOKED_AT {
                break;
            }
            page.more = Some(object.key().clone());
            if text.is_empty() || object.key().to_string().contains(text) {
                let (key, version) = (object.key().clone(), object.version().clone());
                page.objects.push(ListedObject { key, version, source: object.source().clone() });
            }
        }
        let last = page.more.take();
        page.more = last.filter(|last| snapshot.objects_behind(Some(last)).next().is_some());
        page
    }
}

#[cfg(test)]
mod tests;

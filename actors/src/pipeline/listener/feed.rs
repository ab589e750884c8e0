//! A function that takes the keys of changes, and how far it has come. It outlives its Listener.
//!
//! 1. The next Listener first takes what has become of objects taken after the last settled state, and delivers from
//!    that state on: nothing is missed.
//! 2. The lock is held for one step of [`FeedProgress`]; objects are freed outside it.

use informer_core::delta::Change;
use informer_core::listener::FeedProgress;
use informer_core::meta::ObjectKey;
use informer_core::snapshot::Snapshot;

use crate::pipeline::messages::Body;
use crate::runtime::locked::Guarded;

type TakeFn<S> = Box<dyn Fn(&Change<S>) + Send + Sync>;

/// Takes the keys that changes concern. It outlives its Listener: the next Listener goes on from where this
/// one was.
pub struct Feed<S: Body> {
    take: TakeFn<S>,
    progress: Guarded<FeedProgress<S>>,
}

impl<S: Body> Feed<S> {
    /// The function does not block, and runs code of others only guarded.
    pub fn new(take: impl Fn(&Change<S>) + Send + Sync + 'static) -> Self {
        Self { take: Box::new(take), progress: Guarded::default() }
    }

    pub(super) fn take(&self, change: &Change<S>) {
        let freed = self.progress.with(|progress| progress.take(change));
        drop(freed);
        (self.take)(change);
    }

    /// `None` before the first list.
    pub(super) fn settled(&self) -> Option<Snapshot<S>> {
        self.progress.with(|progress| progress.settled().cloned())
    }

    /// Returns what was known before, to be freed.
    pub(super) fn settle(&self, state: &Snapshot<S>) -> Option<FeedProgress<S>> {
        self.progress.with(|progress| progress.settle(state))
    }

    /// No Listener goes on from here. Returns what was known, to be freed.
    pub fn forget(&self) -> FeedProgress<S> {
        self.progress.with(std::mem::take)
    }

    /// Takes what has become of unsettled objects behind this key. Returns the last key if there may be more.
    pub(super) fn begin(&self, now: &Snapshot<S>, behind: Option<&ObjectKey>) -> Option<ObjectKey> {
        let (changes, last) = self.progress.with(|progress| progress.changes_to(now, behind));
        changes.iter().for_each(|change| self.take(change));
        last
    }
}

informer_core::debug_as!([S: Body] Feed<S>, self);

//! A function that takes the keys of changes, and how far it is.
//!
//! Answers "where does the next Listener go on if this one dies?". Invariants:
//! 1. It outlives its Listener. What the next Listener delivers from the last settled state on, and what it is told at its
//!    start of what was taken after that state, misses nothing.
//! 2. Its lock is held for one step of [`FeedProgress`], by one Listener at a time; objects are freed outside of it.
//!
//! Read next: `delivery.rs`, which calls it.

use std::sync::Mutex;

use informer_core::delta::Change;
use informer_core::listener::FeedProgress;
use informer_core::meta::ObjectKey;
use informer_core::snapshot::Snapshot;

use crate::pipeline::messages::Body;
use crate::runtime::locked::locked;

type TakeFn<S> = Box<dyn Fn(&Change<S>) + Send + Sync>;

/// Takes the keys that changes concern. It outlives its Listener: the next one goes on where that has been.
pub struct Feed<S: Body> {
    take: TakeFn<S>,
    progress: Mutex<FeedProgress<S>>,
}

impl<S: Body> Feed<S> {
    /// The function does not block, and runs code of others only guarded.
    pub fn new(take: impl Fn(&Change<S>) + Send + Sync + 'static) -> Self {
        Self { take: Box::new(take), progress: Mutex::default() }
    }

    pub(super) fn take(&self, change: &Change<S>) {
        let freed = locked(&self.progress).take(change);
        drop(freed);
        (self.take)(change);
    }

    /// The state up to which all changes were taken; `None` before the first list.
    pub(super) fn settled(&self) -> Option<Snapshot<S>> {
        locked(&self.progress).settled().cloned()
    }

    /// All changes up to this state were taken. Gives what was known before, to be freed.
    pub(super) fn settle(&self, state: &Snapshot<S>) -> Option<FeedProgress<S>> {
        locked(&self.progress).settle(state)
    }

    /// No Listener goes on from here. Gives what was known, to be freed.
    pub fn forget(&self) -> FeedProgress<S> {
        std::mem::take(&mut *locked(&self.progress))
    }

    /// A Listener begins with this state: takes what has become of what the one before it had taken and not settled, of some
    /// objects behind this key. Returns the last of their keys, if there may be more: then it is to be called again, later.
    pub(super) fn begin(&self, now: &Snapshot<S>, behind: Option<&ObjectKey>) -> Option<ObjectKey> {
        let (changes, last) = locked(&self.progress).changes_to(now, behind);
        changes.iter().for_each(|change| self.take(change));
        last
    }
}

informer_core::debug_as!([S: Body] Feed<S>, self);

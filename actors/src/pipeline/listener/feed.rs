//! A function that takes the keys of changes, and how far it is.
//!
//! Answers "where does the next Listener go on if this one dies?". Invariants:
//! 1. It outlives its Listener. Each state that it shows was taken as a whole: what the next Listener delivers from there
//!    on misses nothing.
//! 2. Its lock is held while a pointer is copied, by one Listener at a time.
//!
//! Read next: `delivery.rs`, which calls it; `controller/following.rs`, which makes it.

use std::sync::Mutex;

use informer_core::delta::Change;
use informer_core::snapshot::Snapshot;

use crate::pipeline::messages::Body;
use crate::runtime::locked::locked;

type TakeFn<S> = Box<dyn Fn(&Change<S>) + Send + Sync>;

/// Takes the keys that changes concern. It outlives its Listener: the next one goes on where that has been.
pub(crate) struct Feed<S: Body> {
    take: TakeFn<S>,
    /// The state up to which all changes were taken.
    seen: Mutex<Option<Snapshot<S>>>,
}

impl<S: Body> Feed<S> {
    /// The function does not block, and runs code of others only guarded.
    pub(crate) fn new(take: impl Fn(&Change<S>) + Send + Sync + 'static) -> Self {
        Self { take: Box::new(take), seen: Mutex::new(None) }
    }

    pub(super) fn take(&self, change: &Change<S>) {
        (self.take)(change);
    }

    /// The state up to which all changes were taken; `None` before the first list.
    pub(super) fn seen(&self) -> Option<Snapshot<S>> {
        locked(&self.seen).clone()
    }

    /// All changes up to this state were taken. Gives the former one, unless it is the same.
    pub(super) fn see(&self, seen: &Snapshot<S>) -> Option<Snapshot<S>> {
        let mut known = locked(&self.seen);
        if known.as_ref().is_some_and(|known| known.ptr_eq(seen)) {
            return None;
        }
        known.replace(seen.clone())
    }
}

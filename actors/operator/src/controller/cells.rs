//! What tasks of a controller share beside its book: the writes of a request, the subscriptions.
//!
//! Answers "who may look at it, and for how long?". A request outlives its reconcile, and subscriptions change where nothing is
//! known of keys, so neither is in the book. Invariants:
//! 1. A lock is held for one call of the machine, or while a list is moved. No code of a user runs under it.
//!
//! Read next: `shared.rs`, the book.

use std::sync::Mutex;

use crate::controller::machine::{Awaited, Writes};
use informer_core::meta::ObjectKey;

use super::watched::Follows;
use informer_actors::informer::Body;
use informer_actors::inner::locked;
use informer_actors::subscription::Subscription;

/// What one request has written.
#[derive(Default)]
pub(super) struct WritesCell(Mutex<Writes>);

impl WritesCell {
    pub(super) fn write(&self, informer: usize, key: &ObjectKey, awaited: Awaited) {
        locked(&self.0).handle_write(informer, key, awaited);
    }

    pub(super) fn take(&self) -> Writes {
        std::mem::take(&mut *locked(&self.0))
    }
}

/// The subscriptions that feed the queue, until the controller takes nothing more.
pub(super) struct Feeds(Mutex<Vec<Box<dyn Follows>>>);

impl Feeds {
    pub(super) fn new(feeds: Vec<Box<dyn Follows>>) -> Self {
        Self(Mutex::new(feeds))
    }

    /// Ends them.
    pub(super) fn end(&self) {
        let feeds = std::mem::take(&mut *locked(&self.0));
        drop(feeds);
    }

    /// Those that have ended by themselves, with the reason.
    pub(super) fn ended(&self) -> Vec<String> {
        locked(&self.0).iter().filter_map(|feed| feed.ended()).collect()
    }
}

/// The subscription to one informer, which is made anew when its Listener has failed.
pub(super) struct SubscriptionCell<T: Body>(Mutex<Option<Subscription<T>>>);

impl<T: Body> SubscriptionCell<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub(super) fn set(&self, subscription: Subscription<T>) {
        let former = locked(&self.0).replace(subscription);
        drop(former);
    }

    /// Unsubscribes.
    pub(super) fn clear(&self) {
        let subscription = locked(&self.0).take();
        drop(subscription);
    }

    /// What this says of the subscription, if there is one.
    pub(super) fn read<R>(&self, read: impl FnOnce(&Subscription<T>) -> R) -> Option<R> {
        locked(&self.0).as_ref().map(read)
    }
}

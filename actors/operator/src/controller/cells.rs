//! Cells beside the book of a controller: the writes of a request, which outlives its reconcile, and the
//! subscriptions. A lock is held for one call of the machine, or while a list is moved; no user code runs
//! under it.

use std::sync::Mutex;

use crate::controller::machine::{Awaited, Writes};
use informer_core::meta::ObjectKey;

use super::watched::Follows;
use informer_actors::informer::Body;
use informer_actors::inner::locked;
use informer_actors::subscription::Subscription;

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

pub(super) struct Feeds(Mutex<Vec<Box<dyn Follows>>>);

impl Feeds {
    pub(super) fn new(feeds: Vec<Box<dyn Follows>>) -> Self {
        Self(Mutex::new(feeds))
    }

    pub(super) fn end(&self) {
        let feeds = std::mem::take(&mut *locked(&self.0));
        drop(feeds);
    }

    pub(super) fn ended(&self) -> Vec<String> {
        locked(&self.0).iter().filter_map(|feed| feed.ended()).collect()
    }
}

pub(super) struct SubscriptionCell<T: Body>(Mutex<Option<Subscription<T>>>);

impl<T: Body> SubscriptionCell<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub(super) fn set(&self, subscription: Subscription<T>) {
        let former = locked(&self.0).replace(subscription);
        drop(former);
    }

    pub(super) fn clear(&self) {
        let subscription = locked(&self.0).take();
        drop(subscription);
    }

    pub(super) fn read<R>(&self, read: impl FnOnce(&Subscription<T>) -> R) -> Option<R> {
        locked(&self.0).as_ref().map(read)
    }
}

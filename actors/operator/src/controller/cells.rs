//! The subscriptions of a controller, beside its book. A lock is held while a list is moved; no user code runs
//! under it.

use super::watched::Follows;
use informer_actors::informer::Body;
use informer_actors::inner::Guarded;
use informer_actors::subscription::Subscription;

pub(super) struct Feeds(Guarded<Vec<Box<dyn Follows>>>);

impl Feeds {
    pub(super) fn new(feeds: Vec<Box<dyn Follows>>) -> Self {
        Self(Guarded::new(feeds))
    }

    pub(super) fn end(&self) {
        let feeds = self.0.with(std::mem::take);
        drop(feeds);
    }

    pub(super) fn ended(&self) -> Vec<String> {
        self.0.with(|feeds| feeds.iter().filter_map(|feed| feed.ended()).collect())
    }
}

pub(super) struct SubscriptionCell<T: Body>(Guarded<Option<Subscription<T>>>);

impl<T: Body> SubscriptionCell<T> {
    pub(super) const fn new() -> Self {
        Self(Guarded::new(None))
    }

    pub(super) fn set(&self, subscription: Subscription<T>) {
        let former = self.0.with(|former| former.replace(subscription));
        drop(former);
    }

    pub(super) fn clear(&self) {
        let subscription = self.0.with(Option::take);
        drop(subscription);
    }

    pub(super) fn read<R>(&self, read: impl FnOnce(&Subscription<T>) -> R) -> Option<R> {
        self.0.with(|subscription| subscription.as_ref().map(read))
    }
}

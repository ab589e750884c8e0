//! The informers that a controller watches, without their body types, and its subscriptions.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::time::Duration;

use crate::controller::machine::Awaited;
use futures_util::future::BoxFuture;
use informer_core::meta::{Meta, Object, ObjectKey, SourceId};

use informer_actors::informer::{AnyInformer, Body, Informer};
use informer_actors::inner::{Followed, Guarded, Selected};
use informer_actors::subscription::Subscription;

pub(super) trait Watched: Any + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn any_informer(&self) -> AnyInformer;
    fn body(&self) -> TypeId;
    /// Waits also while a source is given up, which may be revived. Never ready if the informer stops.
    fn synced(&self) -> BoxFuture<'static, ()>;
    /// Whether a source may bring the object.
    fn follows(&self, key: &ObjectKey) -> bool;
    /// Its selectors leave out these labels, and its cache has no such object.
    fn leaves_out(&self, key: &ObjectKey, labels: &BTreeMap<String, String>) -> bool;
    fn selected(&self, key: &ObjectKey, labels: &BTreeMap<String, String>) -> Selected;
    /// Whether a source that may bring the object is not followed now.
    fn may_be_behind(&self, key: &ObjectKey) -> bool;
    fn is_seen(&self, key: &ObjectKey, awaited: &Awaited) -> bool;
    /// Ready when it is seen, or cannot come any more.
    fn seen(&self, key: ObjectKey, awaited: Awaited) -> BoxFuture<'static, ()>;
}

impl<T: Body> Watched for Informer<T> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn any_informer(&self) -> AnyInformer {
        self.into()
    }

    fn body(&self) -> TypeId {
        TypeId::of::<T>()
    }

    fn synced(&self) -> BoxFuture<'static, ()> {
        self.first_synced()
    }

    fn follows(&self, key: &ObjectKey) -> bool {
        !self.sources_of(key).is_empty()
    }

    fn leaves_out(&self, key: &ObjectKey, labels: &BTreeMap<String, String>) -> bool {
        // A cached object leaves by an event of this version.
        !self.lister().selects(key, labels) && self.snapshot().get(key).is_none()
    }

    fn selected(&self, key: &ObjectKey, labels: &BTreeMap<String, String>) -> Selected {
        match self.snapshot().get(key) {
            Some(_) => Selected::Again,
            None => Followed::selected(self, key, labels),
        }
    }

    fn may_be_behind(&self, key: &ObjectKey) -> bool {
        Followed::may_be_behind(self, key)
    }

    fn is_seen(&self, key: &ObjectKey, awaited: &Awaited) -> bool {
        let snapshot = self.snapshot();
        let has_reached =
            |source: &SourceId| snapshot.version(source).is_some_and(|at| *at >= awaited.version);
        let is_reached = self.sources_of(key).iter().all(has_reached);
        awaited.is_seen(snapshot.get(key).map(Object::cached_meta), is_reached)
    }

    fn seen(&self, key: ObjectKey, awaited: Awaited) -> BoxFuture<'static, ()> {
        let informer = self.clone();
        Box::pin(async move {
            let meta = Meta::new(key.clone(), awaited.version.clone(), SourceId::default());
            let is_reached = informer.lister().wait_for_write(&meta, Duration::MAX).await.is_ok();
            if awaited.is_removal() && is_reached {
                let is_gone =
                    |cached: Option<&Object<T>>| awaited.is_removal_seen(cached.map(Object::cached_meta));
                drop(informer.until(&key, is_gone, Duration::MAX).await);
            }
        })
    }
}

pub(super) trait Follows: Send + Sync {
    fn ended(&self) -> Option<String>;
}

// A lock is held while a list is moved; no user code runs under it.

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

pub(super) fn number_in<T: Body>(informer: &Informer<T>, watched: &[Box<dyn Watched>]) -> Option<usize> {
    let is_this = |watched: &dyn Watched| {
        watched.as_any().downcast_ref::<Informer<T>>().is_some_and(|watched| watched.is_same(informer))
    };
    watched.iter().position(|watched| is_this(&**watched))
}

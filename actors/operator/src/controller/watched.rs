//! The informers that a controller watches, whatever their bodies are.
//!
//! Answers "is it synced, does it follow this object, now as well, and has its cache seen this write?". Read next: `shared.rs`,
//! which waits; `following.rs`, which subscribes.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::time::Duration;

use crate::controller::machine::Awaited;
use futures_util::future::BoxFuture;
use informer_core::meta::{Meta, Object, ObjectKey, SourceId};

use informer_actors::informer::{AnyInformer, Body, Informer};
use informer_actors::inner::{Followed, Selected};

/// An informer that a controller watches.
pub(super) trait Watched: Any + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn any_informer(&self) -> AnyInformer;
    /// The type of its bodies.
    fn body(&self) -> TypeId;
    /// Waits until it is synced, also while a source is given up, which may be revived. It waits for ever if it stops before.
    fn synced(&self) -> BoxFuture<'static, ()>;
    /// Whether one of its sources may bring the object of this key.
    fn follows(&self, key: &ObjectKey) -> bool;
    /// Whether its selectors leave out an object with these labels, of which its cache has nothing.
    fn leaves_out(&self, key: &ObjectKey, labels: &BTreeMap<String, String>) -> bool;
    /// Whether it follows an object with these labels.
    fn selected(&self, key: &ObjectKey, labels: &BTreeMap<String, String>) -> Selected;
    /// Whether one of the sources that may bring the object is not followed at present.
    fn may_be_behind(&self, key: &ObjectKey) -> bool;
    /// Whether its cache has seen this of the object.
    fn is_seen(&self, key: &ObjectKey, awaited: &Awaited) -> bool;
    /// Waits for that, or until it cannot come any more.
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
        // One that was in the cache leaves it by an event of this version.
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

/// An informer of any kind that a controller follows.
pub(super) trait Follows: Send + Sync {
    /// Why it is not followed any more, if that is so.
    fn ended(&self) -> Option<String>;
}

/// The number of this informer among these.
pub(super) fn number_in<T: Body>(informer: &Informer<T>, watched: &[Box<dyn Watched>]) -> Option<usize> {
    let is_this = |watched: &dyn Watched| {
        watched.as_any().downcast_ref::<Informer<T>>().is_some_and(|watched| watched.is_same(informer))
    };
    watched.iter().position(|watched| is_this(&**watched))
}

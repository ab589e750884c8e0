//! What a controller of `informer-operator` needs from an informer that it follows. No method waits, except
//! the future of [`Followed::first_synced`].

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use informer_core::meta::{Object, ObjectKey, SourceId};
use informer_core::reflector::SourceState;

use crate::informer::Informer;
use crate::lister::Below;
use crate::pipeline::listener::Feed;
use crate::pipeline::messages::Body;
use crate::pipeline::sources::Selected;
use crate::pipeline::status::SourceStatus;
use crate::subscriber::Subscriber;
use crate::subscription::{SubscribeError, SubscribeOptions, Subscription};

/// An informer as its controllers see it.
pub trait Followed<S: Body> {
    /// Whether both are handles of one informer.
    fn is_same(&self, other: &Self) -> bool;
    /// Waits until it is synced, also while a source is given up, since that may be revived. Never ends if
    /// the informer stops first.
    fn first_synced(&self) -> BoxFuture<'static, ()>;
    /// The cached object of this key.
    fn cached(&self, key: &ObjectKey) -> Option<Object<S>>;
    /// The sources that may follow the object of this key.
    fn sources_of(&self, key: &ObjectKey) -> Vec<SourceId>;
    /// Whether one of the sources that may bring the object is not streaming at present.
    fn may_be_behind(&self, key: &ObjectKey) -> bool;
    /// Whether an object of this key that none of its sources holds certainly does not exist.
    fn would_hold(&self, key: &ObjectKey) -> bool;
    /// Whether one of its sources selects an object of this key and these labels that none of them holds.
    fn selected(&self, key: &ObjectKey, labels: &BTreeMap<String, String>) -> Selected;
    /// Subscribes a feed.
    ///
    /// # Errors
    /// When the informer has stopped.
    fn feed(
        &self,
        options: SubscribeOptions<S>,
        feed: Arc<Feed<S>>,
    ) -> Result<Subscription<S>, SubscribeError>;
    /// How often its whole status was copied.
    #[cfg(any(test, feature = "testing"))]
    fn status_copies(&self) -> u64;
}

impl<S: Body> Followed<S> for Informer<S> {
    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn first_synced(&self) -> BoxFuture<'static, ()> {
        let board = self.0.pipeline.shared.board.clone();
        Box::pin(async move {
            board.settled().until(|| board.is_synced().then_some(())).await;
        })
    }

    fn cached(&self, key: &ObjectKey) -> Option<Object<S>> {
        self.0.pipeline.shared.published.get(key)
    }

    fn sources_of(&self, key: &ObjectKey) -> Vec<SourceId> {
        self.lister().sources_of(key)
    }

    fn may_be_behind(&self, key: &ObjectKey) -> bool {
        let board = &self.0.pipeline.shared.board;
        let is_followed = |status: &SourceStatus| matches!(status.state, SourceState::Streaming);
        !self.lister().sources_of(key).iter().all(|source| board.of_source(source, is_followed) == Some(true))
    }

    fn would_hold(&self, key: &ObjectKey) -> bool {
        self.0.pipeline.shared.sources.would_hold(key)
    }

    fn selected(&self, key: &ObjectKey, labels: &BTreeMap<String, String>) -> Selected {
        self.0.pipeline.shared.sources.selected(key, labels)
    }

    fn feed(
        &self,
        options: SubscribeOptions<S>,
        feed: Arc<Feed<S>>,
    ) -> Result<Subscription<S>, SubscribeError> {
        self.start_listener(options, Subscriber::feed(feed))
    }

    #[cfg(any(test, feature = "testing"))]
    fn status_copies(&self) -> u64 {
        self.0.pipeline.shared.board.copies()
    }
}

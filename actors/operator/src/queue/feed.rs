//! An informer that feeds a work queue with the keys of its objects.
//!
//! The subscriber is the queue's own actor: what waits is keys, and no object is kept alive.

use crate::queue::machine::Priority;
use informer_core::delta::Cause;
use informer_core::meta::ObjectKey;

use super::WorkQueue;
use super::content::Inside;
use informer_actors::informer::{Body, Informer};
use informer_actors::inner::Fed;
use informer_actors::subscription::{SubscribeError, Subscriber, Subscription, Touched};

/// Feeds queues with the keys of an informer. In the prelude.
pub trait Enqueue<S: Body> {
    /// Adds the key of each object to this queue when something happens to it, as long as the subscription is
    /// kept: with low priority for the first list and for resyncs, else with normal priority. What is
    /// delivered is that of [`Subscriber::keys`].
    ///
    /// # Errors
    /// When the informer has stopped.
    fn enqueue(&self, queue: &WorkQueue<ObjectKey>) -> Result<Subscription<S>, SubscribeError>;
}

impl<S: Body> Enqueue<S> for Informer<S> {
    fn enqueue(&self, queue: &WorkQueue<ObjectKey>) -> Result<Subscription<S>, SubscribeError> {
        self.subscribe(Subscriber::keys(queue.shared.address.clone()))
    }
}

impl Fed for Inside<ObjectKey, ()> {
    fn feed(&self, Touched { key, cause }: Touched) {
        let priority = match cause {
            Cause::InitialList | Cause::Resync => Priority::Low,
            _ => Priority::Normal,
        };
        self.with(|queue, _, moment| queue.add(key, priority, moment.now));
    }
}

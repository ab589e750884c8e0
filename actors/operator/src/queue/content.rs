//! What a work queue holds, outside of its actor, so that it outlives a panic of the actor. A controller's
//! queue also holds what is known of the keys: both change in one call.
//!
//! Foreign code under the lock is only the order and the clone of keys, and the rate limiter, whose panics
//! are caught. A queue that is not sound after a panic is built again from its keys.

use std::sync::Arc;

use actix::Addr;

use crate::queue::machine::{Merge, Priority, QueueMachine};
use informer_core::delta::Cause;
use informer_core::meta::ObjectKey;
use informer_core::reflector::Moment;
use tokio_util::sync::CancellationToken;

use super::limiter::CaughtLimiter;
use super::{QueueKey, QueueNote, WorkQueue};
use informer_actors::informer::{Body, Informer};
use informer_actors::inner::{Fed, Locked, Machine, Run as _, Runner};
use informer_actors::subscription::{SubscribeError, Subscriber, Subscription, Touched};

pub(super) struct Inside<K, P: Merge> {
    pub(super) name: Arc<str>,
    pub(super) content: Locked<Content<K, P>>,
    /// Cancelled when nothing of the actor exists any more.
    pub(super) over: CancellationToken,
}

pub(super) struct Shared<K: QueueKey, P: QueueNote> {
    pub(super) inside: Arc<Inside<K, P>>,
    pub(super) address: Addr<Runner<Inside<K, P>>>,
}

pub(super) struct Content<K, P: Merge> {
    pub(super) queue: QueueMachine<K, P>,
    pub(super) limiter: CaughtLimiter<K>,
}

impl<K: Ord + Clone, P: Merge> Machine for Content<K, P> {
    fn is_sound(&self) -> bool {
        self.queue.check().is_ok()
    }

    fn rebuild(&mut self, _: Moment) {
        self.queue = self.queue.rebuilt();
    }
}

impl<K: QueueKey, P: QueueNote> Inside<K, P> {
    pub(super) fn with<R>(
        &self,
        call: impl FnOnce(&mut QueueMachine<K, P>, &mut CaughtLimiter<K>, Moment) -> R,
    ) -> R {
        self.content.with(|Content { queue, limiter }, moment| call(queue, limiter, moment))
    }

    pub(super) fn end(&self) {
        self.discard(QueueMachine::force);
        self.over.cancel();
    }

    /// Discards a part at a time, so that others get the lock in between.
    pub(super) fn discard(&self, how: impl FnOnce(&mut QueueMachine<K, P>)) -> usize {
        self.with(|queue, _, _| how(queue));
        let part = || self.with(|queue, _, _| queue.discard_some());
        std::iter::repeat_with(part).take_while(|count| *count > 0).sum()
    }
}

impl<K: QueueKey, P: QueueNote> Shared<K, P> {
    pub(super) fn tell(&self) {
        self.inside.tell(&self.address);
    }
}

// An informer that feeds a queue: the subscriber is the queue's own actor, so what waits is keys.

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

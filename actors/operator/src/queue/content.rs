//! What a work queue holds, outside of its actor, so that it outlives its panic. A controller's queue also
//! holds what is known of the keys: both change in one call.
//!
//! Foreign code under the lock is only the order and the clone of keys, and the rate limiter. Each panic of
//! the limiter is caught and counted, and the failed key waits for [`WAIT_AFTER_PANIC`]. A queue that is not
//! sound after a panic is built again from its keys.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::Addr;

use crate::queue::machine::{Merge, Priority, QueueMachine, RateLimiter};
use informer_core::delta::Cause;
use informer_core::meta::ObjectKey;
use informer_core::reflector::Moment;
use tokio_util::sync::CancellationToken;

use super::{QueueKey, QueueNote, WorkQueue};
use informer_actors::informer::{Body, Informer};
use informer_actors::inner::{Fed, Locked, Machine, Run as _, Runner, drop_payload};
use informer_actors::subscription::{SubscribeError, Subscriber, Subscription, Touched};

/// How long a key waits after a failure if the rate limiter panics.
pub const WAIT_AFTER_PANIC: Duration = Duration::from_secs(1);

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

    /// A part at a time, so that others get the lock in between.
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

// The subscriber of an informer is the queue's own actor, so what waits is keys.

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

pub(super) type Limiter<K> = Box<dyn RateLimiter<K> + Send>;

pub(crate) struct CaughtLimiter<K> {
    inner: Limiter<K>,
    panics: AtomicU64,
}

impl<K> CaughtLimiter<K> {
    pub(super) fn new(inner: Limiter<K>) -> Self {
        Self { inner, panics: AtomicU64::new(0) }
    }

    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    fn or<R>(result: std::thread::Result<R>, panics: &AtomicU64, otherwise: R) -> R {
        result.unwrap_or_else(|panic| {
            panics.fetch_add(1, Ordering::Relaxed);
            drop_payload(panic);
            otherwise
        })
    }
}

impl<K> RateLimiter<K> for CaughtLimiter<K> {
    fn when(&mut self, key: &K, moment: Moment) -> Duration {
        let asked = catch_unwind(AssertUnwindSafe(|| self.inner.when(key, moment)));
        Self::or(asked, &self.panics, WAIT_AFTER_PANIC)
    }

    fn forget(&mut self, key: &K) {
        let asked = catch_unwind(AssertUnwindSafe(|| self.inner.forget(key)));
        Self::or(asked, &self.panics, ());
    }

    fn failures(&self, key: &K) -> u32 {
        let asked = catch_unwind(AssertUnwindSafe(|| self.inner.failures(key)));
        Self::or(asked, &self.panics, 0)
    }
}

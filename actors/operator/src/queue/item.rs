//! A key that was handed out, and how it comes back.
//!
//! A key comes back once, however its worker ends: by a method of the item, or by its drop, also if the order
//! of keys panics. A key offered to a worker that has gone waits again without a counted failure. Keys are
//! handed to an actor until their [`Handing`] is dropped, the actor has gone or the queue is over.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::queue::machine::{Priority, QueueMachine, RateLimiter, Taken};
use actix::{Message, Recipient};
use informer_core::reflector::Moment;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::content::{CaughtLimiter, Shared};
use super::{MOST_WORKERS, QueueKey, QueueNote, WorkQueue};
use informer_actors::inner::{ArbiterHandle, drop_payload};

/// A key to work on. No other worker gets this key until the item has come back.
///
/// Dropping it is [`Self::retry`]: what ended a worker, or cancelled it, has not reconciled the key.
#[must_use = "a dropped item is a failure of its key, which is tried again later"]
pub struct WorkItem<K: QueueKey, P: QueueNote = ()> {
    /// None after it has come back.
    taken: Option<Taken<K, P>>,
    home: Arc<Shared<K, P>>,
}

impl<K: QueueKey, P: QueueNote> Message for WorkItem<K, P> {
    type Result = ();
}

pub(super) struct Offer<K: QueueKey, P: QueueNote>(Option<WorkItem<K, P>>);

impl<K: QueueKey, P: QueueNote> WorkItem<K, P> {
    /// Which key.
    pub fn key(&self) -> &K {
        &self.taken().key
    }

    /// With which priority it waited.
    pub fn priority(&self) -> Priority {
        self.taken().priority
    }

    /// How long it has waited.
    pub fn waited(&self) -> Duration {
        self.taken().waited
    }

    /// How many failures of this key are counted.
    pub fn failures(&self) -> u32 {
        self.home.inside.with(|_, limiter, _| limiter.failures(self.key()))
    }

    /// The key is in order: its failures are forgotten, and it is not tried again for them. It is handed out
    /// again when it is added again, which may have happened already.
    pub fn done(mut self) {
        self.back(|queue, key, limiter, moment| {
            queue.done(key, moment.now);
            limiter.forget(key);
        });
    }

    /// A failure: the key is handed out again after the delay that the rate limiter says, which is returned.
    /// `None` if the queue is shut down: the key is refused, and its failures are forgotten.
    #[doc(alias("AddRateLimited", "requeue"))]
    pub fn retry(mut self) -> Option<Duration> {
        let note = self.note();
        self.fail(note)
    }

    /// The key is in order, and is handed out again after this time, or earlier if it is added. Failures are
    /// forgotten.
    pub fn retry_after(mut self, delay: Duration) {
        self.back(|queue, key, limiter, moment| {
            queue.retry_after(key, delay, moment.now);
            limiter.forget(key);
        });
    }

    fn taken(&self) -> &Taken<K, P> {
        self.taken.as_ref().expect("what has come back is dropped at once")
    }

    fn note(&mut self) -> P {
        self.taken.as_mut().map(|taken| std::mem::take(&mut taken.note)).unwrap_or_default()
    }

    pub(crate) fn begin<R>(&mut self, how: impl FnOnce(&mut QueueMachine<K, P>, &K, P) -> R) -> R {
        let note = self.note();
        self.home.inside.with(|queue, _, _| how(queue, self.key(), note))
    }

    fn put_back(&mut self) {
        let note = self.note();
        self.back(|queue, key, _, moment| queue.put_back(key, note, moment.now));
    }

    fn take_back(&mut self) {
        let note = self.note();
        self.back(|queue, key, _, moment| queue.take_back(key, note, moment.now));
    }

    pub(crate) fn unused(mut self) {
        self.put_back();
    }

    fn fail(&mut self, note: P) -> Option<Duration> {
        self.back(|queue, key, limiter, moment| queue.retry_with(key, note, limiter, moment)).flatten()
    }

    pub(crate) fn back<R>(
        &mut self,
        how: impl FnOnce(&mut QueueMachine<K, P>, &K, &mut CaughtLimiter<K>, Moment) -> R,
    ) -> Option<R> {
        let key = &self.taken.as_ref()?.key;
        // Cleared only when the key is back: after a panic before that, the drop brings it back.
        let result = self.home.inside.with(|queue, limiter, moment| how(queue, key, limiter, moment));
        self.taken = None;
        self.home.tell();
        Some(result)
    }
}

impl<K: QueueKey, P: QueueNote> Drop for WorkItem<K, P> {
    fn drop(&mut self) {
        caught(|| {
            let note = self.note();
            self.fail(note);
        });
        // Does nothing unless the order of keys has panicked.
        caught(|| self.put_back());
    }
}

informer_core::debug_as!([K: QueueKey, P: QueueNote] WorkItem<K, P>, self, queue = self.home.inside.name);

impl<K: QueueKey, P: QueueNote> Offer<K, P> {
    pub(super) fn new(taken: Taken<K, P>, home: Arc<Shared<K, P>>) -> Self {
        Self(Some(WorkItem { taken: Some(taken), home }))
    }

    pub(super) fn accept(mut self) -> Option<WorkItem<K, P>> {
        let item = self.0.take()?;
        let is_shut_down = item.home.inside.with(|queue, _, _| {
            queue.accept();
            queue.is_shut_down()
        });
        if is_shut_down {
            // Others may wait for the end of the queue.
            item.home.tell();
        }
        Some(item)
    }
}

impl<K: QueueKey, P: QueueNote> Drop for Offer<K, P> {
    fn drop(&mut self) {
        if let Some(mut item) = self.0.take() {
            caught(|| item.take_back());
        }
    }
}

/// Else a panic in a drop during unwinding would abort the process.
fn caught(job: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(job)) {
        drop_payload(panic);
    }
}

/// Hands keys to an actor until it is dropped. What the actor has by then is finished.
#[must_use = "no key is handed to the actor once this is dropped"]
pub struct Handing(#[expect(dead_code, reason = "its drop ends the handing")] DropGuard);

informer_core::debug_as!(Handing, self);

pub(super) fn hand_to<K: QueueKey, P: QueueNote>(
    queue: &WorkQueue<K, P>,
    worker: &Recipient<WorkItem<K, P>>,
    at_once: usize,
    arbiter: &ArbiterHandle,
) -> Handing {
    let stop = CancellationToken::new();
    for _ in 0..at_once.clamp(1, MOST_WORKERS) {
        let (queue, worker, stop) = (queue.clone(), worker.clone(), stop.clone());
        arbiter.spawn(move || async move { hand(&queue, &worker, &stop).await });
    }
    Handing(stop.drop_guard())
}

async fn hand<K: QueueKey, P: QueueNote>(
    queue: &WorkQueue<K, P>,
    worker: &Recipient<WorkItem<K, P>>,
    stop: &CancellationToken,
) {
    while worker.connected()
        && let Some(Some(offer)) = stop.run_until_cancelled(queue.offer()).await
    {
        if worker.connected()
            && let Some(item) = offer.accept()
        {
            // A worker that dies here drops the item: its key is retried.
            let _ = worker.send(item).await;
        }
    }
}

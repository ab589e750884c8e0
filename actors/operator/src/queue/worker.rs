//! Hands keys to an actor as long as the guard is kept, the actor runs and the queue is not over.
//!
//! A key that is taken when the actor has stopped waits again, and no failure is counted. After the guard is
//! dropped and the actor has answered, the tasks keep neither the queue nor the actor.

use actix::Recipient;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{MOST_WORKERS, QueueKey, QueueNote, WorkItem, WorkQueue};
use informer_actors::inner::ArbiterHandle;

/// Hands keys to an actor until it is dropped. What the actor has by then is finished.
#[must_use = "no key is handed to the actor once this is dropped"]
pub struct Handing(#[expect(dead_code, reason = "its drop ends the handing")] DropGuard);

informer_core::debug_as!(Handing, self);

pub(super) fn start<K: QueueKey, P: QueueNote>(
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
            // A worker that dies here drops the item: its key is retried later.
            let _ = worker.send(item).await;
        }
    }
}

//! The actor of a work queue: it hands keys to the workers that wait, and wakes when a delayed add is due.
//!
//! Answers "who gets the next key?": the worker that has waited longest. `machine.rs` decides which key that is. Invariants:
//! 1. A key is taken only for a worker that waits. If that worker has gone, the key waits again.
//! 2. After each turn no key waits while a worker does, and a timer runs for the next delayed add.
//!
//! | message | sender | answer | bound |
//! |---|---|---|---|
//! | `Next` | a worker that waits | an `Offer`, or none when the queue is over | one a worker |
//! | `Drained` | who waits for a drain | when the drain is over | one a waiting caller |
//!
//! Its death answers the waiting asks with `Closed`; their senders ask again. If it is given up, or its arbiter ends, the
//! queue is over: adds are refused, and workers get no key. Read next: `content.rs`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use actix::dev::OneshotSender;
use actix::{AsyncContext, Context, Handler, Message};

use super::content::{Content, Inside, Shared};
use super::item::Offer;
use super::{QueueKey, QueueNote};
use informer_actors::inner::{Locked, Run, Runner, Site};

/// How many keys are handed out in one turn: then other actors of the arbiter get theirs. Of delayed keys that are due
/// [`MOST_DUE`](crate::queue::machine::MOST_DUE) begin to wait in one.
const MOST_AT_ONCE: usize = 64;

/// A worker waits for a key.
pub(super) struct Next<K: QueueKey, P: QueueNote>(pub(super) OneshotSender<Option<Offer<K, P>>>);

impl<K: QueueKey, P: QueueNote> Message for Next<K, P> {
    type Result = ();
}

/// Answered when the drain is over.
pub(super) struct Drained(pub(super) OneshotSender<()>);

impl Message for Drained {
    type Result = ();
}

/// Who waits for the actor.
pub(super) struct Waiting<K: QueueKey, P: QueueNote> {
    workers: VecDeque<OneshotSender<Option<Offer<K, P>>>>,
    drains: Vec<OneshotSender<()>>,
}

impl<K: QueueKey, P: QueueNote> Default for Waiting<K, P> {
    fn default() -> Self {
        Self { workers: VecDeque::new(), drains: Vec::new() }
    }
}

impl<K: QueueKey, P: QueueNote> Handler<Next<K, P>> for Runner<Inside<K, P>> {
    type Result = ();

    fn handle(&mut self, Next(worker): Next<K, P>, ctx: &mut Context<Self>) {
        // Those that have gone need no memory while the queue is empty.
        self.waiting.workers.retain(|worker| !worker.is_closed());
        self.waiting.workers.push_back(worker);
        self.look(ctx);
    }
}

impl<K: QueueKey, P: QueueNote> Handler<Drained> for Runner<Inside<K, P>> {
    type Result = ();

    fn handle(&mut self, Drained(caller): Drained, ctx: &mut Context<Self>) {
        self.waiting.drains.retain(|caller| !caller.is_closed());
        self.waiting.drains.push(caller);
        self.look(ctx);
    }
}

impl<K: QueueKey, P: QueueNote> Run for Inside<K, P> {
    type Machine = Content<K, P>;
    type Waiting = Waiting<K, P>;

    const SITES: [Site; 2] = [Site::WorkQueueStarted, Site::WorkQueueLook];

    fn locked(&self) -> &Locked<Content<K, P>> {
        &self.content
    }

    fn look(runner: &mut Runner<Self>, ctx: &mut Context<Runner<Self>>) -> Option<Duration> {
        let Runner { run: inside, waiting, faults, .. } = runner;
        if !waiting.workers.is_empty() {
            inside.with(|queue, _, moment| queue.release_due(moment.now));
        }
        for _ in 0..MOST_AT_ONCE {
            let Some(worker) = waiting.next_worker() else { break };
            let Some(taken) = inside.with(|queue, _, moment| queue.offer(moment.now)) else {
                waiting.workers.push_front(worker);
                break;
            };
            let shared = Shared { inside: Arc::clone(inside), address: ctx.address() };
            let offer = Offer::new(taken, Arc::new(shared));
            faults.fail_point(Site::WorkQueueTaken);
            // An offer that is refused is dropped here, and its key waits again.
            drop(worker.send(Some(offer)));
        }
        let (is_over, is_drained) = inside.with(|queue, _, _| (queue.is_over(), queue.is_drain_over()));
        if is_over {
            waiting.workers.drain(..).for_each(|worker| drop(worker.send(None)));
        }
        if is_drained {
            for caller in waiting.drains.drain(..) {
                // It is not a failure if the caller has gone.
                let _ = caller.send(());
            }
        }
        // At once if there was more than one turn's worth.
        let due =
            inside.with(|queue, _, _| if queue.is_empty() { queue.next_due() } else { Some(Duration::ZERO) });
        due.filter(|_| !waiting.workers.is_empty())
    }
}

impl<K: QueueKey, P: QueueNote> Waiting<K, P> {
    fn next_worker(&mut self) -> Option<OneshotSender<Option<Offer<K, P>>>> {
        std::iter::from_fn(|| self.workers.pop_front()).find(|worker| !worker.is_closed())
    }
}

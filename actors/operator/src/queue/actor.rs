//! The actor of a work queue: it hands keys to the workers that wait, and wakes when a delayed add is due.
//!
//! The worker that has waited longest gets the next key. If it has gone, the key waits again.
//!
//! When the actor dies, waiting requests are answered with `Closed`, and their senders repeat them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use actix::dev::OneshotSender;
use actix::{AsyncContext, Context, Handler, Message};

use super::content::{Content, Inside, Shared};
use super::item::Offer;
use super::{QueueKey, QueueNote};
use informer_actors::inner::{Locked, Run, Runner, Site};

/// In one turn, since other actors of the arbiter need turns, too. One turn makes at most
/// [`MOST_DUE`](crate::queue::machine::MOST_DUE) due keys wait.
const MOST_AT_ONCE: usize = 64;

/// None when the queue is over.
pub(super) struct Next<K: QueueKey, P: QueueNote>(pub(super) OneshotSender<Option<Offer<K, P>>>);

impl<K: QueueKey, P: QueueNote> Message for Next<K, P> {
    type Result = ();
}

pub(super) struct Drained(pub(super) OneshotSender<()>);

impl Message for Drained {
    type Result = ();
}

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
        // Gone workers must not take memory.
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
            drop(worker.send(Some(offer)));
        }
        let (is_over, is_drained) = inside.with(|queue, _, _| (queue.is_over(), queue.is_drain_over()));
        if is_over {
            waiting.workers.drain(..).for_each(|worker| drop(worker.send(None)));
        }
        if is_drained {
            for caller in waiting.drains.drain(..) {
                let _ = caller.send(());
            }
        }
        // Zero: more keys wait than one turn hands out.
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

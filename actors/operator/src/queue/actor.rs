//! The actor of a work queue: it hands keys to the workers that wait, and wakes when a delayed add is due.
//!
//! Answers "who gets the next key?": the worker that has waited longest. `queue/machine.rs` decides which key
//! that is. Invariants:
//! 1. A key is taken only for a worker that waits. If that worker has gone, the key waits again.
//! 2. After each turn no key waits while a worker does, and a timer runs for the next delayed add.
//! 3. It holds nothing that is lost when it dies: the content is outside, and whoever waits asks again.
//! 4. At most one `Look` is in the mailbox, however much has changed, and one more for each restart. The actor takes the
//!    mark away before it looks, and when it starts: a change after that sends another one.
//!
//! | message | sender | answer | bound |
//! |---|---|---|---|
//! | `Look` | whoever changes the content | none | one |
//! | `Next` | a worker that waits | an `Offer`, or none when the queue is over | one a worker |
//! | `Drained` | who waits for a drain | when the drain is over | one a waiting caller |
//!
//! Its death answers the waiting asks with `Closed`; their senders ask again. It is restarted alone. If it is given up, or
//! its arbiter ends, the queue is over: adds are refused, and workers get no key. Read next: `content.rs`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::queue::machine::Priority;
use actix::dev::OneshotSender;
use actix::{
    Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, SpawnHandle, Supervised, WrapFuture,
};

use super::content::Inside;
use super::item::{Home, Offer};
use super::{QueueKey, QueueNote};
use informer_actors::inner::{Child, Faults, Site, sleep_until};

/// How many keys are handed out in one turn: then other actors of the arbiter get theirs. Of delayed keys that are due
/// [`MOST_DUE`](crate::queue::machine::MOST_DUE) begin to wait in one.
const MOST_AT_ONCE: usize = 64;

/// Something has changed: look whether a key can be handed out.
pub(super) struct Look;

impl Message for Look {
    type Result = ();
}

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

/// What handles and items have.
pub(super) struct Shared<K: QueueKey, P: QueueNote> {
    pub(super) inside: Arc<Inside<K, P>>,
    pub(super) address: Addr<QueueActor<K, P>>,
}

impl<K: QueueKey, P: QueueNote> Home<K, P> for Shared<K, P> {
    fn inside(&self) -> &Inside<K, P> {
        &self.inside
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "bounded: one Look is in the mailbox at most, and one more for each restart"
    )]
    fn tell(&self) {
        if !self.inside.is_told.swap(true, Ordering::AcqRel) {
            self.address.do_send(Look);
        }
    }
}

/// What the actor is built from.
pub(super) struct QueueSpec<K: QueueKey, P: QueueNote> {
    pub(super) inside: Arc<Inside<K, P>>,
    pub(super) faults: Faults,
}

informer_core::clone_of!([K: QueueKey, P: QueueNote] QueueSpec<K, P> { inside, faults });

pub(super) struct QueueActor<K: QueueKey, P: QueueNote> {
    spec: QueueSpec<K, P>,
    workers: VecDeque<OneshotSender<Option<Offer<K, P>>>>,
    drains: Vec<OneshotSender<()>>,
    alarm: Option<(Duration, SpawnHandle)>,
}

impl<K: QueueKey, P: QueueNote> Actor for QueueActor<K, P> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.spec.faults.fail_point(Site::WorkQueueStarted);
        // A Look that the actor died over is lost.
        self.spec.inside.is_told.store(false, Ordering::Release);
        self.look(ctx);
    }
}

impl<K: QueueKey, P: QueueNote> Supervised for QueueActor<K, P> {
    fn restarting(&mut self, _ctx: &mut Context<Self>) {
        *self = Self::build(&self.spec.clone());
    }
}

impl<K: QueueKey, P: QueueNote> Child for QueueActor<K, P> {
    type Spec = QueueSpec<K, P>;

    fn build(spec: &QueueSpec<K, P>) -> Self {
        Self { spec: spec.clone(), workers: VecDeque::new(), drains: Vec::new(), alarm: None }
    }
}

impl<K: QueueKey, P: QueueNote> Handler<Look> for QueueActor<K, P> {
    type Result = ();

    fn handle(&mut self, _: Look, ctx: &mut Context<Self>) {
        self.spec.inside.is_told.store(false, Ordering::Release);
        self.look(ctx);
    }
}

impl<K: QueueKey, P: QueueNote> Handler<Next<K, P>> for QueueActor<K, P> {
    type Result = ();

    fn handle(&mut self, Next(worker): Next<K, P>, ctx: &mut Context<Self>) {
        // Those that have gone need no memory while the queue is empty.
        self.workers.retain(|worker| !worker.is_closed());
        self.workers.push_back(worker);
        self.look(ctx);
    }
}

impl<K: QueueKey, P: QueueNote> Handler<Drained> for QueueActor<K, P> {
    type Result = ();

    fn handle(&mut self, Drained(caller): Drained, ctx: &mut Context<Self>) {
        self.drains.retain(|caller| !caller.is_closed());
        self.drains.push(caller);
        self.look(ctx);
    }
}

impl<K: QueueKey, P: QueueNote> QueueActor<K, P> {
    /// Adds a key, then looks whether a worker waits for one.
    pub(super) fn add(&mut self, key: K, priority: Priority, ctx: &mut Context<Self>) {
        self.spec.inside.content.with(|queue, _, moment| queue.add(key, priority, moment.now));
        self.look(ctx);
    }

    fn look(&mut self, ctx: &mut Context<Self>) {
        let inside = Arc::clone(&self.spec.inside);
        self.spec.faults.fail_point(Site::WorkQueueLook);
        if !self.workers.is_empty() {
            inside.content.with(|queue, _, moment| queue.release_due(moment.now));
        }
        for _ in 0..MOST_AT_ONCE {
            let Some(worker) = self.next_worker() else { break };
            let Some(taken) = inside.content.with(|queue, _, moment| queue.offer(moment.now)) else {
                self.workers.push_front(worker);
                break;
            };
            let shared = Shared { inside: Arc::clone(&inside), address: ctx.address() };
            let offer = Offer::new(taken, Arc::new(shared));
            self.spec.faults.fail_point(Site::WorkQueueTaken);
            // An offer that is refused is dropped here, and its key waits again.
            drop(worker.send(Some(offer)));
        }
        let (is_over, is_drained) =
            inside.content.with(|queue, _, _| (queue.is_over(), queue.is_drain_over()));
        if is_over {
            self.workers.drain(..).for_each(|worker| drop(worker.send(None)));
        }
        if is_drained {
            for caller in self.drains.drain(..) {
                // It is not a failure if the caller has gone.
                let _ = caller.send(());
            }
        }
        self.set_alarm(ctx);
    }

    fn next_worker(&mut self) -> Option<OneshotSender<Option<Offer<K, P>>>> {
        std::iter::from_fn(|| self.workers.pop_front()).find(|worker| !worker.is_closed())
    }

    /// Wakes when a key may be handed out: at once if there was more than one turn's worth.
    fn set_alarm(&mut self, ctx: &mut Context<Self>) {
        let content = &self.spec.inside.content;
        let has_more = !self.workers.is_empty() && content.with(|queue, _, _| !queue.is_empty());
        let due = if has_more { Some(Duration::ZERO) } else { content.next_due() };
        let due = due.filter(|_| !self.workers.is_empty());
        if due == self.alarm.map(|(at, _)| at) {
            return;
        }
        if let Some((_, alarm)) = self.alarm.take() {
            ctx.cancel_future(alarm);
        }
        let Some(due) = due else { return };
        let clock = content.clock().clone();
        let wait = async move {
            if due.is_zero() { tokio::task::yield_now().await } else { sleep_until(&clock, due).await }
        };
        let woken = wait.into_actor(self).map(|(), actor: &mut Self, ctx| {
            actor.alarm = None;
            actor.look(ctx);
        });
        self.alarm = Some((due, ctx.spawn(woken)));
    }
}

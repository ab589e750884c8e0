//! When a Listener answers a Drain: how a shutdown waits for one subscription.
//!
//! Answers "is there anything left to wait for?". Invariants:
//! 1. It is answered when nothing is owed or in flight any more, after the figures that say so are shown.
//! 2. It is answered early when waiting is in vain: the asker waits inside this subscription's own callback, or the
//!    stream is not polled. What is left then stays in the figures, and so in the shutdown's report.
//! 3. A stream is polled if it waits for an event, or has been polled within [`POLLED_WITHIN`] since the drain began;
//!    one that never was polled is given up at once.

use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, Context, Handler, WrapFuture};

use super::{Delivery, Listener};
use crate::pipeline::messages::{Answer, Body, Drain};
use crate::runtime::mailbox::{Reply, ReplySlot};

/// How long a shutdown waits for the next poll of a stream that somebody has polled before.
const POLLED_WITHIN: Duration = Duration::from_secs(1);

impl<S: Body> Listener<S> {
    /// Nothing is owed, and nothing is with the subscriber.
    fn is_drained(&self) -> bool {
        !self.is_arriving() && self.in_flight == 0 && self.backlog.is_empty()
    }

    /// What is owed is not known yet: it is on its way.
    fn is_arriving(&self) -> bool {
        self.attaching || self.intake.is_some()
    }

    /// Whether a stream is owed something that nobody takes: it was never polled.
    fn is_unpolled(&self) -> bool {
        let never = matches!(&self.spec.delivery, Delivery::Pull(polls) if polls.count() == 0);
        never && !self.is_arriving()
    }

    /// Answers those who wait for the drain, if there is nothing to wait for any more.
    pub(super) fn answer_drains(&mut self, ctx: &mut Context<Self>) {
        if self.drains.is_empty() {
            return;
        }
        if self.is_drained() || self.is_unpolled() {
            return self.drains.drain(..).for_each(|slot| slot.answer(()));
        }
        self.await_next_poll(ctx);
    }

    /// Looks after a while whether the stream was polled.
    fn await_next_poll(&mut self, ctx: &mut Context<Self>) {
        let Delivery::Pull(polls) = &self.spec.delivery else { return };
        if self.polls.is_none() {
            self.polls = Some(polls.count());
            let wait = tokio::time::sleep(POLLED_WITHIN).into_actor(self);
            ctx.spawn(wait.map(|(), this, ctx| this.check_polled(ctx)));
        }
    }

    fn check_polled(&mut self, ctx: &mut Context<Self>) {
        let Delivery::Pull(polls) = &self.spec.delivery else { return };
        let was_polled = self.polls.take() != Some(polls.count());
        if was_polled || self.taker.is_some() || self.is_arriving() {
            return self.answer_drains(ctx);
        }
        self.drains.drain(..).for_each(|slot| slot.answer(()));
    }
}

impl<S: Body> Handler<Drain> for Listener<S> {
    type Result = Answer<()>;

    fn handle(&mut self, drain: Drain, ctx: &mut Context<Self>) -> Answer<()> {
        let is_own = drain.inside.is_some_and(|seat| seat.is(&self.spec.seat));
        if is_own || self.is_drained() || self.is_unpolled() {
            return Reply::Now(());
        }
        let (slot, reply) = ReplySlot::new();
        self.drains.push(slot);
        self.await_next_poll(ctx);
        reply
    }
}

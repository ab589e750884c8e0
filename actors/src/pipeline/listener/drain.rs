//! When a Listener answers a Drain: how a shutdown waits for one subscription.
//!
//! Answers "is there anything left to wait for?"; the machine decides. Invariants:
//! 1. A drain is answered when every event is delivered and handled, after the figures show that.
//! 2. It is answered early when waiting is useless: the asker waits inside this subscription's own callback, or the
//!    stream is not polled. The events that are left stay in the figures, and so in the shutdown's report.
//! 3. A stream counts as polled if it waits for an event, or has been polled within [`POLLED_WITHIN`] since the drain
//!    began. A stream that was never polled is not waited for.

use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, Context, Handler, WrapFuture};

use super::Listener;
use crate::pipeline::messages::{Answer, Body, Drain};
use crate::runtime::mailbox::{Reply, ReplySlot};

/// How long a shutdown waits for the next poll of a stream that has been polled before.
const POLLED_WITHIN: Duration = Duration::from_secs(1);

impl<S: Body> Listener<S> {
    /// Looks after a while whether the stream was polled.
    pub(super) fn await_poll(&self, ctx: &mut Context<Self>) {
        let wait = tokio::time::sleep(POLLED_WITHIN).into_actor(self);
        ctx.spawn(wait.map(|(), this, ctx| {
            let polls = this.spec.delivery.polls().unwrap_or_default();
            this.machine.handle_waited_for_poll(polls);
            this.drive(ctx);
        }));
    }
}

impl<S: Body> Handler<Drain> for Listener<S> {
    type Result = Answer<()>;

    fn handle(&mut self, drain: Drain, ctx: &mut Context<Self>) -> Answer<()> {
        if drain.inside.is_some_and(|state| state.is(&self.spec.state)) {
            return Reply::Now(());
        }
        let (slot, reply) = ReplySlot::new();
        self.drains.push(slot);
        self.machine.handle_drain();
        self.drive(ctx);
        reply
    }
}

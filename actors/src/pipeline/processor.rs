//! The Processor: who is told, and when it is time to tell everything again.
//!
//! Answers "to whom do these changes go?": to every attached listener, as shared chunks, each asked once and all
//! awaited before the Indexer may go on. A listener is our own actor and only records, so nobody waits for foreign
//! code here. Decisions are those of `informer_core::processor` and `informer_core::resync`. Invariants:
//! 1. A listener is attached in one turn with the snapshot it starts from: nothing lost, nothing twice.
//! 2. A listener whose mailbox is closed, or that ended over the message, is taken off the roster; nobody else notices.
//! 3. After a restart every seat of the roster that wiring keeps is asked to attach again.
//!
//! Mailbox: one ask of the Indexer, one Attach a listener and epoch, one Detach a subscription. Its death restarts
//! the group. Read next: `listener.rs`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::{
    Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, SpawnHandle, Supervised, WrapFuture,
};
use futures_util::future::join_all;
use informer_core::processor::{ListenerId, Roster};
use informer_core::resync::ResyncClock;
use informer_core::snapshot::Snapshot;

use crate::pipeline::delta_fifo::DeltaFifo;
use crate::pipeline::listener::Listener;
use crate::pipeline::listener_roster::ListenerRoster;
use crate::pipeline::messages::{Answer, Attach, Body, Detach, Epoch, FanOut, Owed, Reattach, Resync, Start};
use crate::pipeline::shared::PipelineShared;
use crate::runtime::faults::Site;
use crate::runtime::mailbox::{Reply, ReplySlot, ask};
use crate::runtime::sleep_until;
use crate::supervision::child::Child;

/// What a Processor is built from.
pub(crate) struct ProcessorSpec<S: Body> {
    pub(crate) shared: PipelineShared<S>,
    pub(crate) fifo: Addr<DeltaFifo<S>>,
    pub(crate) roster: ListenerRoster<S>,
}

/// The fan-out's actor.
pub(crate) struct Processor<S: Body> {
    spec: ProcessorSpec<S>,
    epoch: Epoch,
    current: Snapshot<S>,
    roster: Roster<Arc<Addr<Listener<S>>>>,
    clock: ResyncClock,
    alarm: Option<(Duration, SpawnHandle)>,
    resyncing: bool,
    owed_to_indexer: Option<ReplySlot<()>>,
}

impl<S: Body> Actor for Processor<S> {
    type Context = Context<Self>;

    fn started(&mut self, _ctx: &mut Context<Self>) {
        self.spec.shared.strike(Site::ProcessorStarted);
        // One message a seat and epoch: the listener answers it with one Attach.
        self.spec.roster.all().iter().for_each(|listener| tell(listener, Reattach(self.epoch)));
    }
}

impl<S: Body> Supervised for Processor<S> {
    fn restarting(&mut self, _ctx: &mut Context<Self>) {
        *self = Self::build(&self.spec.clone());
    }
}

impl<S: Body> Child for Processor<S> {
    type Spec = ProcessorSpec<S>;

    fn build(spec: &ProcessorSpec<S>) -> Self {
        spec.shared.progress.group_is_up();
        Self {
            spec: spec.clone(),
            epoch: spec.shared.published.epoch(),
            current: spec.shared.published.snapshot(),
            roster: Roster::new(),
            clock: ResyncClock::new(),
            alarm: None,
            resyncing: false,
            owed_to_indexer: None,
        }
    }
}

/// Sends without waiting. Used only for messages of which a listener gets one an epoch.
#[expect(clippy::disallowed_methods, reason = "bounded: one Start and one Reattach an epoch and listener")]
fn tell<S: Body, M>(listener: &Addr<Listener<S>>, message: M)
where
    M: actix::Message + Send + 'static,
    M::Result: Send,
    Listener<S>: Handler<M> + Actor<Context = Context<Listener<S>>>,
    Context<Listener<S>>: ToEnvelope<Listener<S>, M>,
{
    listener.do_send(message);
}

impl<S: Body> Handler<FanOut<S>> for Processor<S> {
    type Result = Answer<()>;

    fn handle(&mut self, message: FanOut<S>, ctx: &mut Context<Self>) -> Answer<()> {
        if message.epoch != self.epoch {
            self.spec.shared.count_stale_message();
            return Reply::Now(());
        }
        self.spec.shared.strike(Site::ProcessorChanges);
        self.current = message.snapshot.clone();
        let mut due = message.resync.as_deref().unwrap_or_default().to_vec();
        due.sort_unstable();
        if message.changes.is_none() && due.is_empty() {
            return Reply::Now(());
        }
        self.fan_out(&message, &due, ctx)
    }
}

impl<S: Body> Processor<S> {
    fn fan_out(&mut self, message: &FanOut<S>, due: &[ListenerId], ctx: &mut Context<Self>) -> Answer<()> {
        let asks: Vec<_> = self
            .roster
            .iter_due(due)
            .map(|(id, listener, resync)| {
                let owed = Owed {
                    epoch: self.epoch,
                    snapshot: message.snapshot.clone(),
                    changes: message.changes.clone(),
                    resync,
                };
                let told = ask(listener, owed);
                async move { (id, told.await) }
            })
            .collect();
        if asks.is_empty() {
            return Reply::Now(());
        }
        self.spec.shared.strike(Site::ProcessorFannedOut);
        let (slot, reply) = ReplySlot::new();
        debug_assert!(self.owed_to_indexer.is_none(), "the Indexer sends changes one publish at a time");
        self.owed_to_indexer = Some(slot);
        ctx.spawn(join_all(asks).into_actor(self).map(|told, this, _ctx| {
            for (id, outcome) in told {
                if outcome.is_err() {
                    this.forget(id);
                }
            }
            if let Some(slot) = this.owed_to_indexer.take() {
                slot.answer(());
            }
        }));
        reply
    }

    fn forget(&mut self, id: ListenerId) {
        self.roster.detach(id);
        self.clock.cancel(id);
        self.spec.roster.leave(id);
    }

    /// Sets the alarm for the next resync, unless it is set.
    fn set_alarm(&mut self, ctx: &mut Context<Self>) {
        let Some(due) = self.clock.next_due() else { return };
        if self.resyncing || self.alarm.as_ref().is_some_and(|(at, _)| *at == due) {
            return;
        }
        if let Some((_, handle)) = self.alarm.take() {
            ctx.cancel_future(handle);
        }
        let clock = self.spec.shared.runtime.0.clock.clone();
        let wait = async move { sleep_until(&clock, due).await };
        let handle = ctx.spawn(wait.into_actor(self).map(|(), this, ctx| this.resync(ctx)));
        self.alarm = Some((due, handle));
    }

    /// Sends a Resync through the queue; the next one waits until this one has been taken.
    fn resync(&mut self, ctx: &mut Context<Self>) {
        self.alarm = None;
        if self.spec.shared.stop_reading.is_cancelled() {
            return;
        }
        let due = self.clock.due(self.spec.shared.runtime.now());
        if due.is_empty() || self.current.versions().is_empty() {
            return self.set_alarm(ctx);
        }
        self.resyncing = true;
        let taken = ask(&self.spec.fifo, Resync { epoch: self.epoch, due: due.into() });
        ctx.spawn(taken.into_actor(self).map(|_, this, ctx| {
            this.resyncing = false;
            this.set_alarm(ctx);
        }));
    }
}

impl<S: Body> Handler<Attach<Listener<S>>> for Processor<S> {
    type Result = ();

    fn handle(&mut self, attach: Attach<Listener<S>>, ctx: &mut Context<Self>) {
        if self.roster.get(attach.id).is_some() {
            return;
        }
        tell(&attach.listener, Start { epoch: self.epoch, snapshot: self.current.clone() });
        self.roster.attach(attach.id, attach.listener);
        if let Some(period) = attach.resync {
            self.clock.schedule(attach.id, period, self.spec.shared.runtime.now());
            self.set_alarm(ctx);
        }
    }
}

impl<S: Body> Handler<Detach> for Processor<S> {
    type Result = ();

    fn handle(&mut self, Detach(id): Detach, _ctx: &mut Context<Self>) {
        self.forget(id);
    }
}

impl<S: Body> Clone for ProcessorSpec<S> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), fifo: self.fifo.clone(), roster: self.roster.clone() }
    }
}

impl<S: Body> fmt::Debug for Processor<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Processor").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

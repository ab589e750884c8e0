//! The Processor: it sends changes to all listeners, and starts resyncs. Its death restarts the group.
//!
//! 1. The Indexer goes on when all listeners have recorded the changes: nothing here waits for a subscriber's code.
//! 2. A listener is attached in one turn with its first snapshot: it misses nothing and gets nothing twice.
//! 3. A message to an ended listener is dropped with its share of the reply.
//! 4. After a restart every listener of the roster is asked to attach again.

use std::sync::Arc;

use actix::dev::ToEnvelope;
use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Supervised, WrapFuture};
use informer_core::delta::Changes;
use informer_core::path::Hop;
use informer_core::processor::{ListenerId, Roster};
use informer_core::resync::ResyncClock;
use informer_core::snapshot::Snapshot;

use crate::pipeline::delta_fifo::DeltaFifo;
use crate::pipeline::listener::Listener;
use crate::pipeline::listener_roster::ListenerRoster;
use crate::pipeline::messages::{
    Attach, Body, Detach, Distribute, Epoch, FanOut, FanOutReply, Reattach, Resync, Start,
};
use crate::pipeline::shared::PipelineShared;
use crate::runtime::faults::Site;
use crate::runtime::mailbox::ask;
use crate::runtime::sleep_until;
use crate::supervision::owner::Child;
use crate::supervision::runner::Alarm;

pub(crate) struct ProcessorSpec<S: Body> {
    pub(crate) shared: PipelineShared<S>,
    pub(crate) fifo: Addr<DeltaFifo<S>>,
    pub(crate) roster: ListenerRoster<S>,
}

pub(crate) struct Processor<S: Body> {
    spec: ProcessorSpec<S>,
    epoch: Epoch,
    current: Snapshot<S>,
    roster: Roster<Arc<Addr<Listener<S>>>>,
    clock: ResyncClock,
    alarm: Alarm,
    resyncing: bool,
}

impl<S: Body> Actor for Processor<S> {
    type Context = Context<Self>;

    fn started(&mut self, _ctx: &mut Context<Self>) {
        self.spec.shared.fail_point(Site::ProcessorStarted);
        // One for each listener and epoch, answered with one Attach.
        self.spec.roster.all().iter().for_each(|listener| send_now(listener, Reattach(self.epoch)));
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
            alarm: Alarm::default(),
            resyncing: false,
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "bounded: a Start and a Reattach an epoch and listener, and one Distribute, since the next publish comes when \
              every listener has dropped its share of the last one"
)]
fn send_now<S: Body, M>(listener: &Addr<Listener<S>>, message: M)
where
    M: actix::Message + Send + 'static,
    M::Result: Send,
    Listener<S>: Handler<M> + Actor<Context = Context<Listener<S>>>,
    Context<Listener<S>>: ToEnvelope<Listener<S>, M>,
{
    listener.do_send(message);
}

impl<S: Body> Handler<FanOut<S>> for Processor<S> {
    type Result = ();

    fn handle(&mut self, message: FanOut<S>, _ctx: &mut Context<Self>) {
        // In every case the drop of the last share answers the Indexer.
        let FanOut { epoch, snapshot, changes, resync, reply } = message;
        let reply = FanOutReply::new(reply);
        if epoch != self.epoch {
            return self.spec.shared.count_stale_message();
        }
        self.spec.shared.fail_point(Site::ProcessorChanges);
        self.current = snapshot;
        let mut due = resync.as_deref().unwrap_or_default().to_vec();
        due.sort_unstable();
        if changes.is_some() || !due.is_empty() {
            self.fan_out(changes.as_ref(), &due, reply);
        }
    }
}

impl<S: Body> Processor<S> {
    fn fan_out(&mut self, changes: Option<&Changes<S>>, due: &[ListenerId], reply: FanOutReply) {
        if self.roster.is_empty() {
            return;
        }
        let reply = Arc::new(reply);
        for (_, listener, resync) in self.roster.iter_due(due) {
            let message = Distribute {
                epoch: self.epoch,
                snapshot: self.current.clone(),
                changes: changes.cloned(),
                resync,
                reply: Arc::clone(&reply),
            };
            send_now(listener, message);
        }
        self.spec.shared.mark_changes(Hop::Distributed, changes);
        self.spec.shared.fail_point(Site::ProcessorFannedOut);
    }

    fn forget(&mut self, id: ListenerId) {
        self.roster.detach(id);
        self.clock.cancel(id);
        self.spec.roster.leave(id);
    }

    fn set_alarm(&mut self, ctx: &mut Context<Self>) {
        let due = self.clock.next_due().filter(|_| !self.resyncing);
        let clock = self.spec.shared.runtime.0.clock.clone();
        let wait = |due| async move { sleep_until(&clock, due).await };
        self.alarm.set(due, wait, ctx, Self::resync);
    }

    /// The next one waits until the queue has taken this one.
    fn resync(&mut self, ctx: &mut Context<Self>) {
        self.alarm.rang();
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
        self.spec.shared.fail_point(Site::ProcessorAttach);
        send_now(&attach.listener, Start { epoch: self.epoch, snapshot: self.current.clone() });
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

informer_core::clone_of!([S: Body] ProcessorSpec<S> { shared, fifo, roster });

//! A Listener: it records the changes for one subscriber, and delivers them. `informer_core::listener::machine`
//! decides.
//!
//! 1. Recording never waits for delivery: a slow, stuck or dead subscriber delays nothing else.
//! 2. Every event goes to the machine first; then all its effects are carried out, in order, in the same turn.
//! 3. Of the subscriber's code only filters run here: guarded, and named by the watchdog if they block.
//! 4. Events that wait at its end are freed off the arbiter.

use std::sync::Arc;

use actix::dev::OneshotSender;
use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, Recipient, Supervised,
    WrapFuture,
};
use informer_core::delta::Change;
use informer_core::listener::Filter;
pub(crate) use informer_core::listener::machine::WINDOW;
use informer_core::listener::machine::{Figures, ListenerConfig, ListenerEffect, ListenerMachine};
use informer_core::meta::ObjectKey;
use informer_core::processor::ListenerId;
use informer_core::snapshot::Snapshot;

use crate::pipeline::messages::{Attach, Body, Distribute, Epoch, Notify, Reattach, Start, Take, Taken};
use crate::pipeline::shared::PipelineShared;
use crate::pipeline::subscription_state::{EndReason, SubscriptionState};
use crate::runtime::faults::Site;
use crate::runtime::mailbox::ReplySlot;
use crate::supervision::owner::Child;

pub(crate) mod delivery;

pub(crate) use delivery::{Delivery, Feed, Polls, events};

pub(crate) struct ListenerSpec<S: Body> {
    pub(crate) shared: PipelineShared<S>,
    pub(crate) id: ListenerId,
    pub(crate) state: SubscriptionState,
    pub(crate) delivery: Delivery<S>,
    pub(crate) filter: Option<Arc<Filter<S>>>,
    pub(crate) window: usize,
    pub(crate) processor: Arc<Recipient<Attach<Listener<S>>>>,
    pub(crate) address: Arc<Addr<Listener<S>>>,
}

pub(crate) struct Listener<S: Body> {
    spec: Arc<ListenerSpec<S>>,
    machine: ListenerMachine<S>,
    taker: Option<OneshotSender<Taken<S>>>,
    drains: Vec<ReplySlot<()>>,
    /// See `Sources::ids_since`.
    seen_sources: u64,
}

impl<S: Body> Actor for Listener<S> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.spec.shared.fail_point(Site::ListenerStarted);
        self.drive(ctx);
    }
}

impl<S: Body> Supervised for Listener<S> {
    fn restarting(&mut self, _ctx: &mut Context<Self>) {
        *self = Self::build(&self.spec.clone());
    }
}

impl<S: Body> Child for Listener<S> {
    type Spec = Arc<ListenerSpec<S>>;

    fn build(spec: &Arc<ListenerSpec<S>>) -> Self {
        let machine = ListenerMachine::new(ListenerConfig {
            policy: spec.state.policy(),
            sources: spec.shared.sources.ids().into(),
            filter: spec.filter.clone(),
            window: spec.window,
            is_pulled: matches!(spec.delivery, Delivery::Pull(_)),
            seen: if let Delivery::Feed(feed) = &spec.delivery { feed.settled() } else { None },
        });
        let machine = machine.releasing_to(spec.shared.runtime.0.freeing.as_release());
        Self { spec: spec.clone(), machine, taker: None, drains: Vec::new(), seen_sources: 0 }
    }
}

/// Frees waiting events off the arbiter. An `OffArbiter` field would cost each idle subscription four words.
impl<S: Body> Drop for Listener<S> {
    fn drop(&mut self) {
        self.spec.shared.forget_delivered(self.spec.state.name());
        if let Some(backlog) = self.machine.take_backlog() {
            let bytes = backlog.stats().bytes;
            self.spec.shared.off_arbiter(backlog).weigh(bytes);
        }
    }
}

impl<S: Body> Listener<S> {
    fn drive(&mut self, ctx: &mut Context<Self>) {
        while let Some(effect) = self.machine.poll_effect(self.spec.delivery.polls()) {
            match effect {
                ListenerEffect::Attach => self.attach(ctx),
                ListenerEffect::Deliver(window) => self.deliver(window, ctx),
                ListenerEffect::Yield => {
                    ctx.spawn(tokio::task::yield_now().into_actor(self).map(|(), this, ctx| {
                        this.machine.handle_turn();
                        this.drive(ctx);
                    }));
                }
                ListenerEffect::Show(figures) => self.show(figures),
                ListenerEffect::AwaitPoll => self.await_poll(ctx),
                ListenerEffect::AnswerDrains => self.drains.drain(..).for_each(|slot| slot.answer(())),
                ListenerEffect::End { dropped } => self.end(EndReason::Overflow { dropped }, ctx),
            }
        }
        if let (Delivery::Feed(feed), Some(seen)) = (&self.spec.delivery, self.machine.settled()) {
            drop(feed.settle(seen).map(|former| self.spec.shared.off_arbiter(former)));
        }
    }

    /// A feed first takes, in several turns, what a former Listener has taken and not settled. Until then this actor
    /// handles nothing else.
    fn begin(&mut self, snapshot: Snapshot<S>, behind: Option<ObjectKey>, ctx: &mut Context<Self>) {
        if let Delivery::Feed(feed) = &self.spec.delivery
            && let Some(last) = feed.begin(&snapshot, behind.as_ref())
        {
            let turn = tokio::task::yield_now().into_actor(self);
            ctx.wait(turn.map(move |(), this, ctx| this.begin(snapshot, Some(last), ctx)));
            return;
        }
        self.machine.handle_start(snapshot, self.spec.shared.runtime.now());
        self.seen_sources = 0;
        self.follow_sources();
        self.drive(ctx);
    }

    fn attach(&self, ctx: &mut Context<Self>) {
        let me = Attach {
            id: self.spec.id,
            listener: Arc::clone(&self.spec.address),
            resync: self.spec.state.times().resync,
        };
        // An error: the Processor died. After its restart it sends a Reattach.
        ctx.spawn(self.spec.processor.send(me).into_actor(self).map(|_, _, _| ()));
    }

    fn is_stale(&self, epoch: Epoch) -> bool {
        let stale = epoch != self.spec.shared.published.epoch();
        if stale {
            self.spec.shared.count_stale_message();
        }
        stale
    }

    /// Until it is synced, it waits for the first list of every source that the informer has.
    fn follow_sources(&mut self) {
        let sources = &self.spec.shared.sources;
        self.machine.handle_sources(|| sources.ids_since(&mut self.seen_sources));
    }

    pub(crate) fn spec(&self) -> &ListenerSpec<S> {
        &self.spec
    }

    fn handled(&mut self, ctx: &mut Context<Self>) {
        self.spec.shared.fail_point(Site::ListenerHandled);
        self.spec.shared.mark_handled(self.spec.state.name());
        self.follow_sources();
        self.machine.handle_handled();
        self.drive(ctx);
    }

    pub(crate) fn end(&self, reason: EndReason, ctx: &mut Context<Self>) {
        self.spec.state.end_with(reason);
        ctx.stop();
    }

    fn show(&self, figures: Figures) {
        let shared = &self.spec.shared;
        self.spec.state.show(shared.board.arrived(), &shared.runtime, |status| {
            status.synced = figures.synced;
            status.depth = figures.depth;
            status.oldest_since = figures.oldest_since;
            status.in_flight = u32::try_from(figures.in_flight).unwrap_or(u32::MAX);
            status.coalesced = figures.coalesced;
            status.show_rare(&figures);
            status.delivered = figures.delivered;
        });
    }
}

impl<S: Body> Handler<Start<S>> for Listener<S> {
    type Result = ();

    fn handle(&mut self, start: Start<S>, ctx: &mut Context<Self>) {
        if !self.is_stale(start.epoch) {
            self.follow_sources();
            self.begin(start.snapshot, None, ctx);
        }
    }
}

impl<S: Body> Handler<Reattach> for Listener<S> {
    type Result = ();

    fn handle(&mut self, Reattach(epoch): Reattach, ctx: &mut Context<Self>) {
        if !self.is_stale(epoch) {
            self.machine.handle_reattach();
            self.drive(ctx);
        }
    }
}

impl<S: Body> Handler<Distribute<S>> for Listener<S> {
    type Result = ();

    fn handle(&mut self, message: Distribute<S>, ctx: &mut Context<Self>) {
        self.spec.shared.fail_point(Site::ListenerChanges);
        let Distribute { epoch, snapshot, changes, resync, reply } = message;
        if !self.is_stale(epoch) {
            // The age of an event counts from when the reflector read it.
            let arrived = self.spec.shared.board.arrived();
            self.follow_sources();
            self.machine.handle_changes(changes.as_slice(), &snapshot, resync, arrived);
            self.drive(ctx);
        }
        // Recorded. When the last share is dropped, the Indexer goes on.
        drop(reply);
    }
}

impl<S: Body> Handler<Take<S>> for Listener<S> {
    type Result = ();

    fn handle(&mut self, Take { is_marked, reply }: Take<S>, ctx: &mut Context<Self>) {
        self.taker = Some(reply);
        self.machine.handle_take(is_marked);
        self.drive(ctx);
    }
}

impl<S: Body> From<Change<S>> for Notify<S> {
    fn from(change: Change<S>) -> Self {
        match change {
            Change::Added { object, cause } => Self::Added { object, cause },
            Change::Updated { old, object, cause } => Self::Updated { old, object, cause },
            Change::Deleted { last, exact, cause, .. } => Self::Deleted { last, exact, cause },
        }
    }
}

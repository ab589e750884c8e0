//! A Listener: what one subscriber is owed, and its delivery.
//!
//! Answers "what is this subscriber told next, and has it handled it?" by asking its core twin,
//! `informer_core::listener::machine`, and doing what it says. It never runs foreign code. Invariants:
//! 1. Recording never waits for delivery: a slow, stuck or dead subscriber delays nobody.
//! 2. Whatever happens is told to the machine first; then all its effects are done, in order, in the same turn.
//! 3. What waits when it ends is freed off the arbiter. It keeps nothing of its own but what only an actor can hold: the sender of a stream's answer, and those of drains.
//!
//! Mailbox: one Owed in flight, one Start and one Reattach an epoch, the handle's asks. Its death ends its own
//! subscription with a reason. Read next: `listener/delivery.rs`, how a window leaves; `listener/drain.rs`.

use std::fmt;
use std::sync::Arc;

use actix::dev::OneshotSender;
use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, Recipient, Supervised,
    WrapFuture,
};
use informer_core::delta::Change;
pub(crate) use informer_core::listener::machine::WINDOW;
use informer_core::listener::machine::{Effect, Figures, ListenerConfig, ListenerMachine};
use informer_core::processor::ListenerId;

use crate::pipeline::messages::{Attach, Body, Epoch, Notify, Owed, Reattach, Start, Take};
use crate::pipeline::seat::{EndReason, Seat};
use crate::pipeline::shared::PipelineShared;
use crate::runtime::faults::Site;
use crate::runtime::mailbox::{ReplySlot, ask_any};
use crate::supervision::child::Child;

mod delivery;
mod drain;

pub(crate) use delivery::{Delivery, Polls};

/// What a Listener is built from.
pub(crate) struct ListenerSpec<S: Body> {
    pub(crate) shared: PipelineShared<S>,
    pub(crate) id: ListenerId,
    pub(crate) seat: Seat,
    pub(crate) delivery: Delivery<S>,
    /// The most notifications in one window: [`WINDOW`], or one.
    pub(crate) window: usize,
    pub(crate) processor: Arc<Recipient<Attach<Listener<S>>>>,
    /// Its own address: one for all who have to reach it.
    pub(crate) address: Arc<Addr<Listener<S>>>,
}

/// One subscriber's actor.
pub(crate) struct Listener<S: Body> {
    spec: Arc<ListenerSpec<S>>,
    machine: ListenerMachine<S>,
    taker: Option<OneshotSender<Vec<Notify<S>>>>,
    drains: Vec<ReplySlot<()>>,
}

impl<S: Body> Actor for Listener<S> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.spec.shared.strike(Site::ListenerStarted);
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
            policy: spec.seat.policy(),
            sources: spec.shared.sources.ids().into(),
            window: spec.window,
            is_pulled: matches!(spec.delivery, Delivery::Pull(_)),
        });
        let machine = machine.releasing_to(spec.shared.runtime.0.freeing.release());
        Self { spec: spec.clone(), machine, taker: None, drains: Vec::new() }
    }
}

/// An `OffArbiter` would do the same, and cost each idle subscription four words.
impl<S: Body> Drop for Listener<S> {
    fn drop(&mut self) {
        if let Some(ledger) = self.machine.take_ledger() {
            drop(self.spec.shared.off_arbiter(ledger));
        }
    }
}

impl<S: Body> Listener<S> {
    /// Does what is to be done now. Called after everything that happened.
    fn drive(&mut self, ctx: &mut Context<Self>) {
        while let Some(effect) = self.machine.poll_effect(self.spec.delivery.polls()) {
            match effect {
                Effect::Attach => self.attach(ctx),
                Effect::Deliver(window) => self.deliver(window, ctx),
                Effect::Yield => {
                    ctx.spawn(tokio::task::yield_now().into_actor(self).map(|(), this, ctx| {
                        this.machine.handle_turn();
                        this.drive(ctx);
                    }));
                }
                Effect::Show(figures) => self.show(figures),
                Effect::AwaitPoll => self.await_poll(ctx),
                Effect::AnswerDrains => self.drains.drain(..).for_each(|slot| slot.answer(())),
                Effect::End { dropped } => self.end(EndReason::Overflow { dropped }, ctx),
            }
        }
    }

    /// Asks for a place at the Processor, which answers with a Start.
    fn attach(&self, ctx: &mut Context<Self>) {
        let me = Attach {
            id: self.spec.id,
            listener: Arc::clone(&self.spec.address),
            resync: self.spec.seat.resync(),
        };
        // An error means that the Processor has died over it: its successor asks us to attach again.
        ctx.spawn(ask_any(&self.spec.processor, me).into_actor(self).map(|_, _, _| ()));
    }

    fn is_stale(&self, epoch: Epoch) -> bool {
        let stale = epoch != self.spec.shared.published.epoch();
        if stale {
            self.spec.shared.count_stale_message();
        }
        stale
    }

    /// Sources that were removed before they had listed are not waited for.
    fn forget_removed(&mut self) {
        let sources = &self.spec.shared.sources;
        self.machine.handle_removed(|source| !sources.contains(source));
    }

    /// The subscriber has handled its window.
    fn handled(&mut self, ctx: &mut Context<Self>) {
        self.machine.handle_handled();
        self.drive(ctx);
    }

    fn end(&self, reason: EndReason, ctx: &mut Context<Self>) {
        self.spec.seat.end_with(reason);
        ctx.stop();
    }

    /// Shows the figures in the subscription's status, all in one.
    fn show(&self, figures: Figures) {
        let shared = &self.spec.shared;
        self.spec.seat.show(shared.board.arrived(), &shared.runtime, |status| {
            status.synced = figures.synced;
            status.depth = figures.depth;
            status.oldest_since = figures.oldest_since;
            status.in_flight = figures.in_flight;
            status.coalesced = figures.coalesced;
            status.dropped = figures.dropped;
            status.delivered = figures.delivered;
        });
    }
}

impl<S: Body> Handler<Start<S>> for Listener<S> {
    type Result = ();

    fn handle(&mut self, start: Start<S>, ctx: &mut Context<Self>) {
        if !self.is_stale(start.epoch) {
            self.machine.handle_start(start.snapshot, self.spec.shared.runtime.now());
            self.forget_removed();
            self.drive(ctx);
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

impl<S: Body> Handler<Owed<S>> for Listener<S> {
    type Result = ();

    fn handle(&mut self, owed: Owed<S>, ctx: &mut Context<Self>) {
        self.spec.shared.strike(Site::ListenerOwed);
        if !self.is_stale(owed.epoch) {
            // What it is owed waits since it was read, not since it came here.
            let arrived = self.spec.shared.board.arrived();
            self.machine.handle_owed(owed.changes.as_slice(), &owed.snapshot, owed.resync, arrived);
            self.forget_removed();
            self.drive(ctx);
        }
    }
}

impl<S: Body> Handler<Take<S>> for Listener<S> {
    type Result = ();

    fn handle(&mut self, Take(taker): Take<S>, ctx: &mut Context<Self>) {
        self.taker = Some(taker);
        self.machine.handle_take();
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

impl<S: Body> fmt::Debug for Listener<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("id", &self.spec.id).finish_non_exhaustive()
    }
}

//! A Listener: what one subscriber is owed, and its delivery.
//!
//! Answers "what is this subscriber told next, and has it handled it?". The backlog and its policies are the core
//! twin's, `informer_core::listener`; this actor records what the Processor hands it and delivers windows of it. It
//! never runs foreign code. Invariants:
//! 1. Recording never waits for delivery: a slow, stuck or dead subscriber delays nobody.
//! 2. One window at a time: the next is taken from the backlog when the one before has been handled.
//! 3. `seen` is the snapshot up to which everything is in the backlog; after a restart of the group the listener
//!    attaches with it again and owes exactly the difference.
//! 4. Each turn shows its figures once, at its end, and answers a Drain after that: whoever sees `synced` or the
//!    answer sees figures that agree.
//!
//! Mailbox: one Owed in flight, one Start and one Reattach an epoch, the handle's asks. Its death ends its own
//! subscription with a reason. Read next: `listener/delivery.rs`, how a window leaves; `listener/drain.rs`.

use std::fmt;
use std::sync::Arc;

use actix::ActorContext;
use actix::dev::OneshotSender;
use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Recipient, Supervised, WrapFuture};
use informer_core::delta::Change;
use informer_core::initial_tracker::InitialTracker;
use informer_core::listener::Ledger;
use informer_core::processor::ListenerId;
use informer_core::snapshot::Snapshot;
use informer_core::sync_tracker::SyncTracker;

use crate::pipeline::messages::{Answer, Attach, Body, Epoch, Notify, Owed, Reattach, Start, Take};
use crate::pipeline::seat::{EndReason, Seat};
use crate::pipeline::shared::PipelineShared;
use crate::runtime::faults::Site;
use crate::runtime::mailbox::{Reply, ReplySlot, ask_any};
use crate::supervision::child::Child;

mod delivery;
mod drain;

pub(crate) use delivery::{Delivery, Polls};

/// The most notifications that are under way to a subscriber.
pub(crate) const WINDOW: usize = 64;

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
    backlog: Ledger<S>,
    seen: Option<Snapshot<S>>,
    /// Until the last initial event is handled; boxed, since most of its life a subscription is past that.
    opening: Option<Box<Opening>>,
    intake: Option<Box<Intake<S>>>,
    reattach_after_intake: bool,
    /// A Start is awaited: what it will bring is owed, too.
    attaching: bool,
    /// Notifications of the window that is with the subscriber, and those that it has handled before.
    in_flight: usize,
    handled: u64,
    taker: Option<OneshotSender<Vec<Notify<S>>>>,
    drains: Vec<ReplySlot<()>>,
    /// How often the stream had been polled when the drain began to wait for its next poll.
    polls: Option<u64>,
}

/// How far the subscription is with its beginning.
struct Opening {
    sync: SyncTracker,
    initial: InitialTracker,
}

/// Changes that are too many for one turn, on their way into the backlog.
struct Intake<S: Body> {
    owed: Owed<S>,
    next_chunk: usize,
    slot: ReplySlot<()>,
}

impl<S: Body> Actor for Listener<S> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.spec.shared.strike(Site::ListenerStarted);
        self.attach(ctx);
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
        Self {
            spec: spec.clone(),
            backlog: Ledger::starting_from(spec.seat.policy(), Snapshot::empty()),
            seen: None,
            opening: Some(Box::new(Opening {
                sync: SyncTracker::new(spec.shared.sources.iter().cloned()),
                initial: InitialTracker::new(),
            })),
            intake: None,
            reattach_after_intake: false,
            attaching: false,
            in_flight: 0,
            handled: 0,
            taker: None,
            drains: Vec::new(),
            polls: None,
        }
    }
}

impl<S: Body> Listener<S> {
    /// Asks for a place at the Processor, which answers with a Start.
    fn attach(&mut self, ctx: &mut Context<Self>) {
        self.attaching = true;
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

    /// Everything up to `snapshot` is in the backlog.
    fn has_seen(&mut self, snapshot: Snapshot<S>, ctx: &mut Context<Self>) {
        if let Some(opening) = &mut self.opening {
            opening.sync.observe(&snapshot);
            if opening.sync.is_synced() {
                opening.initial.close(self.backlog.stats().delivered, self.backlog.owed_at_most());
            }
        }
        self.seen = Some(snapshot);
        if let Some(dropped) = self.backlog.overflow() {
            self.show();
            return self.end(EndReason::Overflow { dropped }, ctx);
        }
        self.pump(ctx);
    }

    /// Records one chunk a turn.
    fn take_in(&mut self, ctx: &mut Context<Self>) {
        let Some(intake) = &mut self.intake else { return };
        if let Some(chunk) = intake.owed.changes.get(intake.next_chunk) {
            self.backlog.owe(chunk);
            self.spec.shared.progress.note();
            intake.next_chunk += 1;
            self.pump(ctx);
            ctx.spawn(tokio::task::yield_now().into_actor(self).map(|(), this, ctx| this.take_in(ctx)));
            return;
        }
        let Some(intake) = self.intake.take() else { return };
        let Intake { owed, slot, .. } = *intake;
        self.taken_in(owed, ctx);
        slot.answer(());
        if std::mem::take(&mut self.reattach_after_intake) {
            self.attach(ctx);
        }
    }

    fn taken_in(&mut self, owed: Owed<S>, ctx: &mut Context<Self>) {
        self.backlog.recorded(&owed.snapshot);
        // Who is being shut down is told what it is owed, and not everything once more: that might never end.
        if owed.resync && self.drains.is_empty() {
            self.backlog.resync(owed.snapshot.clone());
        }
        self.has_seen(owed.snapshot, ctx);
    }

    /// Delivers the next window, if something is owed and none is under way; shows how far it is.
    fn pump(&mut self, ctx: &mut Context<Self>) {
        if self.is_wanted() {
            let window = self.next_window();
            if !window.is_empty() {
                self.deliver(window, ctx);
            } else if !self.backlog.is_empty() {
                // The cursor passed keys that are owed nothing; it goes on after others have had their turn.
                ctx.spawn(tokio::task::yield_now().into_actor(self).map(|(), this, ctx| this.pump(ctx)));
            }
        }
        self.check_synced();
        self.show();
        self.answer_drains(ctx);
    }

    /// Whether the subscriber takes a window now.
    fn is_wanted(&self) -> bool {
        match &self.spec.delivery {
            Delivery::Pull(_) => self.taker.is_some(),
            _ => self.in_flight == 0,
        }
    }

    /// As many keys are visited for a window of one as for a whole one.
    fn next_window(&mut self) -> Vec<Change<S>> {
        for _ in 0..WINDOW / self.spec.window {
            let window = self.backlog.take(self.spec.window);
            if !window.is_empty() || self.backlog.is_empty() {
                return window;
            }
        }
        Vec::new()
    }

    /// The subscriber has handled everything that was taken.
    fn handled(&mut self, ctx: &mut Context<Self>) {
        self.in_flight = 0;
        self.handled = self.backlog.stats().delivered;
        self.backlog.acknowledge();
        self.pump(ctx);
    }

    fn check_synced(&mut self) {
        let Some(opening) = &mut self.opening else { return };
        // What was dropped for good is not owed any more, and not handled either.
        let nothing_owed =
            self.in_flight == 0 && self.backlog.is_empty() && self.backlog.overflow().is_none();
        if self.backlog.initial_delivered() && opening.initial.is_delivered(self.handled, nothing_owed) {
            self.opening = None;
        }
    }

    fn end(&self, reason: EndReason, ctx: &mut Context<Self>) {
        self.spec.seat.end_with(reason);
        ctx.stop();
    }

    /// Shows the figures in the subscription's status, all in one.
    fn show(&self) {
        let stats = self.backlog.stats();
        self.spec.seat.update(|status| {
            status.synced = self.opening.is_none();
            status.depth = stats.depth;
            status.oldest_since = stats.oldest_since;
            status.in_flight = self.in_flight;
            status.coalesced = stats.coalesced;
            status.dropped = stats.dropped;
            status.delivered = self.handled;
        });
    }
}

impl<S: Body> Handler<Start<S>> for Listener<S> {
    type Result = ();

    fn handle(&mut self, start: Start<S>, ctx: &mut Context<Self>) {
        if self.is_stale(start.epoch) {
            return;
        }
        self.attaching = false;
        match self.seen.take() {
            None => self.backlog = Ledger::starting_from(self.spec.seat.policy(), start.snapshot.clone()),
            Some(seen) => self.backlog.reattach(seen, start.snapshot.clone()),
        }
        self.has_seen(start.snapshot, ctx);
    }
}

impl<S: Body> Handler<Reattach> for Listener<S> {
    type Result = ();

    fn handle(&mut self, Reattach(epoch): Reattach, ctx: &mut Context<Self>) {
        if self.is_stale(epoch) {
            return;
        }
        if self.intake.is_some() {
            self.reattach_after_intake = true;
        } else {
            self.attach(ctx);
        }
    }
}

impl<S: Body> Handler<Owed<S>> for Listener<S> {
    type Result = Answer<()>;

    fn handle(&mut self, owed: Owed<S>, ctx: &mut Context<Self>) -> Answer<()> {
        self.spec.shared.strike(Site::ListenerOwed);
        if self.is_stale(owed.epoch) {
            return Reply::Now(());
        }
        self.backlog.set_now(self.spec.shared.runtime.now());
        if owed.changes.len() > 1 {
            let (slot, reply) = ReplySlot::new();
            debug_assert!(self.intake.is_none(), "the Processor waits for the last changes to be taken in");
            self.intake = Some(Box::new(Intake { owed, next_chunk: 0, slot }));
            self.take_in(ctx);
            return reply;
        }
        owed.changes.iter().for_each(|chunk| self.backlog.owe(chunk));
        self.taken_in(owed, ctx);
        Reply::Now(())
    }
}

impl<S: Body> Handler<Take<S>> for Listener<S> {
    type Result = ();

    fn handle(&mut self, Take(taker): Take<S>, ctx: &mut Context<Self>) {
        // Asking again says that what was taken before has been handled.
        self.taker = Some(taker);
        self.handled(ctx);
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

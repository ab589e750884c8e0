//! How a window of notifications leaves a Listener, and how the Listener learns that it was handled.
//!
//! 1. A stream receives a window as the answer to its Take; its next Take proves the window handled. A feed handles
//!    it at once. A function of `subscriber.rs` serves all others.
//! 2. An actor receives at most 63 `do_send` and one awaited `send`. Messages are handled in order, so the reply
//!    proves the whole window handled, if the handler returns when it has done its work. A full mailbox would reorder
//!    pipelined `send`s.
//! 3. At most one window leaves in a turn, even if it is handled at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, Context, Handler, Message, Recipient, WrapFuture};
use informer_core::delta::Change;
use informer_core::listener::{FeedProgress, Notifications};
use informer_core::meta::ObjectKey;
use informer_core::snapshot::Snapshot;

use super::Listener;
use crate::pipeline::messages::{Answer, Body, Drain, Notify, Taken};
use crate::pipeline::subscription_state::EndReason;
use crate::runtime::locked::Guarded;
use crate::runtime::mailbox::{Reply, ReplySlot, in_a_later_turn};

pub(crate) enum Delivery<S: Body> {
    Pull(Polls),
    /// It takes only keys: no window waits.
    Feed(Arc<Feed<S>>),
    /// The function has the Listener await the handling, or ends the Listener.
    Send(SendFn<S>),
}

type SendFn<S> = Box<dyn Fn(&Listener<S>, Notifications<S>, &mut Context<Listener<S>>) + Send + Sync>;

/// Shows the Listener that a stream is read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Polls(Arc<AtomicU64>);

impl Polls {
    pub(crate) fn count_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl<S: Body> Delivery<S> {
    pub(super) fn polls(&self) -> Option<u64> {
        match self {
            Self::Pull(polls) => Some(polls.count()),
            _ => None,
        }
    }
}

impl<S: Body> Listener<S> {
    pub(super) fn deliver(&mut self, window: Notifications<S>, ctx: &mut Context<Self>) {
        self.spec.shared.mark_delivered(self.spec.state.name(), &window);
        match (&Arc::clone(&self.spec).delivery, window) {
            (Delivery::Send(send), window) => send(self, window, ctx),
            (Delivery::Feed(feed), Notifications::Changes(changes)) => {
                changes.iter().for_each(|change| feed.take(change));
                ctx.spawn(tokio::task::yield_now().into_actor(self).map(|(), this, ctx| this.handled(ctx)));
            }
            (Delivery::Feed(_), _) => debug_assert!(false, "a feed takes events, and asks for no mark"),
            (Delivery::Pull(_), Notifications::InitDone) => self.answer(Taken::InitDone),
            (Delivery::Pull(_), window) => self.answer(Taken::Events(events(window))),
        }
    }

    fn answer(&mut self, taken: Taken<S>) {
        if let Some(taker) = self.taker.take() {
            // The stream was dropped, which unsubscribes it.
            let _taken = taker.send(taken);
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "bounded: at most 63 before the awaited fence of the window"
    )]
    pub(crate) fn send<M>(&self, recipient: &Recipient<M>, mut window: Vec<M>, ctx: &mut Context<Self>)
    where
        M: Message<Result = ()> + Send + 'static,
    {
        let Some(fence) = window.pop() else { return };
        window.into_iter().for_each(|message| recipient.do_send(message));
        self.await_handled(recipient.send(fence), |_| EndReason::SubscriberGone, ctx);
    }

    /// If `handled` fails, the subscription ends with `reason`.
    pub(crate) fn await_handled<E: 'static>(
        &self,
        handled: impl Future<Output = Result<(), E>> + 'static,
        reason: impl FnOnce(E) -> EndReason + 'static,
        ctx: &mut Context<Self>,
    ) {
        ctx.spawn(in_a_later_turn(handled).into_actor(self).map(|handled, this, ctx| match handled {
            Ok(()) => this.handled(ctx),
            Err(error) => this.end(reason(error), ctx),
        }));
    }
}

pub(crate) fn events<S: Body>(window: Notifications<S>) -> Vec<Notify<S>> {
    match window {
        Notifications::Changes(changes) => changes.into_iter().map(Notify::from).collect(),
        Notifications::Keys(_) | Notifications::InitDone => {
            debug_assert!(
                false,
                "only a subscriber of keys has that policy, and only a stream asks for the mark"
            );
            Vec::new()
        }
    }
}

// How a shutdown waits for one subscription. The machine decides.
// 1. A drain is answered when every event is handled, and the figures show that.
// 2. It is answered early when waiting is useless: the caller waits inside this subscription's own callback, or the
//    stream is not polled.
// 3. A stream counts as polled if it waits for an event, or was polled within [`POLLED_WITHIN`] since the drain
//    began.

const POLLED_WITHIN: Duration = Duration::from_secs(1);

impl<S: Body> Listener<S> {
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

type TakeFn<S> = Box<dyn Fn(&Change<S>) + Send + Sync>;

/// A function that takes the keys of changes, and how far it has come. It outlives its Listener: the next one takes what has
/// become of objects taken after the last settled state, and delivers from that state on. Objects are freed outside its lock.
pub struct Feed<S: Body> {
    take: TakeFn<S>,
    progress: Guarded<FeedProgress<S>>,
}

impl<S: Body> Feed<S> {
    /// The function does not block, and runs code of others only guarded.
    pub fn new(take: impl Fn(&Change<S>) + Send + Sync + 'static) -> Self {
        Self { take: Box::new(take), progress: Guarded::default() }
    }

    pub(super) fn take(&self, change: &Change<S>) {
        let freed = self.progress.with(|progress| progress.take(change));
        drop(freed);
        (self.take)(change);
    }

    /// `None` before the first list.
    pub(super) fn settled(&self) -> Option<Snapshot<S>> {
        self.progress.with(|progress| progress.settled().cloned())
    }

    /// Returns what was known before, to be freed.
    pub(super) fn settle(&self, state: &Snapshot<S>) -> Option<FeedProgress<S>> {
        self.progress.with(|progress| progress.settle(state))
    }

    /// No Listener goes on from here. Returns what was known, to be freed.
    pub fn forget(&self) -> FeedProgress<S> {
        self.progress.with(std::mem::take)
    }

    /// Takes what has become of unsettled objects behind this key. Returns the last key if there may be more.
    pub(super) fn begin(&self, now: &Snapshot<S>, behind: Option<&ObjectKey>) -> Option<ObjectKey> {
        let (changes, last) = self.progress.with(|progress| progress.changes_to(now, behind));
        changes.iter().for_each(|change| self.take(change));
        last
    }
}

informer_core::debug_as!([S: Body] Feed<S>, self);

//! How a window of notifications leaves a Listener, and how it learns that they were handled.
//!
//! Answers "who takes it, and what proves that it was handled?". Invariants:
//! 1. To an actor a window is at most 63 `do_send` and one awaited `send`. Messages are handled in order, so the reply
//!    proves that the whole window was handled, if the handler returns when it has done its work. (Pipelined `send`s
//!    into a full mailbox reorder; this does not.) A window of one is one awaited `send`.
//! 2. An actor that is held weakly is held only while a window is sent, never while it is handled.
//! 3. To a closure a window is one job; to a stream it is the answer to its ask, and its next ask proves it handled.
//! 4. At most one window leaves in a turn, also if it is handled at once.
//!
//! Read next: `callback_host.rs` and `blocking_host.rs`; `event_stream.rs`, the third receiver of ours.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::dev::RecipientRequest;
use actix::{ActorFutureExt, AsyncContext, Context, Handler, Message, Recipient, WeakRecipient, WrapFuture};
use informer_core::delta::Change;
use informer_core::listener::Notifications;

use super::{Feed, Listener, WINDOW};
use crate::pipeline::blocking_host::BlockingHost;
use crate::pipeline::callback_host::CallbackHost;
use crate::pipeline::messages::{Answer, Body, Drain, Notify, Taken, Touched};
use crate::pipeline::notifications::Batch;
use crate::pipeline::subscription_state::{CallCheck, EndReason, SubscriptionState};
use crate::runtime::mailbox::{Closed, Reply, ReplySlot, in_a_later_turn};
use crate::runtime::{OnArbiter, PooledValue, Runtime, sleep_until};

/// The most notifications in a window that stands in no mailbox.
const MOST_IN_WINDOW: usize = 1_024;
/// A blocking call is looked at once in such a time at most, however short its limit is.
const LEAST_LOOK: Duration = Duration::from_millis(10);

/// How notifications leave.
pub(crate) enum Delivery<S: Body> {
    /// Sent to an actor, which lives as long as the subscription.
    Push(Recipient<Notify<S>>),
    /// Sent to an actor, as long as others keep it.
    PushWeak(WeakRecipient<Notify<S>>),
    /// Keys alone, sent to an actor, which lives as long as the subscription.
    Keys(Recipient<Touched>),
    /// A window at a time, sent to an actor, which lives as long as the subscription.
    Batches(Recipient<Batch<S>>),
    /// Handed to a closure that awaits, a window at a time.
    Async(OnArbiter<CallbackHost<S>>),
    /// Handed to a closure that may block, a window at a time.
    Blocking(PooledValue<BlockingHost<S>>),
    /// Fetched by a stream.
    Pull(Polls),
    /// Handed to a function of ours on the informer's own arbiter, which takes only keys of it: no window waits.
    Feed(Arc<Feed<S>>),
}

/// How often a stream was polled: by this its Listener knows that the stream is read.
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
    /// The most notifications in a window: those for an actor stand in its mailbox.
    pub(crate) const fn most_in_window(&self) -> usize {
        match self {
            Self::Push(_) | Self::PushWeak(_) | Self::Keys(_) => WINDOW,
            Self::Batches(_) | Self::Async(_) | Self::Blocking(_) | Self::Pull(_) | Self::Feed(_) => {
                MOST_IN_WINDOW
            }
        }
    }

    /// How often the stream was polled: `None` if it is none.
    pub(super) fn polls(&self) -> Option<u64> {
        match self {
            Self::Pull(polls) => Some(polls.count()),
            _ => None,
        }
    }
}

impl<S: Body> Listener<S> {
    pub(super) fn deliver(&mut self, window: Notifications<S>, ctx: &mut Context<Self>) {
        match (window, &Arc::clone(&self.spec).delivery) {
            (Notifications::Keys(keys), Delivery::Keys(recipient)) => {
                let window = keys.into_iter().map(|(key, cause)| Touched { key, cause }).collect();
                self.await_fence(send_window(recipient, window), ctx);
            }
            (Notifications::InitDone, _) => self.answer(Taken::InitDone),
            (Notifications::Keys(_), _) => debug_assert!(false, "only a subscriber of keys has that policy"),
            (Notifications::Changes(changes), _) => self.deliver_changes(changes, ctx),
        }
    }

    fn deliver_changes(&mut self, window: Vec<Change<S>>, ctx: &mut Context<Self>) {
        let spec = Arc::clone(&self.spec);
        if let Delivery::Feed(feed) = &spec.delivery {
            window.iter().for_each(|change| feed.take(change));
            ctx.spawn(tokio::task::yield_now().into_actor(self).map(|(), this, ctx| this.handled(ctx)));
            return;
        }
        let window: Vec<Notify<S>> = window.into_iter().map(Notify::from).collect();
        match &spec.delivery {
            Delivery::Pull(_) => self.answer(Taken::Events(window)),
            Delivery::Batches(recipient) => {
                self.await_fence(send_window(recipient, vec![Batch(window)]), ctx);
            }
            Delivery::Push(recipient) => self.await_fence(send_window(recipient, window), ctx),
            Delivery::PushWeak(recipient) => match recipient.upgrade() {
                Some(recipient) => self.await_fence(send_window(&recipient, window), ctx),
                None => self.end(EndReason::SubscriberGone, ctx),
            },
            Delivery::Keys(_) | Delivery::Feed(_) => debug_assert!(false, "they are not sent events"),
            Delivery::Async(closure) => {
                let here = spec.shared.runtime.callback_arbiter();
                let called = closure.run(move |host| host.handle(window, here));
                ctx.spawn(in_a_later_turn(called).into_actor(self).map(|called, this, ctx| match called {
                    Ok(()) => this.handled(ctx),
                    Err(Closed) => this.end(EndReason::SubscriberGone, ctx),
                }));
            }
            Delivery::Blocking(closure) => {
                let called = closure.run(move |host| host.handle(window));
                let called = watched(called, spec.state.clone(), spec.shared.runtime.clone());
                ctx.spawn(in_a_later_turn(called).into_actor(self).map(|called, this, ctx| match called {
                    Ok(()) => this.handled(ctx),
                    // The runtime has ended, and the informer with it.
                    Err(Closed) => this.end(EndReason::InformerStopped, ctx),
                }));
            }
        }
    }

    fn answer(&mut self, taken: Taken<S>) {
        if let Some(taker) = self.taker.take() {
            // A stream that was dropped meanwhile is unsubscribed with it.
            let _taken = taker.send(taken);
        }
    }

    fn await_fence<M>(&mut self, fence: Option<RecipientRequest<M>>, ctx: &mut Context<Self>)
    where
        M: Message<Result = ()> + Send + 'static,
    {
        let Some(fence) = fence else { return };
        ctx.spawn(in_a_later_turn(fence).into_actor(self).map(|handled, this, ctx| match handled {
            Ok(()) => this.handled(ctx),
            Err(_) => this.end(EndReason::SubscriberGone, ctx),
        }));
    }
}

/// Waits for a blocking closure, and reports each call that takes longer than the subscription's limit.
async fn watched<T>(called: impl Future<Output = T>, state: SubscriptionState, runtime: Runtime) -> T {
    let mut called = pin!(called);
    let Some(limit) = state.times().callback_limit else { return called.await };
    loop {
        let until = match state.check_call(limit, runtime.now()) {
            CallCheck::DueAt(until) => until,
            CallCheck::Overdue(key) => {
                let (informer, subscription) = (&state.label().owner, state.name());
                tracing::warn!(target: "actix_informer::informer", %informer, %subscription, %key, "a blocking callback of {subscription} takes longer than its limit of {limit:?} on {key}: it cannot be cancelled, and later events wait for it");
                continue;
            }
        };
        tokio::select! {
            biased;
            done = &mut called => return done,
            () = sleep_until(&runtime.0.clock, until.max(runtime.now() + LEAST_LOOK)) => {}
        }
    }
}

/// Sends all; the last one is to be awaited.
#[expect(clippy::disallowed_methods, reason = "bounded: at most 63 before the awaited fence of the window")]
fn send_window<M>(recipient: &Recipient<M>, mut window: Vec<M>) -> Option<RecipientRequest<M>>
where
    M: Message<Result = ()> + Send + 'static,
{
    let fence = window.pop()?;
    window.into_iter().for_each(|message| recipient.do_send(message));
    Some(recipient.send(fence))
}

// When a Listener answers a Drain: how a shutdown waits for one subscription.
//
// The machine decides. Invariants:
// 1. A drain is answered when every event is delivered and handled, after the figures show that.
// 2. It is answered early when waiting is useless: the asker waits inside this subscription's own callback, or the
// stream is not polled. The events that are left stay in the figures, and so in the shutdown's report.
// 3. A stream counts as polled if it waits for an event, or has been polled within [`POLLED_WITHIN`] since the drain
// began. A stream that was never polled is not waited for.

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

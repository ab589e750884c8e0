//! Subscriptions: an actor, a closure or a stream that receives what happens to objects.
//!
//! Answers "who wants to know, and are they up to date?". Each subscription has a Listener actor of its own with its
//! own backlog; dropping the handle detaches it. Invariants:
//! 1. A subscriber receives the snapshot it starts from as `Added{InitialList}`, then everything after it: nothing is
//!    lost and nothing comes twice. One that lags receives the newest state of each object (coalesced per key), and the
//!    last object of a key that was created and deleted meanwhile; or, if it asked for every event, all up to a bound.
//! 2. `synced` is Ok when the subscriber has handled its last initial event, panics included. Latched.
//! 3. After the handle is dropped no further callback starts.
//! 4. With a filter of objects "everything" is the objects that pass; with one of changes, without the updates that it
//!    drops.
//!
//! Read next: `subscribe_options.rs`, what a subscriber chooses; `actor_subscriber.rs`, `callback.rs` and `event_stream.rs`, the four kinds of subscribers;
//! `listener.rs`, the actor behind each.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use actix::dev::channel::AddressReceiver;
use actix::{Addr, Recipient};
pub use informer_core::listener::{ChangeFilter, Policy, WhenFull};
use informer_core::processor::ListenerId;
use informer_core::restart::Verdict;

pub use crate::event_stream::{Events, Marked, MarkedEvents};
use crate::informer::{Informer, WaitError};
use crate::pipeline::board::SyncState;
use crate::pipeline::callback_host::{count_filter_panic, is_inside};
use crate::pipeline::listener::{Delivery, Listener, ListenerSpec, WINDOW};
use crate::pipeline::messages::{Body, Detach, Drain};
pub use crate::pipeline::messages::{Notify, Touched};
pub use crate::pipeline::notifications::Batch;
use crate::pipeline::owner::LISTENER;
pub use crate::pipeline::subscription_state::{
    CALL_GRACE, EndReason, ShutdownError, SubscriptionStatus, Unfinished,
};
use crate::pipeline::subscription_state::{SubscriptionState, Times};
use crate::running::{LEAST_PATIENCE, Running};
use crate::runtime::mailbox::ask;
use crate::runtime::{Label, within};
pub use crate::subscribe_options::SubscribeOptions;
use crate::supervision::owner::Mailbox;
use crate::supervision::parent::{ChildContext, StopOn};
use crate::wait_error::{Looked, wait};

/// Why there is no subscription.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The informer has stopped.
    #[error("informer {informer:?} has stopped")]
    Stopped {
        /// Its name.
        informer: Arc<str>,
    },
    /// Every event was asked for, and keys alone.
    #[error("a subscriber of the keys of informer {informer:?} cannot receive every event: keys coalesce")]
    EveryKey {
        /// The informer's name.
        informer: Arc<str>,
    },
}

/// A live subscription; dropping it unsubscribes. Then no further callback begins; one that is running may go on, an
/// async one for [`CALL_GRACE`]. [`Self::shutdown`] waits for it.
#[must_use = "a subscription that is dropped unsubscribes, and `let _ = ..` drops it at once: keep it, as in `let _subscription = ..`"]
pub struct Subscription<S: Body> {
    id: ListenerId,
    state: SubscriptionState,
    listener: Arc<Addr<Listener<S>>>,
    informer: Informer<S>,
}

impl<S: Body> Informer<S> {
    /// Starts a Listener that delivers keys and no objects.
    pub(crate) fn start_key_listener(
        &self,
        options: SubscribeOptions<S>,
        kind: &str,
        recipient: Recipient<Touched>,
    ) -> Result<Subscription<S>, SubscribeError> {
        if matches!(options.policy, Some(Policy::Every { .. })) {
            return Err(SubscribeError::EveryKey { informer: Arc::clone(&self.0.pipeline.parent.name) });
        }
        let options = SubscribeOptions { policy: Some(Policy::Keys), ..options };
        self.start_listener(options, kind, |_| Delivery::Keys(recipient))
    }

    pub(crate) fn start_listener(
        &self,
        options: SubscribeOptions<S>,
        kind: &str,
        deliver: impl FnOnce(&SubscriptionState) -> Delivery<S>,
    ) -> Result<Subscription<S>, SubscribeError> {
        let running = &self.0;
        if running.pipeline.parent.stop.is_cancelled() {
            return Err(SubscribeError::Stopped { informer: Arc::clone(&running.pipeline.parent.name) });
        }
        let policy = options.policy_or(running.pipeline.shared.policy);
        let id = ListenerId::new(running.next_number());
        let name = options.name.unwrap_or_else(|| format!("{kind}-{}", id.number()).into());
        let owner = Arc::clone(&running.pipeline.parent.name);
        let label = Arc::new(Label { owner, kind: "listener ", name });
        let SubscribeOptions { resync, callback_limit, .. } = options;
        let resync = resync.or(running.pipeline.shared.resync);
        let times = Times { resync, callback_limit };
        let state = SubscriptionState::new(label, policy, times, self.runtime().now());
        let filter = (!options.filter.is_empty()).then(|| {
            let state = state.clone();
            Arc::new(options.filter.on_panic(move |key, panic| count_filter_panic(&state, key, panic)))
        });
        let Mailbox(listener, inbox) = Mailbox::<Listener<S>>::with_room(WINDOW);
        let listener = Arc::new(listener);
        let delivery = deliver(&state);
        let spec = ListenerSpec {
            shared: running.pipeline.shared.clone(),
            id,
            window: options.window.unwrap_or(WINDOW).clamp(1, delivery.most_in_window()),
            delivery,
            filter,
            state: state.clone(),
            processor: Arc::clone(&running.pipeline.attach),
            address: Arc::clone(&listener),
        };
        running.start_listener(inbox, Arc::new(spec));
        running.ending.subscriptions.add(state.clone());
        if running.pipeline.parent.stop.is_cancelled() {
            // It has stopped meanwhile, and may have ended all subscriptions already.
            state.end_with(EndReason::InformerStopped);
        }
        Ok(Subscription { id, state, listener, informer: self.clone() })
    }
}

impl<S: Body> Running<S> {
    /// Puts a Listener under guard; when it ends, so does its subscription.
    fn start_listener(&self, inbox: AddressReceiver<Listener<S>>, spec: Arc<ListenerSpec<S>>) {
        let (pipeline, parent) = (&self.pipeline, Arc::clone(&self.pipeline.parent));
        let context = ChildContext {
            parent: Arc::clone(&parent),
            label: Arc::clone(spec.state.label()),
            role: Some(LISTENER),
            stop: StopOn::Signal(spec.state.as_stop()),
        };
        pipeline.roster.join(spec.id, Arc::clone(&spec.address));
        let (roster, processor) = (pipeline.roster.clone(), Arc::clone(&pipeline.processor));
        let presence = spec.state.enter();
        context.start(inbox, Arc::clone(&spec), move |verdict| {
            let arbiter_runs = verdict.is_some();
            let reason = match verdict {
                Some(Verdict::GiveUp { reason }) => EndReason::ListenerFailed(reason),
                Some(_) if !parent.stop.is_cancelled() => EndReason::Unsubscribed,
                _ => EndReason::InformerStopped,
            };
            presence.end_with(reason);
            roster.leave(spec.id);
            let id = spec.id;
            if arbiter_runs {
                actix_rt::spawn(async move {
                    // Closed means that the Processor has gone, and its roster with it.
                    let _closed = ask(&processor, Detach(id)).await;
                });
            }
            drop((spec, presence));
        });
    }
}

impl<S: Body> Subscription<S> {
    pub(crate) fn listener(&self) -> &Addr<Listener<S>> {
        &self.listener
    }

    /// How it is doing.
    pub fn status(&self) -> SubscriptionStatus {
        self.state.read()
    }

    /// Waits until the subscriber has handled its last initial event: the first list of every source that its informer
    /// has, or what a newer state made of it. Until then a source that is added counts, too, and one that is removed
    /// does not; so it is never synced before its informer is. Latched: a source that is added later changes nothing,
    /// [`Informer::source_synced`] waits for that.
    ///
    /// # Errors
    /// [`WaitError::Ended`] when the subscription ends before, or [`WaitError::Stopped`] if that is because its
    /// informer has; [`WaitError::SourceGivenUp`] when a source that has never listed is given up.
    pub async fn synced(&self) -> Result<(), WaitError> {
        self.synced_within(Duration::MAX).await
    }

    /// As [`Self::synced`], for at most `limit`.
    ///
    /// # Errors
    /// As there; at the limit [`WaitError::Deadline`] with what keeps it from being synced.
    pub async fn synced_within(&self, limit: Duration) -> Result<(), WaitError> {
        let (informer, state) = (&self.informer, &self.state);
        let board = &informer.0.pipeline.shared.board;
        let look = || {
            let (changed, settled) = (state.changed(), board.settled().count());
            if let Some(outcome) = state.sync_outcome() {
                return Looked::Decided(outcome.map_err(|reason| informer.ended(state.name(), reason)));
            }
            if let SyncState::Lost(source, reason) = board.sync() {
                return Looked::Decided(Err(informer.source_given_up(&source, reason)));
            }
            Looked::NotYet(async move {
                tokio::select! {
                    () = changed => {}
                    () = board.settled().since(settled) => {}
                }
            })
        };
        let synced = wait(informer.0.ending.stop.cancelled(), limit, look).await;
        synced.unwrap_or_else(|undecided| Err(informer.undecided(undecided, limit, Some(state.name()))))
    }

    /// Why it has ended, if it has.
    pub fn ended(&self) -> Option<EndReason> {
        self.status().ended
    }

    /// Waits for its end.
    pub async fn end(&self) -> EndReason {
        self.state.end().await
    }

    /// The same, without the subscription.
    #[doc(hidden)]
    pub fn end_of(&self) -> impl Future<Output = EndReason> + use<S> {
        let state = self.state.clone();
        async move { state.end().await }
    }

    /// Delivers what waits until `limit`, then unsubscribes; returns after the last callback has returned and its
    /// closure is dropped.
    ///
    /// A subscribed actor must be able to handle messages meanwhile. Awaited with `ctx.wait`, or in an
    /// `AtomicResponse`, in a handler of that very actor, it stops the actor's mailbox: if events wait or are in
    /// flight then, it takes its whole limit and ends with [`ShutdownError::Unfinished`]. `ctx.spawn` it there, or
    /// drop the subscription. (For a closure this is found out; whose task awaits a future of an actor is not known.)
    ///
    /// # Errors
    /// At the limit, with the number of events dropped; an async call that still runs is cancelled then, a blocking
    /// one cannot be. At once, when awaited inside this subscription's own closure (async or blocking), which it would
    /// wait for.
    pub async fn shutdown(self, limit: Duration) -> Result<(), ShutdownError> {
        if is_inside(&self.state) {
            return Err(ShutdownError::OwnCallback);
        }
        let clock = &self.informer.runtime().0.clock;
        let deadline = clock.now().saturating_add(limit);
        let drained = within(limit, ask(&self.listener, Drain { inside: None })).await.is_some();
        let mut unfinished = self.state.unfinished();
        self.state.end_with(EndReason::Unsubscribed);
        if !drained {
            self.state.cancel_calls();
        }
        let mut left = pin!(self.state.left());
        let rest = deadline.saturating_sub(clock.now()).max(LEAST_PATIENCE);
        let returned = within(rest, &mut left).await.is_some();
        if drained && returned {
            return Ok(());
        }
        if drained {
            // Its Listener had ended before, in the middle of a call: that had the time until the limit, too.
            self.state.cancel_calls();
            unfinished.still_running = within(LEAST_PATIENCE, left).await.is_none();
        } else {
            unfinished.still_running = !returned;
        }
        Err(ShutdownError::Unfinished(unfinished))
    }
}

impl<S: Body> Drop for Subscription<S> {
    fn drop(&mut self) {
        self.state.end_with(EndReason::Unsubscribed);
    }
}

informer_core::debug_as!([S: Body] Subscription<S>, self, id = self.id, status = self.status());

//! Subscriptions: an actor, a closure or a stream that receives what happens to objects. Each has its own Listener
//! actor and backlog.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use actix::dev::channel::AddressReceiver;
pub use informer_core::listener::{ChangeFilter, Policy, WhenFull};
use informer_core::processor::ListenerId;
use informer_core::restart::RestartVerdict;

pub use crate::event_stream::{Events, Marked, MarkedEvents};
use crate::informer::{Informer, WaitError};
use crate::pipeline::board::SyncState;
use crate::pipeline::callback_host::{count_filter_panic, is_inside};
use crate::pipeline::listener::{Listener, ListenerSpec, WINDOW};
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
pub use crate::subscriber::Subscriber;
use crate::supervision::owner::Mailbox;
use crate::supervision::parent::{ChildContext, StopOn};
use crate::wait_error::{Looked, wait};

/// The error of subscribing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The informer has stopped.
    #[error("informer {informer:?} has stopped")]
    Stopped {
        /// Its name.
        informer: Arc<str>,
    },
    /// A subscriber of keys was given options that choose every event.
    #[error("a subscriber of the keys of informer {informer:?} cannot receive every event: keys coalesce")]
    EveryKey {
        /// The informer's name.
        informer: Arc<str>,
    },
}

/// A live subscription; dropping it unsubscribes. Then no further callback begins. A running one may
/// continue, an async one for [`CALL_GRACE`]. [`Self::shutdown`] waits for it.
#[must_use = "a subscription that is dropped unsubscribes, and `let _ = ..` drops it at once: keep it, as in `let _subscription = ..`"]
pub struct Subscription<S: Body> {
    state: SubscriptionState,
    listener: Arc<Addr<Listener<S>>>,
    informer: Informer<S>,
}

impl<S: Body> Informer<S> {
    /// Subscribes an actor by its address, or any other [`Subscriber`]: a closure, or an actor that wants
    /// keys or batches. Returns at once.
    ///
    /// An object that is created and deleted at once is delivered too: both events to a subscriber that keeps
    /// up, and the last such pair of each key to one that lags. An object that is created and deleted while
    /// the watch is interrupted is not delivered: the list that closes the gap shows only what exists. So a
    /// subscriber that creates objects and relies on their deletions must also check from time to time
    /// whether they exist, for example at each resync.
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// use actix::{Actor, Context, Handler};
    /// use actix_informer::subscription::Notify;
    ///
    /// struct Print;
    ///
    /// impl Actor for Print {
    ///     type Context = Context<Self>;
    /// }
    ///
    /// impl Handler<Notify<String>> for Print {
    ///     type Result = ();
    ///
    ///     fn handle(&mut self, notify: Notify<String>, _ctx: &mut Context<Self>) {
    ///         println!("{} ({})", notify.key(), notify.cause());
    ///     }
    /// }
    /// # #[cfg(feature = "testing")]
    /// # actix_informer::runtime::Runtime::simulated(1).run(|runtime| async move {
    /// # let server = actix_informer::testing::Server::<String>::new();
    /// # server.apply("default/one", "1".to_owned());
    /// # let texts = actix_informer::informer::Informer::builder(&runtime, "texts");
    /// # let texts = texts.source(move || server.clone()).start().expect("the spec is sound");
    ///
    /// let subscription = texts.subscribe(Print.start())?; // nothing else keeps this actor
    /// subscription.synced().await?; // it has handled the first list
    /// drop(subscription); // now the actor ends
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).expect("it is delivered");
    /// ```
    ///
    /// # Errors
    /// When the informer has stopped.
    #[doc(alias("EventHandler", "AddEventHandler", "ResourceEventHandler"))]
    pub fn subscribe(&self, subscriber: impl Into<Subscriber<S>>) -> Result<Subscription<S>, SubscribeError> {
        self.subscribe_with(SubscribeOptions::new(), subscriber)
    }

    /// As [`Self::subscribe`], with a name, a resync period, filters, another policy, a window or a limit of calls.
    ///
    /// # Errors
    /// When the informer has stopped, or the options choose every event for a subscriber of keys, which
    /// coalesce.
    pub fn subscribe_with(
        &self,
        options: SubscribeOptions<S>,
        subscriber: impl Into<Subscriber<S>>,
    ) -> Result<Subscription<S>, SubscribeError> {
        self.start_listener(options, subscriber.into())
    }

    /// Subscribes an async closure without options, as [`Subscriber::each`], which says where it is called.
    /// [`Self::subscribe`] says what is delivered.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn for_each<F, Fut>(&self, closure: F) -> Result<Subscription<S>, SubscribeError>
    where
        F: FnMut(Notify<S>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        self.subscribe(Subscriber::each(closure))
    }

    pub(crate) fn start_listener(
        &self,
        options: SubscribeOptions<S>,
        subscriber: Subscriber<S>,
    ) -> Result<Subscription<S>, SubscribeError> {
        let running = &self.0;
        if running.pipeline.parent.stop.is_cancelled() {
            return Err(SubscribeError::Stopped { informer: Arc::clone(&running.pipeline.parent.name) });
        }
        let policy = match options.policy {
            Some(Policy::Every { .. }) if subscriber.is_of_keys => {
                return Err(SubscribeError::EveryKey { informer: Arc::clone(&running.pipeline.parent.name) });
            }
            _ if subscriber.is_of_keys => Policy::Keys,
            _ => options.policy_or(running.pipeline.shared.policy),
        };
        let id = ListenerId::new(running.next_number());
        let name = options.name.unwrap_or_else(|| format!("{}-{}", subscriber.kind, id.number()).into());
        let owner = Arc::clone(&running.pipeline.parent.name);
        let label =
            Arc::new(Label::listener(owner, name, Arc::clone(&running.pipeline.shared.listener_turns)));
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
        let spec = ListenerSpec {
            shared: running.pipeline.shared.clone(),
            id,
            window: options.window.unwrap_or(WINDOW).clamp(1, subscriber.most_in_window),
            delivery: (subscriber.deliver)(&state, self.runtime()),
            filter,
            state: state.clone(),
            processor: Arc::clone(&running.pipeline.attach),
            address: Arc::clone(&listener),
        };
        running.start_listener(inbox, Arc::new(spec));
        running.ending.subscriptions.add(state.clone());
        if running.pipeline.parent.stop.is_cancelled() {
            // It has stopped in between, and may have ended all subscriptions.
            state.end_with(EndReason::InformerStopped);
        }
        Ok(Subscription { state, listener, informer: self.clone() })
    }
}

impl<S: Body> Running<S> {
    /// With the Listener its subscription ends.
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
                Some(RestartVerdict::GiveUp { reason }) => EndReason::ListenerFailed(reason),
                Some(_) if !parent.stop.is_cancelled() => EndReason::Unsubscribed,
                _ => EndReason::InformerStopped,
            };
            presence.end_with(reason);
            roster.leave(spec.id);
            let id = spec.id;
            if arbiter_runs {
                actix_rt::spawn(async move {
                    // The Processor is gone, and its roster with it.
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

    /// Its state and counters.
    pub fn status(&self) -> SubscriptionStatus {
        self.state.read()
    }

    /// Waits until the subscriber has handled its last initial event: the first list of every source of its
    /// informer, or what a newer state made of it. Until then a new source counts too, and a removed one does
    /// not; so the subscription is never synced before its informer. Latched: a source that is added later
    /// changes nothing; [`Informer::source_synced`] waits for it. An event on which a closure panicked counts
    /// as handled.
    ///
    /// # Errors
    /// [`WaitError::Ended`] when the subscription ends first, or [`WaitError::Stopped`] if the reason is that
    /// its informer stopped; [`WaitError::SourceGivenUp`] when a source that has never listed is given up.
    pub async fn synced(&self) -> Result<(), WaitError> {
        self.synced_within(Duration::MAX).await
    }

    /// As [`Self::synced`], for at most `limit`.
    ///
    /// # Errors
    /// As [`Self::synced`]; at the limit [`WaitError::Deadline`] with the reason why it is not synced.
    pub async fn synced_within(&self, limit: Duration) -> Result<(), WaitError> {
        let (informer, state) = (&self.informer, &self.state);
        let board = &informer.0.pipeline.shared.board;
        let look = || {
            let (changed, settled) = (state.changed().count(), board.settled().count());
            if let Some(outcome) = state.sync_outcome() {
                return Looked::Decided(outcome.map_err(|reason| informer.ended(state.name(), reason)));
            }
            if let SyncState::Lost(source, reason) = board.sync() {
                return Looked::Decided(Err(informer.source_given_up(&source, reason)));
            }
            Looked::NotYet(async move {
                tokio::select! {
                    () = state.changed().since(changed) => {}
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

    /// As [`Self::end`], without borrowing the subscription.
    #[doc(hidden)]
    pub fn end_of(&self) -> impl Future<Output = EndReason> + use<S> {
        let state = self.state.clone();
        async move { state.end().await }
    }

    /// Delivers what waits until `limit`, then unsubscribes. Returns after the last callback has returned and
    /// its closure is dropped.
    ///
    /// A subscribed actor must be able to handle messages during this call. Awaited with `ctx.wait`, or in an
    /// `AtomicResponse`, in a handler of that very actor, it stops the actor's mailbox: if events wait or are
    /// in flight then, it takes its whole limit and ends with [`ShutdownError::Unfinished`]. Use `ctx.spawn`
    /// there, or drop the subscription. (For a closure this is detected; which actor's task awaits a future
    /// is not known.)
    ///
    /// # Errors
    /// At the limit, with the number of events dropped. An async call that still runs is then cancelled; a
    /// blocking one cannot be cancelled. At once, when awaited inside this subscription's own closure (async
    /// or blocking), for which it would wait.
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
            // Its Listener had ended earlier, during a call, which also had the time until the limit.
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

informer_core::debug_as!([S: Body] Subscription<S>, self, status = self.status());

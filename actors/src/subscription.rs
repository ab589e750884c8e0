//! Subscriptions: an actor, an async closure or a stream that is told what happens to objects.
//!
//! Answers "who wants to know, and are they up to date?". Each subscription has a Listener actor of its own with its
//! own backlog; dropping the handle detaches it. Invariants:
//! 1. A subscriber is told the whole snapshot it starts from as `Added{InitialList}`, then everything after it:
//!    nothing lost, nothing twice. One that lags is told the newest state of each object (coalesced per key), or, if it
//!    asked for every event, all of them up to a bound.
//! 2. `synced` is Ok when the subscriber has handled its last initial event, panics included. Latched.
//! 3. After the handle is dropped no further callback starts.
//!
//! Read next: `listener.rs`, the actor; `callback.rs`, where closures run.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use actix::dev::channel::channel;
use actix::{Addr, Recipient};
use futures_util::FutureExt;
use informer_core::listener::Policy;
pub use informer_core::listener::WhenFull;
use informer_core::processor::ListenerId;
use informer_core::restart::{Role, Verdict};
use tokio_util::task::TaskTracker;

use crate::callback::{Callback, CallbackHost, is_inside};
use crate::event_stream::Events;
use crate::guard::Tether;
use crate::informer::{Informer, Running, WaitError};
use crate::listener::{Delivery, Listener, ListenerSpec, WINDOW};
use crate::mailbox::ask;
use crate::messages::{Body, Detach, Drain, Notify};
use crate::runtime::within;
use crate::seat::{EndReason, Seat, SubscriptionStatus};
pub use crate::seat::{ShutdownError, Unfinished};
use crate::wiring::{Raised, raise};

/// What an end is given at least, once nothing more is owed: actors end within one turn.
pub(crate) const LEAST_PATIENCE: Duration = Duration::from_millis(100);

/// How a subscription is made.
#[derive(Debug, Clone, Default)]
#[must_use = "options do nothing until they are given to `subscribe`"]
pub struct SubscribeOptions {
    name: Option<Arc<str>>,
    resync: Option<Duration>,
    policy: Policy,
}

impl SubscribeOptions {
    /// A name of its own making, no resync, and whoever lags is told the newest state of each object.
    pub fn new() -> Self {
        Self::default()
    }

    /// Its name in logs and statistics.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Tells every object again, as `Updated{Resync}`, once in each such period (at least a second).
    pub fn resync_every(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Tells every event, one by one, in order, none coalesced. At most `bytes` of them wait (each is its object's
    /// bytes as they came from the wire, and 64); beyond that the subscription ends, or is told the difference to the
    /// current state. What happens while the pipeline restarts is told as a difference, too.
    pub fn every(mut self, bytes: usize, when_full: WhenFull) -> Self {
        self.policy = Policy::Every { bytes, when_full };
        self
    }
}

/// Why there is no subscription.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The informer has stopped.
    #[error("the informer has stopped")]
    Stopped,
}

/// The seats of an informer's subscriptions, for reports.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roll(Arc<Mutex<Vec<Occupied>>>);

/// A seat, and whether its subscription's handle still lives.
#[derive(Debug)]
struct Occupied {
    seat: Seat,
    alive: Weak<()>,
}

impl Roll {
    fn add(&self, seat: Seat) -> Arc<()> {
        let alive = Arc::new(());
        let mut seats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seats.retain(|occupied| occupied.alive.strong_count() > 0);
        seats.push(Occupied { seat, alive: Arc::downgrade(&alive) });
        alive
    }

    fn live(&self) -> Vec<Seat> {
        let seats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let live = seats.iter().filter(|occupied| occupied.alive.strong_count() > 0);
        live.map(|occupied| occupied.seat.clone()).collect()
    }

    pub(crate) fn end_all(&self, reason: &EndReason) {
        self.live().iter().for_each(|seat| seat.end(reason.clone()));
    }

    pub(crate) fn unfinished(&self) -> Vec<Unfinished> {
        let statuses = self.live().into_iter().map(|seat| seat.read());
        let owing =
            statuses.filter(|status| status.ended.is_none() && (status.depth > 0 || status.in_flight));
        owing.map(|status| Unfinished { name: status.name, dropped: status.depth }).collect()
    }
}

/// A live subscription; dropping it unsubscribes.
#[must_use = "dropping a subscription unsubscribes"]
pub struct Subscription<S: Body> {
    id: ListenerId,
    seat: Seat,
    listener: Addr<Listener<S>>,
    tasks: TaskTracker,
    informer: Informer<S>,
    _on_roll: Arc<()>,
}

impl<S: Body> Informer<S> {
    /// Subscribes an actor: it is sent every [`Notify`], at most 64 unhandled at a time.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn subscribe(
        &self,
        recipient: impl Into<Recipient<Notify<S>>>,
    ) -> Result<Subscription<S>, SubscribeError> {
        self.subscribe_with(SubscribeOptions::new(), recipient)
    }

    /// As [`Self::subscribe`], with a name, a resync period or another policy.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn subscribe_with(
        &self,
        options: SubscribeOptions,
        recipient: impl Into<Recipient<Notify<S>>>,
    ) -> Result<Subscription<S>, SubscribeError> {
        let kind = type_of(&recipient);
        let recipient = recipient.into();
        self.seat_listener(options, kind, move |_, _| Delivery::Push(recipient))
    }

    /// Subscribes an async closure: called for each event, one at a time, on the callbacks' arbiter. It must not
    /// block the thread. A panic skips that event.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn for_each<F, Fut>(&self, closure: F) -> Result<Subscription<S>, SubscribeError>
    where
        F: FnMut(Notify<S>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        self.for_each_with(SubscribeOptions::new(), closure)
    }

    /// As [`Self::for_each`], with a name, a resync period or another policy.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn for_each_with<F, Fut>(
        &self,
        options: SubscribeOptions,
        mut closure: F,
    ) -> Result<Subscription<S>, SubscribeError>
    where
        F: FnMut(Notify<S>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let callbacks = self.runtime().callback_arbiter();
        self.seat_listener(options, "closure", move |seat, tasks| {
            let (sender, inbox) = channel::<CallbackHost<S>>(WINDOW);
            let (seat, token) = (seat.clone(), tasks.token());
            let (name, here) = (format!("{}/{}", self.0.name(), seat.read().name), callbacks.clone());
            callbacks.spawn(move || {
                let callback: Callback<S> = Box::new(move |notify| closure(notify).boxed_local());
                let host =
                    actix::Context::with_receiver(inbox).into_future(CallbackHost::new(callback, seat));
                here.named(name, host).map(move |()| drop(token))
            });
            Delivery::Push(Addr::new(sender).recipient())
        })
    }

    /// Subscribes a stream: what is owed waits, by its policy, until it is polled.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn events(&self) -> Result<Events<S>, SubscribeError> {
        self.events_with(SubscribeOptions::new())
    }

    /// As [`Self::events`], with a name, a resync period or another policy.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn events_with(&self, options: SubscribeOptions) -> Result<Events<S>, SubscribeError> {
        let subscription = self.seat_listener(options, "stream", |_, _| Delivery::Pull)?;
        Ok(Events::new(subscription))
    }

    pub(crate) fn seat_listener(
        &self,
        options: SubscribeOptions,
        kind: &str,
        deliver: impl FnOnce(&Seat, &TaskTracker) -> Delivery<S>,
    ) -> Result<Subscription<S>, SubscribeError> {
        let running = &self.0;
        if running.family.stop.is_cancelled() {
            return Err(SubscribeError::Stopped);
        }
        let id = ListenerId::new(running.next_number());
        let name = options.name.unwrap_or_else(|| format!("{kind}-{}", id.number()).into());
        let seat = Seat::new(Arc::clone(&name), options.resync, running.family.stop.child_token());
        let tasks = TaskTracker::new();
        let (sender, inbox) = channel::<Listener<S>>(WINDOW);
        let listener = Addr::new(sender);
        let spec = ListenerSpec {
            shared: running.family.shared.clone(),
            id,
            delivery: deliver(&seat, &tasks),
            seat: seat.clone(),
            policy: options.policy,
            processor: running.family.processor.clone(),
        };
        running.seat(&listener, &tasks, Raised { inbox, spec: Arc::new(spec) });
        let on_roll = running.roll.add(seat.clone());
        Ok(Subscription { id, seat, listener, tasks, informer: self.clone(), _on_roll: on_roll })
    }
}

/// The short name of the actor behind an address: `actix::address::Addr<audit::Audit>` gives `Audit`.
fn type_of<R>(_recipient: &R) -> &'static str {
    let full = std::any::type_name::<R>();
    let inner = full.split_once('<').map_or(full, |(_, inner)| inner);
    let path = inner.split(['<', '>']).next().unwrap_or(inner);
    path.rsplit("::").next().unwrap_or(path)
}

impl<S: Body> Running<S> {
    /// Puts a Listener under guard; when it ends, so does its subscription.
    fn seat(&self, listener: &Addr<Listener<S>>, tasks: &TaskTracker, child: Raised<Listener<S>>) {
        let (family, seat, id) = (&self.family, child.spec.seat.clone(), child.spec.id);
        let name = seat.read().name;
        let tether = Tether {
            label: Arc::new(format!("{}/listener {name}", self.name())),
            name: format!("listener/{id}/{name}").into(),
            role: Role::Listener,
            stop: seat.stop().clone(),
            group: family.group.clone(),
            supervisor: Some(family.supervisor.clone()),
            running: family.arbiter.running(),
            faults: family.shared.runtime.0.faults.clone(),
        };
        family.shared.roster.join(id, listener.clone());
        let (roster, processor) = (Arc::clone(&family.shared.roster), family.processor.clone());
        let (tokens, informer_stop) = ((tasks.token(), family.tasks.token()), family.stop.clone());
        raise(&family.arbiter, tasks, tether, child, move |verdict| {
            let reason = match verdict {
                Verdict::GiveUp { reason } => EndReason::ListenerFailed(reason),
                _ if informer_stop.is_cancelled() => EndReason::InformerStopped,
                _ => EndReason::Unsubscribed,
            };
            seat.end(reason);
            roster.leave(id);
            actix_rt::spawn(async move {
                // Closed means that the Processor has gone, and its roster with it.
                let _closed = ask(&processor, Detach(id)).await;
            });
            drop(tokens);
        });
    }
}

impl<S: Body> Subscription<S> {
    pub(crate) fn listener(&self) -> &Addr<Listener<S>> {
        &self.listener
    }

    /// How it is doing.
    pub fn status(&self) -> SubscriptionStatus {
        self.seat.read()
    }

    /// Waits until the subscriber has handled its last initial event.
    ///
    /// # Errors
    /// When the subscription ends before.
    pub async fn synced(&self) -> Result<(), WaitError> {
        let mut changes = self.seat.watch();
        let synced = changes
            .wait_for(|status| status.synced || status.ended.is_some())
            .await
            .is_ok_and(|status| status.synced);
        if synced {
            Ok(())
        } else {
            Err(WaitError::Stopped { reason: self.ended().map(|why| why.to_string().into()) })
        }
    }

    /// As [`Self::synced`], for at most `limit`.
    ///
    /// # Errors
    /// At the limit the informer's state and last error.
    pub async fn synced_within(&self, limit: Duration) -> Result<(), WaitError> {
        match within(limit, self.synced()).await {
            Some(result) => result,
            None => Err(self.informer.deadline(limit)),
        }
    }

    /// Why it has ended, if it has.
    pub fn ended(&self) -> Option<EndReason> {
        self.status().ended
    }

    /// Waits for its end.
    pub async fn end(&self) -> EndReason {
        let mut changes = self.seat.watch();
        let ended = changes.wait_for(|status| status.ended.is_some()).await;
        ended.ok().and_then(|status| status.ended.clone()).unwrap_or(EndReason::InformerStopped)
    }

    /// Delivers what is owed until `limit`, then unsubscribes; returns after the last callback has returned and its
    /// closure is dropped.
    ///
    /// # Errors
    /// At the limit, with the number of events dropped; a callback may then still be running. At once, when awaited
    /// inside this subscription's own closure (async or blocking), which it would wait for.
    pub async fn shutdown(self, limit: Duration) -> Result<(), ShutdownError> {
        if is_inside(&self.seat) {
            return Err(ShutdownError::OwnCallback);
        }
        let clock = &self.informer.runtime().0.clock;
        let deadline = clock.now() + limit;
        let drained = within(limit, ask(&self.listener, Drain)).await.is_some();
        let dropped = self.status().depth;
        self.seat.end(EndReason::Unsubscribed);
        self.tasks.close();
        let left = deadline.saturating_sub(clock.now()).max(LEAST_PATIENCE);
        let returned = within(left, self.tasks.wait()).await.is_some();
        if drained && returned {
            Ok(())
        } else {
            Err(ShutdownError::Unfinished(Unfinished { name: self.status().name, dropped }))
        }
    }
}

impl<S: Body> Drop for Subscription<S> {
    fn drop(&mut self) {
        self.seat.end(EndReason::Unsubscribed);
    }
}

impl<S: Body> fmt::Debug for Subscription<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("id", &self.id)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix::dev::channel::channel;
use actix::{Addr, Recipient};
pub use informer_core::listener::{Policy, WhenFull};
use informer_core::processor::ListenerId;
use informer_core::restart::{Role, Verdict};

use crate::callback::is_inside;
use crate::event_stream::Events;
use crate::guard::{Stop, Tether};
use crate::informer::{Informer, Running, WaitError};
use crate::listener::{Delivery, Listener, ListenerSpec, WINDOW};
use crate::mailbox::ask;
use crate::messages::{Body, Detach, Drain, Notify};
use crate::runtime::{Label, within};
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
pub(crate) struct Roll(Arc<Mutex<Vec<Seat>>>);

impl Roll {
    fn add(&self, seat: Seat) {
        let mut seats = self.seats();
        // Those that have ended leave whenever there is no room: in all a constant number of looks a seat.
        if seats.len() == seats.capacity() {
            seats.retain(|seat| !seat.has_ended());
        }
        seats.push(seat);
    }

    fn live(&self) -> Vec<Seat> {
        self.seats().iter().filter(|seat| !seat.has_ended()).cloned().collect()
    }

    pub(crate) fn end_all(&self, reason: &EndReason) {
        self.live().iter().for_each(|seat| seat.end_with(reason.clone()));
    }

    pub(crate) fn unfinished(&self) -> Vec<Unfinished> {
        let statuses = self.live().into_iter().map(|seat| seat.read());
        let owing = statuses.filter(|status| status.depth > 0 || status.in_flight);
        owing.map(|status| Unfinished { name: status.name, dropped: status.depth }).collect()
    }

    fn seats(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A live subscription; dropping it unsubscribes.
#[must_use = "dropping a subscription unsubscribes"]
pub struct Subscription<S: Body> {
    id: ListenerId,
    seat: Seat,
    listener: Arc<Addr<Listener<S>>>,
    informer: Informer<S>,
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
        self.seat_listener(options, kind, move |_| Delivery::Push(recipient))
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
        let subscription = self.seat_listener(options, "stream", |_| Delivery::Pull)?;
        Ok(Events::new(subscription))
    }

    pub(crate) fn seat_listener(
        &self,
        options: SubscribeOptions,
        kind: &str,
        deliver: impl FnOnce(&Seat) -> Delivery<S>,
    ) -> Result<Subscription<S>, SubscribeError> {
        let running = &self.0;
        if running.family.kin.stop.is_cancelled() {
            return Err(SubscribeError::Stopped);
        }
        let id = ListenerId::new(running.next_number());
        let name = options.name.unwrap_or_else(|| format!("{kind}-{}", id.number()).into());
        let informer = Arc::clone(&running.family.kin.informer);
        let seat =
            Seat::new(Arc::new(Label { informer, kind: "listener ", name }), options.policy, options.resync);
        let (sender, inbox) = channel::<Listener<S>>(WINDOW);
        let listener = Arc::new(Addr::new(sender));
        let spec = ListenerSpec {
            shared: running.family.shared.clone(),
            id,
            delivery: deliver(&seat),
            seat: seat.clone(),
            processor: Arc::clone(&running.family.processor),
            address: Arc::clone(&listener),
        };
        running.seat(Raised { inbox, spec: Arc::new(spec) });
        running.roll.add(seat.clone());
        if running.family.kin.stop.is_cancelled() {
            // It has stopped meanwhile, and may have called the roll already.
            seat.end_with(EndReason::InformerStopped);
        }
        Ok(Subscription { id, seat, listener, informer: self.clone() })
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
    fn seat(&self, child: Raised<Listener<S>>) {
        let (family, spec) = (&self.family, Arc::clone(&child.spec));
        let kin = Arc::clone(&family.kin);
        let (label, stop) = (Arc::clone(spec.seat.label()), Stop::Subscription(spec.seat.clone()));
        let tether = Tether { kin: Arc::clone(&kin), label, role: Role::Listener, stop };
        family.shared.roster.join(spec.id, Arc::clone(&spec.address));
        let presence = spec.seat.enter();
        raise(&family.arbiter, &family.tasks, tether, child, move |verdict| {
            let reason = match verdict {
                Verdict::GiveUp { reason } => EndReason::ListenerFailed(reason),
                _ if kin.stop.is_cancelled() => EndReason::InformerStopped,
                _ => EndReason::Unsubscribed,
            };
            presence.end_with(reason);
            spec.shared.roster.leave(spec.id);
            let (processor, id) = (Arc::clone(&spec.processor), spec.id);
            actix_rt::spawn(async move {
                // Closed means that the Processor has gone, and its roster with it.
                let _closed = ask(&processor, Detach(id)).await;
            });
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
        self.seat.read()
    }

    /// Waits until the subscriber has handled its last initial event.
    ///
    /// # Errors
    /// When the subscription ends before.
    pub async fn synced(&self) -> Result<(), WaitError> {
        let ended = |reason: EndReason| WaitError::Stopped { reason: Some(reason.to_string().into()) };
        self.seat.synced().await.map_err(ended)
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
        self.seat.end().await
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
        self.seat.end_with(EndReason::Unsubscribed);
        let left = deadline.saturating_sub(clock.now()).max(LEAST_PATIENCE);
        let returned = within(left, self.seat.left()).await.is_some();
        if drained && returned {
            Ok(())
        } else {
            Err(ShutdownError::Unfinished(Unfinished { name: self.status().name, dropped }))
        }
    }
}

impl<S: Body> Drop for Subscription<S> {
    fn drop(&mut self) {
        self.seat.end_with(EndReason::Unsubscribed);
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

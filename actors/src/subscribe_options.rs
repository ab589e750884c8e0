//! How a subscription is made: its name, what it receives, and how events wait for it.
//!
//! Answers "what can a subscriber choose?". Every default stands at its setter. What is decided by it is in the core:
//! `listener/filter.rs` (what it receives), `listener/policy.rs` (what waits).
//! Read next: `subscription.rs`, what a subscription promises.

use std::sync::Arc;
use std::time::Duration;

use informer_core::listener::{ChangeFilter, Filter, Policy, WhenFull};
use informer_core::meta::Object;

/// How a subscription is made.
///
/// **Filters** are asked before anything waits: what they drop costs the subscriber no memory and no call. They run on
/// the informer's thread, for each change and each subscription that has them, several times for one state: they must be
/// quick and must not block (the watchdog names the listener otherwise). A filter that panics counts as "yes": the
/// event is delivered, the panic is counted ([`SubscriptionStatus::filter_panics`]) and logged.
///
/// ```
/// # use informer_actors::face as actix_informer;
/// use actix_informer::subscription::{ChangeFilter, SubscribeOptions};
///
/// let _long_ones = SubscribeOptions::<String>::new()
///     .name("long ones")
///     .filter(|text| text.len() > 10)
///     .changes(ChangeFilter::<String>::of(|text| text.len()));
/// ```
///
/// [`SubscriptionStatus::filter_panics`]: crate::subscription::SubscriptionStatus::filter_panics
#[must_use = "options do nothing until they are given to `subscribe_with`"]
pub struct SubscribeOptions<S> {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) resync: Option<Duration>,
    pub(crate) policy: Option<Policy>,
    pub(crate) filter: Filter<S>,
    pub(crate) window: Option<usize>,
    pub(crate) callback_limit: Option<Duration>,
}

impl<S> SubscribeOptions<S> {
    /// A generated name, every object, and what the informer's builder says of resyncs and of how events wait: unless it
    /// says something, no resync, and a subscriber that lags receives the newest state of each object.
    pub fn new() -> Self {
        Self::default()
    }

    /// Its name in logs and statistics.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Delivers every object again, as `Updated{Resync}`, once in each such period. Less than a second is taken as a
    /// second; `Duration::MAX` is never. Unless set, that of the informer's builder.
    pub fn resync_every(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Delivers every event, one by one, in order, none coalesced. At most `bytes` of them wait (each is its object's
    /// bytes as they came from the wire, and 64); beyond that the subscription ends, or receives the difference to the
    /// current state. What happens while the pipeline restarts is delivered as a difference, too.
    pub fn every(mut self, bytes: usize, when_full: WhenFull) -> Self {
        self.policy = Some(Policy::Every { bytes, when_full });
        self
    }

    /// A subscriber that lags receives the newest state of each object, and not those between: the default, unless the
    /// informer's builder says otherwise
    /// ([`InformerBuilder::deliver_every`](crate::informer::InformerBuilder::deliver_every)).
    pub fn newest(mut self) -> Self {
        self.policy = Some(Policy::Coalesce);
        self
    }

    /// How events wait, if this subscription does not say.
    pub(crate) fn policy_or(&self, default: Policy) -> Policy {
        self.policy.unwrap_or(default)
    }

    /// Delivers only objects for which this holds; of several filters all have to hold. It must give the same answer for
    /// the same state each time.
    ///
    /// As with client-go's `FilteringResourceEventHandler`, an object that begins to pass is `Added`, and one that
    /// passes no more is `Deleted`: with [`Cause::LeftFilter`], `exact: false`, and as `last` the last state that passed,
    /// although the object is there still. One that passes before and after is `Updated`. This holds for lists,
    /// late joins, resyncs and restarts, too. A deletion is delivered if the state before it was; client-go asks about
    /// the state at the deletion, and so loses the end of an object that stopped passing in it.
    ///
    /// A subscriber of keys receives the key in each of these cases; an object that it finds then may not pass.
    ///
    /// [`Cause::LeftFilter`]: informer_core::delta::Cause::LeftFilter
    pub fn filter(mut self, passes: impl Fn(&Object<S>) -> bool + Send + Sync + 'static) -> Self {
        self.filter = self.filter.objects(passes);
        self
    }

    /// Of the updates delivers only those that pass this filter; of several filters all have to ([`ChangeFilter::or`]
    /// for either). `Added` and `Deleted` are delivered in any case. With several filters an update is dropped as soon as one
    /// of them refuses it: two values that change one after the other may both stay undelivered.
    ///
    /// The `old` of an `Updated` is then the state before the change that passed: of states whose updates were dropped
    /// nothing is kept, so it may not have been delivered. An event that still waits takes the newest state along.
    pub fn changes(mut self, changes: ChangeFilter<S>) -> Self {
        self.filter = self.filter.changes(changes);
        self
    }

    /// Sends an event only when the one before has been handled; what waits meanwhile coalesces, or waits, by the
    /// policy. For subscribed actors whose handler answers with a future (`ResponseFuture`, `ResponseActFuture`): actix
    /// lets those run beside each other. With this option at most one event is unhandled, events are handled in order,
    /// and `synced` and `shutdown` hold for the futures, too.
    ///
    /// It costs a round trip of messages for each event (3 to 5 µs) where a window of 64 has one. Closures and streams
    /// get one event after the other in any case; with this option none of them waits outside the backlog, where it
    /// could still coalesce. A handler can order itself, too: an `AtomicResponse` lets nothing else of its actor run
    /// until its future has ended, so what holds for plain handlers holds for it without this option.
    pub fn one_at_a_time(self) -> Self {
        self.window(1)
    }

    /// At most so many events are with the subscriber at a time: the size of a batch, and what a closure or a stream has
    /// taken out of the backlog, where it could still coalesce. Default 64. At least 1; at most 64 for an actor that gets
    /// events or keys one by one, since they stand in its mailbox, and at most 1,024 else.
    pub fn window(mut self, events: usize) -> Self {
        self.window = Some(events);
        self
    }

    /// How long one call of a closure may take. At this limit a call of an async closure is cancelled: its future is
    /// dropped, which is counted ([`SubscriptionStatus::overran`]) and logged with the event's key, and the next event
    /// goes on. The event counts as handled. A call of a blocking closure cannot be cancelled: it is counted and logged,
    /// and its key stands in [`SubscriptionStatus::stuck_on`] until it returns. Without effect for actors and streams.
    /// Default: no limit.
    ///
    /// [`SubscriptionStatus::overran`]: crate::subscription::SubscriptionStatus::overran
    /// [`SubscriptionStatus::stuck_on`]: crate::subscription::SubscriptionStatus::stuck_on
    pub fn callback_limit(mut self, limit: Duration) -> Self {
        self.callback_limit = Some(limit);
        self
    }
}

impl<S> Default for SubscribeOptions<S> {
    fn default() -> Self {
        Self {
            name: None,
            resync: None,
            policy: None,
            filter: Filter::default(),
            window: None,
            callback_limit: None,
        }
    }
}

impl<S> Clone for SubscribeOptions<S> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), filter: self.filter.clone(), ..*self }
    }
}

informer_core::debug_as!([S] SubscribeOptions<S>, self,
    name = self.name,
    resync = self.resync,
    policy = self.policy,
    filter = self.filter,
    window = self.window,
    callback_limit = self.callback_limit
);

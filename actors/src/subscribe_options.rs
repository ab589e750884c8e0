//! How a subscription is made: its name, what it receives (in the core: `listener/filter.rs`), and how events wait
//! for it (`listener/waiting.rs`).

use std::sync::Arc;
use std::time::Duration;

use informer_core::listener::{ChangeFilter, Filter, Policy, WhenFull};
use informer_core::meta::Object;

/// How a subscription is made.
///
/// **Filters** run before anything waits: an event that they drop costs the subscriber no memory and no call.
/// They run on the informer's thread, for each change and each subscription that has them, several times for
/// one state. They must be quick and must not block (otherwise the watchdog reports the listener). A filter
/// that panics counts as "yes": the event is delivered, and the panic is counted
/// ([`SubscriptionStatus::filter_panics`]) and logged.
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
    /// A generated name, every object, and the settings of the informer's builder for resyncs and waiting
    /// events. Without such settings: no resync, and a subscriber that lags receives the newest state of each
    /// object.
    pub fn new() -> Self {
        Self::default()
    }

    /// Its name in logs and statistics.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Delivers every object again, as `Updated{Resync}`, once per period. Less than a second is taken as a
    /// second; `Duration::MAX` means never. Default: the period of the informer's builder.
    pub fn resync_every(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Delivers every event, one by one, in order, none coalesced. At most `bytes` of them wait (each counts
    /// as its object's bytes on the wire plus 64). Beyond that, the subscription ends or receives the
    /// difference to the current state, as `when_full` says. What happens while the pipeline restarts is also
    /// delivered as a difference.
    pub fn every(mut self, bytes: usize, when_full: WhenFull) -> Self {
        self.policy = Some(Policy::Every { bytes, when_full });
        self
    }

    /// A subscriber that lags receives the newest state of each object, and not those between. This is the
    /// default, unless the informer's builder says otherwise
    /// ([`InformerBuilder::deliver_every`](crate::informer::InformerBuilder::deliver_every)).
    pub fn newest(mut self) -> Self {
        self.policy = Some(Policy::Coalesce);
        self
    }

    pub(crate) fn policy_or(&self, default: Policy) -> Policy {
        self.policy.unwrap_or(default)
    }

    /// Delivers only objects for which this returns true; of several filters all must. It must always return
    /// the same answer for the same state.
    ///
    /// As with client-go's `FilteringResourceEventHandler`, an object that begins to pass is `Added`, and one
    /// that no longer passes is `Deleted`: with [`Cause::LeftFilter`], `exact: false`, and as `last` the last
    /// state that passed, although the object still exists. One that passes before and after is `Updated`.
    /// This also holds for lists, late joins, resyncs and restarts. A deletion is delivered if the state
    /// before it was delivered. client-go applies the filter to the state at the deletion instead, and so
    /// misses the end of an object that stopped passing in it.
    ///
    /// A subscriber of keys receives the key in each of these cases. The object that it then finds may not
    /// pass.
    ///
    /// [`Cause::LeftFilter`]: informer_core::delta::Cause::LeftFilter
    pub fn filter(mut self, passes: impl Fn(&Object<S>) -> bool + Send + Sync + 'static) -> Self {
        self.filter = self.filter.objects(passes);
        self
    }

    /// Delivers only those updates that pass this filter; of several filters all must pass
    /// ([`ChangeFilter::or`] for either). `Added` and `Deleted` are always delivered. With several filters an
    /// update is dropped as soon as one of them refuses it: two values that change one after the other may
    /// both stay undelivered.
    ///
    /// The `old` of an `Updated` is then the state before the change that passed. It may not have been
    /// delivered, since nothing is kept of states whose updates were dropped. An event that still waits is
    /// updated to the newest state.
    pub fn changes(mut self, changes: ChangeFilter<S>) -> Self {
        self.filter = self.filter.changes(changes);
        self
    }

    /// Sends an event only after the one before has been handled. What arrives in between coalesces, or
    /// waits, as the policy says. For subscribed actors whose handler returns a future (`ResponseFuture`,
    /// `ResponseActFuture`): actix runs such futures concurrently. With this option at most one event is
    /// unhandled, events are handled in order, and `synced` and `shutdown` also wait for the futures.
    ///
    /// It costs a round trip of messages for each event (3 to 5 µs) instead of one for a window of 64.
    /// Closures and streams always get one event after the other; with this option none of their events waits
    /// outside the backlog, where it could still coalesce. A handler can also keep the order itself: an
    /// `AtomicResponse` lets nothing else of its actor run until its future has ended. It then behaves like a
    /// plain handler without this option.
    pub fn one_at_a_time(self) -> Self {
        self.window(1)
    }

    /// The most events that are with the subscriber at a time: the size of a batch, and what a closure or a
    /// stream has taken out of the backlog, where it could still coalesce. Default 64. At least 1. At most 64
    /// for an actor that gets events or keys one by one, since they wait in its mailbox; otherwise at most
    /// 1,024.
    pub fn window(mut self, events: usize) -> Self {
        self.window = Some(events);
        self
    }

    /// How long one call of a closure may take. At this limit a call of an async closure is cancelled: its
    /// future is dropped, this is counted ([`SubscriptionStatus::overran`]) and logged with the event's key,
    /// and the next event follows. The event counts as handled. A call of a blocking closure cannot be
    /// cancelled: it is counted and logged, and [`SubscriptionStatus::stuck_on`] shows its key until it
    /// returns. No effect for actors and streams. Default: no limit.
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

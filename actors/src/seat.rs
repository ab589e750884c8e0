//! A subscription's seat: what outlives its Listener and is shown to its owner.
//!
//! Answers "how far is this subscription, and why did it end?". Wiring owns it; the Listener and the callback host
//! report into it. Invariants:
//! 1. It ends once, with the first reason given.
//! 2. `synced` is latched.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Why a subscription has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndReason {
    /// Its handle was dropped or shut down.
    Unsubscribed,
    /// The subscribed actor has died or stopped.
    SubscriberGone,
    /// Its Listener failed, with the panic's text: a bug of this library.
    ListenerFailed(Arc<str>),
    /// The informer has stopped.
    InformerStopped,
    /// More was owed to it than it may be, and it was to be ended then: see `SubscribeOptions::every`.
    Overflow {
        /// Events that it was not told.
        dropped: u64,
    },
}

impl std::fmt::Display for EndReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unsubscribed => f.write_str("unsubscribed"),
            Self::SubscriberGone => f.write_str("the subscribed actor is gone"),
            Self::ListenerFailed(why) => write!(f, "the listener failed: {why}"),
            Self::InformerStopped => f.write_str("the informer has stopped"),
            Self::Overflow { dropped } => write!(f, "its backlog was full: {dropped} events were dropped"),
        }
    }
}

/// Why a subscription's shutdown was not a clean one. It is unsubscribed all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShutdownError {
    /// The limit passed first.
    #[error("subscription {} had not come back at the limit, {} events dropped", .0.name, .0.dropped)]
    Unfinished(Unfinished),
    /// Its own callback has called it, and would wait for itself: nothing was waited for, and no further call
    /// follows this one.
    #[error("shutdown called from inside the subscription's own callback")]
    OwnCallback,
}

/// A subscription whose events were not all handled when a deadline passed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfinished {
    /// Its name.
    pub name: Arc<str>,
    /// Events that were owed and are dropped; those in its last window are not counted.
    pub dropped: usize,
}

/// How a subscription is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SubscriptionStatus {
    /// Its name: the one given, or the kind of its recipient and a number.
    pub name: Arc<str>,
    /// Whether the subscriber has handled its last initial event. Latched.
    pub synced: bool,
    /// Events delivered and handled.
    pub delivered: u64,
    /// Events owed and not yet taken.
    pub depth: usize,
    /// Since when the oldest of them is owed, as time since the runtime's start.
    pub oldest_since: Option<Duration>,
    /// Whether events are with the subscriber and not yet handled.
    pub in_flight: bool,
    /// Events that were merged into another one of the same key, or annulled each other.
    pub coalesced: u64,
    /// Events that were dropped because its backlog was full, under a policy that has a bound.
    pub dropped: u64,
    /// Events on which the callback panicked; each was skipped.
    pub panics: u64,
    /// Why it has ended, if it has.
    pub ended: Option<EndReason>,
}

#[derive(Debug, Clone)]
pub(crate) struct Seat {
    status: Arc<watch::Sender<SubscriptionStatus>>,
    stop: CancellationToken,
    resync: Option<Duration>,
}

impl Seat {
    pub(crate) fn new(name: Arc<str>, resync: Option<Duration>, stop: CancellationToken) -> Self {
        let status = SubscriptionStatus {
            name,
            synced: false,
            delivered: 0,
            depth: 0,
            oldest_since: None,
            in_flight: false,
            coalesced: 0,
            dropped: 0,
            panics: 0,
            ended: None,
        };
        Self { status: Arc::new(watch::Sender::new(status)), stop, resync }
    }

    /// Tells this seat from every other one that lives.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.status).addr()
    }

    pub(crate) fn resync(&self) -> Option<Duration> {
        self.resync
    }

    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    pub(crate) fn read(&self) -> SubscriptionStatus {
        self.status.borrow().clone()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<SubscriptionStatus> {
        self.status.subscribe()
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut SubscriptionStatus)) {
        self.status.send_modify(change);
    }

    /// Ends it; the first reason stays.
    pub(crate) fn end(&self, reason: EndReason) {
        self.status.send_modify(|status| {
            status.ended.get_or_insert(reason);
        });
        self.stop.cancel();
    }
}

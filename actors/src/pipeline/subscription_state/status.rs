//! The status of a subscription, as its owner reads it.

use std::sync::Arc;
use std::time::Duration;

use informer_core::listener::Policy;
use informer_core::meta::ObjectKey;
use informer_core::timing::Timing;

use super::SubscriptionState;
use crate::runtime::signal::Signal;

/// How a subscription is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SubscriptionStatus {
    /// Its name: the one given, or the kind of its recipient and a number.
    pub name: Arc<str>,
    /// How its events wait until the subscriber takes them.
    pub policy: Policy,
    /// The period of resyncs, if it has any.
    pub resync: Option<Duration>,
    /// Whether the subscriber has handled its last initial event. Latched.
    pub synced: bool,
    /// Events delivered and handled.
    pub delivered: u64,
    /// Events that wait to be delivered.
    pub depth: usize,
    /// Since when the oldest of them waits, as time since the runtime's start.
    pub oldest_since: Option<Duration>,
    /// Whether events are with the subscriber and not yet handled: at most 64, or one if it gets one at a
    /// time.
    pub in_flight: bool,
    /// Events that were not delivered because a newer one of the same key replaced them.
    pub coalesced: u64,
    /// Events that were dropped because the backlog was full. Under `Coalesce`: events of objects that were
    /// created and deleted while they waited, beyond the bound of 4,096.
    pub dropped: u64,
    /// Changes, and objects of lists, that its filters dropped.
    pub filtered: u64,
    /// Events on which the callback panicked; each was skipped.
    pub panics: u64,
    /// How often a filter panicked, which counts as "yes": no event was lost.
    pub filter_panics: u64,
    /// Calls of its closure that took longer than its limit: async ones were cancelled, blocking ones went
    /// on.
    pub overran: u64,
    /// The key of the event with which its blocking closure has been busy for longer than its limit.
    pub stuck_on: Option<ObjectKey>,
    /// How long it took from the subscription to `synced`.
    pub sync_took: Option<Duration>,
    /// The delivery latency: from when the reflector read an event until the subscriber had handled it. It is
    /// measured once for each window (at most 64 events, or one), for its oldest event, and only since the
    /// sync.
    pub latency: Timing,
    /// How long each call of its closure took, since the sync. It is not known for actors and streams.
    pub calls: Timing,
    /// Why it has ended, if it has.
    pub ended: Option<EndReason>,
}

impl SubscriptionState {
    /// `Ok` if it is synced; the reason if it has ended before.
    pub(crate) fn sync_outcome(&self) -> Option<Result<(), EndReason>> {
        self.0.figures.with(|figures| match &figures.ended {
            _ if figures.synced => Some(Ok(())),
            Some(reason) => Some(Err(reason.clone())),
            None => None,
        })
    }

    /// Ready after the next change from this call on.
    pub(crate) fn changed(&self) -> &Signal {
        &self.0.changed
    }
}

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
    /// More events waited for it than its bound allows, or more than four lists with events, and its policy
    /// ends it in this case: see `SubscribeOptions::every`.
    Overflow {
        /// Events that it did not receive, at least one. The events of a list that were not counted are one.
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
    #[error("{0}")]
    Unfinished(Unfinished),
    /// Its own callback called it, and would have waited for itself. Nothing was waited for, and no further
    /// call follows this one.
    #[error("shutdown called from inside the subscription's own callback")]
    OwnCallback,
}

/// A subscription whose events were not all handled when a deadline passed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfinished {
    /// Its name.
    pub name: Arc<str>,
    /// Events that waited and had not been handed to the subscriber: they are dropped.
    pub dropped: usize,
    /// Events that had been handed over and not been reported back as handled: the subscriber may have
    /// handled some.
    pub in_flight: usize,
    /// Whether its callback still ran at the end: a blocking closure cannot be cancelled, nor an async one
    /// that blocks its thread.
    pub still_running: bool,
}

impl std::fmt::Display for Unfinished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, dropped, in_flight, .. } = self;
        write!(
            f,
            "subscription {name} had not come back at the limit: {dropped} events dropped, {in_flight} in flight"
        )
    }
}

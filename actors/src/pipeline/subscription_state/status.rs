//! The status of a subscription, as its owner reads it.
//!
//! Answers "how is this subscription doing?". Read next: `../subscription_state.rs`, which fills it.

use std::sync::Arc;
use std::time::Duration;

use informer_core::listener::Policy;
use informer_core::meta::ObjectKey;

use super::EndReason;
use crate::pipeline::figures::Timing;

/// How a subscription is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SubscriptionStatus {
    /// Its name: the one given, or the kind of its recipient and a number.
    pub name: Arc<str>,
    /// How events wait that its subscriber has not taken yet.
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
    /// Whether events are with the subscriber and not yet handled: at most 64, or one if it gets one at a time.
    pub in_flight: bool,
    /// Events that were not delivered because a newer one of the same key replaced them.
    pub coalesced: u64,
    /// Events that were dropped because its backlog was full; under `Coalesce` those of objects that were created and
    /// deleted meanwhile, beyond the bound of 4,096.
    pub dropped: u64,
    /// Changes, and objects of lists, that its filters dropped.
    pub filtered: u64,
    /// Events on which the callback panicked; each was skipped.
    pub panics: u64,
    /// How often a filter panicked, which counts as "yes": no event was lost.
    pub filter_panics: u64,
    /// Calls of its closure that took longer than its limit: async ones were cancelled, blocking ones went on.
    pub overran: u64,
    /// The key of the event with which its blocking closure has been busy for longer than its limit.
    pub stuck_on: Option<ObjectKey>,
    /// How long it took from the subscription to `synced`.
    pub sync_took: Option<Duration>,
    /// The delivery latency: from when the reflector read an event until the subscriber had handled it. It is measured
    /// once for each window (at most 64 events, or one), for its oldest event, and only since the sync.
    pub latency: Timing,
    /// How long each call of its closure took, since the sync. It is not known for actors and streams.
    pub calls: Timing,
    /// Why it has ended, if it has.
    pub ended: Option<EndReason>,
}

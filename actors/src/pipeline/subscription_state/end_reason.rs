//! Why a subscription has ended, and what its shutdown left undone.
//!
//! Answers "was that my doing, the informer's or a fault?" with values that people read. Read next:
//! `subscription_state.rs`, which keeps the first reason given.

use std::sync::Arc;

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
    /// More events waited for it than its bound allows, or more than four lists with events, and its policy ends it then:
    /// see `SubscribeOptions::every`.
    Overflow {
        /// Events that it did not receive, at least one: those of a list that nobody has counted are one.
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
    /// Events that waited and had not been handed to the subscriber: they are dropped.
    pub dropped: usize,
    /// Events that had been handed over and not been reported back as handled: the subscriber may have handled some.
    pub in_flight: usize,
    /// Whether its callback still ran at the end: a blocking closure cannot be cancelled, nor an async one that blocks
    /// its thread.
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

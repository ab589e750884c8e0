//! Why a wait for an informer or a subscription did not succeed, in words that name who is to blame.
//!
//! Answers "what do I read when it does not sync?" for people: which informer, which source, what it is doing, its
//! last error, and who blocks a thread. It decides nothing. Invariants:
//! 1. Every text names the informer, and the subscription if it was one.
//! 2. An error stands once in a text, with its causes; states are shown in plain words.
//!
//! Read next: `informer.rs` and `subscription.rs`, whose waits these are.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::SourceId;
use informer_core::reflector::SourceState;
use informer_core::words::Brief;

use crate::pipeline::subscription_state::EndReason;
use crate::runtime::Stuck;

/// Why waiting for an informer or a subscription did not succeed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The informer has stopped, and what was awaited can no longer come.
    #[error("informer {informer:?} has stopped{}", because(.reason))]
    Stopped {
        /// Its name.
        informer: Arc<str>,
        /// Why, if it was not stopped by its user: supervision gave up, or its runtime was shut down.
        reason: Option<Arc<str>>,
    },
    /// The subscription has ended before it was synced; its informer may run on.
    #[error("subscription {subscription:?} of informer {informer:?} has ended: {reason}")]
    Ended {
        /// The informer's name.
        informer: Arc<str>,
        /// The subscription's name.
        subscription: Arc<str>,
        /// Why it has ended.
        reason: EndReason,
    },
    /// Supervision has given up on a source that has never listed: without it nothing syncs. The other sources are
    /// followed on.
    #[error("informer {informer:?} cannot sync: its source {lost:?} is given up: {reason}")]
    SourceGivenUp {
        /// The informer's name.
        informer: Arc<str>,
        /// The source's name.
        lost: Arc<str>,
        /// Why supervision gave up.
        reason: Arc<str>,
    },
    /// No source could be made for a namespace. The others are followed, and it is tried again while it is wanted.
    #[error("informer {informer:?} cannot follow the namespace {namespace:?}: {reason}")]
    NamespaceFailed {
        /// The informer's name.
        informer: Arc<str>,
        /// The namespace.
        namespace: Arc<str>,
        /// Why.
        reason: Arc<str>,
    },
    /// There is no such source, or it was removed before it had listed.
    #[error("informer {informer:?} has no source {:?}", .name.as_str())]
    UnknownSource {
        /// The informer's name.
        informer: Arc<str>,
        /// The name of the source.
        name: SourceId,
    },
    /// The deadline passed first.
    #[error("{0}")]
    Deadline(Box<NotSynced>),
}

/// What keeps an informer or a subscription from being synced, as seen at a deadline.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NotSynced {
    /// The informer's name.
    pub informer: Arc<str>,
    /// The subscription that was waited for; none if it was the informer itself.
    pub subscription: Option<Arc<str>>,
    /// How long it was waited.
    pub waited: Duration,
    /// Whether the informer is synced: then it is the subscriber that has not handled its initial events.
    pub informer_synced: bool,
    /// The source in the worst state.
    pub source: SourceId,
    /// What that source is doing.
    pub state: SourceState,
    /// In which time that source is asked again, if it has failed; zero while it is being asked.
    pub next_try_in: Option<Duration>,
    /// Its last error, or else one of another source.
    pub last_error: Option<ListWatchError>,
    /// What blocks a thread of the informer or of its subscribers' closures, if something does.
    pub stuck: Option<Stuck>,
}

impl fmt::Display for NotSynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { informer, waited, source, state, .. } = self;
        match &self.subscription {
            Some(subscription) => write!(f, "subscription {subscription:?} of informer {informer:?}")?,
            None => write!(f, "informer {informer:?}")?,
        }
        write!(f, " is not synced after {waited:?}: ")?;
        if self.informer_synced && self.subscription.is_some() {
            f.write_str("the informer is synced, its subscriber has not handled all initial events")?;
        } else {
            write!(f, "source {:?}: {state}", source.as_str())?;
            match self.next_try_in {
                Some(Duration::ZERO) => f.write_str("; it is being asked again")?,
                Some(wait) => write!(f, "; it is asked again in {}", Brief(wait))?,
                None => {}
            }
            if let Some(error) = self.last_error.as_ref().filter(|_| state.error().is_none()) {
                write!(f, "; its last error: {}", error.with_causes())?;
            }
        }
        self.stuck.as_ref().map_or(Ok(()), |stuck| write!(f, "; {stuck}"))
    }
}

fn because(reason: &Option<Arc<str>>) -> String {
    reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default()
}

#[cfg(test)]
mod tests;

//! Why a wait for an informer or a subscription did not succeed, and the wait itself.
//!
//! Every text names the informer, any subscription, the source, its state and last error, and what blocks a thread.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::SourceId;
use informer_core::reflector::SourceState;
use informer_core::words::Brief;

use crate::pipeline::subscription_state::EndReason;
use crate::runtime::{Stuck, within};

/// The error of a wait for an informer or a subscription.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The informer has stopped, so what was awaited cannot come any more.
    #[error("informer {informer:?} has stopped{}", because(.reason))]
    Stopped {
        /// Its name.
        informer: Arc<str>,
        /// Why, if it was not stopped by its user: supervision gave up, or its runtime was shut down.
        reason: Option<Arc<str>>,
    },
    /// The subscription ended before it was synced; its informer may continue.
    #[error("subscription {subscription:?} of informer {informer:?} has ended: {reason}")]
    Ended {
        /// The informer's name.
        informer: Arc<str>,
        /// The subscription's name.
        subscription: Arc<str>,
        /// Why it has ended.
        reason: EndReason,
    },
    /// Supervision has given up a source that has never listed: without it nothing syncs. The other sources
    /// are still followed.
    #[error("informer {informer:?} cannot sync: its source {lost:?} is given up: {reason}")]
    SourceGivenUp {
        /// The informer's name.
        informer: Arc<str>,
        /// The source's name.
        lost: Arc<str>,
        /// Why supervision gave up.
        reason: Arc<str>,
    },
    /// No source could be made for a namespace. The others are followed, and it is tried again while it is
    /// wanted.
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
    /// The subscription of the wait; `None` if the wait was for the informer itself.
    pub subscription: Option<Arc<str>>,
    /// How long the wait took.
    pub waited: Duration,
    /// Whether the informer is synced: then the subscriber has not handled its initial events.
    pub informer_synced: bool,
    /// The source in the worst state.
    pub source: SourceId,
    /// What that source is doing.
    pub state: SourceState,
    /// How long until the next request to that source, if it has failed; zero during that request.
    pub next_try_in: Option<Duration>,
    /// Its last error, or else one of another source.
    pub last_error: Option<ListWatchError>,
    /// What it still has to catch up with, if it began with a saved cache.
    pub catching_up: Option<String>,
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
            if let Some(why) = &self.catching_up {
                write!(f, "; {why}")?;
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

// The wait of all handles. A condition that holds counts before an end, and an end before the limit. The waker is
// registered before each look: no change is missed. No code of the caller runs under a lock.

pub(crate) enum Looked<T, W> {
    Decided(T),
    /// Look again after this.
    NotYet(W),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undecided {
    Ended,
    Deadline,
}

/// `Duration::MAX` means no limit.
pub(crate) async fn wait<T, W: Future<Output = ()>>(
    end: impl Future<Output = ()>,
    limit: Duration,
    mut look: impl FnMut() -> Looked<T, W>,
) -> Result<T, Undecided> {
    let decided = async {
        loop {
            match look() {
                Looked::Decided(outcome) => return Ok(outcome),
                Looked::NotYet(woken) => woken.await,
            }
        }
    };
    let ended = async {
        tokio::select! {
            biased;
            decided = decided => decided,
            () = end => Err(Undecided::Ended),
        }
    };
    within(limit, ended).await.unwrap_or(Err(Undecided::Deadline))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod waiting_tests {
    use std::cell::Cell;
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_with_its_condition_with_the_end_or_at_its_limit_whichever_comes_first() {
        let second = Duration::from_secs(1);
        let never = || Looked::<u32, _>::NotYet(pending());
        assert_eq!(wait(ready(()), Duration::MAX, never).await, Err(Undecided::Ended));
        assert_eq!(wait(pending(), second, never).await, Err(Undecided::Deadline));
        assert_eq!(wait(ready(()), second, || Looked::<_, std::future::Ready<()>>::Decided(7)).await, Ok(7));
        let looks = Cell::new(0);
        let third = || {
            looks.set(looks.get() + 1);
            if looks.get() == 3 {
                Looked::Decided(looks.get())
            } else {
                Looked::NotYet(tokio::time::sleep(second))
            }
        };
        assert_eq!(wait(pending(), second * 10, third).await, Ok(3), "it looks again each time it is woken");
        let late = tokio::time::sleep(second);
        assert_eq!(wait(late, second * 10, never).await, Err(Undecided::Ended));
    }
}

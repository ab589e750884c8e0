//! The waits of an informer's handle: for its sync, for one source, for its namespaces, for any status.
//!
//! Answers "which look decides each of them, and what wakes it?". Each is a call of `waiting::wait`. Invariants:
//! 1. A wait for the sync, for a source or for namespaces ends when a source that it needs is given up.
//! 2. Only [`Informer::wait_until`] copies the whole status; the others look at a few words.
//!
//! Read next: `waiting.rs`, the wait; `pipeline/board.rs`, what they look at.

use std::sync::Arc;
use std::time::Duration;

use informer_core::meta::SourceId;
use informer_core::reflector::SourceState;

use super::Informer;
use crate::pipeline::board::SyncState;
use crate::pipeline::messages::Body;
use crate::pipeline::namespace_set::NamespaceSet;
use crate::pipeline::status::{InformerStatus, SourceStatus};
use crate::pipeline::subscription_state::EndReason;
use crate::wait_error::{Looked, NotSynced, Undecided, WaitError, wait};

/// How long a wait for the first lists also waits for what is found out about empty ones. Usually that is one request.
const MOST_FOR_HINTS: Duration = Duration::from_secs(2);

/// What a wait for the first list of every source returns: they are there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Synced {
    /// Why there may be nothing of some sources: their namespace does not exist. At most 20. It is no error: the namespace
    /// may be made later, and is followed then. [`SourceStatus::hint`] is of each source.
    pub hints: Vec<Arc<str>>,
}

impl<S: Body> Informer<S> {
    /// Waits until the status satisfies `enough` and gives it. `enough` is called with a copy, once for each change
    /// that is seen: it may be slow, and may call any method of this informer.
    ///
    /// # Errors
    /// [`WaitError::Stopped`] if the informer stops first.
    pub async fn wait_until(
        &self,
        mut enough: impl FnMut(&InformerStatus) -> bool,
    ) -> Result<InformerStatus, WaitError> {
        let board = &self.0.pipeline.shared.board;
        let look = || {
            let seen = board.changed().count();
            let status = board.read();
            match (enough(&status), status.stopped) {
                (true, _) => Looked::Decided(Some(status)),
                (false, true) => Looked::Decided(None),
                (false, false) => Looked::NotYet(board.changed().since(seen)),
            }
        };
        // Its stop is a status, too, and may be what is waited for.
        let status = wait(self.0.ending.abandoned(), Duration::MAX, look).await;
        status.ok().flatten().ok_or_else(|| self.stopped())
    }

    /// Waits until the first list of every source is published. Latched. A source whose first list is empty is asked why,
    /// which is waited for, too, for at most two seconds: what is returned names the namespaces that do not exist.
    ///
    /// # Errors
    /// [`WaitError::Stopped`] if the informer stops first; [`WaitError::SourceGivenUp`] if a source is given up
    /// before it has listed.
    pub async fn synced(&self) -> Result<Synced, WaitError> {
        self.synced_within(Duration::MAX).await
    }

    /// As [`Self::synced`], for at most `limit`.
    ///
    /// # Errors
    /// As there; at the limit [`WaitError::Deadline`] with the worst source, its state, and what blocks a thread.
    pub async fn synced_within(&self, limit: Duration) -> Result<Synced, WaitError> {
        let begun = self.runtime().now();
        self.listed_within(limit).await?;
        let left = limit.saturating_sub(self.runtime().now().saturating_sub(begun));
        Ok(self.hints_within(left.min(MOST_FOR_HINTS)).await)
    }

    /// What is known about empty lists when each question about them is answered, or at the limit.
    async fn hints_within(&self, limit: Duration) -> Synced {
        let board = &self.0.pipeline.shared.board;
        let look = || {
            let seen = board.settled().count();
            match board.has_questions() {
                true => Looked::NotYet(board.settled().since(seen)),
                false => Looked::Decided(()),
            }
        };
        let _answered: Result<(), Undecided> = wait(self.0.ending.stop.cancelled(), limit, look).await;
        Synced { hints: board.hints() }
    }

    /// As [`Self::synced_within`], without a wait for what is found out about empty lists.
    pub(crate) async fn listed_within(&self, limit: Duration) -> Result<(), WaitError> {
        let board = &self.0.pipeline.shared.board;
        let look = || {
            let seen = board.settled().count();
            match board.sync() {
                SyncState::Reached => Looked::Decided(Ok(())),
                SyncState::Stopped => Looked::Decided(Err(self.stopped())),
                SyncState::Lost(source, reason) => {
                    Looked::Decided(Err(self.source_given_up(&source, reason)))
                }
                SyncState::Pending => Looked::NotYet(board.settled().since(seen)),
            }
        };
        let synced = wait(self.0.ending.stop.cancelled(), limit, look).await;
        synced.unwrap_or_else(|undecided| Err(self.undecided(undecided, limit, None)))
    }

    /// Waits until the first list of this source is published.
    ///
    /// # Errors
    /// [`WaitError::UnknownSource`] if there is none of this name, or it is removed before;
    /// [`WaitError::SourceGivenUp`] if it is given up before; [`WaitError::Stopped`] if the informer stops before.
    pub async fn source_synced(&self, source: &SourceId) -> Result<(), WaitError> {
        let board = &self.0.pipeline.shared.board;
        let outcome = |status: &SourceStatus| match &status.state {
            _ if status.version.is_some() => Some(Ok(())),
            SourceState::GivenUp { reason } => Some(Err(self.source_given_up(source, Arc::clone(reason)))),
            _ => None,
        };
        let look = || {
            let (settled, moved) = (board.settled().count(), board.sources_moved().count());
            match board.of_source(source, outcome) {
                None => {
                    let (informer, name) = (Arc::clone(&self.0.pipeline.parent.name), source.clone());
                    Looked::Decided(Err(WaitError::UnknownSource { informer, name }))
                }
                Some(Some(decided)) => Looked::Decided(decided),
                Some(None) => Looked::NotYet(async move {
                    tokio::select! {
                        () = board.settled().since(settled) => {}
                        () = board.sources_moved().since(moved) => {}
                    }
                }),
            }
        };
        let synced = wait(self.0.ending.stop.cancelled(), Duration::MAX, look).await;
        synced.unwrap_or_else(|_| Err(self.stopped()))
    }

    /// Waits until the last change of the namespaces is carried out: every new one has listed, and of every other one
    /// nothing is left. At once if the informer has no set of namespaces.
    ///
    /// # Errors
    /// [`WaitError::Stopped`] if the informer stops before; [`WaitError::SourceGivenUp`] if the source of a namespace, or
    /// the one that selects them, is given up before it has listed; [`WaitError::NamespaceFailed`] if no source could be made
    /// for one of them, once the others have listed.
    pub async fn namespaces_synced(&self) -> Result<(), WaitError> {
        if self.0.ending.stop.is_cancelled() {
            return Err(self.stopped());
        }
        for set in self.0.pipeline.shared.namespaces.all() {
            self.set_synced(&set, set.newest_change(), |source| self.is_needed_by(&set, source)).await?;
        }
        Ok(())
    }

    /// The same for one change of one set, which needs these sources.
    pub(super) async fn set_synced(
        &self,
        set: &NamespaceSet<S>,
        change: u64,
        needs: impl Fn(&SourceId) -> bool,
    ) -> Result<(), WaitError> {
        let board = &self.0.pipeline.shared.board;
        let look = || {
            let (changed, settled) = (set.changed.count(), board.settled().count());
            if set.is_synced(change) {
                return Looked::Decided(Ok(()));
            }
            if let Some((namespace, reason)) = set.failed() {
                let informer = Arc::clone(&self.0.pipeline.parent.name);
                return Looked::Decided(Err(WaitError::NamespaceFailed { informer, namespace, reason }));
            }
            if let Some((source, reason)) = board.given_up_unlisted(&needs) {
                return Looked::Decided(Err(self.source_given_up(&source, reason)));
            }
            Looked::NotYet(async move {
                tokio::select! {
                    () = set.changed.since(changed) => {}
                    () = board.settled().since(settled) => {}
                }
            })
        };
        let synced = wait(self.0.ending.stop.cancelled(), Duration::MAX, look).await;
        synced.unwrap_or_else(|_| Err(self.stopped()))
    }

    /// Whether a change of the set cannot be carried out before this source has listed: the source of a namespace, or,
    /// as long as nobody has said which namespaces are wanted, the source that selects them. The cluster-wide source is
    /// none of them: without it the namespaces are followed one by one.
    fn is_needed_by(&self, set: &NamespaceSet<S>, source: &SourceId) -> bool {
        let sources = &self.0.pipeline.shared.sources;
        if sources.stays_in_set(source, set.number) {
            return true;
        }
        let selects = set.is_selected() && set.wanted().is_none();
        selects && !sources.is_of_set(source) && sources.is_in_cluster(source, set.cluster.as_ref())
    }

    /// Why a wait has ended without a decision.
    pub(crate) fn undecided(
        &self,
        undecided: Undecided,
        waited: Duration,
        subscription: Option<&Arc<str>>,
    ) -> WaitError {
        match undecided {
            Undecided::Ended => self.stopped(),
            Undecided::Deadline => self.deadline(waited, subscription),
        }
    }

    /// Why a wait has ended at its deadline.
    fn deadline(&self, waited: Duration, subscription: Option<&Arc<str>>) -> WaitError {
        let status = self.status();
        let source = status.worst().map(|source| source.source.clone()).unwrap_or_default();
        let (state, last_error) = (status.state(), status.last_error().cloned());
        let next_try_in = state.next_try().map(|at| at.saturating_sub(self.runtime().now()));
        WaitError::Deadline(Box::new(NotSynced {
            informer: status.name,
            subscription: subscription.cloned(),
            waited,
            informer_synced: status.synced,
            source,
            state,
            next_try_in,
            last_error,
            stuck: status.stuck,
        }))
    }

    /// The error of a wait for a subscription that ended for this reason.
    pub(crate) fn ended(&self, subscription: &Arc<str>, reason: EndReason) -> WaitError {
        if reason == EndReason::InformerStopped {
            return self.stopped();
        }
        let informer = Arc::clone(&self.0.pipeline.parent.name);
        WaitError::Ended { informer, subscription: Arc::clone(subscription), reason }
    }

    pub(crate) fn stopped(&self) -> WaitError {
        WaitError::Stopped {
            informer: Arc::clone(&self.0.pipeline.parent.name),
            reason: self.0.ending.reason(),
        }
    }

    pub(crate) fn source_given_up(&self, source: &SourceId, reason: Arc<str>) -> WaitError {
        let informer = Arc::clone(&self.0.pipeline.parent.name);
        WaitError::SourceGivenUp { informer, lost: source.as_str().into(), reason }
    }
}

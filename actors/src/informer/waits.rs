//! The waits of an informer's handle: for its sync, one source, its namespaces, or any status.
//!
//! All except [`Informer::wait_until`] end when a source that they need is given up.

use std::sync::Arc;
use std::time::Duration;

use informer_core::meta::SourceId;
use informer_core::reflector::SourceState;

use super::Informer;
use crate::pipeline::board::SyncState;
use crate::pipeline::messages::Body;
use crate::pipeline::namespace_set::NamespaceSet;
use crate::pipeline::status::{InformerStatus, SavedStatus, SourceStatus};
use crate::pipeline::subscription_state::EndReason;
use crate::wait_error::{Looked, NotSynced, Undecided, WaitError, wait};

/// For explanations of empty lists, mostly one request each.
const MOST_FOR_HINTS: Duration = Duration::from_secs(2);

/// The result of a wait for the first list of every source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Synced {
    /// Why some sources may have no objects: their namespace does not exist. At most 20. This is no error:
    /// the namespace may be created later, and is followed then. [`SourceStatus::hint`] has the hint of each
    /// source.
    pub hints: Vec<Arc<str>>,
}

impl<S: Body> Informer<S> {
    /// Waits until the status satisfies `enough` and returns it. `enough` is called with a copy, once for
    /// each change that is seen. It may be slow, and may call any method of this informer.
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
        // The stop is also a status, and may be the awaited one.
        let status = wait(self.0.ending.abandoned(), Duration::MAX, look).await;
        status.ok().flatten().ok_or_else(|| self.stopped())
    }

    /// Waits until the first list of every source is published. Latched. A source whose first list is empty
    /// is asked for the reason; this wait includes the answer for at most two seconds. The result names the
    /// namespaces that do not exist.
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
    /// As [`Self::synced`]; at the limit [`WaitError::Deadline`] with the worst source, its state, and what
    /// blocks a thread.
    pub async fn synced_within(&self, limit: Duration) -> Result<Synced, WaitError> {
        let begun = self.runtime().now();
        self.listed_within(limit).await?;
        let left = limit.saturating_sub(self.runtime().now().saturating_sub(begun));
        Ok(self.hints_within(left.min(MOST_FOR_HINTS)).await)
    }

    /// The hints when each question is answered, or at the limit.
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

    /// As [`Self::synced_within`], without the wait for hints.
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

    /// Waits until the first list of this source is published; if it began with saved objects, until it has caught up
    /// with the server.
    ///
    /// # Errors
    /// [`WaitError::UnknownSource`] if there is no such source, or it is removed first;
    /// [`WaitError::SourceGivenUp`] if it is given up first; [`WaitError::Stopped`] if the informer stops
    /// first.
    pub async fn source_synced(&self, source: &SourceId) -> Result<(), WaitError> {
        let board = &self.0.pipeline.shared.board;
        let saved = board.saved();
        let outcome = |status: &SourceStatus| match &status.state {
            _ if status.version.is_some() && !saved.is_catching_up() => Some(Ok(())),
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

    /// Waits until the last change of the namespaces is carried out: every new one has listed, and nothing of
    /// the removed ones is left. Returns at once if the informer has no set of namespaces.
    ///
    /// # Errors
    /// [`WaitError::Stopped`] if the informer stops first; [`WaitError::SourceGivenUp`] if the source of a
    /// namespace, or the one that selects them, is given up before it has listed;
    /// [`WaitError::NamespaceFailed`] if no source could be made for one of them, once the others have
    /// listed.
    pub async fn namespaces_synced(&self) -> Result<(), WaitError> {
        if self.0.ending.stop.is_cancelled() {
            return Err(self.stopped());
        }
        for set in self.0.pipeline.shared.namespaces.all() {
            self.set_synced(&set, set.newest_change(), |source| self.is_needed_by(&set, source)).await?;
        }
        Ok(())
    }

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

    /// The source of a namespace, or, while the namespaces are unknown, the one that selects them. Not the
    /// cluster-wide one: without it the namespaces are followed one by one.
    fn is_needed_by(&self, set: &NamespaceSet<S>, source: &SourceId) -> bool {
        let sources = &self.0.pipeline.shared.sources;
        if sources.stays_in_set(source, set.number) {
            return true;
        }
        let selects = set.is_selected() && set.wanted().is_none();
        selects && !sources.is_of_set(source) && sources.is_in_cluster(source, set.cluster.as_ref())
    }

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
            catching_up: status.saved.as_ref().and_then(SavedStatus::catching_up),
            stuck: status.stuck,
        }))
    }

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

//! What a wait for the sync looks at: a few words, never a copy of the whole status.
//!
//! Answers "is it synced, or will it never be?". That nothing is given up is one look, whatever the number of sources.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use informer_core::meta::SourceId;
use informer_core::reflector::SourceState;

use super::StatusBoard;
use crate::pipeline::signal::Signal;
use crate::pipeline::status::{NamespacesStatus, SourceStatus};
use crate::runtime::Stuck;
use crate::runtime::locked::locked;

/// So many hints are given: of many namespaces none may exist.
const MOST_HINTS: usize = 20;

/// How far an informer is from its sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SyncState {
    /// It is not synced yet.
    Pending,
    /// The first list of every source is published.
    Reached,
    /// It has stopped before.
    Stopped,
    /// This source is given up, for this reason, and has never listed.
    Lost(SourceId, Arc<str>),
}

/// A question why a first list is empty.
pub(crate) struct Question(StatusBoard);

impl Drop for Question {
    fn drop(&mut self) {
        let cells = &self.0.0;
        if cells.questions.fetch_sub(1, Ordering::AcqRel) == 1 {
            cells.settled.raise();
        }
    }
}

impl StatusBoard {
    /// Raised by what may decide a wait for the sync. To wait: read its count, then look, then wait.
    pub(crate) fn settled(&self) -> &Signal {
        &self.0.settled
    }

    /// How far it is from its sync.
    pub(crate) fn sync(&self) -> SyncState {
        if self.is_synced() {
            return SyncState::Reached;
        }
        if self.is_stopped() {
            return SyncState::Stopped;
        }
        self.given_up_unlisted(|_| true)
            .map_or(SyncState::Pending, |(source, reason)| SyncState::Lost(source, reason))
    }

    /// The first of these sources that is given up and has never listed, and why.
    pub(crate) fn given_up_unlisted(
        &self,
        is_one: impl Fn(&SourceId) -> bool,
    ) -> Option<(SourceId, Arc<str>)> {
        self.failed()?;
        let given_up = |status: &SourceStatus| match &status.state {
            SourceState::GivenUp { reason } if status.version.is_none() => {
                Some((status.source.clone(), Arc::clone(reason)))
            }
            _ => None,
        };
        // The check asks others, so it is not made under the lock of the sources.
        self.0.sources.all(given_up).into_iter().find(|(source, _)| is_one(source))
    }

    /// A source is asked why its first list is empty, until what is returned is dropped.
    pub(crate) fn begin_question(&self) -> Question {
        self.0.questions.fetch_add(1, Ordering::AcqRel);
        Question(self.clone())
    }

    /// Whether it is being found out why a first list is empty.
    pub(crate) fn has_questions(&self) -> bool {
        self.0.questions.load(Ordering::Acquire) > 0
    }

    /// What was found out about empty lists.
    pub(crate) fn hints(&self) -> Vec<Arc<str>> {
        self.0.sources.all(|status| status.hint.clone()).into_iter().take(MOST_HINTS).collect()
    }

    /// Why a part of it is not restarted any more, if that is so.
    pub(crate) fn failed(&self) -> Option<Arc<str>> {
        locked(&self.0.health).failed.clone()
    }

    /// How often the whole status was copied.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn copies(&self) -> u64 {
        self.0.sources.copies()
    }

    /// What blocks it, if something does.
    pub(crate) fn stuck(&self) -> Option<Stuck> {
        locked(&self.0.health).stuck.clone()
    }
}

// How the sets of namespaces are followed, as the status shows it.
//
// The number of a set is never used twice.

impl StatusBoard {
    /// Shows how a set of namespaces is followed.
    pub(crate) fn show_namespaces(&self, set: usize, status: NamespacesStatus) {
        let mut shown = locked(&self.0.namespaces);
        if self.is_stopped() || shown.get(&set) == Some(&status) {
            return;
        }
        shown.insert(set, status);
        self.0.changed.raise();
    }

    /// Shows a set of namespaces no more.
    pub(crate) fn end_namespaces(&self, set: usize) {
        if !self.is_stopped() {
            locked(&self.0.namespaces).remove(&set);
            self.0.changed.raise();
        }
    }
}

//! What a wait for the sync looks at: a few words. While nothing is given up, a look walks over no sources.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use informer_core::meta::SourceId;
use informer_core::reflector::SourceState;

use super::StatusBoard;
use crate::pipeline::status::{NamespacesStatus, SourceStatus};
use crate::runtime::Stuck;
use crate::runtime::signal::Signal;

/// The most hints returned: many namespaces may not exist.
const MOST_HINTS: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SyncState {
    Pending,
    Reached,
    Stopped,
    /// Given up, for this reason, before its first list.
    Lost(SourceId, Arc<str>),
}

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
    pub(crate) fn settled(&self) -> &Signal {
        &self.0.settled
    }

    pub(crate) fn has_listed(&self) -> bool {
        self.0.store.with(|store| store.synced)
    }

    /// A saved cache is synced when its source has caught up with the server.
    pub(crate) fn is_synced(&self) -> bool {
        self.has_listed() && !self.0.saved.is_catching_up()
    }

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

    /// The first that passes `is_one` and has never listed.
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
        // `is_one` may take locks, so it is not called under the lock of the sources.
        self.0.sources.all(given_up).into_iter().find(|(source, _)| is_one(source))
    }

    /// The drop of the result ends the question.
    pub(crate) fn begin_question(&self) -> Question {
        self.0.questions.fetch_add(1, Ordering::AcqRel);
        Question(self.clone())
    }

    pub(crate) fn has_questions(&self) -> bool {
        self.0.questions.load(Ordering::Acquire) > 0
    }

    pub(crate) fn hints(&self) -> Vec<Arc<str>> {
        self.0.sources.all(|status| status.hint.clone()).into_iter().take(MOST_HINTS).collect()
    }

    pub(crate) fn failed(&self) -> Option<Arc<str>> {
        self.0.health.with(|health| health.failed.clone())
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn copies(&self) -> u64 {
        self.0.sources.copies()
    }

    pub(crate) fn stuck(&self) -> Option<Stuck> {
        self.0.health.with(|health| health.stuck.clone())
    }
}

// The number of a set of namespaces is never used twice.

impl StatusBoard {
    pub(crate) fn show_namespaces(&self, set: usize, status: NamespacesStatus) {
        let is_news = self.0.namespaces.with(|shown| {
            let is_news = !self.is_stopped() && shown.get(&set) != Some(&status);
            if is_news {
                shown.insert(set, status);
            }
            is_news
        });
        if is_news {
            self.0.changed.raise();
        }
    }

    pub(crate) fn end_namespaces(&self, set: usize) {
        if !self.is_stopped() {
            self.0.namespaces.with(|shown| shown.remove(&set));
            self.0.changed.raise();
        }
    }
}

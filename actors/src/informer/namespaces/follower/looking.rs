//! What the follower looks at before it plans.
//!
//! A look costs the same with any number of sources; only a plan's input visits the whole set. A refusal of the
//! cluster-wide source holds for `retry_after` or until it streams.

use std::collections::BTreeMap;
use std::sync::Arc;

use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::SourceId;
use informer_core::namespaces::{AllFollowed, Followed, NamespaceState};
use informer_core::reflector::SourceState;
use informer_core::words::{QUOTED, one_line};

use super::Exchange;
use crate::pipeline::messages::Body;

/// A plan's input, except what the single sources have brought.
#[derive(PartialEq)]
pub(super) struct Looked {
    pub(super) changed: u64,
    members: u64,
    retries: usize,
    pub(super) may_ask: bool,
    all: Option<OfAll>,
}

#[derive(PartialEq)]
pub(super) struct OfAll {
    followed: AllFollowed,
    /// The single sources take over when all of them have listed.
    have_all_listed: bool,
}

pub(super) struct Found {
    pub(super) followed: Followed,
    pub(super) ids: BTreeMap<Option<Arc<str>>, SourceId>,
}

impl<S: Body> Exchange<S> {
    pub(super) fn look(&self, changed: u64) -> Looked {
        let (sources, now) = (&self.pipeline.shared.sources, self.now());
        let all = sources.cluster_wide(self.set.number).map(|(id, is_leaving)| OfAll {
            followed: self.all_followed(&id, is_leaving),
            have_all_listed: sources.missing(self.set.number) == 0,
        });
        Looked {
            changed,
            members: sources.changes(),
            retries: self.failed.values().filter(|failed| failed.retry_at <= now).count(),
            may_ask: self.set.refused().is_none_or(|refused| refused.until <= now),
            all,
        }
    }

    fn all_followed(&self, id: &SourceId, is_leaving: bool) -> AllFollowed {
        let filter = self.set.filter().unwrap_or_default();
        let holdings = filter.holdings();
        AllFollowed {
            asked: holdings.asked().clone(),
            listed: holdings.listed().cloned(),
            held: holdings.held().clone(),
            is_refused: self.is_refused(id),
            is_leaving,
        }
    }

    pub(super) fn find(&self) -> Found {
        let shared = &self.pipeline.shared;
        let snapshot = shared.published.snapshot();
        let mut found = Found { followed: Followed::default(), ids: BTreeMap::new() };
        for (id, namespace, is_leaving) in shared.sources.of_set(self.set.number) {
            if let Some(namespace) = &namespace {
                let progress = match (is_leaving, snapshot.version(&id).is_some()) {
                    (true, _) => NamespaceState::Leaving,
                    (false, true) => NamespaceState::Listed,
                    (false, false) => NamespaceState::Listing,
                };
                found.followed.each.insert(Arc::clone(namespace), progress);
            } else {
                found.followed.all = Some(self.all_followed(&id, is_leaving));
            }
            found.ids.insert(namespace, id);
        }
        found
    }

    fn state_of(&self, id: &SourceId) -> Option<SourceState> {
        self.pipeline.shared.board.of_source(id, |status| status.state.clone())
    }

    /// The server forbids the cluster-wide source, or did so less than `retry_after` ago and it has not
    /// streamed since.
    fn is_refused(&self, id: &SourceId) -> bool {
        let state = self.state_of(id);
        let is_recent = || self.set.refused().is_some_and(|refused| refused.until > self.now());
        state.as_ref().and_then(refusal).is_some()
            || (!matches!(state, Some(SourceState::Streaming)) && is_recent())
    }

    /// Notes the reason and the time of the next try; clears both when it streams.
    pub(super) fn note_refusal(&self) {
        let Some((id, _)) = self.pipeline.shared.sources.cluster_wide(self.set.number) else { return };
        let Some(state) = self.state_of(&id) else { return };
        match refusal(&state) {
            Some(reason) => self.refuse(reason),
            None if matches!(state, SourceState::Streaming) => self.set.refuse(None),
            None => {}
        }
    }
}

/// `Some` if the server forbids the source or it is given up.
fn refusal(state: &SourceState) -> Option<Arc<str>> {
    match state {
        SourceState::Denied { error: error @ ListWatchError::Denied(_), .. } => {
            Some(one_line(&error.to_string(), QUOTED).into())
        }
        SourceState::GivenUp { reason } => Some(Arc::clone(reason)),
        _ => None,
    }
}

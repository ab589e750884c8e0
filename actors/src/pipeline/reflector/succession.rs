//! A source that takes over from others.
//!
//! Answers "which version must its next list not be below?". Invariants:
//! 1. What a predecessor has put into the queue before the request is in the list.
//! 2. What a predecessor tells after the request is kept for this source by the store, so the request is noted first.
//!
//! Read next: `informer_core::indexer`, whose store compares the versions.

use informer_core::meta::{ResourceVersion, SourceId};

use super::ReflectorSpec;
use crate::pipeline::messages::{Body, Epoch};

/// Notes that the source is asked for a list; `is_first` if it has none yet. Gives the version that the list is to reach.
pub(super) fn begin<S: Body>(of: &ReflectorSpec<S>, epoch: Epoch, is_first: bool) -> Option<ResourceVersion> {
    let shared = &of.shared;
    let predecessors = shared.sources.begin_list(&of.source, is_first);
    if predecessors.is_empty() {
        return None;
    }
    let snapshot = shared.published.snapshot();
    let newest = |source: &SourceId| {
        let handed_over = shared.handed_over.newest(epoch, source);
        let published = snapshot.newest_version(source).max(snapshot.awaited_version(source));
        handed_over.max(published.cloned())
    };
    predecessors.iter().filter_map(newest).max()
}

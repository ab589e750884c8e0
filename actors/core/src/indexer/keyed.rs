//! How parts in the order of their keys change the store, a slice at a time.
//!
//! Answers "which version does the snapshot have while older parts of other keys are still to come?". Each part is
//! applied as by `indexer/parts.rs`, and each slice is one publish. Invariants:
//! 1. A source's version moves only to what the queue says is reached, after the last part of the batch: then
//!    everything up to it has been applied.
//! 2. The newest version of any applied object is kept, too, so that no request asks for an older one.

use std::vec;

use super::Store;
use crate::delta::WatchPart;
use crate::meta::{ResourceVersion, SourceId};

pub(super) struct PartsByKey<S> {
    parts: vec::IntoIter<(SourceId, WatchPart<S>)>,
    reached: Vec<(SourceId, ResourceVersion)>,
}

impl<S> PartsByKey<S> {
    pub(super) fn new(
        parts: Vec<(SourceId, WatchPart<S>)>,
        reached: Vec<(SourceId, ResourceVersion)>,
    ) -> Self {
        Self { parts: parts.into_iter(), reached }
    }
}

impl<S> Store<S> {
    /// Applies at most `budget` of the keyed parts under way.
    pub(super) fn advance_keyed(&mut self, budget: usize) {
        let Some(mut keyed) = self.keyed.take() else { return };
        for (source, part) in keyed.parts.by_ref().take(budget) {
            if let Some(version) = part.reached() {
                self.working.run_ahead(&source, version);
            }
            self.apply_part(&source, part);
            self.note_behind(source);
        }
        if keyed.parts.len() > 0 {
            self.keyed = Some(keyed);
            return;
        }
        for (source, version) in keyed.reached {
            self.note_first(&source);
            self.working.reach(&source, &version);
            self.note_behind(source);
        }
        self.settle_noted();
    }
}

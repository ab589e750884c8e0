//! The cells of the sources of one informer: each with the status of one source.
//!
//! Answers "where is the status of this source, and which sources are there?". Invariants:
//! 1. The order is that in which the sources were added; a name is found without a walk over all of them.
//! 2. A lock here is held only while values are copied or changed; no user's code runs under it.
//!
//! Read next: `board.rs`, which has them; `status.rs`, the values.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use informer_core::meta::SourceId;
use informer_core::reflector::SourceState;

use crate::pipeline::status::SourceStatus;
use crate::runtime::locked::locked;

/// The sources of one informer.
#[derive(Debug, Default)]
pub(crate) struct SourceCells(Mutex<Cells>);

#[derive(Debug, Default)]
struct Cells {
    in_order: Vec<Arc<SourceCell>>,
    by_name: BTreeMap<SourceId, Arc<SourceCell>>,
}

#[derive(Debug)]
pub(crate) struct SourceCell {
    pub(crate) id: SourceId,
    pub(crate) status: Mutex<SourceStatus>,
}

impl SourceCells {
    pub(crate) fn new(sources: &[SourceId]) -> Self {
        let cells = Self::default();
        sources.iter().for_each(|id| cells.add(id, SourceState::Declared));
        cells
    }

    pub(crate) fn add(&self, id: &SourceId, state: SourceState) {
        let status = SourceStatus { state, ..SourceStatus::new(id.clone()) };
        let cell = Arc::new(SourceCell { id: id.clone(), status: Mutex::new(status) });
        let mut cells = locked(&self.0);
        cells.in_order.push(Arc::clone(&cell));
        cells.by_name.insert(id.clone(), cell);
    }

    pub(crate) fn remove(&self, id: &SourceId) {
        let mut cells = locked(&self.0);
        cells.in_order.retain(|cell| cell.id != *id);
        cells.by_name.remove(id);
    }

    pub(crate) fn find(&self, id: &SourceId) -> Option<Arc<SourceCell>> {
        locked(&self.0).by_name.get(id).cloned()
    }

    /// Copies of the statuses.
    pub(crate) fn read(&self) -> Vec<SourceStatus> {
        locked(&self.0).in_order.iter().map(|cell| locked(&cell.status).clone()).collect()
    }

    /// The first result for a source, in order.
    pub(crate) fn find_map<T>(&self, mut result: impl FnMut(&SourceStatus) -> Option<T>) -> Option<T> {
        locked(&self.0).in_order.iter().find_map(|cell| result(&locked(&cell.status)))
    }

    /// The results for all sources that have one, in order.
    pub(crate) fn all<T>(&self, mut result: impl FnMut(&SourceStatus) -> Option<T>) -> Vec<T> {
        locked(&self.0).in_order.iter().filter_map(|cell| result(&locked(&cell.status))).collect()
    }

    pub(crate) fn for_each(&self, mut change: impl FnMut(&mut SourceStatus)) {
        locked(&self.0).in_order.iter().for_each(|cell| change(&mut locked(&cell.status)));
    }
}

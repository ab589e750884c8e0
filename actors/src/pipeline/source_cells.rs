//! The cells of the sources of one informer: each with the status of one source.
//!
//! Answers "where is the status of this source, and which sources are there?". Invariants:
//! 1. The order is that in which the sources were added; a name is found without a walk over all of them.
//! 2. A lock here is held only while values are copied or changed; no user's code runs under it.
//! 3. What walks over all sources, here and in `sources.rs`, notes each one, so that a test can count whether an event costs
//!    more with more sources. Nothing is counted but in unit tests.
//!
//! Read next: `board.rs`, which has them; `status.rs`, the values.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use informer_core::meta::{ResourceVersion, SourceId};
use informer_core::reflector::SourceState;

use crate::pipeline::status::SourceStatus;
use crate::runtime::locked::locked;

/// The sources of one informer.
#[derive(Debug, Default)]
pub(crate) struct SourceCells(Mutex<Cells>);

#[derive(Debug, Default)]
struct Cells {
    in_order: BTreeMap<u64, Arc<SourceCell>>,
    by_name: BTreeMap<SourceId, (u64, Arc<SourceCell>)>,
    next: u64,
    /// How often all were copied.
    #[cfg(any(test, feature = "testing"))]
    copies: u64,
}

#[derive(Debug)]
pub(crate) struct SourceCell {
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
        let cell = Arc::new(SourceCell { status: Mutex::new(status) });
        let mut cells = locked(&self.0);
        let order = cells.next;
        cells.next += 1;
        cells.in_order.insert(order, Arc::clone(&cell));
        cells.by_name.insert(id.clone(), (order, cell));
    }

    pub(crate) fn remove(&self, id: &SourceId) {
        let mut cells = locked(&self.0);
        if let Some((order, _)) = cells.by_name.remove(id) {
            cells.in_order.remove(&order);
        }
    }

    pub(crate) fn find(&self, id: &SourceId) -> Option<Arc<SourceCell>> {
        locked(&self.0).by_name.get(id).map(|(_, cell)| Arc::clone(cell))
    }

    /// Copies of the statuses.
    pub(crate) fn read(&self) -> Vec<SourceStatus> {
        #[cfg(any(test, feature = "testing"))]
        {
            locked(&self.0).copies += 1;
        }
        self.all(|status| Some(status.clone()))
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn copies(&self) -> u64 {
        locked(&self.0).copies
    }

    /// Shows the version that is published of a source; true if that is its first one.
    pub(crate) fn show_version(&self, id: &SourceId, version: Option<&ResourceVersion>) -> bool {
        let Some(cell) = self.find(id) else { return false };
        let mut status = locked(&cell.status);
        let is_first = status.version.is_none() && version.is_some();
        status.version = version.cloned();
        is_first
    }

    /// The first result for a source, in order. Walks over all up to that one.
    pub(crate) fn find_map<T>(&self, mut result: impl FnMut(&SourceStatus) -> Option<T>) -> Option<T> {
        self.walk(|status| result(status))
    }

    /// The results for all sources that have one, in order.
    pub(crate) fn all<T>(&self, mut result: impl FnMut(&SourceStatus) -> Option<T>) -> Vec<T> {
        let mut results = Vec::new();
        self.for_each(|status| results.extend(result(status)));
        results
    }

    pub(crate) fn for_each(&self, mut change: impl FnMut(&mut SourceStatus)) {
        self.walk(|status| {
            change(status);
            None::<()>
        });
    }

    /// The only walk over the cells, so that a test can count what is looked at.
    fn walk<T>(&self, mut look: impl FnMut(&mut SourceStatus) -> Option<T>) -> Option<T> {
        locked(&self.0).in_order.values().find_map(|cell| {
            walks::note();
            look(&mut locked(&cell.status))
        })
    }
}

/// How many sources were looked at by walks over all of them.
pub(crate) mod walks {
    #[cfg(test)]
    use std::cell::Cell;

    #[cfg(test)]
    thread_local! {
        static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
    }

    /// A walk looks at one more source.
    #[inline]
    pub(in crate::pipeline) fn note() {
        #[cfg(test)]
        LOOKED_AT.set(LOOKED_AT.get() + 1);
    }

    /// How many were looked at on this thread since the last call.
    #[cfg(test)]
    pub(crate) fn take() -> usize {
        LOOKED_AT.take()
    }
}

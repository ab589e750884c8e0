//! The status cells of the sources of one informer, in the order of addition.
//!
//! 1. A lock is held only while values are copied or changed; no user's code runs under it.
//! 2. A name is found without a walk. Each walk over all sources, here and in `sources.rs`, notes each source: a unit
//!    test counts them.

use std::collections::BTreeMap;
use std::sync::Arc;

use informer_core::meta::{ResourceVersion, SourceId};
use informer_core::reflector::SourceState;

use crate::pipeline::status::SourceStatus;
use crate::runtime::locked::Guarded;

#[derive(Debug, Default)]
pub(crate) struct SourceCells(Guarded<Cells>);

#[derive(Debug, Default)]
struct Cells {
    in_order: BTreeMap<u64, Arc<SourceCell>>,
    by_name: BTreeMap<SourceId, (u64, Arc<SourceCell>)>,
    next: u64,
    #[cfg(any(test, feature = "testing"))]
    copies: u64,
}

#[derive(Debug)]
pub(crate) struct SourceCell {
    pub(crate) status: Guarded<SourceStatus>,
}

impl SourceCells {
    pub(crate) fn new(sources: &[SourceId]) -> Self {
        let cells = Self::default();
        sources.iter().for_each(|id| cells.add(id, SourceState::Declared));
        cells
    }

    pub(crate) fn add(&self, id: &SourceId, state: SourceState) {
        let status = SourceStatus { state, ..SourceStatus::new(id.clone()) };
        let cell = Arc::new(SourceCell { status: Guarded::new(status) });
        self.0.with(|cells| {
            let order = cells.next;
            cells.next += 1;
            cells.in_order.insert(order, Arc::clone(&cell));
            cells.by_name.insert(id.clone(), (order, cell));
        });
    }

    pub(crate) fn remove(&self, id: &SourceId) -> Option<Arc<SourceCell>> {
        self.0.with(|cells| {
            let (order, cell) = cells.by_name.remove(id)?;
            cells.in_order.remove(&order);
            Some(cell)
        })
    }

    pub(crate) fn find(&self, id: &SourceId) -> Option<Arc<SourceCell>> {
        self.0.with(|cells| cells.by_name.get(id).map(|(_, cell)| Arc::clone(cell)))
    }

    pub(crate) fn read(&self) -> Vec<SourceStatus> {
        #[cfg(any(test, feature = "testing"))]
        self.0.with(|cells| cells.copies += 1);
        self.all(|status| Some(status.clone()))
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn copies(&self) -> u64 {
        self.0.with(|cells| cells.copies)
    }

    /// True if this is the source's first published version.
    pub(crate) fn show_version(&self, id: &SourceId, version: Option<&ResourceVersion>) -> bool {
        let Some(cell) = self.find(id) else { return false };
        cell.status.with(|status| {
            let is_first = status.version.is_none() && version.is_some();
            status.version = version.cloned();
            is_first
        })
    }

    pub(crate) fn find_map<T>(&self, mut result: impl FnMut(&SourceStatus) -> Option<T>) -> Option<T> {
        self.walk(|status| result(status))
    }

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

    fn walk<T>(&self, mut look: impl FnMut(&mut SourceStatus) -> Option<T>) -> Option<T> {
        self.0.with(|cells| {
            cells.in_order.values().find_map(|cell| {
                walks::note();
                cell.status.with(&mut look)
            })
        })
    }
}

/// Counts the sources that walks have looked at, only in unit tests.
pub(crate) mod walks {
    #[cfg(test)]
    use std::cell::Cell;

    #[cfg(test)]
    thread_local! {
        static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
    }

    #[inline]
    pub(in crate::pipeline) fn note() {
        #[cfg(test)]
        LOOKED_AT.set(LOOKED_AT.get() + 1);
    }

    #[cfg(test)]
    pub(crate) fn take() -> usize {
        LOOKED_AT.take()
    }
}

//! The status board: the cells into which the actors of one informer write their status.
//!
//! Each actor writes its own cell; supervision and the watchdog write the health. Handles read copies.
//! 1. A lock is held only while values are copied; no user's code runs under it.
//! 2. The figures and versions of the store change, and are read, in one step with the published snapshot.
//! 3. A wait is woken by every change that can be waited for, and by no other; a wait for the sync only by what may
//!    end it (`settled`).
//! 4. The status does not change after the informer has stopped.

mod sync;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use informer_core::delta_fifo::{Depth, QueueOrder};
use informer_core::meta::SourceId;
use informer_core::reflector::{SourceCounters, SourceState};
use informer_core::timing::Timing;

pub(crate) use crate::pipeline::figures::StoreFigures;
use crate::pipeline::figures::{QueueCell, StoreCell};
use crate::pipeline::source_cells::SourceCells;
use crate::pipeline::status::{
    DataCounters, InformerStatus, LastRestart, NamespacesStatus, ResourceName, SourceStatus, SourceTotals,
};
use crate::runtime::Stuck;
use crate::runtime::locked::Guarded;
use crate::runtime::saved::SavedCell;
use crate::runtime::signal::Signal;
use crate::runtime::sizes::{InformerMemory, Sizes};
pub(crate) use sync::SyncState;

#[derive(Debug, Clone)]
pub(crate) struct StatusBoard(Arc<Cells>);

#[derive(Debug)]
struct Cells {
    name: Arc<str>,
    resource: Option<Arc<ResourceName>>,
    queue_order: QueueOrder,
    store: Guarded<StoreCell>,
    data: Guarded<DataCounters>,
    health: Guarded<Health>,
    sources: SourceCells,
    past: Guarded<Past>,
    queue: QueueCell,
    sizes: Arc<Sizes>,
    saved: Arc<SavedCell>,
    stopped: AtomicBool,
    questions: AtomicUsize,
    changed: Arc<Signal>,
    settled: Arc<Signal>,
    sources_moved: Signal,
    namespaces: Guarded<BTreeMap<usize, NamespacesStatus>>,
}

/// Changed when a list ends or a source is removed.
#[derive(Debug, Clone, Default)]
struct Past {
    lists: Timing,
    removed: SourceTotals,
}

#[derive(Debug, Default)]
struct Health {
    restarts: u64,
    last_restart: Option<LastRestart>,
    stuck: Option<Stuck>,
    failed: Option<Arc<str>>,
    handler_panics: u64,
}

impl StatusBoard {
    pub(crate) fn new(
        (name, resource): (Arc<str>, Option<Arc<ResourceName>>),
        queue_order: QueueOrder,
        sources: &[SourceId],
    ) -> Self {
        let (changed, settled) = (Arc::<Signal>::default(), Arc::<Signal>::default());
        Self(Arc::new(Cells {
            name,
            resource,
            queue_order,
            store: Guarded::default(),
            data: Guarded::default(),
            health: Guarded::default(),
            sources: SourceCells::new(sources),
            past: Guarded::default(),
            queue: QueueCell::new(),
            sizes: Arc::default(),
            saved: Arc::new(SavedCell::raising([&changed, &settled].map(Arc::clone))),
            stopped: AtomicBool::new(false),
            questions: AtomicUsize::new(0),
            changed,
            settled,
            sources_moved: Signal::default(),
            namespaces: Guarded::default(),
        }))
    }

    pub(crate) fn sizes(&self) -> Arc<Sizes> {
        Arc::clone(&self.0.sizes)
    }

    pub(crate) fn saved(&self) -> Arc<SavedCell> {
        Arc::clone(&self.0.saved)
    }

    pub(crate) fn memory(&self) -> InformerMemory {
        let objects = self.0.store.with(|store| store.objects);
        self.0.sizes.of(Arc::clone(&self.0.name), objects as u64)
    }

    pub(crate) fn read(&self) -> InformerStatus {
        let cells = &self.0;
        let (stopped, queue) = (self.is_stopped(), cells.queue.read());
        // Held until the versions are copied: a publish changes both in one step. A source removed meanwhile counts
        // once.
        let (sources, store, Past { lists, removed }) = cells
            .store
            .with(|store| cells.past.with(|past| (cells.sources.read(), store.clone(), past.clone())));
        let mut totals = removed;
        sources.iter().for_each(|source| totals.add(source));
        let StoreCell { began, objects, undecodable, synced, sync_took, sync_bytes, bytes, processing } =
            store;
        let data = cells.data.with(|data| data.clone());
        let saved = cells.saved.read();
        let namespaces = cells.namespaces.with(|shown| shown.values().cloned().collect());
        cells.health.with(|health| InformerStatus {
            name: Arc::clone(&cells.name),
            resource: cells.resource.clone(),
            queue_order: cells.queue_order,
            sources,
            totals,
            lists,
            queue,
            processing,
            objects,
            bytes,
            undecodable,
            synced: synced && saved.as_ref().is_none_or(|saved| saved.catching_up_to.is_none()),
            began_at: began,
            sync_took: match saved.as_ref().filter(|saved| saved.began_with.is_some()) {
                Some(saved) => saved.caught_up_at.map(|at| at.saturating_sub(began.unwrap_or(at))),
                None => sync_took,
            },
            sync_bytes,
            restarts: health.restarts,
            last_restart: health.last_restart.clone(),
            data,
            saved,
            namespaces,
            stuck: health.stuck.clone(),
            failed: health.failed.clone(),
            error_handler_panics: health.handler_panics,
            stopped,
        })
    }

    /// False if the informer was started before, or has stopped.
    pub(crate) fn begin(&self, now: Duration) -> bool {
        let begins = self.0.store.with(|store| {
            if store.began.is_some() || self.is_stopped() {
                return false;
            }
            store.began = Some(now);
            self.0.sources.for_each(|status| status.state = SourceState::Starting);
            true
        });
        if begins {
            self.wake();
        }
        begins
    }

    /// To wait: read its count, then the status, then wait.
    pub(crate) fn changed(&self) -> &Signal {
        &self.0.changed
    }

    /// Raised by the first list of a source, and by a change of its state.
    pub(crate) fn sources_moved(&self) -> &Signal {
        &self.0.sources_moved
    }

    pub(crate) fn show_synced(&self) {
        self.0.store.with(|store| {
            store.synced = true;
            store.sync_took.get_or_insert(Duration::ZERO);
        });
        self.wake();
    }

    pub(crate) fn stop(&self) {
        self.0.stopped.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) fn count_data(&self, count: impl FnOnce(&mut DataCounters)) {
        if !self.is_stopped() {
            self.0.data.with(count);
            self.0.changed.raise();
        }
    }

    pub(crate) fn count_handler_panic(&self) {
        if !self.is_stopped() {
            self.0.health.with(|health| health.handler_panics += 1);
            self.0.changed.raise();
        }
    }

    pub(crate) fn count_restart(&self, last: LastRestart, source: Option<&SourceId>) {
        if self.is_stopped() {
            return;
        }
        let _former = self.0.health.with(|health| {
            health.restarts += 1;
            health.last_restart.replace(last)
        });
        if let Some(source) = source {
            self.change_source(source, |status| {
                status.restarts += 1;
                false
            });
        }
        self.wake();
    }

    /// A source that the actor followed fails from now on at the latest.
    pub(crate) fn give_up(&self, failure: Arc<str>, source: Option<(&SourceId, &Arc<str>)>, now: Duration) {
        if self.is_stopped() {
            return;
        }
        if let Some((source, reason)) = source {
            self.change_source(source, |status| {
                status.state = SourceState::GivenUp { reason: Arc::clone(reason) };
                status.failing_since = status.failing_since.or(status.last_frame_at).or(Some(now));
                false
            });
        }
        self.0.health.with(|health| health.failed = Some(failure));
        self.wake();
    }

    /// `failure` returns the text if another source is still given up.
    pub(crate) fn revive(&self, source: &SourceId, failure: impl Fn(&SourceStatus, &Arc<str>) -> Arc<str>) {
        self.change_source(source, |status| {
            status.state = SourceState::Starting;
            false
        });
        self.show_failure_left(failure);
    }

    pub(crate) fn add_source(&self, source: &SourceId) {
        self.0.store.with(|store| {
            let state = if store.began.is_some() { SourceState::Starting } else { SourceState::Declared };
            self.0.sources.add(source, state);
        });
        self.wake();
    }

    /// `failure`: as for [`Self::revive`].
    pub(crate) fn remove_source(
        &self,
        source: &SourceId,
        failure: impl Fn(&SourceStatus, &Arc<str>) -> Arc<str>,
    ) {
        self.0.past.with(|past| {
            if let Some(cell) = self.0.sources.remove(source) {
                cell.status.with(|status| past.removed.add(status));
            }
        });
        self.show_failure_left(failure);
    }

    fn show_failure_left(&self, failure: impl Fn(&SourceStatus, &Arc<str>) -> Arc<str>) {
        let given_up = |status: &SourceStatus| match &status.state {
            SourceState::GivenUp { reason } => Some(failure(status, reason)),
            _ => None,
        };
        let left = self.failed().and_then(|_| self.0.sources.find_map(given_up));
        self.0.health.with(|health| health.failed = left);
        self.wake();
    }

    /// False if `publish` refuses. Wakes the waits if a number of objects or `synced` has changed, or for a source's
    /// first list.
    pub(crate) fn publish<S>(&self, figures: &StoreFigures<'_, S>, publish: impl FnOnce() -> bool) -> bool {
        let published = self.0.store.with(|store| {
            if !publish() {
                return None;
            }
            if self.is_stopped() {
                return Some((false, false, false));
            }
            let mut has_listed = false;
            for source in figures.touched {
                has_listed |= self.0.sources.show_version(source, figures.snapshot.version(source));
            }
            let was_synced = store.synced;
            let news = store.show(figures) || has_listed;
            if store.synced && !was_synced {
                store.sync_bytes = Some(self.0.sources.all(|status| Some(status.wire_bytes)).iter().sum());
            }
            Some((news, has_listed, has_listed || store.synced != was_synced))
        });
        let Some((news, has_listed, is_settled)) = published else { return false };
        if has_listed {
            self.0.sources_moved.raise();
        }
        if news {
            self.0.changed.raise();
        }
        if is_settled {
            self.0.settled.raise();
        }
        true
    }

    pub(crate) fn update_stuck(&self, stuck: Option<&Stuck>) -> bool {
        if self.is_stopped() {
            return false;
        }
        let news = self.0.health.with(|health| {
            let news = health.stuck.as_ref() != stuck;
            if news {
                health.stuck = stuck.cloned();
            }
            news
        });
        if news {
            self.0.changed.raise();
        }
        true
    }

    pub(crate) fn of_source<T>(&self, source: &SourceId, read: impl FnOnce(&SourceStatus) -> T) -> Option<T> {
        self.0.sources.find(source).map(|cell| cell.status.with(|status| read(status)))
    }

    pub(crate) fn counters(&self, source: &SourceId) -> SourceCounters {
        let cell = self.0.sources.find(source);
        cell.map(|cell| cell.status.with(|status| status.counters.clone())).unwrap_or_default()
    }

    /// Wakes the waits only if `change` returns true.
    pub(crate) fn update_source(&self, source: &SourceId, change: impl FnOnce(&mut SourceStatus) -> bool) {
        if !self.is_stopped() && self.change_source(source, change) {
            self.0.changed.raise();
        }
    }

    /// Wakes no wait: the depth changes with each event.
    pub(crate) fn show_queue(&self, depth: Depth, oldest_since: Option<Duration>) {
        self.0.queue.show(depth, oldest_since);
    }

    /// Of one batch: the Indexer takes the next when every listener has recorded the changes.
    pub(crate) fn hand_out(&self, arrived: Duration) {
        self.0.queue.hand_out(arrived);
    }

    /// See [`Self::hand_out`].
    pub(crate) fn arrived(&self) -> Duration {
        self.0.queue.arrived()
    }

    fn change_source(&self, source: &SourceId, change: impl FnOnce(&mut SourceStatus) -> bool) -> bool {
        let Some(cell) = self.0.sources.find(source) else { return false };
        let (news, has_moved, listed) = cell.status.with(|status| {
            let before = std::mem::discriminant(&status.state);
            let news = change(status);
            (news, std::mem::discriminant(&status.state) != before, status.listed.take())
        });
        if let Some(took) = listed {
            self.0.past.with(|past| past.lists.record(took));
        }
        if has_moved {
            self.0.sources_moved.raise();
        }
        news
    }

    fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Acquire)
    }

    fn wake(&self) {
        self.0.changed.raise();
        self.0.settled.raise();
    }
}

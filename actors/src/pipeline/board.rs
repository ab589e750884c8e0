//! The status board: cells into which the actors of one informer write their status.
//!
//! Answers "which actor writes which part of the status, and which waits are woken?". The Indexer writes the cell of
//! the store, each Reflector the cell of its source, the DeltaFifo that of the queue, supervision and the watchdog that
//! of the health. Handles read copies. Invariants:
//! 1. A lock here is held only while values are copied; no user's code runs under it.
//! 2. StoreFigures and versions of the store change in one step with the published snapshot, and are read in one step.
//! 3. A wait is woken by every change that can be waited for, and by no other. A wait for the sync is woken only by what
//!    may end it (`settled`), so that it costs nothing while a list arrives.
//! 4. The status does not change after the informer has stopped.
//!
//! Read next: `status.rs`, the values; `informer.rs`, which waits.

mod sync;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer_core::delta_fifo::{Depth, QueueOrder};
use informer_core::meta::SourceId;
use informer_core::reflector::{SourceCounters, SourceState};
use informer_core::snapshot::Snapshot;

use crate::pipeline::figures::QueueCell;
use crate::pipeline::signal::Signal;
use crate::pipeline::source_cells::SourceCells;
use crate::pipeline::status::{DataCounters, InformerStatus, NamespacesStatus, SourceStatus};
use crate::runtime::Stuck;
use crate::runtime::locked::locked;
pub(crate) use sync::SyncState;

/// The cells of one informer. Cloning copies a pointer.
#[derive(Debug, Clone)]
pub(crate) struct StatusBoard(Arc<Cells>);

#[derive(Debug)]
struct Cells {
    name: Arc<str>,
    queue_order: QueueOrder,
    store: Mutex<StoreCell>,
    data: Mutex<DataCounters>,
    health: Mutex<Health>,
    sources: SourceCells,
    queue: QueueCell,
    stopped: AtomicBool,
    /// How many sources are asked why their first list is empty.
    questions: AtomicUsize,
    /// Something has changed that can be waited for.
    changed: Signal,
    /// Something has changed that may end a wait for the sync.
    settled: Signal,
    /// A source has listed for the first time, or its state is another one.
    sources_moved: Signal,
    namespaces: Mutex<BTreeMap<usize, NamespacesStatus>>,
}

/// What is published.
#[derive(Debug, Default)]
struct StoreCell {
    /// When the informer was started; `None` while it is only declared.
    began: Option<Duration>,
    objects: usize,
    undecodable: usize,
    synced: bool,
    sync_took: Option<Duration>,
}

/// The reports of supervision and the watchdog.
#[derive(Debug, Default)]
struct Health {
    restarts: u64,
    stuck: Option<Stuck>,
    failed: Option<Arc<str>>,
    handler_panics: u64,
}

/// What the status shows of a published snapshot.
pub(crate) struct StoreFigures<'a, S> {
    pub(crate) objects: usize,
    pub(crate) undecodable: usize,
    /// The snapshot itself, for the versions of its sources.
    pub(crate) versions: &'a Snapshot<S>,
    /// The sources whose versions differ from those of the publish before.
    pub(crate) touched: &'a [SourceId],
    pub(crate) synced: bool,
    pub(crate) now: Duration,
}

impl StatusBoard {
    /// The cells of an informer that is declared.
    pub(crate) fn new(name: Arc<str>, queue_order: QueueOrder, sources: &[SourceId]) -> Self {
        Self(Arc::new(Cells {
            name,
            queue_order,
            store: Mutex::default(),
            data: Mutex::default(),
            health: Mutex::default(),
            sources: SourceCells::new(sources),
            queue: QueueCell::new(),
            stopped: AtomicBool::new(false),
            questions: AtomicUsize::new(0),
            changed: Signal::default(),
            settled: Signal::default(),
            sources_moved: Signal::default(),
            namespaces: Mutex::default(),
        }))
    }

    /// A copy of the status.
    pub(crate) fn read(&self) -> InformerStatus {
        let cells = &self.0;
        let (stopped, queue) = (self.is_stopped(), cells.queue.read());
        // The store's lock is held until the versions are copied, too: a publish changes both in one step.
        let store = locked(&cells.store);
        let sources = cells.sources.read();
        let (objects, undecodable, synced, sync_took) =
            (store.objects, store.undecodable, store.synced, store.sync_took);
        drop(store);
        let data = locked(&cells.data).clone();
        let namespaces = locked(&cells.namespaces).values().cloned().collect();
        let health = locked(&cells.health);
        InformerStatus {
            name: Arc::clone(&cells.name),
            queue_order: cells.queue_order,
            sources,
            queue,
            objects,
            undecodable,
            synced,
            sync_took,
            restarts: health.restarts,
            data,
            namespaces,
            stuck: health.stuck.clone(),
            failed: health.failed.clone(),
            error_handler_panics: health.handler_panics,
            stopped,
        }
    }

    /// Shows that the informer is started now; false if it was already, or has stopped.
    pub(crate) fn begin(&self, now: Duration) -> bool {
        let mut store = locked(&self.0.store);
        if store.began.is_some() || self.is_stopped() {
            return false;
        }
        store.began = Some(now);
        self.0.sources.for_each(|status| status.state = SourceState::Starting);
        drop(store);
        self.wake();
        true
    }

    /// Raised by each change. To wait for one: read its count, then the status, then wait.
    pub(crate) fn changed(&self) -> &Signal {
        &self.0.changed
    }

    /// Raised when a source has listed for the first time, or its state is another one.
    pub(crate) fn sources_moved(&self) -> &Signal {
        &self.0.sources_moved
    }

    /// An informer without sources is synced: there is nothing to list.
    pub(crate) fn show_synced(&self) {
        let mut store = locked(&self.0.store);
        store.synced = true;
        store.sync_took.get_or_insert(Duration::ZERO);
        drop(store);
        self.wake();
    }

    /// The informer has stopped.
    pub(crate) fn stop(&self) {
        self.0.stopped.store(true, Ordering::Release);
        self.wake();
    }

    /// Counts incidents in the data.
    pub(crate) fn count_data(&self, count: impl FnOnce(&mut DataCounters)) {
        if !self.is_stopped() {
            count(&mut locked(&self.0.data));
            self.0.changed.raise();
        }
    }

    /// Counts a panic of a handler of failures.
    pub(crate) fn count_handler_panic(&self) {
        if !self.is_stopped() {
            locked(&self.0.health).handler_panics += 1;
            self.0.changed.raise();
        }
    }

    /// Counts a restart, of the reflector of this source if there is one.
    pub(crate) fn count_restart(&self, source: Option<&SourceId>) {
        if self.is_stopped() {
            return;
        }
        locked(&self.0.health).restarts += 1;
        if let Some(source) = source {
            self.change_source(source, |status| {
                status.restarts += 1;
                false
            });
        }
        self.wake();
    }

    /// Shows that supervision has given up an actor, and the source that it followed, which fails since then at the latest.
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
        locked(&self.0.health).failed = Some(failure);
        self.wake();
    }

    /// Shows that a source that was given up starts again. If another source is still given up, `failure` gives the
    /// text.
    pub(crate) fn revive(&self, source: &SourceId, failure: impl Fn(&SourceStatus, &Arc<str>) -> Arc<str>) {
        self.change_source(source, |status| {
            status.state = SourceState::Starting;
            false
        });
        self.show_failure_left(failure);
    }

    /// Shows a source that has been added.
    pub(crate) fn add_source(&self, source: &SourceId) {
        let store = locked(&self.0.store);
        let state = if store.began.is_some() { SourceState::Starting } else { SourceState::Declared };
        self.0.sources.add(source, state);
        drop(store);
        self.wake();
    }

    /// Removes a source from the status. If another source is still given up, `failure` gives the text.
    pub(crate) fn remove_source(
        &self,
        source: &SourceId,
        failure: impl Fn(&SourceStatus, &Arc<str>) -> Arc<str>,
    ) {
        self.0.sources.remove(source);
        self.show_failure_left(failure);
    }

    fn show_failure_left(&self, failure: impl Fn(&SourceStatus, &Arc<str>) -> Arc<str>) {
        let given_up = |status: &SourceStatus| match &status.state {
            SourceState::GivenUp { reason } => Some(failure(status, reason)),
            _ => None,
        };
        let left = self.failed().and_then(|_| self.0.sources.find_map(given_up));
        locked(&self.0.health).failed = left;
        self.wake();
    }

    /// Whether every source's first list is published.
    pub(crate) fn is_synced(&self) -> bool {
        locked(&self.0.store).synced
    }

    /// Publishes and shows the figures in one step; false if `publish` refuses. Wakes the waits only if the number of
    /// objects or undecodable objects or `synced` has changed, or a source has listed for the first time.
    pub(crate) fn publish<S>(&self, figures: &StoreFigures<'_, S>, publish: impl FnOnce() -> bool) -> bool {
        let (news, has_listed, is_settled) = {
            let mut store = locked(&self.0.store);
            if !publish() {
                return false;
            }
            if self.is_stopped() {
                return true;
            }
            let mut has_listed = false;
            for source in figures.touched {
                has_listed |= self.0.sources.show_version(source, figures.versions.version(source));
            }
            let was_synced = store.synced;
            let news = store.show(figures) || has_listed;
            (news, has_listed, has_listed || store.synced != was_synced)
        };
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

    /// Shows what blocks a thread of this informer, or that nothing does; false after the stop.
    pub(crate) fn update_stuck(&self, stuck: Option<&Stuck>) -> bool {
        if self.is_stopped() {
            return false;
        }
        let news = {
            let mut health = locked(&self.0.health);
            let news = health.stuck.as_ref() != stuck;
            if news {
                health.stuck = stuck.cloned();
            }
            news
        };
        if news {
            self.0.changed.raise();
        }
        true
    }

    /// What is read of a source's status; `None` if there is no source of this name.
    pub(crate) fn of_source<T>(&self, source: &SourceId, read: impl FnOnce(&SourceStatus) -> T) -> Option<T> {
        self.0.sources.find(source).map(|cell| read(&locked(&cell.status)))
    }

    /// What a source has counted so far.
    pub(crate) fn counters(&self, source: &SourceId) -> SourceCounters {
        let cell = self.0.sources.find(source);
        cell.map(|cell| locked(&cell.status).counters.clone()).unwrap_or_default()
    }

    /// Changes one source's status; wakes the waits only if `change` gives true.
    pub(crate) fn update_source(&self, source: &SourceId, change: impl FnOnce(&mut SourceStatus) -> bool) {
        if !self.is_stopped() && self.change_source(source, change) {
            self.0.changed.raise();
        }
    }

    /// Shows the depth of the queue, and since when its oldest part waits. Wakes no wait: it changes with each event.
    pub(crate) fn show_queue(&self, depth: Depth, oldest_since: Option<Duration>) {
        self.0.queue.show(depth, oldest_since);
    }

    /// Notes when the oldest part of the Indexer's present batch arrived. The Indexer has one batch at a time, and
    /// takes the next one when every listener has recorded the changes.
    pub(crate) fn hand_out(&self, arrived: Duration) {
        self.0.queue.hand_out(arrived);
    }

    /// When the oldest part of the batch arrived whose changes are being sent to listeners.
    pub(crate) fn arrived(&self) -> Duration {
        self.0.queue.arrived()
    }

    fn change_source(&self, source: &SourceId, change: impl FnOnce(&mut SourceStatus) -> bool) -> bool {
        let Some(cell) = self.0.sources.find(source) else { return false };
        let mut status = locked(&cell.status);
        let before = std::mem::discriminant(&status.state);
        let news = change(&mut status);
        let has_moved = std::mem::discriminant(&status.state) != before;
        drop(status);
        if has_moved {
            self.0.sources_moved.raise();
        }
        news
    }

    fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Acquire)
    }

    /// Wakes all waits.
    fn wake(&self) {
        self.0.changed.raise();
        self.0.settled.raise();
    }
}

impl StoreCell {
    /// Takes the figures of a published snapshot; true if a wait could be for this change.
    fn show<S>(&mut self, figures: &StoreFigures<'_, S>) -> bool {
        let before = (self.objects, self.undecodable, self.synced);
        let now = (figures.objects, figures.undecodable, self.synced || figures.synced);
        (self.objects, self.undecodable, self.synced) = now;
        if now.2 && !before.2 {
            self.sync_took = Some(figures.now.saturating_sub(self.began.unwrap_or(figures.now)));
        }
        before != now
    }
}

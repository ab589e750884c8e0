//! The status board: cells into which the actors of one informer write their status.
//!
//! Answers "which actor writes which part of the status, and which waits are woken?". The Indexer writes the cell of
//! the store, each Reflector the cell of its source, the DeltaFifo that of the queue, supervision and the watchdog that
//! of the health. Handles read copies. Invariants:
//! 1. A lock here is held only while values are copied; no user's code runs under it.
//! 2. Figures and versions of the store change in one step with the published snapshot, and are read in one step.
//! 3. A wait is woken by every change that can be waited for, and by no other. A wait for the sync is woken only by what
//!    may end it (`settled`), so that it costs nothing while a list arrives.
//! 4. The status does not change after the informer has stopped.
//!
//! Read next: `status.rs`, the values; `informer.rs`, which waits.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use informer_core::delta_fifo::{Depth, QueueOrder};
use informer_core::meta::SourceId;
use informer_core::reflector::{SourceCounters, SourceState};
use informer_core::snapshot::Snapshot;

use crate::pipeline::figures::QueueStatus;
use crate::pipeline::signal::Signal;
use crate::pipeline::status::{DataCounters, InformerStatus, SourceStatus};
use crate::runtime::Stuck;
use crate::runtime::locked::locked;

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
    sources: Mutex<Vec<Arc<SourceCell>>>,
    queue: QueueCell,
    stopped: AtomicBool,
    /// Something has changed that can be waited for.
    changed: Signal,
    /// Something has changed that may end a wait for the sync.
    settled: Signal,
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
}

#[derive(Debug)]
struct SourceCell {
    id: SourceId,
    status: Mutex<SourceStatus>,
}

/// The queue's depth, and when the Indexer's batch arrived in it. It has no lock, since it changes with each event.
#[derive(Debug, Default)]
struct QueueCell {
    parts: AtomicUsize,
    bytes: AtomicUsize,
    /// In nanoseconds; [`NEVER`] if nothing waits.
    oldest_since: AtomicU64,
    handed_out: AtomicU64,
}

const NEVER: u64 = u64::MAX;

/// What the status shows of a published snapshot.
pub(crate) struct Figures<'a, S> {
    pub(crate) objects: usize,
    pub(crate) undecodable: usize,
    /// The snapshot itself, for the versions of its sources.
    pub(crate) versions: &'a Snapshot<S>,
    pub(crate) synced: bool,
    pub(crate) now: Duration,
}

impl StatusBoard {
    /// The cells of an informer that is declared.
    pub(crate) fn new(name: Arc<str>, queue_order: QueueOrder, sources: &[SourceId]) -> Self {
        let cell = |id: &SourceId| SourceCell::new(id, SourceState::Declared);
        Self(Arc::new(Cells {
            name,
            queue_order,
            store: Mutex::default(),
            data: Mutex::default(),
            health: Mutex::default(),
            sources: Mutex::new(sources.iter().map(cell).collect()),
            queue: QueueCell { oldest_since: AtomicU64::new(NEVER), ..QueueCell::default() },
            stopped: AtomicBool::new(false),
            changed: Signal::default(),
            settled: Signal::default(),
        }))
    }

    /// A copy of the status.
    pub(crate) fn read(&self) -> InformerStatus {
        let cells = &self.0;
        let (stopped, queue) = (self.is_stopped(), cells.queue.read());
        // The store's lock is held until the versions are copied, too: a publish changes both in one step.
        let store = locked(&cells.store);
        let sources = self.sources().iter().map(|source| locked(&source.status).clone()).collect();
        let (objects, undecodable, synced, sync_took) =
            (store.objects, store.undecodable, store.synced, store.sync_took);
        drop(store);
        let data = locked(&cells.data).clone();
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
            stuck: health.stuck.clone(),
            failed: health.failed.clone(),
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
        self.sources().iter().for_each(|source| locked(&source.status).state = SourceState::Starting);
        drop(store);
        self.wake();
        true
    }

    /// Raised by each change. To wait for one: read its count, then the status, then wait.
    pub(crate) fn changed(&self) -> &Signal {
        &self.0.changed
    }

    /// Waits for a status that is enough: one in which the sync, a source that is given up, or the stop is decided.
    pub(crate) async fn settled(&self, enough: impl Fn(&InformerStatus) -> bool) -> InformerStatus {
        loop {
            let seen = self.0.settled.count();
            let status = self.read();
            if enough(&status) {
                return status;
            }
            self.0.settled.since(seen).await;
        }
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

    /// Shows that supervision has given up an actor, and the source that it followed.
    pub(crate) fn give_up(&self, failure: Arc<str>, source: Option<(&SourceId, &Arc<str>)>) {
        if self.is_stopped() {
            return;
        }
        if let Some((source, reason)) = source {
            self.change_source(source, |status| {
                status.state = SourceState::GivenUp { reason: Arc::clone(reason) };
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
        self.sources().push(SourceCell::new(source, state));
        drop(store);
        self.wake();
    }

    /// Removes a source from the status. If another source is still given up, `failure` gives the text.
    pub(crate) fn remove_source(
        &self,
        source: &SourceId,
        failure: impl Fn(&SourceStatus, &Arc<str>) -> Arc<str>,
    ) {
        self.sources().retain(|cell| cell.id != *source);
        self.show_failure_left(failure);
    }

    fn show_failure_left(&self, failure: impl Fn(&SourceStatus, &Arc<str>) -> Arc<str>) {
        let left = self.sources().iter().find_map(|source| {
            let status = locked(&source.status);
            match &status.state {
                SourceState::GivenUp { reason } => Some(failure(&status, reason)),
                _ => None,
            }
        });
        locked(&self.0.health).failed = left;
        self.wake();
    }

    /// Whether every source's first list is published.
    pub(crate) fn is_synced(&self) -> bool {
        locked(&self.0.store).synced
    }

    /// Publishes and shows the figures in one step; false if `publish` refuses. Wakes the waits only if the number of
    /// objects or undecodable objects or `synced` has changed, or a source has listed for the first time.
    pub(crate) fn publish<S>(&self, figures: &Figures<'_, S>, publish: impl FnOnce() -> bool) -> bool {
        let news = {
            let mut store = locked(&self.0.store);
            if !publish() {
                return false;
            }
            if self.is_stopped() {
                return true;
            }
            let mut has_listed = false;
            for source in &*self.sources() {
                let version = figures.versions.version(&source.id);
                let mut status = locked(&source.status);
                if status.version.as_ref() != version {
                    has_listed |= status.version.is_none();
                    status.version = version.cloned();
                }
            }
            store.show(figures) || has_listed
        };
        if news {
            self.wake();
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
            self.wake();
        }
        true
    }

    /// What a source has counted so far.
    pub(crate) fn counters(&self, source: &SourceId) -> SourceCounters {
        let cell = self.source(source);
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
        let queue = &self.0.queue;
        queue.parts.store(depth.parts, Ordering::Relaxed);
        queue.bytes.store(depth.bytes, Ordering::Relaxed);
        queue.oldest_since.store(oldest_since.map_or(NEVER, nanos), Ordering::Relaxed);
    }

    /// Notes when the oldest part of the Indexer's present batch arrived. The Indexer has one batch at a time, and
    /// takes the next one when every listener has recorded the changes.
    pub(crate) fn hand_out(&self, arrived: Duration) {
        self.0.queue.handed_out.store(nanos(arrived), Ordering::Relaxed);
    }

    /// When the oldest part of the batch arrived whose changes are being sent to listeners.
    pub(crate) fn arrived(&self) -> Duration {
        Duration::from_nanos(self.0.queue.handed_out.load(Ordering::Relaxed))
    }

    fn change_source(&self, source: &SourceId, change: impl FnOnce(&mut SourceStatus) -> bool) -> bool {
        self.source(source).is_some_and(|cell| change(&mut locked(&cell.status)))
    }

    fn source(&self, source: &SourceId) -> Option<Arc<SourceCell>> {
        self.sources().iter().find(|cell| cell.id == *source).cloned()
    }

    fn sources(&self) -> MutexGuard<'_, Vec<Arc<SourceCell>>> {
        locked(&self.0.sources)
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

impl SourceCell {
    fn new(id: &SourceId, state: SourceState) -> Arc<Self> {
        let status = SourceStatus { state, ..SourceStatus::new(id.clone()) };
        Arc::new(Self { id: id.clone(), status: Mutex::new(status) })
    }
}

impl StoreCell {
    /// Takes the figures of a published snapshot; true if a wait could be for this change.
    fn show<S>(&mut self, figures: &Figures<'_, S>) -> bool {
        let before = (self.objects, self.undecodable, self.synced);
        let now = (figures.objects, figures.undecodable, self.synced || figures.synced);
        (self.objects, self.undecodable, self.synced) = now;
        if now.2 && !before.2 {
            self.sync_took = Some(figures.now.saturating_sub(self.began.unwrap_or(figures.now)));
        }
        before != now
    }
}

impl QueueCell {
    fn read(&self) -> QueueStatus {
        let oldest = self.oldest_since.load(Ordering::Relaxed);
        QueueStatus {
            parts: self.parts.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            oldest_since: (oldest != NEVER).then(|| Duration::from_nanos(oldest)),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER - 1)
}

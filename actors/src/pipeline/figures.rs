//! Figures for a dashboard: the depth of the DeltaFifo, how watches end, and the store. Times are of the runtime's
//! clock. Counters only grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use informer_core::delta_fifo::Depth;
use informer_core::list_watch_error::{ErrorClass, ListWatchError};
use informer_core::meta::SourceId;
use informer_core::snapshot::Snapshot;
use informer_core::timing::Timing;

/// What waits between the reflectors and the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStatus {
    /// Parts that wait; a whole list counts as one.
    pub parts: usize,
    /// Their bytes as they came from the wire.
    pub bytes: usize,
    /// When the oldest of them arrived, as time since the runtime's start.
    pub oldest_since: Option<Duration>,
}

/// A restart of an actor of an informer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastRestart {
    /// Which actor, such as `indexer` or `reflector/default`.
    pub actor: Arc<str>,
    /// How it ended, with the text of its panic.
    pub why: Arc<str>,
    /// When, as time since the runtime's start.
    pub at: Duration,
}

/// How the watches of one source have ended, watch-lists and renewals included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchEnds {
    /// By the server, without an error: its timeout, or its own end.
    pub finished: u64,
    /// The version was expired (410) or too large (504), or a frame could not be read: a list follows.
    pub expired: u64,
    /// The server was overloaded (429).
    pub overloaded: u64,
    /// Refused or unknown (401, 403, 404, a rejected selector), or the server knows no watch-list.
    pub refused: u64,
    /// The connection broke, no answer came in time, or the answer was not what was asked for.
    pub broken: u64,
    /// By the reflector: the watch was silent and another one took over, a deadline had passed, or its data
    /// did not allow to continue.
    pub closed: u64,
}

impl WatchEnds {
    /// Every reason with its count, those that never happened included.
    pub fn by_reason(&self) -> [(&'static str, u64); 6] {
        [
            ("finished", self.finished),
            ("expired", self.expired),
            ("overloaded", self.overloaded),
            ("refused", self.refused),
            ("broken", self.broken),
            ("closed", self.closed),
        ]
    }

    /// How many have ended.
    pub fn total(&self) -> u64 {
        self.by_reason().iter().map(|(_, count)| count).sum()
    }

    pub(crate) fn count(&mut self, error: Option<&ListWatchError>) {
        let reason = match (error, error.map(ListWatchError::class)) {
            (None, _) => &mut self.finished,
            (Some(ListWatchError::Overloaded { .. }), _) => &mut self.overloaded,
            (_, Some(ErrorClass::Relist)) => &mut self.expired,
            (
                _,
                Some(
                    ErrorClass::Denied
                    | ErrorClass::Unauthorized
                    | ErrorClass::Gone
                    | ErrorClass::SelectorRejected
                    | ErrorClass::Unsupported,
                ),
            ) => &mut self.refused,
            _ => &mut self.broken,
        };
        *reason += 1;
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.finished += other.finished;
        self.expired += other.expired;
        self.overloaded += other.overloaded;
        self.refused += other.refused;
        self.broken += other.broken;
        self.closed += other.closed;
    }
}

// No lock: it changes with each event.

#[derive(Debug)]
pub(crate) struct QueueCell {
    parts: AtomicUsize,
    bytes: AtomicUsize,
    /// In nanoseconds; [`NEVER`] if nothing waits.
    oldest_since: AtomicU64,
    handed_out: AtomicU64,
}

const NEVER: u64 = u64::MAX;

impl QueueCell {
    pub(crate) fn new() -> Self {
        let (parts, bytes, handed_out) = Default::default();
        Self { parts, bytes, handed_out, oldest_since: AtomicU64::new(NEVER) }
    }

    pub(crate) fn read(&self) -> QueueStatus {
        let oldest = self.oldest_since.load(Ordering::Relaxed);
        QueueStatus {
            parts: self.parts.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            oldest_since: (oldest != NEVER).then(|| Duration::from_nanos(oldest)),
        }
    }

    pub(crate) fn show(&self, depth: Depth, oldest_since: Option<Duration>) {
        self.parts.store(depth.parts, Ordering::Relaxed);
        self.bytes.store(depth.bytes, Ordering::Relaxed);
        self.oldest_since.store(oldest_since.map_or(NEVER, nanos), Ordering::Relaxed);
    }

    pub(crate) fn hand_out(&self, arrived: Duration) {
        self.handed_out.store(nanos(arrived), Ordering::Relaxed);
    }

    pub(crate) fn arrived(&self) -> Duration {
        Duration::from_nanos(self.handed_out.load(Ordering::Relaxed))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER - 1)
}

// Changed in one step with the published snapshot.

#[derive(Debug, Clone, Default)]
pub(crate) struct StoreCell {
    /// `None` while the informer is only declared.
    pub(crate) began: Option<Duration>,
    pub(crate) objects: usize,
    pub(crate) undecodable: usize,
    pub(crate) synced: bool,
    pub(crate) sync_took: Option<Duration>,
    pub(crate) sync_bytes: Option<u64>,
    pub(crate) bytes: usize,
    pub(crate) processing: Timing,
}

pub(crate) struct StoreFigures<'a, S> {
    pub(crate) objects: usize,
    pub(crate) undecodable: usize,
    pub(crate) snapshot: &'a Snapshot<S>,
    /// Those whose versions have changed since the last publish.
    pub(crate) touched: &'a [SourceId],
    pub(crate) synced: bool,
    /// When the store began with what it publishes.
    pub(crate) began: Duration,
    pub(crate) now: Duration,
}

impl StoreCell {
    /// True if a wait could be for this change.
    pub(crate) fn show<S>(&mut self, figures: &StoreFigures<'_, S>) -> bool {
        let before = (self.objects, self.undecodable, self.synced);
        let now = (figures.objects, figures.undecodable, self.synced || figures.synced);
        (self.objects, self.undecodable, self.synced) = now;
        self.bytes = figures.snapshot.wire_bytes();
        self.processing.record(figures.now.saturating_sub(figures.began));
        if now.2 && !before.2 {
            self.sync_took = Some(figures.now.saturating_sub(self.began.unwrap_or(figures.now)));
        }
        before != now
    }
}

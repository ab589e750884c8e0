//! The cell of the queue: its depth, and when the Indexer's batch arrived in it.
//!
//! Answers "what waits in the queue, and since when?". It has no lock, since it changes with each event. Read next:
//! `board.rs`, which has it; `delta_fifo.rs`, which writes it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use informer_core::delta_fifo::Depth;

use crate::pipeline::figures::QueueStatus;

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

//! The progress of an informer's actors, and whether they have more work: for the watchdog.
//!
//! Answers "does this pipeline make progress?" with one counter and three marks. The actors set them as they work, and
//! the watchdog reads them from its own thread. The rule that decides is `informer_core::restart`. Invariants:
//! 1. Neither side waits for the other, and no actor reads the values.
//! 2. The counter grows with every batch taken from the queue, slice applied, publish sent and chunk recorded.
//! 3. While the group waits for a restart it counts as having no work: its status shows that it is restarted.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use informer_core::indexer::machine::Step;
use informer_core::restart::Sample;

/// The counter and the marks of one informer.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    done: AtomicU64,
    /// The DeltaFifo holds entries, or the Indexer has not finished the batch it took.
    queued: AtomicBool,
    /// The Indexer's step, as [`APPLIES`] or [`FANS_OUT`]; 0 while it waits.
    at_work: AtomicU8,
    /// The group has failed and is not restarted yet.
    down: AtomicBool,
}

const APPLIES: u8 = 1;
const FANS_OUT: u8 = 2;

impl Progress {
    /// Something was done.
    pub(crate) fn note(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the queue has work for the Indexer.
    pub(crate) fn set_queued(&self, queued: bool) {
        self.queued.store(queued, Ordering::Relaxed);
    }

    /// Sets the Indexer's step.
    pub(crate) fn set_step(&self, step: Step) {
        let at_work = match step {
            Step::Advancing => APPLIES,
            Step::FanningOut => FANS_OUT,
            _ => 0,
        };
        self.at_work.store(at_work, Ordering::Relaxed);
    }

    /// The group has failed, and waits before it is restarted.
    pub(crate) fn group_is_down(&self) {
        self.down.store(true, Ordering::Relaxed);
    }

    /// A member of the group was built again: the wait is over.
    pub(crate) fn group_is_up(&self) {
        self.down.store(false, Ordering::Relaxed);
    }

    /// The input of the rule; `turn` identifies the present turn of the thread.
    pub(crate) fn sample(&self, turn: u64) -> Sample {
        let queued = self.queued.load(Ordering::Relaxed);
        let works = self.at_work.load(Ordering::Relaxed) != 0;
        let has_work = (queued || works) && !self.down.load(Ordering::Relaxed);
        Sample { has_work, done: self.done.load(Ordering::Relaxed), turn }
    }

    /// The actor that makes no progress, if one makes none.
    pub(crate) fn stalled_actor(&self) -> &'static str {
        if self.at_work.load(Ordering::Relaxed) == FANS_OUT { "processor" } else { "indexer" }
    }
}

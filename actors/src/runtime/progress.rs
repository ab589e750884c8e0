//! The progress of an informer's actors, and whether they have more work: for the watchdog.
//!
//! The counter grows with every batch popped, slice applied, publish sent and chunk recorded. A group that waits for
//! its restart counts as without work: its status shows the restart.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use informer_core::indexer::machine::Step;
use informer_core::restart::Sample;

#[derive(Debug, Default)]
pub(crate) struct Progress {
    done: AtomicU64,
    /// The DeltaFifo holds entries, or the Indexer has not finished the batch it took.
    queued: AtomicBool,
    /// [`APPLIES`] or [`FANS_OUT`]; 0 while the Indexer waits.
    at_work: AtomicU8,
    down: AtomicBool,
}

const APPLIES: u8 = 1;
const FANS_OUT: u8 = 2;

impl Progress {
    pub(crate) fn note(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn set_queued(&self, queued: bool) {
        self.queued.store(queued, Ordering::Relaxed);
    }

    pub(crate) fn set_step(&self, step: Step) {
        let at_work = match step {
            Step::Advancing => APPLIES,
            Step::FanningOut => FANS_OUT,
            _ => 0,
        };
        self.at_work.store(at_work, Ordering::Relaxed);
    }

    pub(crate) fn group_is_down(&self) {
        self.down.store(true, Ordering::Relaxed);
    }

    pub(crate) fn group_is_up(&self) {
        self.down.store(false, Ordering::Relaxed);
    }

    pub(crate) fn sample(&self, turn: u64) -> Sample {
        let queued = self.queued.load(Ordering::Relaxed);
        let works = self.at_work.load(Ordering::Relaxed) != 0;
        let has_work = (queued || works) && !self.down.load(Ordering::Relaxed);
        Sample { has_work, done: self.done.load(Ordering::Relaxed), turn }
    }

    pub(crate) fn stalled_actor(&self) -> &'static str {
        if self.at_work.load(Ordering::Relaxed) == FANS_OUT { "processor" } else { "indexer" }
    }
}

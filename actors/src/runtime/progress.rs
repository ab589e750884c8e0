//! What an informer's actors have done, and whether there is more to do: for the watchdog.
//!
//! Answers "does this pipeline get on?" with one counter and three marks, which the actors set as they work and the
//! watchdog reads from its own thread. It decides nothing: the rule is `informer_core::stall`. Invariants:
//! 1. Nobody waits for anybody here, and no actor reads it.
//! 2. The counter grows with every batch handed out, slice done, publish handed on and chunk recorded.
//! 3. While the group waits out a backoff there is no work: its status says that it is restarted.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use informer_core::indexer::machine::Step;
use informer_core::stall::Sample;

/// The counter and the marks of one informer.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    done: AtomicU64,
    /// The DeltaFifo holds something, or has handed out what the Indexer has not yet done.
    queued: AtomicBool,
    /// What the Indexer is at, as [`WORKS`] or [`TELLS`]; 0 while it waits.
    at_work: AtomicU8,
    /// The group has died and is not built anew yet.
    down: AtomicBool,
}

const WORKS: u8 = 1;
const TELLS: u8 = 2;

impl Progress {
    /// Something was done.
    pub(crate) fn note(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the queue has work for the Indexer.
    pub(crate) fn set_queued(&self, queued: bool) {
        self.queued.store(queued, Ordering::Relaxed);
    }

    /// What the Indexer is at.
    pub(crate) fn set_step(&self, step: Step) {
        let at_work = match step {
            Step::Advancing => WORKS,
            Step::Telling => TELLS,
            _ => 0,
        };
        self.at_work.store(at_work, Ordering::Relaxed);
    }

    /// The group has died, and waits before it is built anew.
    pub(crate) fn group_is_down(&self) {
        self.down.store(true, Ordering::Relaxed);
    }

    /// A member of the group is built anew: its backoff is over.
    pub(crate) fn group_is_up(&self) {
        self.down.store(false, Ordering::Relaxed);
    }

    /// What the rule needs to know; `turn` tells the turns of the thread apart.
    pub(crate) fn sample(&self, turn: u64) -> Sample {
        let queued = self.queued.load(Ordering::Relaxed);
        let works = self.at_work.load(Ordering::Relaxed) != 0;
        let has_work = (queued || works) && !self.down.load(Ordering::Relaxed);
        Sample { has_work, done: self.done.load(Ordering::Relaxed), turn }
    }

    /// The actor that does not get on, if one does not.
    pub(crate) fn holder(&self) -> &'static str {
        if self.at_work.load(Ordering::Relaxed) == TELLS { "processor" } else { "indexer" }
    }
}

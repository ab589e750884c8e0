//! How much a thread does in one turn of an actor, and between two turns of its neighbours.
//!
//! Answers "how long was the longest turn, and how many objects did it touch?". Invariants:
//! 1. Each thread counts its own work: processor time, and objects that it makes, indexes or drops.
//!
//! Read next: `../turns.rs`, what is measured.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_informer::testing::{Faults, Site};
use rustix::time::{ClockId, clock_gettime};

thread_local! {
    /// Objects that this thread has made, indexed or dropped.
    static TOUCHED: Cell<usize> = const { Cell::new(0) };
    /// What it had done when the present turn began.
    static BEGUN: Cell<Work> = const { Cell::new(Work { cpu: Duration::ZERO, objects: 0 }) };
}

/// This thread makes, indexes or drops an object.
pub(super) fn touch() {
    // At its end a thread has no counter any more.
    let _gone = TOUCHED.try_with(|touched| touched.set(touched.get() + 1));
}

/// The longest turns and rounds since the last look.
#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<Longest>>);

#[derive(Default, Clone, Copy)]
pub(super) struct Longest {
    pub(super) turn: Work,
    pub(super) round: Work,
}

/// What a thread did in some stretch.
#[derive(Default, Clone, Copy)]
pub(super) struct Work {
    pub(super) cpu: Duration,
    pub(super) objects: usize,
}

impl Work {
    /// All that this thread has done until now.
    fn now() -> Self {
        let cpu = clock_gettime(ClockId::ThreadCPUTime).try_into();
        Self { cpu: cpu.expect("this clock begins at zero and goes forward"), objects: TOUCHED.get() }
    }

    fn since(self) -> Self {
        let now = Self::now();
        Self { cpu: now.cpu.saturating_sub(self.cpu), objects: now.objects - self.objects }
    }

    fn or_more(&mut self, other: Self) {
        *self = Self { cpu: self.cpu.max(other.cpu), objects: self.objects.max(other.objects) };
    }
}

impl Turns {
    /// Measures the rounds of the thread that runs it.
    pub(super) async fn look(self) {
        loop {
            let begun = Work::now();
            tokio::task::yield_now().await;
            self.longest().round.or_more(begun.since());
        }
    }

    /// Measures the turns of a runtime's actors, and calls `other` at every site.
    pub(super) fn faults(&self, other: impl Fn(Site) + Send + Sync + 'static) -> Faults {
        let turns = self.clone();
        Faults::new(move |site| {
            other(site);
            match site {
                Site::TurnBegun => BEGUN.set(Work::now()),
                Site::TurnEnded => turns.longest().turn.or_more(BEGUN.get().since()),
                _ => {}
            }
        })
    }

    fn longest(&self) -> MutexGuard<'_, Longest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self) -> Longest {
        std::mem::take(&mut *self.longest())
    }
}

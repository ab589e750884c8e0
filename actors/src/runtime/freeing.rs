//! The freeing thread of a runtime: it frees the values of [`OffArbiter`](informer_core::off_arbiter::OffArbiter)s,
//! so that neither actors nor the decode pool wait for this.
//!
//! Every value is freed exactly once: by this thread, by a decode thread when much waits, or where it is dropped (at
//! the bound, in simulation, after the runtime's end). Large values are freed in pieces between the small ones. At
//! the bound a list of more than [`PIECES`] chunks still waits: its dropper would free hundreds of thousands of
//! objects in one turn.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use informer_core::off_arbiter::{PendingFree, Release};
use tokio::sync::oneshot;

use super::locked::locked;
use super::signal::Signal;
use super::{RuntimeError, panic_text};

/// How long a value may wait, so that one wake frees several.
const GATHER: Duration = Duration::from_millis(50);

/// With this many values the thread begins at once.
const WAKE_AT_VALUES: usize = 64;

/// With this many bytes the thread begins at once. All bytes here are those on the wire; a decoded object takes more.
const WAKE_AT_BYTES: usize = 128 << 10;

/// While more bytes of small values than this wait, decode threads free some before each job.
const HELP_AT: usize = 256 << 10;

/// While more bytes than this wait in total, decode threads free a piece of a large value before each job.
const HELP_LARGE_AT: usize = 16 << 20;

/// When this many bytes of small values wait, a small value is freed where it is dropped.
const FREE_IN_PLACE_AT: usize = 1 << 20;

/// A value of this many bytes is large.
const LARGE: usize = 4 << 20;

/// A value of more pieces is a list: one publish of a watch leaves fewer.
const PIECES: usize = 4;

/// Added to the bytes of each small value: nodes of trees, a box.
const OVERHEAD: usize = 4 << 10;

/// From this number of bytes in total, no list begins, and large values are freed where they are dropped.
const NO_LIST_AT: usize = 256 << 20;

#[derive(Clone)]
pub(crate) struct Freeing(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    pending: AtomicUsize,
    /// Bytes of small values that wait, plus [`OVERHEAD`] for each.
    waiting: AtomicUsize,
    below_limit: Signal,
    thread: Mutex<Option<(JoinHandle<()>, oneshot::Receiver<()>)>>,
}

struct State {
    values: VecDeque<PendingFree>,
    large: VecDeque<PendingFree>,
    thread: ThreadState,
    closed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ThreadState {
    Idle,
    Gathering,
    Busy,
}

impl State {
    fn is_enough(&self, pending: usize) -> bool {
        self.values.len() >= WAKE_AT_VALUES || !self.large.is_empty() || pending >= WAKE_AT_BYTES
    }
}

impl Freeing {
    pub(super) fn thread(name: &str) -> Result<Self, RuntimeError> {
        let name = format!("{name}-free");
        let freeing = Self::new(false);
        let shared = Arc::clone(&freeing.0);
        let (ends, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name(name.clone()).spawn(move || {
            shared.work();
            drop(ends);
        });
        let thread = thread.map_err(|source| RuntimeError::Thread { name, source })?;
        *locked(&freeing.0.thread) = Some((thread, ended));
        Ok(freeing)
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn inline() -> Self {
        Self::new(true)
    }

    fn new(closed: bool) -> Self {
        let state =
            State { values: VecDeque::new(), large: VecDeque::new(), thread: ThreadState::Busy, closed };
        let shared = Shared {
            state: Mutex::new(state),
            wake: Condvar::new(),
            pending: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            below_limit: Signal::default(),
            thread: Mutex::new(None),
        };
        Self(Arc::new(shared))
    }

    pub(crate) fn as_release(&self) -> Arc<dyn Release> {
        Arc::<Shared>::clone(&self.0)
    }

    pub(crate) fn pending_bytes(&self) -> usize {
        self.0.pending.load(Ordering::Relaxed)
    }

    /// Called by a thread before it makes objects.
    pub(super) fn help(&self) {
        while self.0.waiting.load(Ordering::Relaxed) > HELP_AT {
            let Some(value) = self.0.state().values.pop_front() else { break };
            self.0.free_waiting(value);
        }
        if self.pending_bytes() > HELP_LARGE_AT {
            let large = self.0.state().large.pop_front();
            large.into_iter().for_each(|large| self.0.free_some(large));
        }
    }

    pub(crate) fn is_over_limit(&self) -> bool {
        self.pending_bytes() >= NO_LIST_AT
    }

    pub(crate) async fn until_below_limit(&self) {
        self.0.below_limit.until(|| (!self.is_over_limit()).then_some(())).await;
    }

    /// Frees first what it has.
    pub(super) fn end(&self) {
        self.0.state().closed = true;
        self.0.wake.notify_one();
    }

    /// Does not block the caller's thread.
    pub(super) async fn close(&self) {
        self.end();
        let Some((thread, ended)) = locked(&self.0.thread).take() else { return };
        let _dropped = ended.await;
        drop(thread.join());
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn work(&self) {
        while let Some((value, large)) = self.next() {
            value.into_iter().for_each(|value| self.free_waiting(value));
            large.into_iter().for_each(|large| self.free_some(large));
        }
    }

    fn free_some(&self, mut large: PendingFree) {
        if self.free_piece(&mut large) {
            let mut state = self.state();
            if state.closed {
                drop(state);
                return self.free(large);
            }
            state.large.push_front(large);
            // The thread may have found nothing in between.
            if state.thread == ThreadState::Idle {
                state.thread = ThreadState::Busy;
                drop(state);
                self.wake.notify_one();
            }
        } else {
            self.count_freed(large.bytes());
        }
    }

    /// The next value and the next large one: at least one, unless another thread has taken it; `None` at the end.
    /// One at a time: the decoders free what waits while this thread does not run.
    fn next(&self) -> Option<(Option<PendingFree>, Option<PendingFree>)> {
        let mut state = self.state();
        if state.values.is_empty() && state.large.is_empty() {
            let nothing = |state: &mut State| {
                // Also after a wake: another thread may have freed the value.
                state.thread = ThreadState::Idle;
                state.values.is_empty() && state.large.is_empty() && !state.closed
            };
            state = self.wake.wait_while(state, nothing).unwrap_or_else(PoisonError::into_inner);
            state.thread = ThreadState::Gathering;
            let few =
                |state: &mut State| !state.closed && !state.is_enough(self.pending.load(Ordering::Relaxed));
            let gathered = self.wake.wait_timeout_while(state, GATHER, few);
            state = gathered.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.thread = ThreadState::Busy;
        let (value, large) = (state.values.pop_front(), state.large.pop_front());
        (value.is_some() || large.is_some() || !state.closed).then_some((value, large))
    }

    fn free_waiting(&self, value: PendingFree) {
        let bytes = value.bytes() + OVERHEAD;
        self.free(value);
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn free(&self, mut value: PendingFree) {
        while self.free_piece(&mut value) {}
        self.count_freed(value.bytes());
    }

    /// False if nothing was left.
    fn free_piece(&self, value: &mut PendingFree) -> bool {
        match catch_unwind(AssertUnwindSafe(|| value.free_piece())) {
            Ok(Some(bytes)) => self.count_freed(bytes),
            Ok(None) => return false,
            Err(panic) => {
                let panic = panic_text(&*panic);
                tracing::error!(target: "actix_informer::runtime", panic, "an object has panicked while it was dropped; the others are freed");
            }
        }
        true
    }

    fn count_freed(&self, bytes: usize) {
        let before = self.pending.fetch_sub(bytes, Ordering::Relaxed);
        if before >= NO_LIST_AT && before - bytes < NO_LIST_AT {
            self.below_limit.raise();
        }
    }
}

impl Release for Shared {
    fn release(&self, value: PendingFree) {
        let bytes = value.bytes();
        let is_large = bytes >= LARGE;
        let sum = self.pending.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let mut state = self.state();
        // Without its own bytes: one value larger than the bound is not freed here.
        let is_at_bound = if is_large {
            sum - bytes >= NO_LIST_AT
        } else {
            self.waiting.load(Ordering::Relaxed) >= FREE_IN_PLACE_AT
        };
        if state.closed || (is_at_bound && value.pieces() <= PIECES) {
            drop(state);
            return self.free(value);
        }
        if is_large {
            state.large.push_back(value);
        } else {
            self.waiting.fetch_add(bytes + OVERHEAD, Ordering::Relaxed);
            state.values.push_back(value);
        }
        let wakes = match state.thread {
            ThreadState::Idle => true,
            ThreadState::Gathering => state.is_enough(sum),
            ThreadState::Busy => false,
        };
        if wakes {
            state.thread = ThreadState::Busy;
            drop(state);
            self.wake.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;

//! The freeing thread: it frees large values, so that arbiters do not.
//!
//! Answers "which thread frees the value of an [`OffArbiter`](informer_core::off_arbiter::OffArbiter), and how much is
//! still to be freed?". Each runtime has one such thread, so that freeing delays neither an actor nor the decode pool.
//! Invariants:
//! 1. Every value is freed exactly once: by the thread, by a thread that makes objects while much waits, or by the
//!    caller at the bound, in simulation and after the runtime's end.
//! 2. A hand-over is one push. The thread is woken at most once in [`GATHER`], unless [`MANY`] values or [`ENOUGH`] bytes
//!    wait.
//! 3. Of small values no more than [`MOST`] bytes wait. Large ones, which are lists, informers that have ended and what
//!    a watch leaves of large objects, are freed piece by piece between the others. While more than [`TOO_MUCH`] bytes wait,
//!    no list begins, and a large value is freed where it is dropped: that is the price of a bound for what a watch leaves. A
//!    list of more than [`PIECES`] chunks never is: whoever drops it would free hundreds of thousands of objects in one
//!    turn, and no other list begins meanwhile.
//! 4. At the end the thread frees the values it has, then ends.
//! 5. A panic in a destructor of a user's body is logged; the values after it are freed.
//!
//! Read next: `informer_core::off_arbiter`; `pipeline/reflector/session.rs`, whose next list waits for this thread.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use informer_core::off_arbiter::{PendingFree, Release};
use tokio::sync::{Notify, oneshot};

use super::locked::locked;
use super::{RuntimeError, panic_text};

/// How long a value may wait, so that several are freed after one wake.
const GATHER: Duration = Duration::from_millis(50);

/// So many values are freed without a wait.
const MANY: usize = 64;

/// So many bytes are freed without a wait. Bytes are those on the wire; a decoded object takes more.
const ENOUGH: usize = 128 << 10;

/// While more bytes than this wait, not counting large values, the threads that decode free some before each job.
const HELP_AT: usize = 256 << 10;

/// While more bytes than this wait, large values included, the threads that decode free a piece of one before each job.
const HELP_LARGE_AT: usize = 16 << 20;

/// At so many bytes, not counting large values, a value is freed by whoever drops it.
const MOST: usize = 1 << 20;

/// A value of so many bytes is large.
const MUCH: usize = 4 << 20;

/// A value of more pieces is a list: what one publish of a watch leaves has fewer.
const PIECES: usize = 4;

/// What a value is counted for besides its bytes: nodes of trees, a box.
const EACH: usize = 4 << 10;

/// While more bytes than this are still to be freed, no list begins, and large values are freed where they are dropped.
const TOO_MUCH: usize = 256 << 20;

/// The freeing thread of one runtime. Without one, values are freed where they are dropped. Cloning copies a pointer.
#[derive(Clone)]
pub(crate) struct Freeing(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    /// Bytes that were handed over and are not freed yet.
    pending: AtomicUsize,
    /// Those of values that are not large and wait, with [`EACH`] for each.
    waiting: AtomicUsize,
    /// Notified when `pending` falls below [`TOO_MUCH`].
    below_limit: Notify,
    thread: Mutex<Option<(JoinHandle<()>, oneshot::Receiver<()>)>>,
}

struct State {
    values: VecDeque<PendingFree>,
    /// Those of at least [`MUCH`] bytes.
    large: VecDeque<PendingFree>,
    thread: ThreadState,
    closed: bool,
}

/// What the thread is doing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ThreadState {
    /// It waits for a value.
    Idle,
    /// It has a value, and waits up to [`GATHER`] for more.
    Gathering,
    /// It frees values, and looks for more before it waits.
    Busy,
}

impl State {
    /// Whether enough waits to wake the thread at once.
    fn is_enough(&self, pending: usize) -> bool {
        self.values.len() >= MANY || !self.large.is_empty() || pending >= ENOUGH
    }
}

impl Freeing {
    /// Starts the thread.
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

    /// Values are freed where they are dropped.
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
            below_limit: Notify::new(),
            thread: Mutex::new(None),
        };
        Self(Arc::new(shared))
    }

    /// The receiver of values, for an `OffArbiter`.
    pub(crate) fn release(&self) -> Arc<dyn Release> {
        Arc::<Shared>::clone(&self.0)
    }

    /// Roughly how many bytes have been handed over and are not freed yet.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.0.pending.load(Ordering::Relaxed)
    }

    /// Frees values that wait, as long as there are many, and a piece of a large one. For a thread that is about to make as
    /// many.
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

    /// Whether a list has to wait until more is freed.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.pending_bytes() >= TOO_MUCH
    }

    /// Waits until a list may begin.
    pub(crate) async fn until_below_limit(&self) {
        loop {
            let mut below_limit = pin!(self.0.below_limit.notified());
            below_limit.as_mut().enable();
            if !self.is_over_limit() {
                return;
            }
            below_limit.await;
        }
    }

    /// Lets the thread free the values it has, and end.
    pub(super) fn end(&self) {
        self.0.state().closed = true;
        self.0.wake.notify_one();
    }

    /// Lets the thread free the values it has, and joins it. Does not block the caller's thread.
    pub(super) async fn close(&self) {
        self.end();
        let Some((thread, ended)) = locked(&self.0.thread).take() else { return };
        // Completion is signalled by dropping the sender.
        let _dropped = ended.await;
        drop(thread.join());
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn work(&self) {
        while let Some((values, large)) = self.next() {
            values.into_iter().for_each(|value| self.free_waiting(value));
            large.into_iter().for_each(|large| self.free_some(large));
        }
    }

    /// Frees a piece of a large value. What is left waits again.
    fn free_some(&self, mut large: PendingFree) {
        if self.free_piece(&mut large) {
            let mut state = self.state();
            if state.closed {
                drop(state);
                return self.free(large);
            }
            state.large.push_front(large);
            // The thread may have found nothing meanwhile.
            if state.thread == ThreadState::Idle {
                state.thread = ThreadState::Busy;
                drop(state);
                self.wake.notify_one();
            }
        } else {
            self.count_freed(large.bytes());
        }
    }

    /// Waits for something to free, and a little longer for more of it; `None` at the end. A large value comes back
    /// until its last piece is freed.
    fn next(&self) -> Option<(Vec<PendingFree>, Option<PendingFree>)> {
        let nothing = |state: &mut State| {
            // Also after a wake: another thread may have freed the value that it was for.
            state.thread = ThreadState::Idle;
            state.values.is_empty() && state.large.is_empty() && !state.closed
        };
        let mut state = self.wake.wait_while(self.state(), nothing).unwrap_or_else(PoisonError::into_inner);
        state.thread = ThreadState::Gathering;
        let few = |state: &mut State| !state.closed && !state.is_enough(self.pending.load(Ordering::Relaxed));
        let (mut state, _timed_out) =
            self.wake.wait_timeout_while(state, GATHER, few).unwrap_or_else(PoisonError::into_inner);
        state.thread = ThreadState::Busy;
        let few = state.values.len().min(MANY);
        let (values, large) = (state.values.drain(..few).collect::<Vec<_>>(), state.large.pop_front());
        (!values.is_empty() || large.is_some() || !state.closed).then_some((values, large))
    }

    /// Frees a value that was counted as waiting.
    fn free_waiting(&self, value: PendingFree) {
        let bytes = value.bytes() + EACH;
        self.free(value);
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Frees a value piece by piece, and counts each piece as freed.
    fn free(&self, mut value: PendingFree) {
        while self.free_piece(&mut value) {}
        self.count_freed(value.bytes());
    }

    /// Frees one piece of a value, and counts it as freed; false if nothing is left.
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
        if before >= TOO_MUCH && before - bytes < TOO_MUCH {
            self.below_limit.notify_waiters();
        }
    }
}

impl Release for Shared {
    fn release(&self, value: PendingFree) {
        let bytes = value.bytes();
        let is_large = bytes >= MUCH;
        let sum = self.pending.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let mut state = self.state();
        // Its own bytes do not count: one value that is larger than the bound is no reason to free it here.
        let is_at_bound =
            if is_large { sum - bytes >= TOO_MUCH } else { self.waiting.load(Ordering::Relaxed) >= MOST };
        if state.closed || (is_at_bound && value.pieces() <= PIECES) {
            drop(state);
            return self.free(value);
        }
        if is_large {
            state.large.push_back(value);
        } else {
            self.waiting.fetch_add(bytes + EACH, Ordering::Relaxed);
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

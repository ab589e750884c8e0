//! The freeing thread: it frees large values, so that arbiters do not.
//!
//! Answers "which thread frees the value of an [`OffArbiter`](informer_core::off_arbiter::OffArbiter), and how much is
//! still to be freed?". Each runtime has one such thread, so that freeing delays neither an actor nor the decode pool.
//! Invariants:
//! 1. Every value is freed exactly once: by the thread, or by the caller in simulation and after the runtime's end.
//! 2. A hand-over is one push. The thread is woken at most once in [`GATHER`], unless [`MANY`] values or [`MUCH`] bytes
//!    wait.
//! 3. At the end the thread frees the values it has, then ends.
//! 4. A panic in a destructor of a user's body is logged; the values after it are freed.
//!
//! Read next: `informer_core::off_arbiter`; `pipeline/reflector/session.rs`, whose next list waits for this thread.

use std::fmt;
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

/// So many bytes are freed without a wait.
const MUCH: usize = 4 << 20;

/// While more bytes than this are still to be freed, no list begins.
const TOO_MUCH: usize = 256 << 20;

/// The freeing thread of one runtime. Without one, values are freed where they are dropped. Cloning copies a pointer.
#[derive(Clone)]
pub(crate) struct Freeing(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    /// Bytes that were handed over and are not freed yet.
    pending: AtomicUsize,
    /// Notified when `pending` falls below [`TOO_MUCH`].
    below_limit: Notify,
    thread: Mutex<Option<(JoinHandle<()>, oneshot::Receiver<()>)>>,
}

struct State {
    values: Vec<PendingFree>,
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
        self.values.len() >= MANY || pending >= MUCH
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
        let state = State { values: Vec::new(), thread: ThreadState::Busy, closed };
        let shared = Shared {
            state: Mutex::new(state),
            wake: Condvar::new(),
            pending: AtomicUsize::new(0),
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
        while let Some(values) = self.next() {
            values.into_iter().for_each(|value| self.free(value));
        }
    }

    /// Waits for something to free, and a little longer for more of it; `None` at the end.
    fn next(&self) -> Option<Vec<PendingFree>> {
        let mut state = self.state();
        state.thread = ThreadState::Idle;
        let nothing = |state: &mut State| state.values.is_empty() && !state.closed;
        let mut state = self.wake.wait_while(state, nothing).unwrap_or_else(PoisonError::into_inner);
        state.thread = ThreadState::Gathering;
        let few = |state: &mut State| !state.closed && !state.is_enough(self.pending.load(Ordering::Relaxed));
        let (mut state, _timed_out) =
            self.wake.wait_timeout_while(state, GATHER, few).unwrap_or_else(PoisonError::into_inner);
        state.thread = ThreadState::Busy;
        let values = std::mem::take(&mut state.values);
        (!values.is_empty() || !state.closed).then_some(values)
    }

    /// Frees a value piece by piece, and counts each piece as freed.
    fn free(&self, mut value: PendingFree) {
        loop {
            match catch_unwind(AssertUnwindSafe(|| value.free_piece())) {
                Ok(Some(bytes)) => self.count_freed(bytes),
                Ok(None) => break,
                Err(panic) => {
                    let panic = panic_text(&*panic);
                    tracing::error!(
                        target: "actix_informer::runtime",
                        panic,
                        "an object has panicked while it was dropped; the others are freed"
                    );
                }
            }
        }
        self.count_freed(value.bytes());
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
        let mut state = self.state();
        if state.closed {
            drop(state);
            self.pending.fetch_add(bytes, Ordering::Relaxed);
            return self.free(value);
        }
        let sum = self.pending.fetch_add(bytes, Ordering::Relaxed) + bytes;
        state.values.push(value);
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

impl fmt::Debug for Freeing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Freeing").field("pending_bytes", &self.pending_bytes()).finish()
    }
}

#[cfg(test)]
mod tests;

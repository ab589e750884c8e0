//! The freeing thread: large values are freed here, and not on an arbiter.
//!
//! Answers "who frees what an [`OffArbiter`](informer_core::off_arbiter::OffArbiter) hands away, and how much is still to
//! be freed?". One thread of its own for each runtime, so that it delays neither an actor nor the decode pool. Invariants:
//! 1. Every value is freed exactly once: by the thread, or by the caller in simulation and after the runtime's end.
//! 2. A hand-over is one push; the thread is woken at most once in [`GATHER`], unless [`MANY`] values or [`MUCH`] wait.
//! 3. At the end the thread frees what it has, then ends.
//! 4. A panic in a destructor of a user's body is logged; the values behind it are freed all the same.
//!
//! Read next: `informer_core::off_arbiter`; `pipeline/reflector/session.rs`, whose next list waits for this thread.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use informer_core::off_arbiter::{Owed, Release};
use tokio::sync::{Notify, oneshot};

use super::{RuntimeError, panic_text};

/// How long what is handed over may wait for company.
const GATHER: Duration = Duration::from_millis(50);

/// So many values are freed without a wait.
const MANY: usize = 64;

/// So many bytes are freed without a wait.
const MUCH: usize = 4 << 20;

/// While more bytes than this are still to be freed, no list begins.
const TOO_MUCH: usize = 256 << 20;

/// The freeing thread of one runtime, or none: then values are freed where they are dropped. Cloning copies a pointer.
#[derive(Clone)]
pub(crate) struct Freeing(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    owed: AtomicUsize,
    /// Told when `owed` is small enough for a list.
    less: Notify,
    thread: Mutex<Option<(JoinHandle<()>, oneshot::Receiver<()>)>>,
}

struct State {
    values: Vec<Owed>,
    rest: Rest,
    closed: bool,
}

/// What the thread is doing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// It waits for something to free.
    Idle,
    /// It waits for more.
    Gathering,
    /// It frees, and looks again before it waits.
    Busy,
}

impl State {
    /// Whether what waits is worth a wake of its own.
    fn is_enough(&self, owed: usize) -> bool {
        self.values.len() >= MANY || owed >= MUCH
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
        let state = State { values: Vec::new(), rest: Rest::Busy, closed };
        let shared = Shared {
            state: Mutex::new(state),
            wake: Condvar::new(),
            owed: AtomicUsize::new(0),
            less: Notify::new(),
            thread: Mutex::new(None),
        };
        Self(Arc::new(shared))
    }

    /// Where values are handed to.
    pub(crate) fn release(&self) -> Arc<dyn Release> {
        Arc::<Shared>::clone(&self.0)
    }

    /// Roughly how many bytes have been handed over and are not free yet.
    pub(crate) fn owed(&self) -> usize {
        self.0.owed.load(Ordering::Relaxed)
    }

    /// Whether a list has to wait until more is free.
    pub(crate) fn owes_too_much(&self) -> bool {
        self.owed() >= TOO_MUCH
    }

    /// Waits until a list may begin.
    pub(crate) async fn until_less(&self) {
        loop {
            let mut less = pin!(self.0.less.notified());
            less.as_mut().enable();
            if !self.owes_too_much() {
                return;
            }
            less.await;
        }
    }

    /// Lets the thread free what it has and end.
    pub(super) fn end(&self) {
        self.0.state().closed = true;
        self.0.wake.notify_one();
    }

    /// Lets the thread free what it has, and joins it. Blocks nobody.
    pub(super) async fn close(&self) {
        self.end();
        let Some((thread, ended)) = locked(&self.0.thread).take() else { return };
        // Nothing is ever sent: the sender goes when the thread has done its work.
        let _gone = ended.await;
        drop(thread.join());
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn work(&self) {
        while let Some(values) = self.next() {
            values.into_iter().for_each(|owed| self.free(owed));
        }
    }

    /// Waits for something to free, and a little longer for more of it; `None` at the end.
    fn next(&self) -> Option<Vec<Owed>> {
        let mut state = self.state();
        state.rest = Rest::Idle;
        let nothing = |state: &mut State| state.values.is_empty() && !state.closed;
        let mut state = self.wake.wait_while(state, nothing).unwrap_or_else(PoisonError::into_inner);
        state.rest = Rest::Gathering;
        let few = |state: &mut State| !state.closed && !state.is_enough(self.owed.load(Ordering::Relaxed));
        let (mut state, _timed_out) =
            self.wake.wait_timeout_while(state, GATHER, few).unwrap_or_else(PoisonError::into_inner);
        state.rest = Rest::Busy;
        let values = std::mem::take(&mut state.values);
        (!values.is_empty() || !state.closed).then_some(values)
    }

    /// Frees a value piece by piece; what it owes is paid off with each.
    fn free(&self, mut owed: Owed) {
        loop {
            match catch_unwind(AssertUnwindSafe(|| owed.free_piece())) {
                Ok(Some(bytes)) => self.pay(bytes),
                Ok(None) => break,
                Err(panic) => {
                    let panic = panic_text(&*panic);
                    tracing::error!(panic, "a panic while an object was dropped; what is behind it is freed");
                }
            }
        }
        self.pay(owed.bytes());
    }

    fn pay(&self, bytes: usize) {
        let before = self.owed.fetch_sub(bytes, Ordering::Relaxed);
        if before >= TOO_MUCH && before - bytes < TOO_MUCH {
            self.less.notify_waiters();
        }
    }
}

impl Release for Shared {
    fn release(&self, owed: Owed) {
        let bytes = owed.bytes();
        let mut state = self.state();
        if state.closed {
            drop(state);
            self.owed.fetch_add(bytes, Ordering::Relaxed);
            return self.free(owed);
        }
        let sum = self.owed.fetch_add(bytes, Ordering::Relaxed) + bytes;
        state.values.push(owed);
        let wakes = match state.rest {
            Rest::Idle => true,
            Rest::Gathering => state.is_enough(sum),
            Rest::Busy => false,
        };
        if wakes {
            state.rest = Rest::Busy;
            drop(state);
            self.wake.notify_one();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Freeing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Freeing").field("owed", &self.owed()).finish()
    }
}

#[cfg(test)]
mod tests;

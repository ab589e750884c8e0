//! The callback pool: threads on which subscribers' blocking closures run.
//!
//! Answers "where may foreign code block?": on a thread of its own for as long as it runs. The pool grows with the
//! jobs that run at once and shrinks when threads have been idle for a while; in simulation jobs run in their caller.
//! Invariants:
//! 1. A job never waits for another: there is an idle thread for it, or a new one is started. However many closures
//!    never return, the next one is not delayed. (Only a system that gives no more threads makes jobs wait.)
//! 2. A [`Strand`] runs one job at a time, so a subscription never holds more than one thread, and none while idle.
//! 3. What a strand owns is dropped here, too, after its last job has returned, and never on an arbiter.
//! 4. A panic in a job ends that job, not its thread.
//! 5. After the close no job begins: who asks is told [`Closed`]. What a strand owns is dropped on a thread of its own.
//! 6. No job runs, no thread is started and nothing is logged under a lock.
//!
//! Read next: `blocking.rs`, whose closures run here.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

use super::panic_text;
use crate::runtime::mailbox::Closed;

/// How long a thread without a job is kept.
const LINGER: Duration = Duration::from_secs(5);

type Job = Box<dyn FnOnce() + Send>;

/// The pool. Cloning copies a pointer.
#[derive(Clone)]
pub(crate) struct CallbackPool(Option<Arc<Crew>>);

struct Crew {
    name: String,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Threads that wait for a job, also those that are just being woken.
    idle: usize,
    threads: BTreeMap<u64, Worker>,
    started: u64,
    closed: bool,
}

struct Worker {
    /// None while the thread is being started.
    handle: Option<JoinHandle<()>>,
    busy: bool,
}

impl CallbackPool {
    /// A pool without threads yet; theirs will be called `{name}-callback-{n}`.
    pub(super) fn threads(name: &str) -> Self {
        let crew = Crew { name: name.to_owned(), state: Mutex::default(), wake: Condvar::new() };
        Self(Some(Arc::new(crew)))
    }

    /// Every job runs in its caller.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn inline() -> Self {
        Self(None)
    }

    /// How many threads there are now.
    #[cfg(test)]
    fn width(&self) -> usize {
        self.0.as_ref().map_or(0, |crew| crew.state().threads.len())
    }

    /// Runs a job: on an idle thread, else on a new one. After the close it is given back.
    fn run(&self, job: Job) -> Result<(), Job> {
        match &self.0 {
            Some(crew) => crew.run(job),
            None => {
                guarded(job);
                Ok(())
            }
        }
    }

    /// Drops a value of a subscriber: on the pool, and after its close on a thread that lives for that alone.
    fn drop_there<T: Send + 'static>(&self, value: T) {
        if let Err(job) = self.run(Box::new(move || drop(value))) {
            let thread = self.0.as_ref().map_or("", |crew| &crew.name);
            run_apart(thread, job);
        }
    }

    /// Ends idle threads, and busy ones after their job, without waiting for any. No further job begins.
    pub(super) fn end(&self) {
        drop(self.dismiss());
    }

    /// As [`Self::end`], and joins the idle ones. Who never returns cannot be ended, and is not waited for.
    pub(super) fn close(&self) {
        let own = std::thread::current().id();
        let handles = self.dismiss().into_iter().filter_map(|worker| worker.handle);
        handles.filter(|handle| handle.thread().id() != own).for_each(|handle| drop(handle.join()));
    }

    /// The idle threads, which end now.
    fn dismiss(&self) -> Vec<Worker> {
        let Some(crew) = &self.0 else { return Vec::new() };
        let (threads, unbegun) = {
            let mut state = crew.state();
            state.closed = true;
            (std::mem::take(&mut state.threads), std::mem::take(&mut state.jobs))
        };
        crew.wake.notify_all();
        if !unbegun.is_empty() {
            run_apart(&crew.name, Box::new(move || drop(unbegun)));
        }
        threads.into_values().filter(|worker| !worker.busy).collect()
    }
}

/// Runs a job on a new thread; here only if the system gives none.
fn run_apart(pool: &str, job: Job) {
    let job = Arc::new(Mutex::new(Some(job)));
    let taken = Arc::clone(&job);
    let take = |job: &Mutex<Option<Job>>| job.lock().unwrap_or_else(PoisonError::into_inner).take();
    let thread = std::thread::Builder::new().name(format!("{pool}-callback-end"));
    if let Err(error) = thread.spawn(move || take(&taken).map(guarded)) {
        tracing::error!(%error, pool, "no thread to drop a blocking closure on; it is dropped here");
        if let Some(job) = take(&job) {
            guarded(job);
        }
    }
}

impl Crew {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(self: &Arc<Self>, job: Job) -> Result<(), Job> {
        let mut state = self.state();
        if state.closed {
            return Err(job);
        }
        state.jobs.push_back(job);
        let number = (state.idle < state.jobs.len()).then(|| state.expect_thread());
        drop(state);
        match number {
            Some(number) => self.start_thread(number),
            None => self.wake.notify_one(),
        }
        Ok(())
    }

    /// Starts the thread that is expected under this number.
    fn start_thread(self: &Arc<Self>, number: u64) {
        let crew = Arc::clone(self);
        let thread = std::thread::Builder::new().name(format!("{}-callback-{number}", self.name));
        match thread.spawn(move || crew.work(number)) {
            Ok(handle) => {
                // It may have ended already; then nobody joins it.
                if let Some(worker) = self.state().threads.get_mut(&number) {
                    worker.handle = Some(handle);
                }
            }
            Err(error) => {
                self.state().threads.remove(&number);
                // The job stays queued for the first thread that becomes idle.
                tracing::error!(%error, pool = self.name, "no thread for a blocking callback; it waits for another one");
            }
        }
    }

    /// Does jobs until there were none for a while.
    fn work(&self, number: u64) {
        let mut state = self.state();
        loop {
            while let Some(job) = state.jobs.pop_front() {
                drop(state);
                guarded(job);
                state = self.state();
            }
            if state.closed {
                break;
            }
            state.set_busy(number, false);
            state.idle += 1;
            let (woken, waited) =
                self.wake.wait_timeout(state, LINGER).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            state.set_busy(number, true);
            if waited.timed_out() && state.jobs.is_empty() {
                break;
            }
        }
        state.threads.remove(&number);
    }
}

impl State {
    /// Makes room for a thread that is about to be started.
    fn expect_thread(&mut self) -> u64 {
        let number = self.started;
        self.started += 1;
        self.threads.insert(number, Worker { handle: None, busy: true });
        number
    }

    fn set_busy(&mut self, number: u64, busy: bool) {
        if let Some(worker) = self.threads.get_mut(&number) {
            worker.busy = busy;
        }
    }
}

fn guarded(job: Job) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(job)) {
        tracing::error!(panic = panic_text(&*panic), "a job of the callback pool panicked");
        drop_payload(panic);
    }
}

/// Drops what somebody else's code panicked with. A panic in dropping that is not followed any further.
pub(crate) fn drop_payload(panic: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
}

/// Something that is used on the pool only, by one job at a time. Cloning copies a pointer; when the last clone is
/// dropped, and the last job has returned, the value is dropped on the pool.
pub(crate) struct Strand<T: Send + 'static>(Arc<Owned<T>>);

struct Owned<T: Send + 'static> {
    pool: CallbackPool,
    // Held for as long as the value takes to move; empty while a job has it.
    value: Mutex<Option<T>>,
}

impl<T: Send + 'static> Strand<T> {
    pub(crate) fn new(pool: CallbackPool, value: T) -> Self {
        Self(Arc::new(Owned { pool, value: Mutex::new(Some(value)) }))
    }

    /// Runs `job` on the value; the future ends when it has returned, also if it panicked. The job runs whether or
    /// not the future is polled. A second job before the first has returned would find no value.
    ///
    /// [`Closed`]: the pool is closed, and the job was dropped.
    pub(crate) fn run<J>(&self, job: J) -> impl Future<Output = Result<(), Closed>> + use<T, J>
    where
        J: FnOnce(&mut T) + Send + 'static,
    {
        let (returned, ended) = oneshot::channel::<()>();
        let owned = Arc::clone(&self.0);
        let accepted = self.0.pool.run(Box::new(move || {
            // Dropped in this order: the value is back when the asker is told.
            let _told_at_the_end = returned;
            let mut lent = LentOut { value: owned.take(), owned: &owned };
            if let Some(value) = &mut lent.value {
                job(value);
            }
        }));
        let accepted = accepted.map_err(|_job| Closed);
        async move {
            accepted?;
            // The sender is only ever dropped: that is the message.
            drop(ended.await);
            Ok(())
        }
    }
}

/// The value while a job has it; back in its place when dropped, also after a panic.
struct LentOut<'a, T: Send + 'static> {
    value: Option<T>,
    owned: &'a Owned<T>,
}

impl<T: Send + 'static> Drop for LentOut<'_, T> {
    fn drop(&mut self) {
        self.owned.put_back(self.value.take());
    }
}

impl<T: Send + 'static> Owned<T> {
    fn take(&self) -> Option<T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put_back(&self, value: Option<T>) {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

impl<T: Send + 'static> Drop for Owned<T> {
    fn drop(&mut self) {
        if let Some(value) = self.take() {
            self.pool.drop_there(value);
        }
    }
}

impl<T: Send + 'static> Clone for Strand<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Send + 'static> fmt::Debug for Strand<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Strand")
    }
}

impl fmt::Debug for CallbackPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "CallbackPool(threads)" } else { "CallbackPool(inline)" })
    }
}

#[cfg(test)]
mod tests;

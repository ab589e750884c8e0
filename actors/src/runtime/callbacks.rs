//! The callback pool: threads that run subscribers' blocking closures.
//!
//! A running blocking closure has its own thread, so one that never returns delays no other. (A job waits only if the
//! system cannot start a thread.) In simulation jobs run in their caller. A value is dropped after its last job,
//! never on an arbiter. After the close no job starts. The end of a job or value is reported only when its thread
//! counts as idle, so that a close that follows joins it. No job runs, no thread starts and nothing is logged under a
//! lock.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

use super::panic_text;
use crate::runtime::locked::locked;
use crate::runtime::mailbox::Closed;

const LINGER: Duration = Duration::from_secs(5);

/// The drop of the returned value reports the job's end.
type Job = Box<dyn FnOnce() -> Report + Send>;

type Report = Box<dyn Any + Send>;

#[derive(Clone)]
pub(crate) struct CallbackPool(Option<Arc<Threads>>);

struct Threads {
    name: String,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Includes threads that are being woken.
    idle: usize,
    threads: BTreeMap<u64, Worker>,
    /// Threads that idled too long and have ended, or are about to.
    left: Vec<JoinHandle<()>>,
    started: u64,
    closed: bool,
}

struct Worker {
    handle: Option<JoinHandle<()>>,
    busy: bool,
}

impl CallbackPool {
    pub(super) fn threads(name: &str) -> Self {
        let threads = Threads { name: name.to_owned(), state: Mutex::default(), wake: Condvar::new() };
        Self(Some(Arc::new(threads)))
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn inline() -> Self {
        Self(None)
    }

    #[cfg(test)]
    fn width(&self) -> usize {
        self.0.as_ref().map_or(0, |threads| threads.state().threads.len())
    }

    /// Returns the job after the close.
    fn run(&self, job: Job) -> Result<(), Job> {
        match &self.0 {
            Some(threads) => threads.run(job),
            None => {
                drop(guarded(job));
                Ok(())
            }
        }
    }

    /// Drops the value, then `report`: on the pool, or after the close on a new thread.
    fn drop_there<T: Send + 'static>(&self, value: T, report: Report) {
        let job = move || {
            guarded(move || drop(value));
            report
        };
        if let Err(job) = self.run(Box::new(job)) {
            let thread = self.0.as_ref().map_or("", |threads| &threads.name);
            run_on_new_thread(thread, job);
        }
    }

    /// Busy threads end after their job.
    pub(super) fn end(&self) {
        drop(self.dismiss());
    }

    /// Joins idle threads only: a job may never return.
    pub(super) fn close(&self) {
        let own = std::thread::current().id();
        let handles = self.dismiss().into_iter();
        handles.filter(|handle| handle.thread().id() != own).for_each(|handle| drop(handle.join()));
    }

    fn dismiss(&self) -> Vec<JoinHandle<()>> {
        let Some(threads) = &self.0 else { return Vec::new() };
        let (workers, left, unstarted) = {
            let mut state = threads.state();
            state.closed = true;
            let State { threads, left, jobs, .. } = &mut *state;
            (std::mem::take(threads), std::mem::take(left), std::mem::take(jobs))
        };
        threads.wake.notify_all();
        if !unstarted.is_empty() {
            run_on_new_thread(&threads.name, Box::new(move || Box::new(unstarted)));
        }
        let idle = workers.into_values().filter(|worker| !worker.busy);
        idle.filter_map(|worker| worker.handle).chain(left).collect()
    }
}

/// If the system cannot start a thread, the job runs here.
fn run_on_new_thread(pool: &str, job: Job) {
    let job = Arc::new(Mutex::new(Some(job)));
    let taken = Arc::clone(&job);
    let take = |job: &Mutex<Option<Job>>| locked(job).take();
    let thread = std::thread::Builder::new().name(format!("{pool}-callback-end"));
    if let Err(error) = thread.spawn(move || drop(take(&taken).map(guarded))) {
        tracing::error!(target: "actix_informer::runtime", %error, pool, "cannot start a thread to drop a blocking closure; its caller drops it");
        drop(take(&job).map(guarded));
    }
}

impl Threads {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
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

    fn start_thread(self: &Arc<Self>, number: u64) {
        let threads = Arc::clone(self);
        let thread = std::thread::Builder::new().name(format!("{}-callback-{number}", self.name));
        match thread.spawn(move || threads.work(number)) {
            Ok(handle) => {
                // If the thread has already ended, it is not joined.
                if let Some(worker) = self.state().threads.get_mut(&number) {
                    worker.handle = Some(handle);
                }
            }
            Err(error) => {
                self.state().threads.remove(&number);
                // The job waits for the first idle thread.
                tracing::error!(
                    target: "actix_informer::runtime",
                    %error,
                    pool = self.name,
                    "cannot start a thread for a blocking callback; it waits for a thread that becomes idle"
                );
            }
        }
    }

    fn work(&self, number: u64) {
        let mut state = self.state();
        loop {
            while let Some(job) = state.jobs.pop_front() {
                drop(state);
                let report = guarded(job);
                self.state().set_idle(number, true);
                drop(report);
                state = self.state();
                state.set_idle(number, false);
            }
            if state.closed {
                break;
            }
            state.set_idle(number, true);
            let (woken, waited) =
                self.wake.wait_timeout(state, LINGER).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.set_idle(number, false);
            if waited.timed_out() && state.jobs.is_empty() {
                break;
            }
        }
        let worker = state.threads.remove(&number);
        state.left.retain(|handle| !handle.is_finished());
        state.left.extend(worker.and_then(|worker| worker.handle));
    }
}

impl State {
    fn expect_thread(&mut self) -> u64 {
        let number = self.started;
        self.started += 1;
        self.threads.insert(number, Worker { handle: None, busy: true });
        number
    }

    fn set_idle(&mut self, number: u64, idle: bool) {
        if idle {
            self.idle += 1;
        } else {
            self.idle -= 1;
        }
        if let Some(worker) = self.threads.get_mut(&number) {
            worker.busy = !idle;
        }
    }
}

fn guarded<T>(job: impl FnOnce() -> T) -> Option<T> {
    let panic = match catch_unwind(AssertUnwindSafe(job)) {
        Ok(given) => return Some(given),
        Err(panic) => panic,
    };
    tracing::error!(target: "actix_informer::runtime", panic = panic_text(&*panic), "a job of the callback pool panicked");
    drop_payload(panic);
    None
}

/// Drops the payload of a panic in a subscriber's code. If this drop panics too, the new payload is leaked.
pub fn drop_payload(panic: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
}

/// A value that only the pool uses and drops, one job at a time.
pub(crate) struct PooledValue<T: Send + 'static>(Arc<Owned<T>>);

struct Owned<T: Send + 'static> {
    pool: CallbackPool,
    // Locked only while the value is moved.
    value: Mutex<Option<T>>,
    report: Option<Box<dyn Any + Send + Sync>>,
}

impl<T: Send + 'static> PooledValue<T> {
    /// `report` is dropped after the value.
    pub(crate) fn new(pool: CallbackPool, value: T, report: impl Send + Sync + 'static) -> Self {
        Self(Arc::new(Owned { pool, value: Mutex::new(Some(value)), report: Some(Box::new(report)) }))
    }

    /// The job runs whether or not the future is polled; the future ends when it has returned or panicked. A second
    /// job must not start before: it would find no value. [`Closed`]: the job was dropped.
    pub(crate) fn run<J>(&self, job: J) -> impl Future<Output = Result<(), Closed>> + use<T, J>
    where
        J: FnOnce(&mut T) + Send + 'static,
    {
        let (returned, ended) = oneshot::channel::<()>();
        let owned = Arc::clone(&self.0);
        let accepted = self.0.pool.run(Box::new(move || {
            let mut taken = Taken { value: owned.take(), owned: &owned };
            if let Some(value) = &mut taken.value {
                guarded(|| job(value));
            }
            drop(taken);
            // Without other clones this is the last one.
            Box::new((owned, returned))
        }));
        let accepted = accepted.map_err(|_job| Closed);
        async move {
            accepted?;
            // The job's end drops the sender.
            drop(ended.await);
            Ok(())
        }
    }
}

/// Its drop puts the value back, also after a panic.
struct Taken<'a, T: Send + 'static> {
    value: Option<T>,
    owned: &'a Owned<T>,
}

impl<T: Send + 'static> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        self.owned.put_back(self.value.take());
    }
}

impl<T: Send + 'static> Owned<T> {
    fn take(&self) -> Option<T> {
        locked(&self.value).take()
    }

    fn put_back(&self, value: Option<T>) {
        *locked(&self.value) = value;
    }
}

impl<T: Send + 'static> Drop for Owned<T> {
    fn drop(&mut self) {
        if let (Some(value), Some(report)) = (self.take(), self.report.take()) {
            self.pool.drop_there(value, report);
        }
    }
}

informer_core::clone_of!([T: Send + 'static] PooledValue<T>);

#[cfg(test)]
mod tests;

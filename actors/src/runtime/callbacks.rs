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
//!
//! Read next: `callback.rs`, whose closures run here.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

use super::panic_text;

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
    handle: JoinHandle<()>,
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

    /// Runs a job: on an idle thread, else on a new one; after the close, here.
    fn run(&self, job: Job) {
        match &self.0 {
            Some(crew) => crew.run(job),
            None => guarded(job),
        }
    }

    /// Ends idle threads, and busy ones after their job, without waiting for any. What nobody has begun is dropped.
    pub(super) fn end(&self) {
        drop(self.dismiss());
    }

    /// As [`Self::end`], and joins the idle ones. Who never returns cannot be ended, and is not waited for.
    pub(super) fn close(&self) {
        let own = std::thread::current().id();
        let idle = self.dismiss().into_iter().filter(|worker| worker.handle.thread().id() != own);
        idle.for_each(|worker| drop(worker.handle.join()));
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
        drop(unbegun);
        threads.into_values().filter(|worker| !worker.busy).collect()
    }
}

impl Crew {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(self: &Arc<Self>, job: Job) {
        let mut state = self.state();
        if state.closed {
            drop(state);
            return guarded(job);
        }
        state.jobs.push_back(job);
        if state.idle < state.jobs.len() {
            self.start_thread(&mut state);
        }
        drop(state);
        self.wake.notify_one();
    }

    fn start_thread(self: &Arc<Self>, state: &mut State) {
        let number = state.started;
        let crew = Arc::clone(self);
        let thread = std::thread::Builder::new().name(format!("{}-callback-{number}", self.name));
        match thread.spawn(move || crew.work(number)) {
            Ok(handle) => {
                state.started += 1;
                state.threads.insert(number, Worker { handle, busy: true });
            }
            // The job stays queued for the first thread that becomes idle.
            Err(error) => tracing::error!(%error, pool = self.name, "no thread for a blocking callback"),
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
    fn set_busy(&mut self, number: u64, busy: bool) {
        if let Some(worker) = self.threads.get_mut(&number) {
            worker.busy = busy;
        }
    }
}

fn guarded(job: Job) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(job)) {
        tracing::error!(panic = panic_text(&*panic), "a job of the callback pool panicked");
    }
}

/// Something that is used on the pool only, by one job at a time. Cloning copies a pointer; when the last clone is
/// dropped, and the last job has returned, the value is dropped on the pool.
pub(crate) struct Strand<T: Send + 'static>(Arc<Owned<T>>);

struct Owned<T: Send + 'static> {
    pool: CallbackPool,
    // Held by the one job that runs; never waited for, since its owner asks for one job at a time.
    value: Mutex<Option<T>>,
}

impl<T: Send + 'static> Strand<T> {
    pub(crate) fn new(pool: CallbackPool, value: T) -> Self {
        Self(Arc::new(Owned { pool, value: Mutex::new(Some(value)) }))
    }

    /// Runs `job` on the value; the future ends when it has returned, also if it panicked. The job runs whether or
    /// not the future is polled. Two jobs at once would keep each other waiting on their threads.
    pub(crate) fn run<J>(&self, job: J) -> impl Future<Output = ()> + use<T, J>
    where
        J: FnOnce(&mut T) + Send + 'static,
    {
        let (returned, ended) = oneshot::channel::<()>();
        let owned = Arc::clone(&self.0);
        self.0.pool.run(Box::new(move || {
            let _told_at_the_end = returned;
            let mut value = owned.value.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(value) = &mut *value {
                job(value);
            }
        }));
        // The sender is only ever dropped: that is the message.
        async move { drop(ended.await) }
    }
}

impl<T: Send + 'static> Drop for Owned<T> {
    fn drop(&mut self) {
        let value = self.value.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        self.pool.run(Box::new(move || drop(value)));
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
mod tests {
    use std::sync::mpsc;

    use super::{CallbackPool, Strand};

    #[test]
    fn a_job_never_waits_for_another_and_idle_threads_are_used_again() {
        let pool = CallbackPool::threads("grown");
        let (release, held) = mpsc::channel::<()>();
        let held = std::sync::Arc::new(std::sync::Mutex::new(held));
        let (done, finished) = mpsc::channel();
        for _ in 0..8 {
            let (held, done) = (std::sync::Arc::clone(&held), done.clone());
            pool.run(Box::new(move || {
                let _ = held.lock().map(|held| held.recv());
                let _ = done.send(());
            }));
        }
        let (told, heard) = mpsc::channel();
        pool.run(Box::new(move || told.send("not delayed").expect("it is heard")));
        assert_eq!(heard.recv(), Ok("not delayed"));
        assert!(pool.width() >= 8);
        drop(release);
        (0..8).for_each(|_| finished.recv().expect("they return"));
        pool.close();
    }

    #[test]
    fn a_job_that_panics_is_told_as_ended_and_what_a_strand_owns_is_dropped_on_the_pool() {
        struct Owned(mpsc::Sender<Option<String>>);
        impl Drop for Owned {
            fn drop(&mut self) {
                let _ = self.0.send(std::thread::current().name().map(str::to_owned));
            }
        }
        let (told, heard) = mpsc::channel();
        let strand = Strand::new(CallbackPool::threads("owning"), Owned(told));
        let ended = strand.run(|_| panic!("on purpose"));
        drop(strand);
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(ended);
        let thread = heard.recv().expect("it is dropped").expect("a named thread");
        assert!(thread.starts_with("owning-callback-"), "{thread}");
    }
}

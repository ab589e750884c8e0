//! The decode pool: threads for CPU work that must not block an arbiter. In simulation the caller runs each job, so
//! that everything has one order.
//!
//! Each job is for one thread ([`DecodePool::run_by`]); another takes it only if that one has begun no job for
//! [`PATIENCE`]: the allocator gives each thread its own part of the heap. A thread that always makes the same share
//! of a cache uses again what is freed of it; otherwise each part grows to its highest use.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::locked::locked;
use super::{Freeing, RuntimeError, panic_text};

/// Longer than a busy machine delays a thread.
const PATIENCE: Duration = Duration::from_millis(250);

const GONE: &str = "the pool is closed";

type Job = Box<dyn FnOnce() + Send>;

/// Runs jobs off the arbiter. Cloning copies a pointer.
#[derive(Clone)]
pub struct DecodePool(Option<Arc<Threads>>);

struct Threads {
    line: Arc<Line>,
    width: usize,
    handles: Mutex<Vec<JoinHandle<()>>>,
    running: TaskTracker,
}

struct Line {
    state: Mutex<State>,
    wakes: Vec<Condvar>,
    freeing: Freeing,
}

struct State {
    jobs: Vec<VecDeque<(u64, Job)>>,
    threads: Vec<Doing>,
    next: u64,
    closed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Works,
    Sleeps,
    /// Checks that another thread begins its next job in time.
    Watches,
}

/// The job panicked (with the panic's text), or the pool is closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("job ended without an answer: {0}")]
pub struct JobPanicked(pub String);

impl DecodePool {
    pub(super) fn threads(name: &str, width: usize, freeing: &Freeing) -> Result<Self, RuntimeError> {
        let (line, running) = (Arc::new(Line::new(width, freeing.clone())), TaskTracker::new());
        let threads = Threads {
            line: Arc::clone(&line),
            width,
            handles: Mutex::new(Vec::with_capacity(width)),
            running: running.clone(),
        };
        for n in 0..width {
            let (name, line, token) = (format!("{name}-decode-{n}"), Arc::clone(&line), running.token());
            let thread = std::thread::Builder::new().name(name.clone()).spawn(move || {
                line.work(n);
                drop(token);
            });
            let thread = thread.map_err(|source| RuntimeError::Thread { name, source })?;
            locked(&threads.handles).push(thread);
        }
        running.close();
        Ok(Self(Some(Arc::new(threads))))
    }

    /// Every job runs in the caller.
    pub fn inline() -> Self {
        Self(None)
    }

    /// Whether every job runs in the caller, as in simulation.
    pub fn is_inline(&self) -> bool {
        self.0.is_none()
    }

    /// How many jobs run at once.
    pub fn width(&self) -> usize {
        self.0.as_ref().map_or(1, |threads| threads.width)
    }

    /// Before a job that is done in place: frees some of what waits to be freed, if that is much, as the threads do
    /// before each job. Who makes objects faster than one thread frees them would need ever more memory.
    pub fn help_free(&self) {
        if let Some(threads) = &self.0 {
            threads.line.freeing.help();
        }
    }

    /// Runs `job` on the thread with the fewest jobs and returns its result. Jobs of one caller may end in
    /// any order.
    ///
    /// # Errors
    /// [`JobPanicked`] with the panic's text.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JobPanicked> {
        self.run_on(None, job).await
    }

    /// As [`Self::run`], on the thread of this number modulo [`Self::width`]. For objects that live long:
    /// each thread reuses the memory that it allocated, so the same thread should always make the same share
    /// of them.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn run_by<T: Send + 'static>(
        &self,
        thread: usize,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JobPanicked> {
        self.run_on(Some(thread), job).await
    }

    async fn run_on<T: Send + 'static>(
        &self,
        thread: Option<usize>,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JobPanicked> {
        let guarded = move || {
            catch_unwind(AssertUnwindSafe(job)).map_err(|panic| JobPanicked(panic_text(&*panic).to_owned()))
        };
        let Some(threads) = &self.0 else { return guarded() };
        let (sender, receiver) = oneshot::channel();
        // A refused job is dropped together with its sender.
        threads.line.push(thread, Box::new(move || drop(sender.send(guarded()))));
        receiver.await.unwrap_or_else(|_| Err(JobPanicked(GONE.to_owned())))
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.as_ref().is_none_or(|threads| threads.running.is_empty())
    }

    /// Takes as long as the last job; does not block the caller's thread.
    pub(crate) async fn close(&self) {
        let Some(threads) = &self.0 else { return };
        threads.line.close();
        threads.running.wait().await;
        let handles = std::mem::take(&mut *locked(&threads.handles));
        for handle in handles {
            // A thread's last action is to give its token back.
            drop(handle.join());
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.line.close();
    }
}

impl Line {
    fn new(width: usize, freeing: Freeing) -> Self {
        let jobs = (0..width).map(|_| VecDeque::new()).collect();
        let state = State { jobs, threads: vec![Doing::Works; width], next: 0, closed: false };
        Self { state: Mutex::new(state), wakes: (0..width).map(|_| Condvar::new()).collect(), freeing }
    }

    fn push(&self, thread: Option<usize>, job: Job) {
        let mut state = locked(&self.state);
        if state.closed {
            drop(state);
            return drop(job);
        }
        let width = state.jobs.len();
        let thread = thread.map_or_else(|| state.least_busy(), |thread| thread % width);
        let number = state.next;
        state.next += 1;
        state.jobs[thread].push_back((number, job));
        let wakes = match state.threads[thread] {
            Doing::Sleeps | Doing::Watches => Some(thread),
            // Another thread checks that this one begins in time.
            Doing::Works => state.threads.iter().position(|doing| *doing == Doing::Sleeps),
        };
        drop(state);
        if let Some(wakes) = wakes {
            self.wakes[wakes].notify_one();
        }
    }

    fn work(&self, own: usize) {
        while let Some(job) = self.next(own) {
            self.freeing.help();
            if let Err(panic) = catch_unwind(AssertUnwindSafe(job)) {
                let panic = panic_text(&*panic);
                tracing::error!(
                    target: "actix_informer::runtime",
                    panic,
                    "the result of a decode job that has no caller any more has panicked in its drop"
                );
            }
        }
    }

    /// A job of this thread, or one that another thread is late to begin; `None` at the end.
    fn next(&self, own: usize) -> Option<Job> {
        let mut state = locked(&self.state);
        loop {
            if let Some((_, job)) = state.jobs[own].pop_front() {
                return Some(job);
            }
            let Some((other, number)) = state.oldest() else {
                if state.closed {
                    return None;
                }
                state.threads[own] = Doing::Sleeps;
                state = self.wakes[own].wait(state).unwrap_or_else(PoisonError::into_inner);
                state.threads[own] = Doing::Works;
                continue;
            };
            state.threads[own] = Doing::Watches;
            let waited = self.wakes[own].wait_timeout(state, PATIENCE);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.threads[own] = Doing::Works;
            let is_late = timeout.timed_out() || state.closed;
            let is_there = state.jobs[other].front().is_some_and(|(front, _)| *front == number);
            if is_late && is_there && state.jobs[own].is_empty() {
                return state.jobs[other].pop_front().map(|(_, job)| job);
            }
        }
    }

    fn close(&self) {
        locked(&self.state).closed = true;
        self.wakes.iter().for_each(Condvar::notify_all);
    }
}

impl State {
    /// A sleeping thread is preferred.
    fn least_busy(&self) -> usize {
        let busy = |thread: &usize| (self.jobs[*thread].len(), self.threads[*thread] == Doing::Works);
        (0..self.jobs.len()).min_by_key(busy).unwrap_or_default()
    }

    /// Its thread and its number.
    fn oldest(&self) -> Option<(usize, u64)> {
        let fronts = self.jobs.iter().enumerate();
        fronts.filter_map(|(thread, jobs)| Some((thread, jobs.front()?.0))).min_by_key(|(_, number)| *number)
    }
}

informer_core::debug_as!(DecodePool, self, width = self.width());

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn pool(name: &str, width: usize) -> DecodePool {
        DecodePool::threads(name, width, &Freeing::inline()).expect("threads")
    }

    #[tokio::test]
    async fn informer_14_each_job_runs_on_the_thread_that_it_is_for() {
        let pool = pool("homes", 3);
        let name = || std::thread::current().name().unwrap_or_default().to_owned();
        for n in 0..300 {
            let ran_on = pool.run_by(n, name).await.expect("it runs");
            assert_eq!(ran_on, format!("homes-decode-{}", n % 3));
        }
    }

    #[tokio::test]
    async fn jobs_run_on_the_threads_a_panic_reaches_its_asker_alone_and_after_the_close_they_are_refused() {
        let pool = pool("jobs", 2);
        let name = || std::thread::current().name().unwrap_or_default().to_owned();
        assert!(pool.run(name).await.is_ok_and(|name| name.starts_with("jobs-decode-")));
        let panicked = pool.run(|| -> () { panic!("on purpose") }).await;
        assert_eq!(panicked, Err(JobPanicked("on purpose".to_owned())));
        assert_eq!(pool.run(|| 7).await, Ok(7));
        pool.close().await;
        assert!(pool.is_over());
        assert_eq!(pool.run(|| 7).await, Err(JobPanicked(GONE.to_owned())));
    }

    #[tokio::test]
    async fn a_job_that_blocks_one_thread_does_not_delay_jobs_on_the_others_and_a_close_finishes_what_waits()
    {
        let pool = pool("blocked", 2);
        let block = || {
            let (go, gate) = mpsc::channel::<()>();
            (go, Box::pin(pool.run(move || gate.recv().is_err())))
        };
        let ((go, mut blocked), (also_go, mut also_blocked)) = (block(), block());
        assert!(futures_util::poll!(&mut blocked).is_pending());
        for n in 0..100 {
            assert_eq!(tokio::time::timeout(LIMIT, pool.run(move || n)).await, Ok(Ok(n)));
        }
        assert!(futures_util::poll!(&mut also_blocked).is_pending());
        let mut waits = Box::pin(pool.run(|| 8));
        assert!(futures_util::poll!(&mut waits).is_pending(), "no thread is left");
        drop((go, also_go));
        pool.close().await;
        assert_eq!((blocked.await, also_blocked.await, waits.await), (Ok(true), Ok(true), Ok(8)));
    }

    #[test]
    fn threads_without_a_job_sleep() {
        let pool = pool("idle", 4);
        let line = Arc::clone(&pool.0.as_ref().expect("it has threads").line);
        let asleep = || locked(&line.state).threads.iter().all(|doing| *doing == Doing::Sleeps);
        // They begin to sleep once they have started.
        while !asleep() {
            std::thread::yield_now();
        }
        drop(pool);
    }
}

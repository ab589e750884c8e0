//! The decode pool: threads for CPU work that must not block an arbiter.
//!
//! Answers "which thread decodes objects?": in production a few threads, shared by all informers of a runtime; in
//! simulation the caller itself, so that everything stays on one thread and in one order. Invariants:
//! 1. A job runs exactly once, or its answer is [`JobPanicked`]. Jobs start in the order in which they came.
//! 2. A panic in a job reaches only its caller.
//! 3. A thread without a job sleeps and never spins. A job wakes one thread, if one sleeps.
//!
//! The caller decides whether a job is large enough to be sent here. Read next: `freeing.rs`, the thread that frees.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::RuntimeError;
use super::locked::locked;
use super::panic_text;

const GONE: &str = "the pool is closed";

type Job = Box<dyn FnOnce() + Send>;

/// Runs jobs off the arbiter. Cloning copies a pointer.
#[derive(Clone)]
pub struct DecodePool(Option<Arc<Threads>>);

/// The threads. They end when the last handle is dropped.
struct Threads {
    line: Arc<Line>,
    width: usize,
    handles: Mutex<Vec<JoinHandle<()>>>,
    /// One token for each running thread.
    running: TaskTracker,
}

/// The jobs that have not started.
#[derive(Default)]
struct Line {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    asleep: usize,
    closed: bool,
}

/// The job panicked, or the pool is closed; with the panic's text where there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("job ended without an answer: {0}")]
pub struct JobPanicked(pub String);

impl DecodePool {
    pub(crate) fn threads(name: &str, width: usize) -> Result<Self, RuntimeError> {
        let (line, running) = (Arc::<Line>::default(), TaskTracker::new());
        let threads = Threads {
            line: Arc::clone(&line),
            width,
            handles: Mutex::new(Vec::with_capacity(width)),
            running: running.clone(),
        };
        for n in 0..width {
            let (name, line, token) = (format!("{name}-decode-{n}"), Arc::clone(&line), running.token());
            let thread = std::thread::Builder::new().name(name.clone()).spawn(move || {
                line.work();
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

    /// How many jobs run at once.
    pub fn width(&self) -> usize {
        self.0.as_ref().map_or(1, |threads| threads.width)
    }

    /// Runs `job` and gives its result. Jobs of one caller may end in any order.
    ///
    /// # Errors
    /// [`JobPanicked`] with the panic's text.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JobPanicked> {
        let guarded = move || {
            catch_unwind(AssertUnwindSafe(job)).map_err(|panic| JobPanicked(panic_text(&*panic).to_owned()))
        };
        let Some(threads) = &self.0 else { return guarded() };
        let (sender, receiver) = oneshot::channel();
        // A refused job is dropped, and its sender with it.
        threads.line.push(Box::new(move || drop(sender.send(guarded()))));
        receiver.await.unwrap_or_else(|_| Err(JobPanicked(GONE.to_owned())))
    }

    /// Whether every thread has ended.
    pub(super) fn is_over(&self) -> bool {
        self.0.as_ref().is_none_or(|threads| threads.running.is_empty())
    }

    /// Lets the threads finish their jobs and joins them; later jobs are refused. Takes as long as the last job, and
    /// does not block the caller's thread.
    pub(crate) async fn close(&self) {
        let Some(threads) = &self.0 else { return };
        threads.line.close();
        threads.running.wait().await;
        let handles = std::mem::take(&mut *locked(&threads.handles));
        for handle in handles {
            // The threads have given their tokens back, which is the last thing they do.
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
    /// Takes a job and wakes a sleeping thread; drops the job after the close.
    fn push(&self, job: Job) {
        let mut state = locked(&self.state);
        if state.closed {
            drop(state);
            return drop(job);
        }
        state.jobs.push_back(job);
        let wakes = state.asleep > 0;
        drop(state);
        if wakes {
            self.wake.notify_one();
        }
    }

    /// Runs jobs until the close, and then those that are left.
    fn work(&self) {
        while let Some(job) = self.next() {
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

    /// The next job; sleeps until there is one. `None` at the end.
    fn next(&self) -> Option<Job> {
        let mut state = locked(&self.state);
        while state.jobs.is_empty() && !state.closed {
            state.asleep += 1;
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.asleep -= 1;
        }
        state.jobs.pop_front()
    }

    fn close(&self) {
        locked(&self.state).closed = true;
        self.wake.notify_all();
    }
}

impl fmt::Debug for DecodePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodePool").field("width", &self.width()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn jobs_run_on_the_threads_a_panic_reaches_its_asker_alone_and_after_the_close_they_are_refused() {
        let pool = DecodePool::threads("jobs", 2).expect("threads");
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
        let pool = DecodePool::threads("blocked", 2).expect("threads");
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
        let pool = DecodePool::threads("idle", 4).expect("threads");
        let line = Arc::clone(&pool.0.as_ref().expect("it has threads").line);
        let asleep = || locked(&line.state).asleep == 4;
        // They begin to sleep once they have started.
        while !asleep() {
            std::thread::yield_now();
        }
        drop(pool);
    }
}

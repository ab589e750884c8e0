//! The decode pool: CPU work that must not sit on an arbiter.
//!
//! Answers "who parses?": in production a rayon pool as wide as the cores, shared by all informers of a runtime; in
//! simulation the caller itself, so that everything stays on one thread and in one order. Invariants:
//! 1. A job runs exactly once, or its answer ends with [`PoolGone`].
//! 2. A panic in a job reaches only its asker.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use arc_swap::ArcSwapOption;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::RuntimeError;

const GONE: &str = "the pool is closed";

/// Runs jobs off the arbiter. Cloning copies a pointer.
#[derive(Clone)]
pub struct DecodePool(Option<Arc<Threads>>);

/// The pool, until it is closed, and what it takes to join its threads.
struct Threads {
    pool: ArcSwapOption<rayon::ThreadPool>,
    width: usize,
    handles: Mutex<Vec<JoinHandle<()>>>,
    /// One token a thread that runs.
    running: TaskTracker,
}

/// The job panicked, or the pool has gone; its payload's text where there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("job ended without an answer: {0}")]
pub struct JobPanicked(pub String);

impl DecodePool {
    pub(crate) fn threads(name: &str, width: usize) -> Result<Self, RuntimeError> {
        let (mut handles, running) = (Vec::with_capacity(width), TaskTracker::new());
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(width)
            .thread_name({
                let name = name.to_owned();
                move |n| format!("{name}-decode-{n}")
            })
            .spawn_handler(|thread| {
                let named = std::thread::Builder::new().name(thread.name().unwrap_or("decode").to_owned());
                let token = running.token();
                handles.push(named.spawn(move || {
                    thread.run();
                    drop(token);
                })?);
                Ok(())
            })
            .build()
            .map_err(RuntimeError::Pool)?;
        let pool = ArcSwapOption::from_pointee(pool);
        running.close();
        Ok(Self(Some(Arc::new(Threads { pool, width, handles: Mutex::new(handles), running }))))
    }

    /// Every job runs in the caller.
    pub fn inline() -> Self {
        Self(None)
    }

    /// How many jobs run at once.
    pub fn width(&self) -> usize {
        self.0.as_ref().map_or(1, |threads| threads.width)
    }

    /// Runs `job` and gives its answer; jobs of one caller may end in any order.
    ///
    /// # Errors
    /// [`JobPanicked`] with the panic's text.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JobPanicked> {
        let guarded =
            move || catch_unwind(AssertUnwindSafe(job)).map_err(|panic| JobPanicked(panic_text(&*panic)));
        let Some(threads) = &self.0 else { return guarded() };
        let Some(pool) = threads.pool.load_full() else { return Err(JobPanicked(GONE.to_owned())) };
        let (sender, receiver) = oneshot::channel();
        pool.spawn(move || drop(sender.send(guarded())));
        // Held over the await it would keep the threads alive against `close`.
        drop(pool);
        receiver.await.unwrap_or_else(|_| Err(JobPanicked(GONE.to_owned())))
    }

    /// Whether every thread has ended.
    pub(super) fn is_over(&self) -> bool {
        self.0.as_ref().is_none_or(|threads| threads.running.is_empty())
    }

    /// Lets the threads finish what they have and joins them; jobs that come later are refused. Takes as long as the
    /// last job does, and blocks nobody.
    pub(crate) async fn close(&self) {
        let Some(threads) = &self.0 else { return };
        drop(threads.pool.swap(None));
        threads.running.wait().await;
        let handles = std::mem::take(&mut *threads.handles.lock().unwrap_or_else(PoisonError::into_inner));
        for handle in handles {
            // Their last act was to give their tokens back. A panic was told to its asker already.
            drop(handle.join());
        }
    }
}

impl fmt::Debug for DecodePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodePool").field("width", &self.width()).finish()
    }
}

/// The text of a panic, as far as it has one.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panicked".to_owned())
}

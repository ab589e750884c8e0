//! The decode pool: CPU work that must not sit on an arbiter.
//!
//! Answers "who parses?": in production a rayon pool as wide as the cores, shared by all informers of a runtime; in
//! simulation the caller itself, so that everything stays on one thread and in one order. It also frees what the
//! store has replaced. Invariants:
//! 1. A job runs exactly once, or its answer ends with [`PoolGone`].
//! 2. A panic in a job reaches only its asker.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::RuntimeError;

/// Runs jobs off the arbiter. Cloning copies a pointer.
#[derive(Clone)]
pub struct DecodePool(Option<Arc<rayon::ThreadPool>>);

/// The job panicked, or the pool has gone; its payload's text where there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("job ended without an answer: {0}")]
pub struct JobPanicked(pub String);

impl DecodePool {
    pub(crate) fn threads(width: usize) -> Result<Self, RuntimeError> {
        rayon::ThreadPoolBuilder::new()
            .num_threads(width)
            .thread_name(|n| format!("informer-decode-{n}"))
            .build()
            .map(|pool| Self(Some(Arc::new(pool))))
            .map_err(RuntimeError::Pool)
    }

    /// Every job runs in the caller.
    pub fn inline() -> Self {
        Self(None)
    }

    /// How many jobs run at once.
    pub fn width(&self) -> usize {
        self.0.as_ref().map_or(1, |pool| pool.current_num_threads())
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
        let Some(pool) = &self.0 else { return guarded() };
        let (sender, receiver) = oneshot::channel();
        pool.spawn(move || drop(sender.send(guarded())));
        receiver.await.unwrap_or_else(|_| Err(JobPanicked("the pool is gone".to_owned())))
    }

    /// Frees `rubbish` off the arbiter.
    pub(crate) fn free<T: Send + 'static>(&self, rubbish: T) {
        match &self.0 {
            Some(pool) => pool.spawn(move || drop(rubbish)),
            None => drop(rubbish),
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

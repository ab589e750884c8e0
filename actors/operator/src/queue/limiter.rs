//! The rate limiter of a work queue, whose panics do not reach the queue.
//!
//! No call panics: each panic is counted, and the failed key waits for [`WAIT_AFTER_PANIC`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::queue::machine::RateLimiter;
use informer_core::reflector::Moment;

use informer_actors::inner::drop_payload;

/// How long a key waits after a failure if the rate limiter panics.
pub const WAIT_AFTER_PANIC: Duration = Duration::from_secs(1);

pub(super) type Limiter<K> = Box<dyn RateLimiter<K> + Send>;

pub(crate) struct CaughtLimiter<K> {
    inner: Limiter<K>,
    panics: AtomicU64,
}

impl<K> CaughtLimiter<K> {
    pub(super) fn new(inner: Limiter<K>) -> Self {
        Self { inner, panics: AtomicU64::new(0) }
    }

    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    fn or<R>(result: std::thread::Result<R>, panics: &AtomicU64, otherwise: R) -> R {
        result.unwrap_or_else(|panic| {
            panics.fetch_add(1, Ordering::Relaxed);
            drop_payload(panic);
            otherwise
        })
    }
}

impl<K> RateLimiter<K> for CaughtLimiter<K> {
    fn when(&mut self, key: &K, moment: Moment) -> Duration {
        let asked = catch_unwind(AssertUnwindSafe(|| self.inner.when(key, moment)));
        Self::or(asked, &self.panics, WAIT_AFTER_PANIC)
    }

    fn forget(&mut self, key: &K) {
        let asked = catch_unwind(AssertUnwindSafe(|| self.inner.forget(key)));
        Self::or(asked, &self.panics, ());
    }

    fn failures(&self, key: &K) -> u32 {
        let asked = catch_unwind(AssertUnwindSafe(|| self.inner.failures(key)));
        Self::or(asked, &self.panics, 0)
    }
}

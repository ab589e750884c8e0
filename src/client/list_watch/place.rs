//! Where a chunk of objects is decoded: where it was read, or on the decode pool.
//!
//! Answers "are these bytes worth another thread?" The way to the pool and back wakes two threads and moves the bytes
//! to another core, which costs about ten microseconds; decoding keeps the arbiter from its other work, for a
//! microsecond (metadata) or for forty (a pod). So a chunk goes to the pool if it is expected to take longer than
//! [`IN_PLACE`], by what the chunks before it took. Objects that are known already take next to nothing. Invariants:
//! 1. The result is the same in both places, also where the job panics: that is an error.
//! 2. Of the last two measured chunks the faster one counts: a thread that the system has delayed once changes nothing.

use std::future::{Future, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::Either;
use informer_actors::runtime::DecodePool;
use informer_core::list_watch_error::ListWatchError;
use informer_core::words::panic_text;
use tokio::time::Instant;

/// What is expected to take less than this is decoded in place.
const IN_PLACE: Duration = Duration::from_micros(250);
/// The time for a mebibyte before anything is measured: that of whole pods.
const FIRST_PACE: Duration = Duration::from_millis(4);
const MEBIBYTE: u64 = 1 << 20;

/// Runs the decoding of one source, here or on the pool. Cloning copies two pointers.
#[derive(Debug, Clone)]
pub(super) struct DecodePlace {
    pool: DecodePool,
    pace: Arc<Pace>,
}

/// How long a mebibyte took, in nanoseconds: the last time that it was measured, and the time before.
#[derive(Debug)]
struct Pace {
    last: AtomicU64,
    before: AtomicU64,
}

impl DecodePlace {
    pub(super) fn new(pool: DecodePool) -> Self {
        let first = nanos(FIRST_PACE);
        Self { pool, pace: Arc::new(Pace { last: AtomicU64::new(first), before: AtomicU64::new(first) }) }
    }

    /// How many jobs the pool runs at once.
    pub(super) fn width(&self) -> usize {
        self.pool.width()
    }

    /// Runs a job that decodes so many bytes: at once, or on the pool while the future is awaited.
    pub(super) fn run<T: Send + 'static, J: FnOnce() -> T + Send + 'static>(
        &self,
        bytes: usize,
        job: J,
    ) -> impl Future<Output = Result<T, ListWatchError>> + use<T, J> {
        let (bytes, pace) = (bytes as u64, Arc::clone(&self.pace));
        let is_short = self.pace.expected(bytes) < IN_PLACE;
        let measured = move || {
            let began = Instant::now();
            let done = job();
            pace.note(bytes, began.elapsed());
            done
        };
        if is_short {
            let done = catch_unwind(AssertUnwindSafe(measured));
            return Either::Left(ready(done.map_err(|panic| ListWatchError::source(panic_text(&*panic)))));
        }
        let pool = self.pool.clone();
        Either::Right(async move {
            pool.run(measured).await.map_err(|error| ListWatchError::source(error.to_string()))
        })
    }
}

impl Pace {
    fn expected(&self, bytes: u64) -> Duration {
        let pace = self.last.load(Ordering::Relaxed).min(self.before.load(Ordering::Relaxed));
        Duration::from_nanos(bytes.saturating_mul(pace) / MEBIBYTE)
    }

    fn note(&self, bytes: u64, took: Duration) {
        if let Some(pace) = nanos(took).saturating_mul(MEBIBYTE).checked_div(bytes) {
            self.before.store(self.last.swap(pace, Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_long_twice_goes_to_the_pool_and_what_is_short_again_is_done_in_place() {
        let pace = DecodePlace::new(DecodePool::inline()).pace;
        let in_place = |bytes| pace.expected(bytes) < IN_PLACE;
        assert!(in_place(62 << 10) && !in_place(64 << 10), "seven pods");
        let (bytes, micros) = (256 << 10, Duration::from_micros);
        for (took, expected) in
            [(1_000, false), (60, true), (4_000, true), (60, true), (400, true), (400, false)]
        {
            pace.note(bytes, micros(took));
            assert_eq!(in_place(bytes), expected, "after {took} us");
        }
    }

    #[tokio::test]
    async fn a_job_that_panics_is_an_error_in_place_and_on_the_pool() {
        let place = DecodePlace::new(DecodePool::inline());
        assert_eq!(place.run(1, || 7).await.map_err(|error| error.to_string()), Ok(7));
        for bytes in [1, 1 << 20] {
            let done = place.run(bytes, || -> () { panic!("on purpose") }).await;
            let error = done.err().map(|error| error.to_string());
            assert!(error.is_some_and(|error| error.contains("on purpose")), "{bytes} bytes");
        }
    }
}

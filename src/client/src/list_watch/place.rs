//! Where a chunk of objects is decoded: in place, or on a thread of the decode pool. The way to the pool and
//! back costs about ten microseconds; decoding in place stops the arbiter's other work for one microsecond
//! (metadata) to forty (a pod) for each object.
//!
//! 1. Of the last two measured chunks the faster one counts: one delay by the system changes nothing.
//! 2. All chunks of a source are decoded in the same place, and each thread of the pool decodes the same
//!    number of bytes. So freed memory is used again: allocators keep what a thread allocates in a part of
//!    its own (glibc: an arena).

use std::future::{Future, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::Either;
use informer_actors::runtime::DecodePool;
use informer_core::list_watch_error::ListWatchError;
use informer_core::words::panic_text;
use tokio::time::Instant;

use super::{CHUNK_BYTES, CHUNK_OBJECTS};

/// A full chunk that takes less is decoded in place.
const IN_PLACE: Duration = Duration::from_micros(250);
/// Pooled work must become this much faster than that.
const SURELY: u32 = 2;
/// The time for a mebibyte of whole pods, before anything is measured.
const FIRST_PACE: Duration = Duration::from_millis(4);
const MEBIBYTE: u64 = 1 << 20;

#[derive(Debug, Clone)]
pub(super) struct DecodePlace {
    pool: DecodePool,
    pace: Arc<Pace>,
    shares: Arc<Shares>,
}

/// Bytes that each thread has decoded.
#[derive(Debug)]
struct Shares(Mutex<Vec<u64>>);

/// Nanoseconds for a mebibyte.
#[derive(Debug)]
struct Pace {
    last: AtomicU64,
    before: AtomicU64,
    is_pooled: AtomicBool,
}

impl DecodePlace {
    pub(super) fn new(pool: DecodePool) -> Self {
        let shares = Arc::new(Shares(Mutex::new(vec![0; pool.width()])));
        Self { pool, pace: Arc::new(Pace::new()), shares }
    }

    pub(super) fn width(&self) -> usize {
        self.pool.width()
    }

    pub(super) fn pool(&self) -> DecodePool {
        self.pool.clone()
    }

    /// In place the job runs at once. A panic is an error.
    pub(super) fn run<T: Send + 'static, J: FnOnce() -> T + Send + 'static>(
        &self,
        (bytes, objects): (usize, usize),
        job: J,
    ) -> impl Future<Output = Result<T, ListWatchError>> + use<T, J> {
        let pace = Arc::clone(&self.pace);
        let full = (CHUNK_OBJECTS * bytes / objects.max(1)).clamp(bytes, bytes.max(CHUNK_BYTES));
        let (bytes, is_in_place) = (bytes as u64, self.pace.is_in_place(full as u64));
        let measured = move || {
            let began = Instant::now();
            let done = job();
            pace.note(bytes, began.elapsed());
            done
        };
        if is_in_place {
            self.pool.help_free();
            let done = catch_unwind(AssertUnwindSafe(measured));
            return Either::Left(ready(done.map_err(|panic| ListWatchError::source(panic_text(&*panic)))));
        }
        let (pool, thread) = (self.pool.clone(), self.shares.next(bytes));
        Either::Right(async move {
            pool.run_by(thread, measured).await.map_err(|error| ListWatchError::source(error.to_string()))
        })
    }
}

impl Shares {
    fn next(&self, bytes: u64) -> usize {
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let least = shares.iter().enumerate().min_by_key(|(_, share)| **share);
        let thread = least.map_or(0, |(thread, _)| thread);
        shares[thread] += bytes;
        thread
    }
}

impl Pace {
    fn new() -> Self {
        let first = nanos(FIRST_PACE);
        Self { last: AtomicU64::new(first), before: AtomicU64::new(first), is_pooled: AtomicBool::new(true) }
    }

    /// `full`: the bytes of a full chunk.
    fn is_in_place(&self, full: u64) -> bool {
        let was_pooled = self.is_pooled.load(Ordering::Relaxed);
        let least = if was_pooled { IN_PLACE / SURELY } else { IN_PLACE };
        let is_in_place = self.expected(full) < least;
        self.is_pooled.store(!is_in_place, Ordering::Relaxed);
        is_in_place
    }

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
    fn what_took_long_twice_goes_to_the_pool_and_what_is_surely_short_again_is_done_in_place() {
        let pace = Pace::new();
        let (bytes, micros) = (256 << 10, Duration::from_micros);
        assert!(!pace.is_in_place(bytes), "of whole pods it is assumed to take a millisecond");
        for (took, expected) in [
            (1_000, false),
            (200, false),
            (60, true),
            (4_000, true),
            (60, true),
            (400, true),
            (400, false),
            (200, false),
        ] {
            pace.note(bytes, micros(took));
            assert_eq!(pace.is_in_place(bytes), expected, "after {took} us");
        }
    }

    #[tokio::test]
    async fn informer_14_small_chunks_are_decoded_where_large_ones_are_and_each_thread_decodes_as_much() {
        let place = DecodePlace::new(DecodePool::inline());
        *place.shares.0.lock().unwrap_or_else(PoisonError::into_inner) = vec![0; 2];
        let pooled =
            |place: &DecodePlace| place.shares.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (pod, chunk) = (9 << 10, 28);
        // A pod takes 40 us, whatever the machine of this test.
        let decode = async |objects: usize| {
            let bytes = pod * objects;
            let took = Duration::from_micros(40 * objects as u64);
            (0..2).for_each(|_| place.pace.note(bytes as u64, took));
            place.run((bytes, objects), || ()).await.expect("it is decoded");
        };
        for _ in 0..10 {
            decode(chunk).await;
        }
        assert_eq!(pooled(&place), vec![(5 * pod * chunk) as u64; 2], "a list");
        for _ in 0..2 * chunk {
            decode(1).await;
        }
        assert_eq!(pooled(&place), vec![(6 * pod * chunk) as u64; 2], "one event after the other");
    }

    #[tokio::test]
    async fn a_job_that_panics_is_an_error_in_place_and_on_the_pool() {
        let place = DecodePlace::new(DecodePool::inline());
        assert_eq!(place.run((1, 1), || 7).await.map_err(|error| error.to_string()), Ok(7));
        for bytes in [1, 1 << 20] {
            let done = place.run((bytes, 1), || -> () { panic!("on purpose") }).await;
            let error = done.err().map(|error| error.to_string());
            assert!(error.is_some_and(|error| error.contains("on purpose")), "{bytes} bytes");
        }
    }
}

//! Figures for a dashboard: durations, the depth of the queue, and how watches end. All times are of the
//! runtime's clock. Recording takes a constant time and allocates nothing; counters only grow.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use informer_core::delta_fifo::Depth;
use informer_core::list_watch_error::{ErrorClass, ListWatchError};

/// The upper bounds of the buckets of a [`Timing`]. What takes longer than the last one has its own bucket.
pub const TIMING_BOUNDS: [Duration; 5] = [
    Duration::from_millis(1),
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(10),
];

const BUCKETS: usize = TIMING_BOUNDS.len() + 1;

/// How long something took, over all times that it happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// How often it happened.
    pub count: u64,
    /// How long all of them took together.
    pub total: Duration,
    /// How long the last one took, to the microsecond.
    pub last: Duration,
    /// How long the longest one took, to the microsecond and up to 71 minutes.
    pub max: Duration,
    /// How many took at most as long as the bound of the same place in [`TIMING_BOUNDS`] and longer than the
    /// one before. The last bucket has those that took longer than all bounds.
    pub buckets: [u64; 6],
}

/// Small, since each subscription has some.
#[derive(Debug, Default)]
pub(crate) struct TimingCell {
    buckets: [u32; BUCKETS],
    last: u32,
    max: u32,
    /// In microseconds, as the others.
    total: u64,
}

impl TimingCell {
    pub(crate) fn record(&mut self, took: Duration) {
        let bucket = TIMING_BOUNDS.iter().position(|bound| took <= *bound).unwrap_or(BUCKETS - 1);
        self.buckets[bucket] = self.buckets[bucket].saturating_add(1);
        self.last = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        self.max = self.max.max(self.last);
        self.total = self.total.saturating_add(u64::from(self.last));
    }

    pub(crate) fn read(cell: Option<&Self>) -> Timing {
        let Some(cell) = cell else { return Timing::default() };
        let buckets = cell.buckets.map(u64::from);
        Timing {
            count: buckets.iter().sum(),
            total: Duration::from_micros(cell.total),
            last: Duration::from_micros(cell.last.into()),
            max: Duration::from_micros(cell.max.into()),
            buckets,
        }
    }
}

/// What waits between the reflectors and the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStatus {
    /// Parts that wait; a whole list counts as one.
    pub parts: usize,
    /// Their bytes as they came from the wire.
    pub bytes: usize,
    /// When the oldest of them arrived, as time since the runtime's start.
    pub oldest_since: Option<Duration>,
}

/// How the watches of one source have ended, watch-lists and renewals included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchEnds {
    /// By the server, without an error: its timeout, or its own end.
    pub finished: u64,
    /// The version was expired or too large (410).
    pub expired: u64,
    /// The server was overloaded (429).
    pub overloaded: u64,
    /// Refused or unknown (401, 403, 404, a rejected selector), or the server knows no watch-list.
    pub refused: u64,
    /// The connection broke, no answer came in time, or the answer was not what was asked for.
    pub broken: u64,
    /// By the reflector: the watch was silent and another one took over, a deadline had passed, or its data
    /// did not allow to continue.
    pub closed: u64,
}

impl WatchEnds {
    /// Every reason with its count, those that never happened included.
    pub fn by_reason(&self) -> [(&'static str, u64); 6] {
        [
            ("finished", self.finished),
            ("expired", self.expired),
            ("overloaded", self.overloaded),
            ("refused", self.refused),
            ("broken", self.broken),
            ("closed", self.closed),
        ]
    }

    /// How many have ended.
    pub fn total(&self) -> u64 {
        self.by_reason().iter().map(|(_, count)| count).sum()
    }

    pub(crate) fn count(&mut self, error: Option<&ListWatchError>) {
        let reason = match (error, error.map(ListWatchError::class)) {
            (None, _) => &mut self.finished,
            (Some(ListWatchError::Overloaded { .. }), _) => &mut self.overloaded,
            (_, Some(ErrorClass::Relist)) => &mut self.expired,
            (
                _,
                Some(
                    ErrorClass::Denied
                    | ErrorClass::Unauthorized
                    | ErrorClass::Gone
                    | ErrorClass::SelectorRejected
                    | ErrorClass::Unsupported,
                ),
            ) => &mut self.refused,
            _ => &mut self.broken,
        };
        *reason += 1;
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.finished += other.finished;
        self.expired += other.expired;
        self.overloaded += other.overloaded;
        self.refused += other.refused;
        self.broken += other.broken;
        self.closed += other.closed;
    }
}

// The cell of the queue. It has no lock, since it changes with each event.

#[derive(Debug)]
pub(crate) struct QueueCell {
    parts: AtomicUsize,
    bytes: AtomicUsize,
    /// In nanoseconds; [`NEVER`] if nothing waits.
    oldest_since: AtomicU64,
    handed_out: AtomicU64,
}

const NEVER: u64 = u64::MAX;

impl QueueCell {
    pub(crate) fn new() -> Self {
        let (parts, bytes, handed_out) = Default::default();
        Self { parts, bytes, handed_out, oldest_since: AtomicU64::new(NEVER) }
    }

    pub(crate) fn read(&self) -> QueueStatus {
        let oldest = self.oldest_since.load(Ordering::Relaxed);
        QueueStatus {
            parts: self.parts.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            oldest_since: (oldest != NEVER).then(|| Duration::from_nanos(oldest)),
        }
    }

    pub(crate) fn show(&self, depth: Depth, oldest_since: Option<Duration>) {
        self.parts.store(depth.parts, Ordering::Relaxed);
        self.bytes.store(depth.bytes, Ordering::Relaxed);
        self.oldest_since.store(oldest_since.map_or(NEVER, nanos), Ordering::Relaxed);
    }

    pub(crate) fn hand_out(&self, arrived: Duration) {
        self.handed_out.store(nanos(arrived), Ordering::Relaxed);
    }

    pub(crate) fn arrived(&self) -> Duration {
        Duration::from_nanos(self.handed_out.load(Ordering::Relaxed))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_as_long_as_a_bound_is_in_its_bucket_and_what_took_longer_than_all_in_the_last() {
        let mut cell = TimingCell::default();
        let longer = Duration::from_secs(11);
        TIMING_BOUNDS.into_iter().chain([Duration::ZERO, longer]).for_each(|took| cell.record(took));
        let timing = TimingCell::read(Some(&cell));
        assert_eq!(timing.buckets, [2, 1, 1, 1, 1, 1]);
        assert_eq!((timing.count, timing.last, timing.max), (7, longer, longer));
        assert_eq!(timing.total, TIMING_BOUNDS.iter().sum::<Duration>() + longer);
    }
}

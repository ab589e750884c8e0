//! Measured durations: how many, how long in all, and how they are spread. One set of buckets serves all, so sums
//! over informers, queues and controllers are meaningful.

use std::time::Duration;

/// The upper bounds of the buckets of a [`Timing`]: 1-2-5 steps from 10 us to 50 s, then 60 s; and the
/// bounds of client-go's and controller-runtime's histograms of work queues, which are powers of ten from
/// 10 ns to 1,000 s (`component-base/metrics/prometheus/workqueue`, `pkg/metrics/workqueue.go`). What takes
/// longer than the last one has its own bucket.
pub const TIMING_BOUNDS: [Duration; 27] = {
    let nanos: [u64; 27] = [
        10,
        100,
        1_000,
        10_000,
        20_000,
        50_000,
        100_000,
        200_000,
        500_000,
        1_000_000,
        2_000_000,
        5_000_000,
        10_000_000,
        20_000_000,
        50_000_000,
        100_000_000,
        200_000_000,
        500_000_000,
        1_000_000_000,
        2_000_000_000,
        5_000_000_000,
        10_000_000_000,
        20_000_000_000,
        50_000_000_000,
        60_000_000_000,
        100_000_000_000,
        1_000_000_000_000,
    ];
    let (mut bounds, mut at) = ([Duration::ZERO; 27], 0);
    while at < bounds.len() {
        bounds[at] = Duration::from_nanos(nanos[at]);
        at += 1;
    }
    bounds
};

/// How long something took, over all times that it happened.
///
/// ```
/// # use informer_core::face as actix_informer;
/// use actix_informer::status::Timing;
/// use std::time::Duration;
///
/// let mut timing = Timing::default();
/// timing.record(Duration::from_millis(3));
/// assert_eq!((timing.count, timing.max), (1, Duration::from_millis(3)));
/// let at_most_5_ms = timing.cumulative().find(|(bound, _)| *bound == Some(Duration::from_millis(5)));
/// assert_eq!(at_most_5_ms.map(|(_, count)| count), Some(1));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// How often it happened.
    pub count: u64,
    /// How long all of them took together.
    pub total: Duration,
    /// How long the last one took.
    pub last: Duration,
    /// How long the longest one took.
    pub max: Duration,
    buckets: [u64; TIMING_BOUNDS.len() + 1],
}

impl Timing {
    /// It happened once more, and took so long.
    pub fn record(&mut self, took: Duration) {
        self.buckets[TIMING_BOUNDS.partition_point(|bound| *bound < took)] += 1;
        self.count += 1;
        self.total = self.total.saturating_add(took);
        self.last = took;
        self.max = self.max.max(took);
    }

    /// How many took at most as long as each bound of [`TIMING_BOUNDS`]; `None` has all of them.
    pub fn cumulative(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        let bounds = TIMING_BOUNDS.into_iter().map(Some).chain([None]);
        bounds.zip(self.buckets).scan(0, |sum, (bound, count)| {
            *sum += count;
            Some((bound, *sum))
        })
    }

    /// At most this long took this part of them, between 0 and 1: the bound of the bucket, or [`Self::max`] if
    /// that is less. `None` if nothing was measured.
    pub fn quantile(&self, part: f64) -> Option<Duration> {
        let rank = (self.count as f64 * part).ceil().max(1.0);
        let (bound, _) = self.cumulative().find(|(_, count)| *count as f64 >= rank)?;
        (self.count > 0).then(|| bound.map_or(self.max, |bound| bound.min(self.max)))
    }

    /// Adds what another one has measured. The last one is the other's.
    pub fn add(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(all, more)| *all += more);
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        (self.last, self.max) = (other.last, self.max.max(other.max));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_as_long_as_a_bound_is_in_its_bucket_and_what_took_longer_than_all_in_the_last() {
        let longer = Duration::from_secs(1001);
        let mut timing = Timing::default();
        TIMING_BOUNDS.into_iter().chain([Duration::ZERO, longer]).for_each(|took| timing.record(took));
        let expected: Vec<u64> = (2..=28).chain([29]).collect();
        assert_eq!(timing.cumulative().map(|(_, count)| count).collect::<Vec<_>>(), expected);
        assert_eq!((timing.count, timing.last, timing.max), (29, longer, longer));
        assert_eq!(timing.total, TIMING_BOUNDS.iter().sum::<Duration>() + longer);
    }

    #[test]
    fn the_bounds_hold_those_of_the_work_queues_of_client_go_and_controller_runtime() {
        let is_there = |power| TIMING_BOUNDS.contains(&Duration::from_nanos(10_u64.pow(power)));
        assert!((1..=12).all(is_there), "10 ns to 1,000 s, each ten times the one before");
        assert!(TIMING_BOUNDS.is_sorted());
    }

    #[test]
    fn a_quantile_is_the_bound_of_its_bucket_and_at_most_the_longest() {
        let mut timing = Timing::default();
        assert_eq!(timing.quantile(0.5), None);
        (0..98).for_each(|_| timing.record(Duration::from_millis(3)));
        timing.record(Duration::from_millis(70));
        timing.record(Duration::from_secs(2_000));
        let of = |part| timing.quantile(part).expect("some were measured");
        assert_eq!((of(0.5), of(0.99)), (Duration::from_millis(5), Duration::from_millis(100)));
        assert_eq!((of(0.0), of(1.0)), (Duration::from_millis(5), Duration::from_secs(2_000)));
    }

    #[test]
    fn a_sum_has_what_both_have_measured() {
        let of = |took: &[u64]| {
            let mut timing = Timing::default();
            took.iter().for_each(|took| timing.record(Duration::from_micros(*took)));
            timing
        };
        let mut sum = of(&[5, 700]);
        sum.add(&of(&[90_000]));
        assert_eq!(sum, of(&[5, 700, 90_000]));
    }
}

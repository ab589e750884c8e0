//! Writes a family of metrics: samples are collected, those of equal labels merged, then encoded.
//!
//! 1. No two samples of a family have the same labels: else a scrape is refused as a whole.
//! 2. Samples are ordered by their labels. A family without samples is left out.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use informer_client::Sizes;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::status::Timing;

pub(super) type Labels = Vec<(&'static str, String)>;

/// Metrics about things of one type.
pub(super) struct Family<T> {
    /// Without `_total`, which the encoder adds to counters.
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: MetricType,
    pub(super) read: fn(&T, &mut Samples<'_>),
}

impl<T> Family<T> {
    pub(super) const fn counter(
        name: &'static str,
        help: &'static str,
        read: fn(&T, &mut Samples<'_>),
    ) -> Self {
        Self { name, help, kind: MetricType::Counter, read }
    }

    pub(super) const fn gauge(
        name: &'static str,
        help: &'static str,
        read: fn(&T, &mut Samples<'_>),
    ) -> Self {
        Self { name, help, kind: MetricType::Gauge, read }
    }

    pub(super) const fn histogram(
        name: &'static str,
        help: &'static str,
        read: fn(&T, &mut Samples<'_>),
    ) -> Self {
        Self { name, help, kind: MetricType::Histogram, read }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    Count(u64),
    Number(f64),
    /// Merging keeps the greatest.
    Most(f64),
    /// Merging keeps the least.
    Least(f64),
    Times(Box<Timing>, Range),
    Sizes(Box<Sizes>),
}

/// Which buckets of durations are written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Range {
    /// Those of work queues begin at 10 ns and end at 1,000 s.
    Queue,
    /// From 10 us to 60 s.
    Usual,
}

impl Range {
    fn has(self, bound: Duration) -> bool {
        let usual = Duration::from_micros(10)..=Duration::from_secs(60);
        matches!(self, Self::Queue) || usual.contains(&bound)
    }
}

pub(super) fn seconds(time: Duration) -> Value {
    Value::Most(time.as_secs_f64())
}

pub(super) fn number(number: usize) -> Value {
    Value::Number(number as f64)
}

pub(super) fn yes(is: bool) -> Value {
    Value::Number(f64::from(u8::from(is)))
}

pub(super) fn times(timing: &Timing) -> Value {
    Value::Times(Box::new(*timing), Range::Usual)
}

/// Takes one family's samples of one thing.
pub(super) struct Samples<'a> {
    labels: &'a Labels,
    all: &'a mut BTreeMap<Labels, Value>,
}

impl Samples<'_> {
    pub(super) fn add(&mut self, value: Value) {
        self.with([], value);
    }

    pub(super) fn with<const N: usize>(&mut self, labels: [(&'static str, &str); N], value: Value) {
        let mut all = self.labels.clone();
        all.extend(labels.map(|(name, value)| (name, value.to_owned())));
        match self.all.get_mut(&all) {
            Some(known) => known.merge(value),
            None => drop(self.all.insert(all, value)),
        }
    }
}

impl Value {
    fn merge(&mut self, other: Self) {
        match (self, other) {
            (Self::Count(all), Self::Count(more)) => *all += more,
            (Self::Number(all), Self::Number(more)) => *all += more,
            (Self::Most(most), Self::Most(other)) => *most = most.max(other),
            (Self::Least(least), Self::Least(other)) => *least = least.min(other),
            (Self::Times(all, _), Self::Times(more, _)) => all.add(&more),
            (Self::Sizes(all), Self::Sizes(more)) => all.add(&more),
            // A family has values of one kind.
            _ => {}
        }
    }

    fn encode(&self, mut metric: MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => metric.encode_counter::<NoLabelSet, _, f64>(count, None),
            Self::Number(number) | Self::Most(number) | Self::Least(number) => metric.encode_gauge(number),
            Self::Times(timing, range) => {
                let bounds = timing.cumulative().filter(|(bound, _)| bound.is_none_or(|at| range.has(at)));
                let buckets = bounds.map(|(bound, count)| (bound.map(|at| at.as_secs_f64()), count));
                let buckets = each_alone(buckets);
                metric.encode_histogram::<NoLabelSet>(
                    timing.total.as_secs_f64(),
                    timing.count,
                    &buckets,
                    None,
                )
            }
            Self::Sizes(sizes) => {
                let buckets = each_alone(
                    sizes.cumulative().map(|(bound, count)| (bound.map(|bytes| bytes as f64), count)),
                );
                metric.encode_histogram::<NoLabelSet>(sizes.total as f64, sizes.count, &buckets, None)
            }
        }
    }
}

/// The encoder sums the buckets up itself.
fn each_alone(cumulative: impl Iterator<Item = (Option<f64>, u64)>) -> Vec<(f64, u64)> {
    let mut before = 0;
    let alone = cumulative.map(|(bound, count)| {
        let alone = count - before;
        before = count;
        (bound.unwrap_or(f64::INFINITY), alone)
    });
    alone.collect()
}

pub(super) fn write<T>(
    encoder: &mut DescriptorEncoder<'_>,
    things: &[(Labels, T)],
    families: &[Family<T>],
) -> fmt::Result {
    for family in families {
        let mut samples = BTreeMap::new();
        for (labels, thing) in things {
            (family.read)(thing, &mut Samples { labels, all: &mut samples });
        }
        if samples.is_empty() {
            continue;
        }
        let mut metric = encoder.encode_descriptor(family.name, family.help, None, family.kind)?;
        for (labels, value) in &samples {
            value.encode(metric.encode_family(labels)?)?;
        }
    }
    Ok(())
}

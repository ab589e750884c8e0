//! Compares the cost of the informer's actors with the cost of decoding.
//!
//! Answers "how much processor time does an object take after decoding, as a share of its decoding?"; the limit is 20 %.
//! Both are measured in one run, as processor time of all threads: wall time would favour the pipeline, which uses one
//! thread more. Decoding is the scan of a pod of 8.9 KB, its decoding without `managedFields`, and its freeing. The
//! other side is an update, and a first list, from a source of decoded objects through every actor to one subscriber.
//! The table is printed last.
//!
//! ```sh
//! cargo bench --bench share
//! ```

mod support {
    pub(crate) mod cost;
    pub(crate) mod feed;
    pub(crate) mod first_list;
    pub(crate) mod objects;
    pub(crate) mod pipeline;
    pub(crate) mod pod;
    pub(crate) mod processor_time;
    pub(crate) mod setup;
}

use std::hint::black_box;
use std::time::Duration;

use actix_informer::representation::{Encoded, Prune, Representation, Typed};
use criterion::{Criterion, SamplingMode, Throughput};
use informer_core::meta::{Meta, Object, SourceId};
use k8s_openapi::api::core::v1::Pod;
use support::cost::spent;
use support::first_list::FirstList;
use support::objects::{BATCH, is_measured, scaled};
use support::pipeline::{Updated, stretch};
use support::pod::pods;
use support::processor_time::ProcessorTime;
use support::setup::criterion;

/// Batches in one measured stretch.
const STRETCH: usize = 100;
/// The limit, in per cent of decoding.
const LIMIT: f64 = 20.0;

/// Microseconds per object, one figure for each sample.
type Figures = Vec<f64>;

fn main() {
    let mut criterion = criterion().with_measurement(ProcessorTime);
    let decoding = decoding(&mut criterion);
    let rows = [
        ("update, store of 10,000", update(&mut criterion, 10_000)),
        ("update, store of 100,000", update(&mut criterion, 100_000)),
        ("first list of 100,000", first_list(&mut criterion, 100_000)),
    ];
    criterion.final_summary();
    let Some(decoding) = median(decoding).filter(|_| is_measured()) else { return };
    println!("{:<34} {:>12} {:>9}", "processor time, all threads", "us/object", "share");
    println!("{:<34} {decoding:>12.2}", "decode a pod of 8.9 KB");
    for (name, figures) in rows {
        let Some(cost) = median(figures) else { continue };
        let share = cost * 100.0 / decoding;
        let remark = if share < LIMIT { "" } else { "  above the limit of 20 %" };
        println!("{name:<34} {cost:>12.2} {share:>7.1} %{remark}");
    }
}

/// The median of the last ten figures; those before are warm-up.
fn median(mut figures: Figures) -> Option<f64> {
    let mut last = figures.split_off(figures.len().saturating_sub(10));
    last.sort_by(f64::total_cmp);
    last.get(last.len() / 2).copied()
}

/// Runs one benchmark of the group; `work` returns the cost of `times` rounds with `objects` objects each.
fn bench(
    criterion: &mut Criterion<ProcessorTime>,
    name: &str,
    objects: usize,
    mut work: impl FnMut(u64) -> Duration,
) -> Figures {
    let mut figures = Figures::new();
    let mut group = criterion.benchmark_group("share");
    group.sampling_mode(SamplingMode::Flat);
    group.throughput(Throughput::Elements(objects as u64));
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|times| {
            let cost = work(times);
            figures.push(cost.as_secs_f64() * 1e6 / (times as f64 * objects as f64));
            cost
        });
    });
    figures
}

fn decoding(criterion: &mut Criterion<ProcessorTime>) -> Figures {
    let pods = pods(BATCH);
    let (typed, prune, source) = (Typed::<Pod>::new(), Prune::default(), SourceId::default());
    bench(criterion, "decode", BATCH, |times| {
        spent(&ProcessorTime, || {
            for pod in (0..times).flat_map(|_| &pods) {
                let text = std::str::from_utf8(black_box(pod.as_bytes())).expect("a text");
                let encoded = Encoded::json(text);
                let scan = encoded.meta();
                let (key, version) = (scan.key().expect("a name"), scan.version().expect("a version"));
                let meta = Meta::new(key, version, source.clone()).uid(scan.uid());
                let meta = meta.wire_bytes(pod.len() as u32);
                drop(black_box(Object::new(meta, typed.keep(&encoded, &prune).expect("a pod"))));
            }
        })
    })
}

fn update(criterion: &mut Criterion<ProcessorTime>, keys: usize) -> Figures {
    let keys = scaled(keys);
    let mut updated = None;
    let figures = bench(criterion, &format!("update/{keys}"), stretch(keys, STRETCH) * BATCH, |times| {
        updated.get_or_insert_with(|| Updated::new(keys, 1, STRETCH)).run(&ProcessorTime, times)
    });
    updated.into_iter().for_each(Updated::stop);
    figures
}

fn first_list(criterion: &mut Criterion<ProcessorTime>, keys: usize) -> Figures {
    let keys = scaled(keys);
    let mut list = None;
    bench(criterion, &format!("first_list/{keys}"), keys, |times| {
        list.get_or_insert_with(|| FirstList::new(keys)).run(&ProcessorTime, times)
    })
}

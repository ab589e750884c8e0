//! Measures what being seen costs: marks on the paths of objects, and a scrape of the metrics.
//!
//! Answers "what does an event cost more while paths are asked for, and how long does a scrape of 500 informers take?".
//! An event goes to one subscriber; the time is that of a batch of 64, in processor time of all threads.
//!
//! ```sh
//! cargo bench --bench seeing --features metrics
//! ```
//!
//! `benches/instructions.sh` counts the instructions of an event with each sampling, under valgrind.

mod support {
    pub(crate) mod cost;
    pub(crate) mod feed;
    pub(crate) mod objects;
    pub(crate) mod pipeline;
    pub(crate) mod processor_time;
    pub(crate) mod setup;
}

use actix_informer::informer::Informer;
use actix_informer::metrics::Metrics;
use actix_informer::metrics::prometheus_client::encoding::text;
use actix_informer::metrics::prometheus_client::metrics::counter::Counter;
use actix_informer::metrics::prometheus_client::metrics::family::Family;
use actix_informer::metrics::prometheus_client::registry::Registry;
use criterion::measurement::WallTime;
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use futures_util::{StreamExt as _, stream};
use support::feed::feed;
use support::objects::{BATCH, Population, scaled};
use support::pipeline::{Updated, stretch, threads};
use support::processor_time::ProcessorTime;
use support::setup::criterion;

const INFORMERS: usize = 500;

fn main() {
    if let Some((one_of, stretches)) = counted() {
        return only_events(one_of, stretches);
    }
    let mut of_events = criterion().with_measurement(ProcessorTime);
    marks(&mut of_events);
    of_events.final_summary();
    let mut of_scrapes = criterion();
    scrape(&mut of_scrapes);
    of_scrapes.final_summary();
}

/// The sampling and the number of stretches that a counter of instructions wants.
fn counted() -> Option<(u32, u64)> {
    let one_of = std::env::var("SEEING_ONE_OF").ok()?.parse().ok()?;
    let stretches = std::env::var("SEEING_STRETCHES").ok()?.parse().ok()?;
    Some((one_of, stretches))
}

fn only_events(one_of: u32, stretches: u64) {
    let mut updated = Updated::new(10_000, 1, 16);
    updated.informer().runtime().paths().sample(one_of);
    updated.run(&WallTime, stretches);
    updated.stop();
}

/// Nobody asks, one of 64 changes leaves marks, all do.
fn marks(criterion: &mut Criterion<ProcessorTime>) {
    let mut group = criterion.benchmark_group("seeing/batch_of_64");
    group.sampling_mode(SamplingMode::Flat);
    let keys = scaled(10_000);
    for (name, one_of) in [("off", 0), ("one_of_64", 64), ("all", 1)] {
        group.throughput(Throughput::Elements((stretch(keys, 16) * BATCH) as u64));
        let mut updated = None;
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            let updated = updated.get_or_insert_with(|| Updated::new(keys, 1, 16));
            updated.informer().runtime().paths().sample(one_of);
            bencher.iter_custom(|times| updated.run(&ProcessorTime, times));
        });
        updated.into_iter().for_each(Updated::stop);
    }
}

fn scrape(criterion: &mut Criterion<WallTime>) {
    let runtime = threads();
    let mut population = Population::new(10);
    let (objects, version) = (population.everything(), population.version());
    let informers: Vec<_> = (0..INFORMERS)
        .map(|number| {
            let source = feed(&objects, version.clone(), stream::pending().boxed());
            let informer = Informer::builder(&runtime, format!("kind-{number}")).source_with(source);
            let informer = informer.start().expect("its name is free and it has a source");
            let subscription = informer.for_each(|_| async {}).expect("the informer runs");
            (informer, subscription)
        })
        .collect();
    let synced = async {
        for (_, subscription) in &informers {
            subscription.synced().await.expect("nothing ends it");
        }
    };
    actix_rt::Runtime::new().expect("a runtime can be started").block_on(synced);
    let registry = Metrics::of(&runtime).registry();
    let mut length = 0;
    let mut written = || {
        let mut text = String::with_capacity(length);
        text::encode(&mut text, &registry).expect("a String takes it");
        length = text.len();
        text.lines().filter(|line| !line.starts_with('#')).count()
    };
    let series = written();
    println!("{INFORMERS} informers, each with a subscription: {series} series");
    criterion.bench_function("seeing/scrape_of_500_informers", |bencher| bencher.iter(&mut written));
    // kube-rs has no metrics: its controllers keep counters of their own in such a registry.
    let counters = Family::<[(&str, String); 2], Counter>::default();
    for number in 0..series {
        counters
            .get_or_create(&[("kind", format!("kind-{}", number % INFORMERS)), ("of", number.to_string())])
            .inc();
    }
    let mut registry = Registry::default();
    registry.register("controller_events", "What a program counts itself", counters);
    let mut length = 0;
    criterion.bench_function("seeing/scrape_of_as_many_counters", |bencher| {
        bencher.iter(|| {
            let mut text = String::with_capacity(length);
            text::encode(&mut text, &registry).expect("a String takes it");
            length = text.len();
        });
    });
}

//! Measures how fast changes pass through a running informer.
//!
//! Answers "how many objects per second pass from a source of decoded objects to a subscriber that has handled them?":
//! for updates in batches of 64, spread over the keys of a store; for the same updates with 64 idle threads that have
//! read the store once (an actor's poll must not become more expensive by them); and for the first list. Wall time on
//! `Runtime::threads()`: pipeline, freeing and subscriber each have a thread. `decode.rs` measures decoding, `share.rs`
//! the ratio of both.
//!
//! ```sh
//! cargo bench --bench pipeline
//! ```

mod support {
    pub(crate) mod cost;
    pub(crate) mod feed;
    pub(crate) mod first_list;
    pub(crate) mod objects;
    pub(crate) mod pipeline;
    pub(crate) mod setup;
}

use criterion::measurement::WallTime;
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use support::first_list::FirstList;
use support::objects::{BATCH, scaled};
use support::pipeline::{IdleReader, Updated, stretch};
use support::setup::criterion;

/// Batches in one measured stretch.
const STRETCH: usize = 100;

fn main() {
    let mut criterion = criterion();
    updates(&mut criterion);
    idle_readers(&mut criterion);
    first_list(&mut criterion);
    criterion.final_summary();
}

/// Updates of existing objects; all batches of a stretch are sent at once, then awaited.
fn updates(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pipeline/update");
    group.sampling_mode(SamplingMode::Flat);
    for keys in [10_000, 100_000].map(scaled) {
        group.throughput(Throughput::Elements((stretch(keys, STRETCH) * BATCH) as u64));
        let mut updated = None;
        group.bench_function(BenchmarkId::from_parameter(keys), |bencher| {
            let updated = updated.get_or_insert_with(|| Updated::new(keys, 1, STRETCH));
            bencher.iter_custom(|times| updated.run(&WallTime, times));
        });
        updated.into_iter().for_each(Updated::stop);
    }
}

/// Updates of 10,000 objects, with this many idle threads that have read a snapshot.
fn idle_readers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pipeline/idle_readers");
    group.sampling_mode(SamplingMode::Flat);
    let keys = scaled(10_000);
    for readers in [0, 64] {
        group.throughput(Throughput::Elements((stretch(keys, STRETCH) * BATCH) as u64));
        let mut updated = None;
        group.bench_function(BenchmarkId::from_parameter(readers), |bencher| {
            let (updated, _readers) = updated.get_or_insert_with(|| {
                let updated = Updated::new(keys, 1, STRETCH);
                let readers: Vec<_> = (0..readers).map(|_| IdleReader::new(updated.informer())).collect();
                (updated, readers)
            });
            bencher.iter_custom(|times| updated.run(&WallTime, times));
        });
        updated.into_iter().for_each(|(updated, _readers)| updated.stop());
    }
}

/// From the start of an informer to its subscriber having handled the last object of the first list.
fn first_list(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pipeline/first_list");
    group.sampling_mode(SamplingMode::Flat);
    let keys = scaled(100_000);
    group.throughput(Throughput::Elements(keys as u64));
    let mut list = None;
    group.bench_function(BenchmarkId::from_parameter(keys), |bencher| {
        let list = list.get_or_insert_with(|| FirstList::new(keys));
        bencher.iter_custom(|times| list.run(&WallTime, times));
    });
}

//! Measures the delivery of one batch of changes to many subscribers.
//!
//! Answers "how long does it take until 1, 10 or 100 subscribed actors have handled a batch of 64 updates, and how many
//! deliveries per second is that?". There is one batch at a time: with few subscribers the result is latency, with many
//! it is throughput. Wall time; the counting actors run on the benchmark's thread.
//!
//! ```sh
//! cargo bench --bench fan_out
//! ```

mod support {
    pub(crate) mod cost;
    pub(crate) mod feed;
    pub(crate) mod objects;
    pub(crate) mod pipeline;
    pub(crate) mod setup;
}

use criterion::measurement::WallTime;
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use support::objects::{BATCH, scaled};
use support::pipeline::{Updated, stretch};
use support::setup::criterion;

fn main() {
    let mut criterion = criterion();
    fan_out(&mut criterion);
    criterion.final_summary();
}

fn fan_out(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fan_out/batch_of_64");
    group.sampling_mode(SamplingMode::Flat);
    let keys = scaled(10_000);
    for listeners in [1, 10, 100] {
        group.throughput(Throughput::Elements((stretch(keys, 1) * BATCH * listeners) as u64));
        let mut updated = None;
        group.bench_function(BenchmarkId::from_parameter(listeners), |bencher| {
            let updated = updated.get_or_insert_with(|| Updated::new(keys, listeners, 1));
            bencher.iter_custom(|times| updated.run(&WallTime, times));
        });
        updated.into_iter().for_each(Updated::stop);
    }
}

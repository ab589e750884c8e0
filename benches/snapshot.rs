//! Measures reads of the store, with and without a writer, and writes to it.
//!
//! Answers "how long does a `Lister` take for one object, a namespace, an index value or the complete store of 100,000
//! objects, while a pipeline applies batches of 64 as fast as it can, and while it is idle?", and "how long does one
//! update of the store take?", by batch size, with and without an index; and how long a selection of 50 of 100,000 objects
//! takes by labels and by a field, with an index that fits and without. Wall time. For IDX-19 it also measures how much
//! slower the writer is with 80 readers, each of which keeps a snapshot. It prints two lines for it, because criterion
//! cannot report the median of a pipeline.
//!
//! ```sh
//! cargo bench --bench snapshot
//! ```

mod support {
    pub(crate) mod feed;
    pub(crate) mod objects;
    pub(crate) mod setup;
}

use std::cell::Cell;
use std::hint::black_box;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use actix_informer::informer::{Informer, by_label};
use actix_informer::object::{Fields, LabelSelector, Select};
use actix_informer::runtime::Runtime;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use informer_actors::informer::Lister;
use informer_core::delta::{Cause, Replacement};
use informer_core::index::{AnyIndex, Index};
use informer_core::indexer::{Progress, Store};
use informer_core::meta::{Meta, Object, ResourceVersion, SourceId};
use informer_core::snapshot::Snapshot;
use k8s_openapi::api::core::v1::ConfigMap;
use support::feed::feed;
use support::objects::{BATCH, Batch, Body, Population, key, namespace, scaled};
use support::setup::criterion;

/// Results that a timed stretch keeps and frees after it; the Indexer also has them freed on another thread.
const KEPT: u64 = 32;

/// The number of readers of IDX-19, and of batches that are timed with them.
const READERS: usize = 80;
const BATCHES: usize = 4_000;

/// Values of the index `node`: 50 objects each.
const NODES: usize = 2_000;

/// Whether a pipeline writes meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    Idle,
    Busy,
}

fn main() {
    let mut criterion = criterion();
    for writer in [Writer::Idle, Writer::Busy] {
        reads(&mut criterion, writer);
    }
    selections(&mut criterion);
    writes(&mut criterion);
    idx_19_eighty_readers_cost_the_writer_little();
    criterion.final_summary();
}

fn reads(criterion: &mut Criterion, writer: Writer) {
    let keys = scaled(100_000);
    let mut group = criterion.benchmark_group(format!("snapshot/read/{writer:?}").to_lowercase());
    let (runtime, informer) = filled(keys, writer);
    let lister = informer.lister();
    let numbers = Scattered::new(keys);
    let mut bench = |name: &str, objects: usize, read: &dyn Fn(&Lister<Body>) -> usize| {
        group.throughput(Throughput::Elements(objects as u64));
        group.bench_function(name, |bencher| bencher.iter(|| black_box(read(&lister))));
    };
    let wanted: Vec<_> = (0..keys).map(key).collect();
    bench("get", 1, &|lister| usize::from(lister.get(&wanted[numbers.next()]).is_some()));
    let namespaces: Vec<_> = (0..keys).map(namespace).collect();
    bench("namespace_of_200", 200, &|lister| {
        lister.snapshot().namespace(&namespaces[numbers.next()]).map(|object| **object).fold(0, usize::max)
    });
    let nodes: Vec<_> = (0..keys).map(node).collect();
    bench("index_value_of_50", 50, &|lister| {
        let snapshot = lister.snapshot();
        let found = snapshot.by_index("node", &nodes[numbers.next()]).expect("the index exists");
        found.map(|object| **object).fold(0, usize::max)
    });
    bench("all", keys, &|lister| lister.snapshot().iter().map(|object| **object).fold(0, usize::max));
    group.finish();
    drop((lister, informer, runtime));
}

/// Selections of 50 objects by labels, and by a field, with an index by the label or the field and without.
fn selections(criterion: &mut Criterion) {
    let keys = scaled(100_000);
    let maps: Vec<_> = (0..keys).map(labelled).collect();
    let kind =
        Fields::new().field("kind", |map: &ConfigMap| map.data.as_ref()?.get("kind").map(String::as_str));
    let by_kind = kind.index("kind").expect("it is known");
    let plain = Snapshot::of(maps.iter().cloned(), []);
    let indexed = Snapshot::of(maps, [by_label("app").into(), by_kind.into()]);
    let labels: LabelSelector = "app=node-0042,tier!=test".parse().expect("a selector");
    let (everything, fields) =
        (LabelSelector::everything(), kind.select("kind=node-0042").expect("it is known"));
    let mut group = criterion.benchmark_group("snapshot/select");
    for (name, snapshot) in [("by_index", &indexed), ("linear", &plain)] {
        group.bench_function(BenchmarkId::new("labels", name), |bencher| {
            bencher.iter(|| black_box(snapshot.labelled(&labels).count()));
        });
        group.bench_function(BenchmarkId::new("fields", name), |bencher| {
            bencher.iter(|| black_box(snapshot.selected(&everything, &fields).count()));
        });
    }
    group.finish();
}

/// A config map whose label and field have one of [`NODES`] values.
fn labelled(number: usize) -> Object<ConfigMap> {
    let mut map = ConfigMap::default();
    map.metadata.labels =
        Some([("app".to_owned(), node(number)), ("tier".to_owned(), "live".to_owned())].into());
    map.data = Some([("kind".to_owned(), node(number))].into());
    let version = ResourceVersion::from_number(number as u64 + 1).expect("not zero");
    Object::new(Meta::new(key(number), version, SourceId::default()), map)
}

/// A running informer that has synced; with a busy writer, its source sends updates without end.
fn filled(keys: usize, writer: Writer) -> (Runtime, Informer<Body>) {
    let mut population = Population::new(keys);
    let (objects, version) = (population.everything(), population.version());
    let live: BoxStream<'static, Batch> = match writer {
        Writer::Idle => stream::pending().boxed(),
        Writer::Busy => stream::repeat_with(move || population.batch(BATCH)).boxed(),
    };
    let runtime = Runtime::threads().decoders(1).start_jitter(Duration::ZERO).start();
    let runtime = runtime.expect("three threads can be started");
    let informer = Informer::builder(&runtime, "read")
        .source_with(feed(&objects, version, live))
        .index("node", |object| [node(**object)])
        .start()
        .expect("its name is free and it has a source");
    let main = actix_rt::Runtime::new().expect("a runtime can be started");
    main.block_on(informer.synced()).expect("it syncs");
    (runtime, informer)
}

/// IDX-19: the writer's median time for a batch of 64, alone and beside readers.
fn idx_19_eighty_readers_cost_the_writer_little() {
    let keys = scaled(160_000);
    for readers in [0, READERS] {
        let median = batch_time_with_readers(keys, readers);
        println!(
            "snapshot/idx_19/{readers}_readers  median {median:?} for a batch of {BATCH} into {keys} objects"
        );
    }
}

/// The median time from batch to batch of a pipeline that always has a next batch, with this many readers.
fn batch_time_with_readers(keys: usize, readers: usize) -> Duration {
    let mut population = Population::new(keys);
    let (objects, version) = (population.everything(), population.version());
    let (requested, requests) = mpsc::channel();
    let live = stream::repeat_with(move || {
        // At the end the receiver is dropped.
        let _received = requested.send(now());
        population.batch(BATCH)
    });
    let runtime = Runtime::threads().decoders(1).start_jitter(Duration::ZERO).start();
    let runtime = runtime.expect("three threads can be started");
    let source = feed(&objects, version, live.boxed());
    let informer = Informer::builder(&runtime, "written").source_with(source).start();
    let informer = informer.expect("its name is free and it has a source");
    let main = actix_rt::Runtime::new().expect("a runtime can be started");
    main.block_on(informer.synced()).expect("it syncs");
    std::thread::scope(|scope| {
        let ends: Vec<_> = (0..readers)
            .map(|number| {
                let (end, ended) = mpsc::channel();
                let lister = informer.lister();
                scope.spawn(move || read_now_and_then(&lister, number, keys, &ended));
                end
            })
            .collect();
        requests.try_iter().for_each(drop);
        let times: Vec<Instant> = requests.iter().take(BATCHES).collect();
        drop(ends);
        let mut gaps: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_unstable();
        gaps[gaps.len() / 2]
    })
}

/// Gets, lists and keeps a snapshot, a hundred times per second, until the sender of `ended` is dropped.
fn read_now_and_then(lister: &Lister<Body>, number: usize, keys: usize, ended: &mpsc::Receiver<()>) {
    let mut kept = lister.snapshot();
    let mut at = number;
    while ended.recv_timeout(Duration::from_millis(10)) == Err(mpsc::RecvTimeoutError::Timeout) {
        at = (at + 75_577) % keys;
        black_box(lister.get(&key(at)).is_some());
        black_box(kept.namespace(&namespace(at)).count());
        kept = lister.snapshot();
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> Instant {
    Instant::now()
}

/// The cost of one update of the store, without readers.
fn writes(criterion: &mut Criterion) {
    let keys = scaled(100_000);
    for (name, indices) in [("plain", Vec::new()), ("indexed", vec![by_node().into()])] {
        let mut group = criterion.benchmark_group(format!("snapshot/apply_parts/{name}"));
        let mut ready = None;
        for size in [1, BATCH] {
            group.throughput(Throughput::Elements(size as u64));
            group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
                let (population, store) = ready.get_or_insert_with(|| stored(keys, indices.clone()));
                let source = SourceId::default();
                let next = || {
                    population.batch(size).into_iter().map(|part| (source.clone(), part)).collect::<Vec<_>>()
                };
                bencher.iter_batched(next, |parts| store.apply_parts(parts), BatchSize::NumIterations(KEPT));
            });
        }
    }
}

fn by_node() -> Index<Body> {
    Index::new("node", |object| vec![node(**object)])
}

fn stored(keys: usize, indices: Vec<AnyIndex<Body>>) -> (Population, Store<Body>) {
    let mut population = Population::new(keys);
    let objects = population.everything();
    let version = population.version();
    let list = Replacement::new(version, Cause::InitialList, objects, Vec::new());
    let mut store = Store::new(Snapshot::empty(), indices);
    store.begin_replace(SourceId::default(), list);
    while matches!(store.advance(usize::MAX), Progress::More) {}
    (population, store)
}

/// The value of the index `node`; an update does not change it.
fn node(number: usize) -> String {
    format!("node-{:04}", number % NODES)
}

/// Numbers below a bound; consecutive ones are far apart.
struct Scattered {
    bound: usize,
    now: Cell<usize>,
}

impl Scattered {
    fn new(bound: usize) -> Self {
        Self { bound, now: Cell::new(0) }
    }

    fn next(&self) -> usize {
        self.now.set((self.now.get() + 75_577) % self.bound);
        self.now.get()
    }
}

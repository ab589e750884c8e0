//! Measures how long it takes to decode a pod.
//!
//! Answers "how long does one production-like pod of 8.9 KB take?": as the complete type, without `managedFields`, as a
//! JSON tree, as its text without `managedFields`, and for the metadata only. Wall time of one thread, for decoding and
//! freeing together. The texts differ, so that the branch predictor cannot learn them.
//!
//! ```sh
//! cargo bench --bench decode --features unstable
//! ```

mod support {
    pub(crate) mod pod;
    pub(crate) mod setup;
}

use std::hint::black_box;

use actix_informer::representation::{Dynamic, Encoded, Prune, Representation, Typed};
use actix_informer::unstable::meta_scan;
use criterion::{Criterion, Throughput};
use k8s_openapi::api::core::v1::Pod;
use kube_core::discovery::ApiResource;
use support::pod::pods;
use support::setup::criterion;

/// Texts in one iteration: as many as in one chunk of the client.
const CHUNK: usize = 64;

fn main() {
    let mut criterion = criterion();
    decode(&mut criterion);
    criterion.final_summary();
}

fn decode(criterion: &mut Criterion) {
    let pods = pods(CHUNK);
    let (typed, prune) = (Typed::<Pod>::new(), Prune::default());
    let dynamic = Dynamic::new(&ApiResource::erase::<Pod>(&()));
    let bytes: usize = pods.iter().map(String::len).sum();
    let mut group = criterion.benchmark_group("decode/64_pods");
    group.throughput(Throughput::ElementsAndBytes { elements: CHUNK as u64, bytes: bytes as u64 });
    let mut bench = |name: &str, work: &dyn Fn(&str)| {
        group.bench_function(name, |bencher| bencher.iter(|| pods.iter().for_each(|pod| work(pod))));
    };
    bench("whole", &|pod| drop(black_box(serde_json::from_str::<Pod>(pod).expect("a pod"))));
    bench("typed", &|pod| drop(black_box(typed.keep(&Encoded::json(pod), &prune).expect("a pod"))));
    bench("metadata_scan", &|pod| {
        let scan = meta_scan(pod.as_bytes());
        black_box((scan.key().expect("a name"), scan.uid(), scan.version().expect("a version")));
    });
    bench("text", &|pod| drop(black_box(Encoded::json(pod).pruned(&prune).expect("a pod"))));
    bench("dynamic", &|pod| drop(black_box(dynamic.keep(&Encoded::json(pod), &prune).expect("a pod"))));
}

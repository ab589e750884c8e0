//! Measures how long it takes to decode a pod.
//!
//! Answers "how long does one production-like pod of 8.9 KB take?": as the complete type, without `managedFields`, as a
//! JSON tree, as its text without `managedFields`, and for the metadata only; and, with the feature `protobuf`, what of
//! this takes how long of the message of the same pod. Wall time of one thread, for decoding and
//! freeing together. The texts differ, so that the branch predictor cannot learn them.
//!
//! ```sh
//! cargo bench --bench decode --features protobuf,unstable
//! ```

mod support {
    pub(crate) mod pod;
    pub(crate) mod setup;
}

use std::hint::black_box;

use actix_informer::representation::{Dynamic, Encoded, Lazy, Prune, Representation, Typed};
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
    let lazy = Lazy::<Pod>::new();
    bench("lazy", &|pod| drop(black_box(lazy.keep(&Encoded::json(pod), &prune).expect("a pod"))));
    group.finish();
    #[cfg(feature = "protobuf")]
    messages(criterion, &pods);
}

/// The same of the same pods in protobuf.
#[cfg(feature = "protobuf")]
fn messages(criterion: &mut Criterion, pods: &[String]) {
    use actix_informer::unstable::protobuf;
    use informer_apiserver::fuzzing::to_protobuf;

    let written = |pod: &String| to_protobuf(&serde_json::from_str(pod).expect("JSON")).expect("a pod");
    let pods: Vec<Vec<u8>> = pods.iter().map(written).collect();
    let (typed, lazy, prune) = (Typed::<Pod>::new(), Lazy::<Pod>::new(), Prune::default());
    let bytes: usize = pods.iter().map(Vec::len).sum();
    let mut group = criterion.benchmark_group("decode/64_pods_in_protobuf");
    group.throughput(Throughput::ElementsAndBytes { elements: CHUNK as u64, bytes: bytes as u64 });
    let mut bench = |name: &str, work: &dyn Fn(&Encoded<'_>)| {
        group.bench_function(name, |bencher| {
            bencher.iter(|| pods.iter().for_each(|pod| work(&protobuf(pod).expect("a message"))));
        });
    };
    bench("typed", &|pod| drop(black_box(typed.keep(pod, &prune).expect("a pod"))));
    bench("metadata_scan", &|pod| drop(black_box((pod.meta().key(), pod.meta().version()))));
    bench("text", &|pod| drop(black_box(pod.pruned(&prune).expect("a pod"))));
    bench("lazy", &|pod| drop(black_box(lazy.keep(pod, &prune).expect("a pod"))));
}

//! The costs of the server: a start, a create, a large list, an event to many watchers.
//!
//! ```text
//! cargo bench -p informer-apiserver
//! ```
//!
//! Answers: did a change make one of these slower? Everything is in one process, the client included; for the server's own
//! processor time and memory, and for a real server beside it, see `examples/load`.
//! 1. Under `cargo test --all-targets` each routine runs once, so sizes are small enough for that.
#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use informer_apiserver::ApiServer;
use serde_json::{Value, json};

const PODS: usize = 2_000;
const WATCHERS: usize = 100;
const EVENTS: usize = 100;

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"},
        "annotations": {"padding": "x".repeat(1_000)}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}})
}

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
}

fn ask(server: &ApiServer, path: &str) -> TcpStream {
    let mut socket = TcpStream::connect(server.addr()).unwrap();
    write!(socket, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    socket
}

fn list(server: &ApiServer) -> usize {
    let mut body = Vec::new();
    ask(server, "/api/v1/pods").read_to_end(&mut body).unwrap()
}

/// Reads until this many events have come.
fn read_events(stream: &mut BufReader<TcpStream>, events: usize) {
    let (mut seen, mut line) = (0, Vec::new());
    while seen < events {
        line.clear();
        assert!(stream.read_until(b'\n', &mut line).unwrap() > 0, "the watch goes on");
        seen += usize::from(line.ends_with(b"}\n"));
    }
}

fn start(criterion: &mut Criterion) {
    criterion.bench_function("start and stop", |bench| {
        bench.iter(|| ApiServer::builder().start_blocking().unwrap());
    });
}

fn create(criterion: &mut Criterion) {
    let server = ApiServer::builder().start_blocking().unwrap();
    let mut number = 0;
    criterion.bench_function("create a pod by the handle", |bench| {
        bench.iter_batched(
            || {
                number += 1;
                pod(&format!("p{number}"))
            },
            |pod| server.create(pod).unwrap(),
            BatchSize::SmallInput,
        );
    });
}

fn lists(criterion: &mut Criterion) {
    let server = ApiServer::builder().start_blocking().unwrap();
    for number in 0..PODS {
        server.create(pod(&format!("p{number}"))).unwrap();
    }
    let mut group = criterion.benchmark_group("list");
    group.throughput(Throughput::Bytes(list(&server) as u64));
    group.bench_function("2,000 pods over HTTP", |bench| bench.iter(|| list(&server)));
    group.finish();
}

fn events(criterion: &mut Criterion) {
    let server = ApiServer::builder().start_blocking().unwrap();
    let path = format!("/api/v1/secrets?watch=1&resourceVersion={}", server.revision());
    let mut streams: Vec<_> = (0..WATCHERS).map(|_| BufReader::new(ask(&server, &path))).collect();
    let mut round = 0;
    let mut group = criterion.benchmark_group("watch");
    group.throughput(Throughput::Elements((WATCHERS * EVENTS) as u64));
    group.bench_function("100 events to 100 watchers", |bench| {
        bench.iter(|| {
            round += 1;
            for number in 0..EVENTS {
                server.create(secret(&format!("s{round}-{number}"))).unwrap();
            }
            streams.iter_mut().for_each(|stream| read_events(stream, EVENTS));
        });
    });
    group.finish();
}

criterion_group!(benches, start, create, lists, events);
criterion_main!(benches);

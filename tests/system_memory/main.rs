//! How memory grows while the objects of a cache change, under the system's allocator.
//!
//! Answers "does a program that chooses no allocator need more memory, the longer it follows changes?" by what the system
//! counts for the process, after a first list and after changes: as fast as they are read, and one at a time, as they come
//! in a quiet cluster. A binary of its own, in which no other allocator is linked; each case is a process of its own.
//! Nobody is subscribed: what waits for a subscriber that is behind is its own, at most the states of each key that it has
//! yet to see. `.ci/long` runs the long form, with the figures of production.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix_informer::prelude::*;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, future, stream};
use http::{Request, Response};
use k8s_openapi::api::core::v1::Pod;
use kube_core::ApiResource;
use tokio::sync::Notify as Signal;

#[path = "../../benches/support/memory_bar.rs"]
mod memory_bar;

const LONG: Duration = Duration::from_secs(120);
/// So much of a case is listed, changed as fast as possible, and changed one by one.
const OBJECTS: u64 = 20_000;
const CHANGES: u64 = 40_000;
const ONE_BY_ONE: u64 = 5_000;
/// So many changes are sent in one piece at most.
const PIECE: u64 = 64;
/// The share of a cache of metadata that the system's allocator keeps free between their many small pieces. It is as
/// much after five times the changes.
const BETWEEN_PIECES: f64 = 0.05;

/// The server: its objects, and how many of their changes have happened.
#[derive(Clone, Default)]
struct Server(Arc<Happening>);

#[derive(Default)]
struct Happening {
    changes: AtomicU64,
    more: Signal,
}

impl Server {
    /// Lets changes happen up to this number of them.
    fn change(&self, until: u64) {
        self.0.changes.store(until, Ordering::Release);
        self.0.more.notify_waiters();
    }

    fn serve(
        &self,
        request: &Request<Bytes>,
    ) -> Response<stream::BoxStream<'static, std::io::Result<Bytes>>> {
        let asks = |word: &str| request.uri().query().is_some_and(|query| query.contains(word));
        if asks("sendInitialEvents") {
            return refusal();
        }
        let is_watch = asks("watch=true");
        let accept = request.headers().get("accept").and_then(|value| value.to_str().ok());
        let kind = if accept.is_some_and(|accept| accept.contains("as=PartialObjectMetadata")) {
            METADATA
        } else {
            POD
        };
        let body = if is_watch { self.watch(kind).boxed() } else { list(kind).boxed() };
        Response::builder().header("content-type", "application/json").body(body).expect("a sound answer")
    }

    /// Every change that happens, in pieces of those that have.
    fn watch(&self, kind: Kind) -> impl Stream<Item = std::io::Result<Bytes>> + use<> {
        let happening = Arc::clone(&self.0);
        stream::unfold((happening, 0), move |(happening, sent)| async move {
            let until = loop {
                let more = happening.more.notified();
                let until = happening.changes.load(Ordering::Acquire);
                if until > sent {
                    break until.min(sent + PIECE);
                }
                more.await;
            };
            let event = |change: u64| {
                // Each object in turn, but not in the order of the list.
                let pod = pod(kind, change * 7_919 % OBJECTS, version(change));
                format!("{{\"type\":\"MODIFIED\",\"object\":{pod}}}\n")
            };
            let piece: String = (sent..until).map(event).collect();
            Some((Ok(Bytes::from(piece)), (happening, until)))
        })
    }
}

/// The version of the object that this change leaves.
fn version(change: u64) -> u64 {
    OBJECTS + 1 + change
}

/// What a server without watch-lists answers, so that a list is asked for.
fn refusal() -> Response<stream::BoxStream<'static, std::io::Result<Bytes>>> {
    let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,
        "message":"sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"}"#;
    let body = stream::iter([Ok(Bytes::from_static(status.as_bytes()))]).boxed();
    let answer = Response::builder().status(422).header("content-type", "application/json");
    answer.body(body).expect("a sound answer")
}

/// The kind of an object and its version.
type Kind = (&'static str, &'static str);
const POD: Kind = ("Pod", "v1");
/// What is asked for where metadata alone are kept. What it has besides is part of what is sent here.
const METADATA: Kind = ("PartialObjectMetadata", "meta.k8s.io/v1");

fn list((kind, version): Kind) -> impl Stream<Item = std::io::Result<Bytes>> {
    let head = format!(
        r#"{{"kind":"{kind}List","apiVersion":"{version}","metadata":{{"resourceVersion":"{OBJECTS}"}},"items":["#
    );
    let items = (0..OBJECTS).map(move |number| {
        let comma = if number == 0 { "" } else { "," };
        format!("{comma}{}", pod((kind, version), number, number + 1))
    });
    stream::iter([head].into_iter().chain(items).chain(["]}".to_owned()]).map(|text| Ok(Bytes::from(text))))
}

/// A pod with what most of them have, without white space.
fn pod((kind, api_version): Kind, number: u64, version: u64) -> String {
    let container = |name: &str| {
        format!(
            r#"{{"name":"{name}","image":"registry.example/team/{name}:v1.{version}","args":["--port=8080","--level=info"],
            "env":[{{"name":"POD","value":"web-{number}"}},{{"name":"REGION","value":"north"}}],
            "ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}}],
            "resources":{{"limits":{{"cpu":"500m","memory":"256Mi"}},"requests":{{"cpu":"100m","memory":"128Mi"}}}},
            "volumeMounts":[{{"name":"config","mountPath":"/etc/config","readOnly":true}}]}}"#
        )
    };
    let text = format!(
        r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{{"name":"web-{number:06}","namespace":"team-{:03}",
        "uid":"5c1b9c0e-7a1d-4d6e-9a52-{number:012x}","resourceVersion":"{version}",
        "labels":{{"app":"web","pod-template-hash":"6d5f8c9b74","team":"team-{:03}"}},
        "annotations":{{"checksum/config":"{version:032x}","owner":"team-{:03}"}}}},
        "spec":{{"nodeName":"node-{:04}","serviceAccountName":"web","containers":[{},{}],
        "volumes":[{{"name":"config","configMap":{{"name":"web-config"}}}}]}},
        "status":{{"phase":"Running","podIP":"10.1.{}.{}","conditions":[{{"type":"Ready","status":"True"}},
        {{"type":"PodScheduled","status":"True"}}]}}}}"#,
        number % 50,
        number % 50,
        number % 50,
        number % 200,
        container("web"),
        container("proxy"),
        number / 250,
        number % 250,
    );
    text.lines().map(str::trim_start).collect()
}

/// What of this process is no file's, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("it is there");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line");
    line.split_whitespace().next().expect("a number").parse().expect("a number")
}

/// Memory after the list, after the changes as fast as they are read, and after those that come one by one.
async fn grown<S: Send + Sync + 'static>(start: impl FnOnce(&Client, &Runtime) -> Informer<S>) -> [u64; 3] {
    let (runtime, server) = (Runtime::threads().decoders(2).start().expect("threads"), Server::default());
    let served = server.clone();
    let client = Client::in_process(&runtime, move |request| future::ready(Ok(served.serve(&request))));
    let pods = start(&client, &runtime);
    pods.synced_within(LONG).await.expect("it syncs");
    assert_eq!((pods.snapshot().len() as u64, pods.status().undecodable), (OBJECTS, 0));
    let reached = async |change: u64| {
        let version = ResourceVersion::from_number(version(change)).expect("not zero");
        pods.lister().wait_for(&version, LONG).await.expect("it is brought");
    };
    let freed = async || {
        while runtime.bytes_to_free() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        resident()
    };
    let listed = freed().await;
    server.change(CHANGES);
    reached(CHANGES - 1).await;
    let changed = freed().await;
    for change in CHANGES..CHANGES + ONE_BY_ONE {
        server.change(change + 1);
        reached(change).await;
    }
    [listed, changed, freed().await]
}

/// Runs the case of this name in a process of its own, which fails if it grows too much.
fn in_a_process(case: &str) {
    let own = std::env::current_exe().expect("a path");
    let mut child = Command::new(own);
    let output = child.args(["--exact", "one_case", "--ignored", "--nocapture"]).env("CASE", case).output();
    let output = output.expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    println!("{}", text.lines().find(|line| line.contains("KiB")).unwrap_or_default());
}

#[test]
#[ignore = "started by the others, as a process of its own"]
fn one_case() {
    let Ok(case) = std::env::var("CASE") else { return };
    let main = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let [listed, changed, quiet] = main.block_on(async {
        match &*case {
            "typed" => {
                grown(|client, runtime| {
                    client.resource::<Pod>().informer(runtime).expect("a source").start().expect("it starts")
                })
                .await
            }
            "metadata" => {
                grown(|client, runtime| {
                    client.metadata::<Pod>().informer(runtime).expect("a source").start().expect("it starts")
                })
                .await
            }
            _ => {
                let resource = ApiResource::erase::<Pod>(&());
                let dynamic = |client: &Client, runtime: &Runtime| {
                    client.dynamic(&resource).informer(runtime).expect("a source").start().expect("it starts")
                };
                grown(dynamic).await
            }
        }
    });
    println!(
        "{case}: {listed} KiB after the list, {changed} KiB after {CHANGES} changes, {quiet} KiB after {ONE_BY_ONE} more one by one"
    );
    let between_pieces = if case == "metadata" { BETWEEN_PIECES * listed as f64 } else { 0.0 };
    for grown in [changed, quiet] {
        assert!(
            grown as f64 <= memory_bar::most(listed, OBJECTS) + between_pieces,
            "{case} grew from {listed} to {grown} KiB"
        );
    }
}

#[test]
fn informer_14_memory_of_typed_objects_does_not_grow_with_their_changes() {
    in_a_process("typed");
}

#[test]
fn informer_14_memory_of_dynamic_objects_does_not_grow_with_their_changes() {
    in_a_process("dynamic");
}

#[test]
fn informer_14_memory_of_metadata_does_not_grow_with_their_changes() {
    in_a_process("metadata");
}

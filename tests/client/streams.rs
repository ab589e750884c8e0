//! Logs, commands and ports of pods, against the in-memory server and its agent.
//!
//! Answers "does a stream bring what the pod sends, wait where it must, and end as it should?" Errors of the protocol are
//! in `streams/broken.rs`.

use std::time::Duration;

use actix_informer::client::streams::{Attached, Protocol, StreamError};
use actix_informer::client::{Api, Error};
use actix_informer::prelude::*;
use futures_util::StreamExt;
use informer_apiserver::{ApiServer, Container};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

mod broken;
mod commands;
#[cfg(feature = "testing")]
mod many;
mod ports;
#[cfg(feature = "testing")]
mod transports;

const LONG: Duration = Duration::from_secs(20);

/// A server with one pod that is bound and has one container.
pub(crate) struct Cluster {
    pub(crate) server: ApiServer,
    pub(crate) client: Client,
    pub(crate) web: Container,
}

impl Cluster {
    async fn start() -> Self {
        let server = ApiServer::builder().start().await.unwrap();
        let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
        let web = pod(&server, "web");
        Self { server, client, web }
    }

    fn pods(&self) -> Api<Pod> {
        self.client.api::<Pod>().namespaced("default")
    }

    async fn run(&self, words: &[&str], params: &AttachParams) -> Attached {
        self.pods().exec("web", words.iter().copied(), params).await.unwrap()
    }
}

/// A pod with one container that has an agent.
pub(crate) fn pod(server: &ApiServer, name: &str) -> Container {
    let containers = json!([{"name": "main", "image": "example.org/web:1"}]);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"nodeName": "node-1", "containers": containers},
    });
    server.create(pod).unwrap();
    server.agent().container("default", name, "main")
}

/// Waits for what another thread does.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect(what);
}

fn follow() -> LogParams {
    LogParams { follow: true, ..LogParams::default() }
}

// STR-01: given a container with a log, when `logs` reads it with previous, tail, since, limit, timestamps or
// a container's name, then the text is what the node gives for that parameter, on the in-memory server and
// through a kube-apiserver; with `follow` it is refused before anything is sent.
// - a each parameter is the node's own
// - b `follow` is refused before anything is sent
#[tokio::test]
async fn str_01_a_log_is_read_as_it_is_with_every_parameter() {
    let cluster = Cluster::start().await;
    let now = cluster.server.clock().now();
    cluster.server.clock().set(now - Duration::from_secs(100));
    cluster.web.log("old");
    cluster.web.restart();
    cluster.web.log("one");
    cluster.server.clock().set(now);
    cluster.web.log("two");
    cluster.web.log("three");
    let pods = cluster.pods();
    let log = async |params: LogParams| pods.logs("web", &params).await.unwrap();
    let params = LogParams::default;
    assert_eq!(log(params()).await, "one\ntwo\nthree\n");
    assert_eq!(log(LogParams { previous: true, ..params() }).await, "old\n");
    assert_eq!(log(LogParams { tail_lines: Some(1), ..params() }).await, "three\n");
    assert_eq!(log(LogParams { since_seconds: Some(50), ..params() }).await, "two\nthree\n");
    assert_eq!(log(LogParams { limit_bytes: Some(6), ..params() }).await, "one\ntw");
    assert_eq!(log(LogParams { container: Some("main".to_owned()), ..params() }).await, "one\ntwo\nthree\n");
    let stamped = log(LogParams { timestamps: true, tail_lines: Some(1), ..params() }).await;
    let (time, line) = stamped.split_once(' ').unwrap();
    assert!(time.ends_with('Z') && line == "three\n", "{stamped}");
    let since_time = Some((now - Duration::from_secs(50)).try_into().unwrap());
    assert_eq!(log(LogParams { since_time, ..params() }).await, "two\nthree\n");
    cluster.server.clear_requests();
    let refused = pods.logs("web", &follow()).await.unwrap_err();
    assert!(matches!(refused, Error::Request(_)), "{refused}");
    assert!(cluster.server.requests().is_empty(), "nothing was sent");
}

// STR-02: given a log that is followed, when lines are written, then each comes as it is written, empty ones
// too, a last one without a newline comes at the end, a line above 64 KiB comes in marked parts cut between
// characters, and the stream ends with the container.
// - a each comes as it is written, and the stream ends with the container
// - b empty lines and a last one without a newline are lines:
//   `str_02_empty_lines_and_a_last_line_without_a_newline_are_lines`
// - c a longer line comes in parts between characters and nothing of it is lost:
//   `str_02_a_longer_line_comes_in_parts_between_characters_and_nothing_of_it_is_lost`
// - d any chunking gives the same lines: `str_02_any_chunking_gives_the_same_lines`
#[tokio::test]
async fn str_02_a_log_that_is_followed_comes_line_by_line_until_the_container_ends() {
    let cluster = Cluster::start().await;
    cluster.web.log("first");
    let mut log = cluster.pods().log_stream("web", &follow()).await.unwrap();
    assert_eq!(&*log.next().await.unwrap().unwrap(), "first");
    cluster.web.log("");
    cluster.web.log_bytes("half ");
    assert_eq!(&*log.next().await.unwrap().unwrap(), "");
    cluster.web.log_bytes("a line\nlast");
    assert_eq!(&*log.next().await.unwrap().unwrap(), "half a line");
    cluster.web.end();
    assert_eq!(&*log.next().await.unwrap().unwrap(), "last");
    assert!(log.next().await.is_none());
}

// STR-03: given a log whose connection is cut, when it is read, then its whole lines come, then one error,
// then nothing.
#[tokio::test]
async fn str_03_a_log_that_is_cut_off_ends_with_an_error_behind_its_whole_lines() {
    let mut cluster = Cluster::start().await;
    cluster.web.log_bytes("whole\nha");
    let mut log = cluster.pods().log_stream("web", &follow()).await.unwrap();
    assert_eq!(&*log.next().await.unwrap().unwrap(), "whole");
    cluster.server.stop();
    let error = log.next().await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Transport(_)), "{error}");
    assert!(log.next().await.is_none());
}

#[tokio::test]
async fn str_04_a_refused_stream_is_the_refusal_of_the_server() {
    let cluster = Cluster::start().await;
    let pods = cluster.pods();
    let two = json!([{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]);
    let double = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "double"},
        "spec": {"nodeName": "node-1", "containers": two}});
    cluster.server.create(double).unwrap();
    cluster.server.agent().container("default", "double", "a").log("of a");
    let unnamed = pods.logs("double", &LogParams::default()).await.unwrap_err();
    assert_eq!(unnamed.refused().unwrap().code, 400);
    assert!(unnamed.to_string().contains("choose one of: [a b]"), "{unnamed}");
    let of_a = LogParams { container: Some("a".to_owned()), ..LogParams::default() };
    assert_eq!(pods.logs("double", &of_a).await.unwrap(), "of a\n");
    let gone = pods.logs("web", &LogParams { previous: true, ..LogParams::default() }).await.unwrap_err();
    assert_eq!(gone.refused().unwrap().code, 400);
    for refused in [
        pods.log_stream("nobody", &follow()).await.unwrap_err(),
        pods.exec("nobody", ["echo"], &AttachParams::default()).await.unwrap_err(),
        pods.attach("nobody", &AttachParams::default()).await.unwrap_err(),
        pods.port_forward("nobody", &[80]).await.unwrap_err(),
    ] {
        let status = refused.refused().unwrap();
        assert!(status.is_object_not_found(), "{refused}");
        assert!(refused.to_string().contains(r#"pods "nobody" not found"#), "{refused}");
    }
}

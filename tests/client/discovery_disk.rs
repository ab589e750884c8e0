//! Discovery with a cache on disk: a second process begins with what the first has found.
//!
//! Answers "which requests does a cache on disk save, and when is the server asked all the same?" Each client is a
//! process of its own here: what it has in memory is its own. kubectl reads and writes the same files in the end-to-end
//! suite.

use std::time::Duration;

use actix_informer::client::{Client, Config, Discovery, Error};
use serde_json::json;
use tokio::time::advance;

use crate::discovery_server::*;

const WIDGETS: (&str, &str, &str) = ("example.org", "widgets", "Widget");
const DEPLOYMENTS: (&str, &str, &str) = ("apps", "deployments", "Deployment");

struct Stage {
    server: Documents,
    directory: tempfile::TempDir,
}

/// A server that was discovered once, with a cache on disk.
async fn discovered() -> Stage {
    let server = Documents::new(&[DEPLOYMENTS]).await;
    let stage = Stage { server, directory: tempfile::tempdir().unwrap() };
    stage.process().resources().await.unwrap();
    assert_eq!(stage.server.asked(), ["/api", "/apis"]);
    stage
}

impl Stage {
    /// The discovery of another process.
    fn process(&self) -> Discovery {
        self.server.client().discovery().cached_on_disk(self.directory.path()).unwrap()
    }
}

async fn full_name(discovery: &Discovery, name: &str) -> String {
    discovery.resource_named(name).await.unwrap().full_name()
}

#[tokio::test]
async fn dyn_11_what_one_process_has_discovered_the_next_one_does_not_ask_for() {
    let stage = discovered().await;
    let next = stage.process();
    assert_eq!(full_name(&next, "deployments").await, "deployments.v1.apps");
    assert_eq!(full_name(&next, "pod").await, "pods.v1");
    assert_eq!((stage.server.count(), next.status().disk_hits), (0, 1));
}

#[tokio::test]
async fn dyn_11_a_cache_that_is_too_old_is_asked_for_again() {
    let stage = discovered().await;
    let strict = stage.process().ttl(Duration::ZERO);
    assert_eq!(full_name(&strict, "deployments").await, "deployments.v1.apps");
    assert_eq!(stage.server.asked(), ["/api", "/apis"]);
    assert_eq!(strict.status().unchanged, 2, "by the ETags in the cache");
}

#[tokio::test]
async fn dyn_11_after_an_invalidation_the_server_is_asked() {
    let stage = discovered().await;
    let next = stage.process();
    next.invalidate();
    assert_eq!(full_name(&next, "deployments").await, "deployments.v1.apps");
    assert_eq!(stage.server.asked(), ["/api", "/apis"]);
}

#[tokio::test]
async fn dyn_08_a_name_that_is_missing_in_a_cache_on_disk_is_asked_for_once() {
    let stage = discovered().await;
    stage.server.serve(&[DEPLOYMENTS, WIDGETS]);
    let next = stage.process();
    assert_eq!(full_name(&next, "widgets").await, "widgets.v1.example.org");
    assert_eq!(stage.server.asked(), ["/api", "/apis"]);
    assert_eq!((next.status().disk_hits, next.status().misses, next.status().unchanged), (1, 1, 1));
    assert_eq!(full_name(&stage.process(), "widgets").await, "widgets.v1.example.org");
    assert_eq!(stage.server.count(), 0, "what was found is on disk now");
}

// DYN-11: given a cache on disk that is older than its time to live, or invalidated, when read, then the
// server is asked; a wrong checksum is a miss.
// - a a file that is too old is a miss: `dyn_11_a_file_that_is_too_old_or_from_the_future_is_a_miss`
// - b so is one that is missing, cut or something else:
//   `dyn_11_a_file_that_is_missing_cut_or_something_else_is_a_miss`
// - c an answer whose checksum is wrong is a miss: `dyn_11_an_answer_whose_checksum_is_wrong_is_a_miss`
// - d what one process has discovered the next one does not ask for:
//   `dyn_11_what_one_process_has_discovered_the_next_one_does_not_ask_for`
// - e what is too old is asked for: `dyn_11_a_cache_that_is_too_old_is_asked_for_again`
// - f after an invalidation the server is asked: `dyn_11_after_an_invalidation_the_server_is_asked`
// - g it never replaces what the server has said since
// - h kubectl reads what this client has written, and the other way round, on both servers:
//   `kubectl_reads_the_cache_on_disk_that_this_client_has_written`
#[tokio::test(start_paused = true)]
async fn dyn_11_a_cache_on_disk_never_replaces_what_the_server_has_said_since() {
    let stage = discovered().await;
    let mut document = aggregated("v2", &[("stale.example.org", "parts", "Part"), WIDGETS]);
    document["items"][0]["versions"][0]["freshness"] = json!("Stale");
    stage.server.tagged("/apis", &document, "newer");
    let next = stage.process();
    assert_eq!(full_name(&next, "widgets").await, "widgets.v1.example.org");
    advance(Duration::from_secs(30)).await;
    let found = next.resources().await.unwrap();
    let names: Vec<_> = found.all().map(|resource| resource.full_name()).collect();
    assert_eq!(names, ["pods.v1", "widgets.v1.example.org"], "deployments are gone");
    assert!(found.complete().is_err());
    assert_eq!((next.status().disk_hits, next.status().refreshes), (1, 2));
}

#[tokio::test]
async fn a_cache_that_cannot_be_written_fails_nothing_and_is_counted() {
    let server = Documents::new(&[DEPLOYMENTS]).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let discovery = server.client().discovery().cached_on_disk(file.path()).unwrap();
    assert_eq!(full_name(&discovery, "deployments").await, "deployments.v1.apps");
    assert_eq!(discovery.status().disk_failures, 1);
}

#[tokio::test]
async fn a_client_without_the_url_of_its_server_has_no_cache_on_disk() {
    let client = Client::new(Config::new("unix:///run/api.sock").unwrap()).unwrap();
    let refused = client.discovery().cached_on_disk("/tmp").map(drop);
    assert!(matches!(refused, Err(Error::Unsupported(_))), "{refused:?}");
}

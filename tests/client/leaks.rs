//! What many requests leave behind: connections, and memory counted by the allocator of this test binary.
//!
//! Answers "does a request leave anything behind?" A task that is left behind is memory too. The count covers the whole
//! process, server included, so this binary has this one test.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_informer::client::{Client, Config};
use futures_util::future::join_all;
use http::Method;
use raw_server::{Connection, RawServer, answer};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[expect(dead_code, reason = "this binary uses a part of the server")]
mod raw_server;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<std::alloc::System> = &INSTRUMENTED_SYSTEM;

/// Sent before anything is counted: until then buffers, tables and threads are made.
const WARM_UP: usize = 1_000;
const SEQUENTIAL: usize = 10_000;
const CONCURRENT: usize = 1_000;
/// Two bytes for each request would be more.
const MAY_STAY: usize = 20_000;

async fn ask(client: &Client) {
    client.request(Method::GET, "/api/v1/namespaces/a/pods/b", None).await.expect("an answer");
}

#[tokio::test]
async fn ten_thousand_requests_in_a_row_and_a_thousand_at_once_leave_no_connection_and_no_memory() {
    let open = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&open);
    let server = RawServer::start(move |mut connection: Connection| {
        let open = Arc::clone(&count);
        async move {
            open.fetch_add(1, Ordering::SeqCst);
            while connection.request().await.is_some() {
                connection.write(answer("200 OK", "warning: 299 - \"old\"\r\n", "{}")).await;
            }
            open.fetch_sub(1, Ordering::SeqCst);
        }
    })
    .await;
    let client = Client::new(Config::new(server.url()).expect("a URL")).expect("a client");
    for _ in 0..WARM_UP {
        ask(&client).await;
    }
    let region = Region::new(ALLOCATOR);
    for _ in 0..SEQUENTIAL {
        ask(&client).await;
    }
    let used = region.change();
    let held = used.bytes_allocated.saturating_sub(used.bytes_deallocated);
    assert!(held < MAY_STAY, "{held} bytes after {SEQUENTIAL} requests: {used:?}");
    assert_eq!((server.accepted(), open.load(Ordering::SeqCst)), (1, 1), "one connection for all of them");

    drop(client);
    until(|| open.load(Ordering::SeqCst) == 0, "the connection ends with the client").await;

    many_at_once(&server, &open).await;
    let region = Region::new(ALLOCATOR);
    for _ in 0..2 {
        many_at_once(&server, &open).await;
    }
    let held = || {
        let used = region.change();
        used.bytes_allocated.saturating_sub(used.bytes_deallocated)
    };
    // The thread of a client frees what it has shortly after the client is dropped.
    until(|| held() < MAY_STAY, "what the clients held is freed").await;
}

/// A thousand requests at once of a client that then is dropped, until its connections have ended.
async fn many_at_once(server: &RawServer, open: &AtomicUsize) {
    let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
    let before = server.accepted();
    join_all((0..CONCURRENT).map(|_| ask(&client))).await;
    let connections = server.accepted() - before;
    assert!((2..=256).contains(&connections), "{connections}, at most as many as requests under way");
    drop(client);
    until(|| open.load(Ordering::SeqCst) == 0, "the connections end with the client").await;
}

async fn until(is_so: impl Fn() -> bool, what: &str) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), waiting).await.expect(what);
}

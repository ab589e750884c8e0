//! What many requests leave behind: connections, and memory counted by the allocator of this test binary.
//!
//! Answers "does a request leave anything behind?" A task that is left behind is memory too. The count covers the whole
//! process, server included, so the tests of this file run one after another; no other subject may be tested here.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_http::ws::Message;
use actix_informer::client::api::{AttachParams, LogParams};
use actix_informer::client::{Client, Config};
use futures_util::StreamExt;
use futures_util::future::join_all;
use http::Method;
use k8s_openapi::api::core::v1::Pod;
use raw_server::{CHUNKED, Connection, RawServer, answer, frames, switched};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::sync::Mutex;

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

/// One test after the other.
static TURN: Mutex<()> = Mutex::const_new(());

#[tokio::test]
async fn ten_thousand_requests_in_a_row_and_a_thousand_at_once_leave_no_connection_and_no_memory() {
    let _turn = TURN.lock().await;
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

// STR-11: given a command, when every part of it is dropped, then what was written is sent as far as the
// connection takes it at once, the connection is closed and the command ends with it; one part keeps it.
// - a every part dropped ends it, one keeps it: `str_11_dropping_every_part_ends_the_command`
// - b nothing of the connection is left
// - c what was written is sent: `str_11_what_was_written_before_all_parts_are_dropped_is_sent`
#[tokio::test]
async fn str_11_a_thousand_commands_and_logs_leave_no_connection_and_no_memory() {
    let _turn = TURN.lock().await;
    let open = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&open);
    let server = RawServer::start(move |mut connection: Connection| {
        let open = Arc::clone(&count);
        async move {
            open.fetch_add(1, Ordering::SeqCst);
            let request = connection.request().await.unwrap();
            if request.contains("/exec?") {
                let status = [&[3][..], br#"{"status":"Success"}"#].concat();
                let said = [&[1][..], &[b'x'; 5000]].concat();
                let mut packet = switched(&request, "v5.channel.k8s.io").into_bytes();
                packet.extend(frames([Message::Binary(said.into()), Message::Binary(status.into())]));
                connection.write(packet).await;
            } else {
                connection.write(format!("{CHUNKED}3\r\na\nb\r\n")).await;
            }
            connection.gone().await;
            open.fetch_sub(1, Ordering::SeqCst);
        }
    })
    .await;
    let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
    let pods = client.api::<Pod>().namespaced("a");
    // Each is dropped before its end: the log is followed, and of the command nothing is read but the status.
    let stream = async || {
        let mut command = pods.exec("b", ["ls"], &AttachParams::default().stdin(true)).await.unwrap();
        let _input = command.stdin();
        assert!(command.status().await.unwrap().is_success());
        let mut log =
            pods.log_stream("b", &LogParams { follow: true, ..LogParams::default() }).await.unwrap();
        assert_eq!(&*log.next().await.unwrap().unwrap(), "a");
    };
    for _ in 0..WARM_UP / 10 {
        stream().await;
    }
    until(|| open.load(Ordering::SeqCst) == 0, "what is dropped is closed").await;
    let region = Region::new(ALLOCATOR);
    for _ in 0..CONCURRENT {
        stream().await;
    }
    until(|| open.load(Ordering::SeqCst) == 0, "what is dropped is closed").await;
    let held = || {
        let used = region.change();
        used.bytes_allocated.saturating_sub(used.bytes_deallocated)
    };
    until(|| held() < MAY_STAY, "what the streams held is freed").await;
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

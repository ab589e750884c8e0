//! A server without a socket: the same answers, on the clock of its caller's runtime.
//!
//! They answer: can a simulation include its server? Each test runs on a paused clock, so that hours take milliseconds.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http::{Request, Response, header};
use informer_apiserver::{ApiServer, Builder, StartError};
use serde_json::Value;
use tokio::time::Instant;

use crate::client::{config_map, request};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn in_process() -> Builder {
    ApiServer::builder().seed(1).in_process(SystemTime::UNIX_EPOCH)
}

fn get(path: &str) -> Request<Bytes> {
    Request::get(path).body(Bytes::new()).unwrap()
}

/// What is left of a body, as text, and the error with which it ends.
async fn text(
    answer: Response<impl Stream<Item = std::io::Result<Bytes>> + Unpin>,
) -> (String, Option<std::io::ErrorKind>) {
    let (mut body, mut whole) = (answer.into_body(), Vec::new());
    while let Some(read) = body.next().await {
        match read {
            Ok(bytes) => whole.extend_from_slice(&bytes),
            Err(error) => return (String::from_utf8(whole).unwrap(), Some(error.kind())),
        }
    }
    (String::from_utf8(whole).unwrap(), None)
}

#[tokio::test(start_paused = true)]
async fn a_request_in_process_is_answered_as_over_a_socket() {
    let (here, listening) =
        (in_process().start().await.unwrap(), ApiServer::builder().seed(1).start_blocking());
    let (ask, listening) = (here.service(), listening.unwrap());
    let json = ("Content-Type", "application/json");
    let map = config_map("a", "x").to_string();
    let steps = [
        ("POST", MAPS, &[json][..], map.as_str(), 201),
        ("POST", MAPS, &[json], &map, 409),
        ("GET", &format!("{MAPS}/a"), &[("Accept", "application/yaml")], "", 200),
        ("PATCH", &format!("{MAPS}/a"), &[("Content-Type", "application/merge-patch+json")], "{}", 200),
        ("GET", MAPS, &[("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")], "", 200),
        ("GET", "/api/v1/nothing", &[], "", 404),
        ("GET", "/readyz", &[], "", 200),
        ("GET", &format!("{MAPS}?watch=1&resourceVersion=1&timeoutSeconds=1"), &[], "", 200),
        ("DELETE", &format!("{MAPS}/a"), &[], "", 200),
    ];
    for (method, path, headers, body, code) in steps {
        let heads = headers.iter().fold(Request::builder(), |head, (name, value)| head.header(*name, *value));
        let sent = heads.method(method).uri(path).body(Bytes::copy_from_slice(body.as_bytes())).unwrap();
        let answer = ask(sent).await.unwrap();
        let other = request(&listening, method, path, headers, body);
        let kind = |value: Option<&str>| value.map(str::to_owned);
        let head = (
            answer.status().as_u16(),
            kind(answer.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok())),
        );
        assert_eq!(head, (other.code, kind(other.header("content-type"))), "{method} {path}");
        assert_eq!(head.0, code, "{method} {path}");
        let (here, there) = (text(answer).await, other.text());
        assert_eq!((stamped(&here.0), here.1), (stamped(&there), None), "{method} {path}");
    }
}

/// The text without its stamps and ages, by which alone the two servers differ: here time stands still, there it goes on.
fn stamped(text: &str) -> String {
    let is_age = |piece: &&str| piece.strip_suffix('s').is_some_and(|seconds| seconds.parse::<u8>().is_ok());
    let year = |piece: &str| piece.starts_with("1970-") || piece.starts_with("20");
    let is_stamp = |piece: &&str| year(piece) && piece.ends_with('Z') && piece.len() == 20;
    let pieces = text.split_inclusive(['"', '\n', ' ']);
    let bare = pieces.map(|piece| (piece, piece.trim_end_matches(['"', '\n', ' '])));
    bare.filter(|(_, bare)| !is_stamp(bare) && !is_age(bare)).map(|(piece, _)| piece).collect()
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_bookmarks_and_the_end_of_a_watch_come_on_the_paused_clock() {
    let server = in_process().start().await.unwrap();
    let began = Instant::now();
    let path = format!("{MAPS}?watch=1&allowWatchBookmarks=1&timeoutSeconds=3600");
    let (lines, error) = text(server.service()(get(&path)).await.unwrap()).await;
    assert_eq!((began.elapsed(), error), (Duration::from_secs(3_600), None));
    let bookmarks = lines.lines().filter(|line| line.contains("BOOKMARK")).count();
    assert!((59..=62).contains(&bookmarks), "{bookmarks} in an hour");
    assert_eq!(server.clock().now(), SystemTime::UNIX_EPOCH + Duration::from_secs(3_600));
    let made = server.create(config_map("a", "x")).unwrap();
    assert_eq!(made["metadata"]["creationTimestamp"], "1970-01-01T01:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn a_stopped_server_refuses_calls_and_resets_what_was_under_way_until_it_is_started_again() {
    let mut server = in_process().start().await.unwrap();
    let ask = server.service();
    let watch = ask(get(&format!("{MAPS}?watch=1"))).await.unwrap();
    server.faults().delay_requests(Some(Duration::from_secs(60)));
    let slow = ask(get(MAPS));
    let ended = async { server.stop() };
    let (watch, slow, ()) = tokio::join!(biased; text(watch), slow, ended);
    assert_eq!(watch.1, Some(std::io::ErrorKind::ConnectionReset));
    assert_eq!(slow.map(|_| ()).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    let refused = ask(get(MAPS)).await.map(|_| ()).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    server.start_again().unwrap();
    assert_eq!(ask(get(MAPS)).await.unwrap().status(), 200);
    drop(server);
    assert!(ask(get(MAPS)).await.is_err(), "the function holds no server");
}

#[tokio::test(start_paused = true)]
async fn a_request_without_credentials_in_process_has_those_of_the_kubeconfig() {
    let server = in_process().token("secret").anonymous(false).start().await.unwrap();
    let ask = server.service();
    assert_eq!(ask(get(MAPS)).await.unwrap().status(), 200);
    let mut stranger = get(MAPS);
    stranger.headers_mut().insert(header::AUTHORIZATION, "Bearer other".parse().unwrap());
    let refused: Value = serde_json::from_str(&text(ask(stranger).await.unwrap()).await.0).unwrap();
    assert_eq!(refused["code"], 401);
}

#[test]
fn a_server_in_process_is_refused_outside_of_a_runtime() {
    assert!(matches!(in_process().start_blocking(), Err(StartError::NoRuntime)));
}

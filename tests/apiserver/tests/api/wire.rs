//! The layer between the socket and the API: websockets, gzip, health, methods and limits (behaviours 18, 19,
//! 43, E14, E15, E19).
//!
//! They answer: does the server speak HTTP as a real one does, where clients notice?
use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use informer_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::client::{config_map, delete, get, open, post, request, server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const UPGRADE: [(&str, &str); 4] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

#[test]
fn api_19_a_watch_over_a_websocket_sends_each_line_as_a_text_frame() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    let headers =
        [&UPGRADE[..], &[("Origin", "http://x"), ("Sec-WebSocket-Protocol", "base64.binary.k8s.io")]]
            .concat();
    let mut socket = open(&server, "GET", &format!("{MAPS}?watch=1"), &headers, "");
    assert_eq!(socket.head.code, 101);
    assert_eq!(socket.head.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(socket.head.header("sec-websocket-protocol"), Some("base64.binary.k8s.io"));
    let received = |(kind, content): (u8, Vec<u8>)| {
        assert_eq!((kind, content.last()), (0x81, Some(&b'\n')), "a whole text frame with a line in it");
        let event: Value = serde_json::from_slice(&content).unwrap();
        (event["type"].clone(), event["object"]["metadata"]["name"].clone())
    };
    assert_eq!(received(socket.frame()), (json!("ADDED"), json!("a")));
    delete(&server, &format!("{MAPS}/a"));
    assert_eq!(received(socket.frame()), (json!("DELETED"), json!("a")));
    socket.send(&[0x89, 0x82, 0, 0, 0, 0, b'h', b'i']);
    assert_eq!(socket.frame(), (0x8a, b"hi".to_vec()), "a ping is answered");
    assert_eq!(server.watches("configmaps"), 1);
    socket.send(&[0x88, 0x80, 0, 0, 0, 0]);
    assert_eq!(socket.frame(), (0x88, vec![3, 232]), "a close is answered");
    let mut short = open(&server, "GET", &format!("{MAPS}?watch=1&timeoutSeconds=1"), &headers, "");
    assert_eq!(short.frame(), (0x88, vec![3, 232]), "the deadline closes");
}

#[test]
fn api_19_a_handshake_needs_an_origin_and_may_carry_its_token_as_a_protocol() {
    let server = ApiServer::builder().token("secret").start_blocking().unwrap();
    let asked = |more: &[(&str, &str)]| {
        let headers = [&UPGRADE[..], more].concat();
        open(&server, "GET", &format!("{MAPS}?watch=1"), &headers, "").head
    };
    let protocol =
        ("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.c2VjcmV0, base64.binary.k8s.io");
    assert_eq!(asked(&[protocol]).code, 403);
    assert_eq!(asked(&[("Origin", "http://x")]).code, 403);
    let head = asked(&[("Origin", "http://x"), protocol]);
    assert_eq!((head.code, head.header("sec-websocket-protocol")), (101, Some("base64.binary.k8s.io")));
    let wrong = ("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.d3Jvbmc");
    assert_eq!(asked(&[("Origin", "http://x"), wrong]).code, 401);
}

#[test]
fn api_18_any_large_answer_is_gzip_if_the_client_takes_it() {
    let server = server();
    let mut map = config_map("a", "x");
    map["data"] = json!({"k": "v".repeat(200_000)});
    server.create(map).unwrap();
    let path = format!("{MAPS}/a");
    let small = request(&server, "GET", &path, &[("Accept-Encoding", "gzip")], "");
    assert_eq!(
        (small.header("content-encoding"), small.header("vary")),
        (Some("gzip"), Some("Accept-Encoding"))
    );
    assert!(small.body.len() < 10_000);
    let mut text = String::new();
    MultiGzDecoder::new(small.body.as_slice()).read_to_string(&mut text).unwrap();
    assert_eq!(text.into_bytes(), get(&server, &path).body);
}

#[test]
fn api_43_health_can_be_requested_as_text_and_check_by_check() {
    let server = server();
    assert_eq!(
        get(&server, "/livez?verbose").text(),
        "[+]ping ok\n[+]log ok\n[+]etcd ok\nlivez check passed\n"
    );
    assert!(get(&server, "/readyz?verbose&exclude=etcd").text().contains("[+]etcd excluded: ok\n"));
    let one = get(&server, "/readyz/informer-sync");
    assert_eq!((one.code, one.text().as_str(), one.header("x-content-type-options")), (200, "ok", None));
    let none = get(&server, "/healthz/nope");
    assert_eq!((none.code, none.text().as_str()), (404, "404 page not found\n"));
    assert_eq!(request(&server, "POST", "/healthz", &[], "").code, 200);
}

#[test]
fn api_e15_head_and_options_are_405_on_api_paths_and_head_is_200_on_health() {
    let server = server();
    for path in [MAPS, "/api/v1/namespaces/default/configmaps/a", "/api/v1/nodes"] {
        for method in ["HEAD", "OPTIONS"] {
            assert_eq!(open(&server, method, path, &[], "").head.code, 405, "{method} {path}");
        }
    }
    assert_eq!(open(&server, "HEAD", "/readyz", &[], "").head.code, 200);
}

#[test]
fn api_e14_the_old_paths_of_watches_still_work() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    server.create(config_map("b", "x")).unwrap();
    let mut one =
        crate::client::watch(&server, "/api/v1/watch/namespaces/default/configmaps/b?timeoutSeconds=1");
    assert_eq!(one.next_event().1, "b");
    let mut all = crate::client::watch(&server, "/api/v1/watch/configmaps");
    assert_eq!((all.next_event().1, all.next_event().1), ("a".to_owned(), "b".to_owned()));
}

#[test]
fn api_e19_long_selectors_are_read_and_a_too_large_body_is_413_with_a_message() {
    let server = server();
    let selector = format!("{MAPS}?labelSelector=app in (x{})", ",y".repeat(20_000));
    assert_eq!(get(&server, &selector).code, 200);
    let mut map = config_map("a", "x");
    map["data"] = json!({"k": "v".repeat(3 * 1024 * 1024)});
    let refused = post(&server, MAPS, &map);
    assert_eq!(refused.code, 413);
    assert_eq!(refused.json()["message"], "Request entity too large: limit is 3145728");
}

#[test]
fn api_18_a_watch_list_is_not_compressed() {
    let path = format!(
        "{MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1"
    );
    let answer = request(&server(), "GET", &path, &[("Accept-Encoding", "gzip")], "");
    assert_eq!(answer.header("content-encoding"), None);
}

//! The fault switches, each seen through a client's eyes.
//!
//! They answer: does a switch do what its documentation says, and does the server behave correctly afterwards?
//! "Nothing comes" is asserted by a short read timeout: under load it can make a test pass wrongly, but never fail.
use std::io::ErrorKind;
use std::time::Duration;

use informer_apiserver::{ApiServer, ErrorBody};
use serde_json::json;

use crate::client::{config_map, get, open, server, watch};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WATCH_LIST: &str =
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

fn live(server: &ApiServer) -> crate::client::Incoming {
    watch(server, &format!("{MAPS}?watch=1&resourceVersion={}", server.revision()))
}

#[test]
fn gone_next_answers_http_410_and_then_behaves() {
    let server = server();
    server.faults().gone_next(2);
    assert_eq!(get(&server, MAPS).code, 410);
    assert_eq!(open(&server, "GET", &format!("{MAPS}?watch=1"), &[], "").head.code, 410);
    assert_eq!(get(&server, MAPS).code, 200);
}

#[test]
fn too_many_requests_come_as_a_status_or_as_text() {
    let server = server();
    server.faults().too_many_requests_next(1, 7, ErrorBody::Status);
    let status = get(&server, MAPS);
    assert_eq!((status.code, status.header("retry-after")), (429, Some("7")));
    assert_eq!(status.json()["details"]["retryAfterSeconds"], 7);
    server.faults().too_many_requests_next(1, 1, ErrorBody::Text);
    let text = get(&server, MAPS);
    assert_eq!((text.code, text.text().as_str()), (429, "Too many requests, please try again later.\n"));
    assert_eq!(text.header("content-type"), Some("text/plain; charset=utf-8"));
}

#[test]
fn fail_next_answers_the_code_and_clear_lifts_it() {
    let server = server();
    for code in [500, 503, 504] {
        server.faults().fail_next(1, code);
        assert_eq!(get(&server, MAPS).code, code);
    }
    server.faults().fail_next(9, 500);
    server.faults().clear();
    assert_eq!(get(&server, MAPS).code, 200);
}

#[test]
fn a_denied_verb_is_403_until_it_is_allowed() {
    let server = server();
    server.faults().deny("list", "configmaps");
    assert_eq!((get(&server, MAPS).code, get(&server, "/api/v1/pods").code), (403, 200));
    server.faults().allow("list", "configmaps");
    assert_eq!(get(&server, MAPS).code, 200);
}

#[test]
fn plain_text_errors_are_not_a_status() {
    let server = server();
    server.faults().plain_text_errors(true);
    let answer = get(&server, &format!("{MAPS}/none"));
    assert_eq!((answer.code, answer.text().as_str()), (404, "configmaps \"none\" not found\n"));
}

#[test]
fn end_watches_is_a_clean_end_after_the_pending_events() {
    let server = server();
    let mut stream = live(&server);
    server.create(config_map("a", "x")).unwrap();
    server.faults().end_watches();
    assert_eq!(stream.next_event().1, "a");
    assert_eq!(stream.event().unwrap(), None);
}

#[test]
fn reset_watches_breaks_off_in_the_middle_of_a_line() {
    let server = server();
    let mut stream = live(&server);
    server.faults().reset_watches();
    let error = stream.event().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    let cut = String::from_utf8_lossy(stream.pending()).into_owned();
    assert!(cut.is_empty() || cut.starts_with("{\"type\""), "{cut}");
}

#[test]
fn a_frozen_watch_sends_nothing_until_it_is_thawed() {
    let server = server();
    let mut stream = live(&server);
    server.faults().freeze("configmaps");
    server.create(config_map("a", "x")).unwrap();
    assert!(stream.is_silent_for(Duration::from_millis(100)));
    server.faults().thaw("configmaps");
    assert_eq!(stream.next_event().1, "a");
}

#[test]
fn bookmarks_can_be_dropped() {
    let server = ApiServer::builder().bookmark_period(Duration::from_millis(10)).start_blocking().unwrap();
    server.faults().drop_bookmarks(true);
    let mut stream = watch(&server, &format!("{MAPS}?{WATCH_LIST}"));
    assert_eq!(stream.event().unwrap().unwrap()["type"], "BOOKMARK", "the end marker is still sent");
    assert!(stream.is_silent_for(Duration::from_millis(100)));
    server.faults().clear();
    assert_eq!(stream.event().unwrap().unwrap()["type"], "BOOKMARK");
}

#[test]
fn watch_list_can_be_refused_or_never_end() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    server.faults().refuse_watch_list(true);
    let refused = get(&server, &format!("{MAPS}?{WATCH_LIST}"));
    assert_eq!((refused.code, &refused.json()["reason"]), (422, &json!("Invalid")));
    server.faults().clear();
    server.faults().withhold_end_bookmark(true);
    let mut stream = watch(&server, &format!("{MAPS}?{WATCH_LIST}"));
    assert_eq!(stream.next_event().1, "a");
    assert!(stream.is_silent_for(Duration::from_millis(100)));
    server.create(config_map("b", "x")).unwrap();
    assert_eq!(stream.next_event().1, "b", "live events go on without the marker");
}

#[test]
fn the_last_byte_of_a_list_can_be_held_back() {
    let server = server();
    server.faults().hold_list_tails();
    let mut list = open(&server, "GET", MAPS, &[], "");
    let mut body = String::new();
    while !body.ends_with("[]}") {
        body.push_str(&String::from_utf8(list.next_piece()).unwrap());
    }
    assert!(list.is_silent_for(Duration::from_millis(50)));
    server.faults().release_list_tails();
    assert_eq!(list.rest().unwrap(), b"\n");
}

#[test]
fn a_slow_list_is_complete_at_the_end() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    let fast = get(&server, MAPS).body;
    server.faults().slow_lists(Some(2_000));
    let slow = get(&server, MAPS);
    assert_eq!((slow.header("transfer-encoding"), &slow.body), (Some("chunked"), &fast));
}

#[test]
fn raw_bytes_are_sent_unchanged() {
    let server = server();
    let mut stream = live(&server);
    server.faults().send_raw("configmaps", "{\"type\":\"WEIRD\",\"object\":7}\n");
    assert_eq!(stream.event().unwrap().unwrap(), json!({"type": "WEIRD", "object": 7}));
    server.faults().send_raw("configmaps", "not json\n");
    assert!(stream.event().is_err());
}

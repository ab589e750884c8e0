//! The fault switches that concern the server as a whole, what it stores, or one resource among others.
//!
//! They answer: does a switch do what its documentation says, only where it was set, and does the server behave
//! correctly afterwards? "Nothing comes" is asserted by a short read timeout: under load it can make a test pass
//! wrongly, but never fail.
use std::net::TcpStream;
use std::time::{Duration, SystemTime};

use informer_apiserver::{ApiServer, ErrorBody};
use serde_json::json;

use crate::client::{config_map, get, open, server, watch};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SHORT: Duration = Duration::from_millis(100);

fn live(server: &ApiServer) -> crate::client::Incoming {
    watch(server, &format!("{MAPS}?watch=1&resourceVersion={}", server.revision()))
}

fn widgets() -> serde_json::Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

#[test]
fn a_counted_refusal_can_be_of_one_resource_only() {
    let server = server();
    server.faults().of("pods").fail_next(1, 503);
    assert_eq!([MAPS, PODS, PODS].map(|path| get(&server, path).code), [200, 503, 200]);
    server.faults().of("pods").too_many_requests_next(9, 1, ErrorBody::Status);
    server.faults().of("configmaps").gone_next(1);
    assert_eq!([PODS, MAPS, MAPS].map(|path| get(&server, path).code), [429, 410, 200]);
    server.faults().clear();
    assert_eq!(get(&server, PODS).code, 200);
}

#[test]
fn compaction_and_the_end_of_watches_can_be_of_one_resource_only() {
    let server = server();
    let before = server.revision();
    server.create(config_map("a", "x")).unwrap();
    server.create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})).unwrap();
    server.faults().of("secrets").compact();
    let mut maps = watch(&server, &format!("{MAPS}?watch=1&resourceVersion={before}"));
    assert_eq!(maps.next_event().1, "a");
    let mut secrets = watch(&server, &format!("/api/v1/secrets?watch=1&resourceVersion={before}"));
    assert_eq!(secrets.event().unwrap().unwrap()["object"]["code"], 410);
    server.faults().end_watches_of("secrets");
    server.faults().of("secrets").reset_watches();
    server.create(config_map("b", "x")).unwrap();
    assert_eq!(maps.next_event().1, "b");
}

#[test]
fn the_requested_number_of_versions_is_kept() {
    let server = server();
    for number in 0..6 {
        server.create(config_map(&format!("a-{number}"), "x")).unwrap();
    }
    let version = server.revision();
    server.faults().keep_revisions(2);
    let from = |version: u64| watch(&server, &format!("{MAPS}?watch=1&resourceVersion={version}"));
    let mut kept = from(version - 2);
    assert_eq!((kept.next_event().1, kept.next_event().1), ("a-4".to_owned(), "a-5".to_owned()));
    assert_eq!(from(version - 4).event().unwrap().unwrap()["object"]["reason"], "Expired");
}

#[test]
fn a_server_that_refuses_connections_comes_back_on_its_port() {
    let server = server();
    let mut stream = live(&server);
    server.faults().refuse_connections();
    assert_eq!(stream.event().unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    let refused = TcpStream::connect(server.addr()).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    server.faults().accept_connections().unwrap();
    assert_eq!(get(&server, MAPS).code, 200);
}

#[test]
fn a_dropped_server_is_not_brought_back_by_a_switch() {
    let server = server();
    let (faults, addr) = (server.faults(), server.addr());
    drop(server);
    faults.accept_connections().unwrap();
    assert!(TcpStream::connect(addr).is_err());
}

#[test]
fn a_frozen_server_takes_requests_and_answers_them_when_it_thaws() {
    let server = server();
    let mut stream = live(&server);
    server.faults().freeze_server(true);
    server.create(config_map("a", "x")).unwrap();
    let asked = std::thread::scope(|scope| {
        let asked = scope.spawn(|| get(&server, MAPS).code);
        assert!(stream.is_silent_for(SHORT));
        assert!(!asked.is_finished(), "no answer comes from a frozen server");
        server.faults().freeze_server(false);
        asked.join().unwrap()
    });
    assert_eq!((asked, stream.next_event().1.as_str()), (200, "a"));
}

#[test]
fn short_watches_end_at_once_and_empty() {
    let server = server();
    let mut open_before = live(&server);
    server.faults().of("configmaps").short_watches(true);
    assert_eq!(open_before.event().unwrap(), None);
    server.create(config_map("a", "x")).unwrap();
    for _ in 0..3 {
        assert_eq!(watch(&server, &format!("{MAPS}?watch=1")).event().unwrap(), None);
    }
    server.faults().clear();
    assert_eq!(watch(&server, &format!("{MAPS}?watch=1")).next_event().1, "a");
}

#[test]
fn events_can_be_sent_twice() {
    let server = server();
    let mut stream = live(&server);
    server.faults().of("configmaps").duplicate_events(true);
    server.create(config_map("a", "x")).unwrap();
    assert_eq!(stream.next_event(), stream.next_event());
    server.faults().clear();
    server.create(config_map("b", "x")).unwrap();
    server.create(config_map("c", "x")).unwrap();
    assert_eq!([stream.next_event().1, stream.next_event().1], ["b", "c"]);
}

#[test]
fn events_can_be_sent_in_the_wrong_order_and_none_is_lost_afterwards() {
    let server = server();
    let mut stream = live(&server);
    server.faults().of("configmaps").reorder_events(true);
    server.create(config_map("a", "x")).unwrap();
    assert!(stream.is_silent_for(SHORT), "the first waits for its companion");
    server.create(config_map("b", "x")).unwrap();
    assert_eq!([stream.next_event().1, stream.next_event().1], ["b", "a"]);
    server.create(config_map("c", "x")).unwrap();
    server.faults().clear();
    assert_eq!(stream.next_event().1, "c");
}

#[test]
fn a_list_beyond_the_limit_is_refused_and_a_page_of_it_is_not() {
    let server = server();
    for name in ["a", "b", "c", "d"] {
        server.create(config_map(name, "x")).unwrap();
    }
    let whole = get(&server, MAPS).body.len() as u64;
    server.faults().of("configmaps").limit_lists(Some(whole - 1));
    let refused = get(&server, MAPS);
    assert_eq!((refused.code, refused.json()["reason"].clone()), (500, json!(null)));
    assert!(refused.text().contains("larger than max"));
    assert_eq!(get(&server, &format!("{MAPS}?limit=2")).code, 200);
    server.faults().of("configmaps").limit_lists(None);
    assert_eq!(get(&server, MAPS).code, 200);
}

#[test]
fn a_padded_list_is_larger_and_has_the_same_content() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    let plain = get(&server, MAPS);
    server.faults().pad_lists(Some(300_000));
    let padded = get(&server, MAPS);
    assert_eq!((padded.body.len(), padded.json()), (plain.body.len() + 300_000, plain.json()));
}

#[test]
fn delayed_requests_are_still_answered() {
    let server = server();
    server.faults().of("configmaps").delay_requests(Some(Duration::from_millis(30)));
    let mut list = open(&server, "GET", MAPS, &[], "");
    assert_eq!(list.head.code, 200);
    assert!(!list.rest().unwrap().is_empty());
}

#[test]
fn versions_jump_and_open_watches_go_on() {
    let server = server();
    let mut stream = live(&server);
    let before = server.revision();
    server.faults().jump_revision(1_000_000);
    server.create(config_map("a", "x")).unwrap();
    assert_eq!(stream.next_event(), ("ADDED".into(), "a".into(), before + 1_000_001));
    let mut resumed = watch(&server, &format!("{MAPS}?watch=1&resourceVersion={before}"));
    assert_eq!(resumed.next_event().2, before + 1_000_001);
}

#[test]
fn a_kept_backup_brings_the_versions_back() {
    let server = server();
    assert!(!server.faults().restore_backup());
    server.faults().keep_backup();
    let then = server.revision();
    server.create(config_map("a", "x")).unwrap();
    assert!(server.faults().restore_backup());
    assert_eq!((server.revision(), server.list("configmaps").unwrap().len()), (then, 0));
}

#[test]
fn a_name_comes_back_as_another_object_with_and_without_a_deletion_event() {
    let server = server();
    let mut held = config_map("a", "x");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    let first = server.create(held).unwrap();
    let mut stream = live(&server);
    server.faults().recreate("configmaps", "default", "a", false).unwrap();
    assert_eq!([stream.next_event().0, stream.next_event().0], ["DELETED", "ADDED"]);
    let second = server.get("configmaps", "default", "a").unwrap();
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    assert_eq!(first["metadata"]["labels"], second["metadata"]["labels"]);
    let known = server.revision();
    server.faults().recreate("configmaps", "default", "a", true).unwrap();
    assert_eq!(stream.event().unwrap(), None);
    let mut resumed = watch(&server, &format!("{MAPS}?watch=1&resourceVersion={known}"));
    assert_eq!(resumed.event().unwrap().unwrap()["object"]["code"], 410);
    let third = server.get("configmaps", "default", "a").unwrap();
    assert_ne!(second["metadata"]["uid"], third["metadata"]["uid"]);
}

#[test]
fn a_definition_is_deleted_and_comes_back_as_another_one() {
    let server = server();
    let path = "/apis/example.com/v1/widgets";
    let first = server.create(widgets()).unwrap();
    server
        .create(json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}))
        .unwrap();
    server.faults().withdraw_definition("widgets.example.com").unwrap();
    assert_eq!(get(&server, path).code, 404);
    server.faults().return_definition("widgets.example.com").unwrap();
    assert_eq!(get(&server, path).json()["items"], json!([]));
    let definitions = "customresourcedefinitions.apiextensions.k8s.io";
    let second = server.get(definitions, "", "widgets.example.com").unwrap();
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    assert_eq!(server.faults().return_definition("widgets.example.com").unwrap_err().code(), 404);
}

#[test]
fn time_stamps_follow_the_clock_of_the_server() {
    let server = server();
    server.clock().stop();
    server.clock().set(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000));
    let made = server.create(config_map("a", "x")).unwrap();
    assert_eq!(made["metadata"]["creationTimestamp"], "2001-09-09T01:46:40Z");
    server.clock().advance(Duration::from_secs(60));
    let later = server.create(config_map("b", "x")).unwrap();
    assert_eq!(later["metadata"]["creationTimestamp"], "2001-09-09T01:47:40Z");
}

#[test]
fn bookmarks_and_the_end_of_a_watch_follow_the_clock_of_the_server() {
    let server = server();
    server.clock().stop();
    let revision = server.revision();
    let path =
        format!("{MAPS}?watch=1&resourceVersion={revision}&allowWatchBookmarks=true&timeoutSeconds=600");
    let mut stream = watch(&server, &path);
    assert!(stream.is_silent_for(SHORT));
    server.clock().advance(Duration::from_secs(61));
    assert_eq!(stream.event().unwrap().unwrap()["type"], "BOOKMARK");
    server.clock().advance(Duration::from_secs(600));
    while let Some(event) = stream.event().unwrap() {
        assert_eq!(event["type"], "BOOKMARK");
    }
}

#[test]
fn api_04_the_wait_for_a_version_ends_by_the_clock_of_the_server() {
    let server = server();
    server.clock().stop();
    let ahead = server.revision() + 5;
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| get(&server, &format!("{MAPS}?resourceVersion={ahead}")));
        while !asked.is_finished() {
            server.clock().advance(Duration::from_secs(1));
            std::thread::yield_now();
        }
        asked.join().unwrap()
    });
    assert_eq!(answer.code, 504);
}

//! Watches over HTTP: behaviours 10 to 17, and what clients rely on beside them.
//!
//! They answer: does a client see every change once, in order, as the right event, and then the right end?
//! 1. No test waits for a time to pass, except where the behaviour is a timeout of whole seconds.
use informer_apiserver::ApiServer;
use serde_json::json;
use std::time::Duration;

use crate::client::{config_map, get, server, watch};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn api_10_the_head_arrives_before_the_first_event() {
    let server = server();
    let mut stream = watch(&server, &format!("{MAPS}?watch=1&resourceVersion={}", server.revision()));
    assert_eq!(stream.head.header("content-type"), Some("application/json"));
    assert_eq!(stream.head.header("transfer-encoding"), Some("chunked"));
    assert_eq!(stream.head.header("content-length"), None);
    server.create(config_map("a", "x")).unwrap();
    assert_eq!(stream.next_event().0, "ADDED");
}

#[test]
fn api_11_without_a_version_existing_objects_are_sent_first() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    for version in ["", "0"] {
        let mut stream = watch(&server, &format!("{MAPS}?watch=true&resourceVersion={version}"));
        assert_eq!(stream.next_event().1, "a");
    }
    let mut stream = watch(&server, &format!("{MAPS}?watch=true"));
    assert_eq!(stream.next_event().1, "a");
    server.create(config_map("b", "x")).unwrap();
    assert_eq!(stream.next_event().1, "b");
    server.delete("configmaps", "default", "a").unwrap();
    assert_eq!(stream.next_event(), ("DELETED".into(), "a".into(), server.revision()));
    server.delete("configmaps", "default", "b").unwrap();
}

#[test]
fn api_11_a_version_ahead_of_the_store_just_waits() {
    let server = server();
    let ahead = server.revision() + 1;
    let mut stream = watch(&server, &format!("{MAPS}?watch=1&resourceVersion={ahead}"));
    server.create(config_map("a", "x")).unwrap();
    server.create(config_map("b", "x")).unwrap();
    assert_eq!(stream.next_event(), ("ADDED".into(), "b".into(), ahead + 1));
}

#[test]
fn api_12_a_version_too_old_is_200_and_one_error_event() {
    let server = server();
    let old = server.revision();
    server.create(config_map("a", "x")).unwrap();
    server.faults().compact();
    let mut stream = watch(&server, &format!("{MAPS}?watch=1&resourceVersion={old}"));
    let error = stream.event().unwrap().unwrap();
    assert_eq!(error["type"], "ERROR");
    let status = &error["object"];
    assert_eq!(
        (&status["kind"], &status["code"], &status["reason"]),
        (&json!("Status"), &json!(410), &json!("Expired"))
    );
    assert_eq!(status["message"], format!("too old resource version: {old} ({})", server.revision()));
    assert_eq!(stream.event().unwrap(), None);
}

#[test]
fn api_13_a_watch_ends_cleanly_at_its_timeout() {
    let server = server();
    let mut stream = watch(&server, &format!("{MAPS}?watch=1&timeoutSeconds=1"));
    assert_eq!(stream.event().unwrap(), None);
    assert_eq!(server.watches("configmaps"), 0);
}

#[test]
fn api_14_bookmarks_carry_the_version_before_the_deadline_and_only_if_requested() {
    let server = server();
    server.clock().stop();
    let revision = server.revision();
    let path = format!("/api/v1/pods?watch=1&resourceVersion={revision}&timeoutSeconds=2");
    let mut asked = watch(&server, &format!("{path}&allowWatchBookmarks=true"));
    let mut silent = watch(&server, &path);
    server.create(config_map("a", "x")).unwrap();
    server.clock().advance(Duration::from_secs(1));
    let bookmark = asked.event().unwrap().unwrap();
    let pod = json!({"type": "BOOKMARK", "object": {
        "kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": server.revision().to_string()},
        "spec": {"containers": null}, "status": {},
    }});
    assert_eq!(bookmark, pod, "the zero value of a Pod, at a version that moved by another kind's write");
    server.clock().advance(Duration::from_secs(1));
    assert_eq!(asked.event().unwrap(), None);
    assert_eq!(silent.event().unwrap(), None);
}

#[test]
fn api_14_bookmarks_come_each_period() {
    let server = ApiServer::builder().bookmark_period(Duration::from_millis(20)).start_blocking().unwrap();
    let path = format!("{MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion={}", server.revision());
    let mut stream = watch(&server, &path);
    let bookmark = json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"resourceVersion": server.revision().to_string()}}});
    for _ in 0..3 {
        assert_eq!(stream.event().unwrap().unwrap(), bookmark);
    }
}

#[test]
fn api_15_a_watch_list_ends_its_first_part_with_a_marked_bookmark() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut stream = watch(&server, &format!("{MAPS}?{query}&allowWatchBookmarks=true"));
    assert_eq!(stream.next_event().0, "ADDED");
    let marker = stream.event().unwrap().unwrap();
    assert_eq!(marker["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(marker["object"]["metadata"]["resourceVersion"], server.revision().to_string());
    server.create(config_map("b", "x")).unwrap();
    assert_eq!(stream.next_event().1, "b");

    let mut unmarked = watch(&server, &format!("{MAPS}?{query}"));
    assert_eq!((unmarked.next_event().1, unmarked.next_event().1), ("a".into(), "b".into()));
    server.create(config_map("c", "x")).unwrap();
    assert_eq!(unmarked.next_event().1, "c", "without bookmarks there is no marker");

    let without = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    let mut live = watch(&server, &format!("{MAPS}?{without}"));
    server.create(config_map("d", "x")).unwrap();
    assert_eq!(live.next_event().1, "d");
}

#[test]
fn api_15_the_marker_also_ends_the_first_part_of_a_plain_watch_with_bookmarks() {
    let server = server();
    let mut stream = watch(&server, &format!("{MAPS}?watch=1&allowWatchBookmarks=true"));
    let marker = stream.event().unwrap().unwrap();
    assert_eq!(marker["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[test]
fn api_16_selectors_and_namespaces_choose_the_events() {
    let server = server();
    let revision = server.revision();
    let mut chosen =
        watch(&server, &format!("/api/v1/configmaps?watch=1&resourceVersion={revision}&labelSelector=app=x"));
    let mut named =
        watch(&server, &format!("{MAPS}?watch=1&resourceVersion={revision}&fieldSelector=metadata.name=b"));
    let mut elsewhere = watch(
        &server,
        &format!("/api/v1/namespaces/kube-system/configmaps?watch=1&resourceVersion={revision}"),
    );
    server.create(config_map("a", "y")).unwrap();
    server.create(config_map("b", "x")).unwrap();
    server.merge_patch("configmaps", "default", "b", &json!({"metadata": {"labels": {"app": "y"}}})).unwrap();
    let mut other = config_map("c", "x");
    other["metadata"]["namespace"] = json!("kube-system");
    server.create(other).unwrap();
    let types = |events: [(String, String, u64); 3]| {
        events.map(|(event_type, name, _)| format!("{event_type} {name}"))
    };
    assert_eq!(
        types([chosen.next_event(), chosen.next_event(), chosen.next_event()]),
        ["ADDED b", "DELETED b", "ADDED c"]
    );
    assert_eq!((named.next_event().0, named.next_event().0), ("ADDED".into(), "MODIFIED".into()));
    assert_eq!(elsewhere.next_event().1, "c");
}

#[test]
fn api_17_a_watcher_that_does_not_read_is_closed_and_loses_no_event() {
    let server = ApiServer::builder().watch_queue(50).start_blocking().unwrap();
    let mut map = config_map("a", "x");
    map["data"] = json!({"k": "v".repeat(100_000)});
    server.create(map).unwrap();
    let begin = server.revision();
    let mut stream = watch(&server, &format!("{MAPS}?watch=1&resourceVersion={begin}"));
    let mut writes = 0;
    while server.watches("configmaps") == 1 {
        server
            .merge_patch("configmaps", "default", "a", &json!({"data": {"n": writes.to_string()}}))
            .unwrap();
        writes += 1;
    }
    let mut last = begin;
    while let Some(event) = stream.event().unwrap() {
        let version: u64 = event["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        assert_eq!(version, last + 1, "nothing is left out before the end");
        last = version;
    }
    assert!(last < server.revision());
    let mut resumed = watch(&server, &format!("{MAPS}?watch=1&resourceVersion={last}"));
    assert_eq!(resumed.next_event().2, last + 1);
}

#[test]
fn e12_watch_is_read_as_the_api_reads_flags() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    for off in ["false", "0", "False"] {
        assert_eq!(get(&server, &format!("{MAPS}?watch={off}")).json()["kind"], "ConfigMapList");
    }
    let mut stream = watch(&server, &format!("{MAPS}?watch=perhaps"));
    assert_eq!(stream.next_event().1, "a");
    assert_eq!(get(&server, &format!("{MAPS}/a?watch=true")).json()["kind"], "ConfigMap");
}

#[test]
fn e14_the_old_watch_paths_still_work() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    let mut stream = watch(&server, "/api/v1/watch/namespaces/default/configmaps");
    assert_eq!(stream.next_event().1, "a");
}

#[test]
fn a_client_that_goes_away_leaves_no_watch_behind() {
    let server = server();
    let stream = watch(&server, &format!("{MAPS}?watch=1"));
    assert_eq!(server.watches("configmaps"), 1);
    drop(stream);
    while server.watches("configmaps") > 0 {
        std::thread::yield_now();
    }
}

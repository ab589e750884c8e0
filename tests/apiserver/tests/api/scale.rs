//! What must not get slow: many objects in one list, many watchers of one resource.
//!
//! They answer: does everyone receive everything, when there is much of it? Counts and contents are asserted, never
//! times.
use informer_apiserver::ApiServer;
use serde_json::json;

use crate::client::{config_map, get, server, watch};

#[test]
fn ten_thousand_pods_are_listed_whole_and_in_pages() {
    let server = server();
    for number in 0..10_000 {
        let name = format!("pod-{number:05}");
        server
            .create(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}))
            .unwrap();
    }
    let whole = get(&server, "/api/v1/pods").json();
    assert_eq!(whole["items"].as_array().unwrap().len(), 10_000);
    let (mut count, mut token) = (0, String::new());
    loop {
        let page = get(&server, &format!("/api/v1/pods?limit=500&continue={token}")).json();
        count += page["items"].as_array().unwrap().len();
        match page["metadata"]["continue"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(count, 10_000);
}

#[test]
fn three_hundred_watchers_all_see_every_event() {
    let server = ApiServer::builder().start_blocking().unwrap();
    let path = format!("/api/v1/configmaps?watch=1&resourceVersion={}", server.revision());
    let mut streams: Vec<_> = (0..300).map(|_| watch(&server, &path)).collect();
    for number in 0..20 {
        server.create(config_map(&format!("m{number:02}"), "x")).unwrap();
    }
    for stream in &mut streams {
        for number in 0..20 {
            assert_eq!(stream.next_event().1, format!("m{number:02}"));
        }
    }
}

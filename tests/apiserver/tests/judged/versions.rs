//! Versions: behaviours 1 to 3.
//!
//! They answer: how do versions relate to writes, lists and events?
use serde_json::json;

use crate::harness::judge;

const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";

#[test]
fn api_01_each_write_takes_the_next_version_and_a_list_covers_all_of_them() {
    judge(|s| {
        s.get(MAPS);
        s.post(MAPS, &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}));
        s.get(MAPS);
        s.post(MAPS, &json!({"metadata": {"name": "b"}, "data": {"k": "v"}}));
        s.patch("merge", format!("{MAPS}/a"), &json!({"data": {"k": "v"}}));
        s.get(format!("{MAPS}/a"));
        s.get(MAPS);
    });
}

#[test]
fn api_02_a_write_that_changes_nothing_keeps_the_version_and_sends_no_event() {
    judge(|s| {
        let made = s.post(MAPS, &json!({"metadata": {"name": "a"}, "data": {"k": "v"}}));
        let mut watch = s.watch(format!("{MAPS}?watch=1&resourceVersion={}", made.version()));
        s.put(format!("{MAPS}/a"), &made.json());
        s.patch("merge", format!("{MAPS}/a"), &json!({"data": {"k": "v"}}));
        s.patch("json", format!("{MAPS}/a"), &json!([{"op": "test", "path": "/data/k", "value": "v"}]));
        s.patch("merge", format!("{MAPS}/a"), &json!({"data": {"k": "w"}}));
        watch.events(s, 1);
    });
}

#[test]
fn api_03_a_deletion_has_a_version_of_its_own() {
    judge(|s| {
        let made = s.post(MAPS, &json!({"metadata": {"name": "a"}}));
        let mut watch = s.watch(format!("{MAPS}?watch=1&resourceVersion={}", made.version()));
        s.patch("merge", format!("{MAPS}/a"), &json!({"data": {"k": "v"}}));
        s.delete(format!("{MAPS}/a"));
        watch.events(s, 2);
    });
}

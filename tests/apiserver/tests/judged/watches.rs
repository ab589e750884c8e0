//! Watches: behaviours 10 to 17, and E12 and E14.
//!
//! They answer: does a client see every change once, in order, as the right event, and then the right end?
use serde_json::json;

use crate::harness::{Request, judge};
use crate::lists::maps;

const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";

fn map(name: &str, app: &str) -> serde_json::Value {
    json!({"metadata": {"name": name, "labels": {"app": app}}})
}

#[test]
fn api_10_every_change_is_one_line_in_order() {
    judge(|s| {
        let from = s.post(MAPS, &map("a", "x")).version();
        let mut watch = s.watch(format!("{MAPS}?watch=true&resourceVersion={from}"));
        s.post(MAPS, &map("b", "x"));
        s.patch("merge", format!("{MAPS}/a"), &json!({"data": {"k": "v"}}));
        s.delete(format!("{MAPS}/b"));
        s.delete(format!("{MAPS}/a"));
        watch.events(s, 4);
    });
}

#[test]
fn api_11_without_a_version_existing_objects_are_sent_first() {
    judge(|s| {
        maps(s, &["b", "a"]);
        let mut watch = s.watch(format!("{MAPS}?watch=1"));
        watch.events(s, 2);
        s.post(MAPS, &map("c", "x"));
        watch.events(s, 1);
        let mut zero = s.watch(format!("{MAPS}?watch=1&resourceVersion=0"));
        zero.events(s, 3);
    });
}

#[test]
fn api_13_a_watch_ends_cleanly_at_its_timeout() {
    judge(|s| {
        maps(s, &["a"]);
        s.watch(format!("{MAPS}?watch=1&timeoutSeconds=1")).end(s);
    });
}

#[test]
fn api_14_bookmarks_come_before_the_end_of_a_watch() {
    judge(|s| {
        maps(s, &["a"]);
        let from = s.post(MAPS, &map("b", "x")).version();
        // Long enough that the next object is there before the bookmark, on a loaded machine, too.
        let watch = format!("{MAPS}?watch=1&resourceVersion={from}&timeoutSeconds=20");
        let mut bookmarked = s.watch(format!("{watch}&allowWatchBookmarks=true"));
        let plain = s.watch(watch);
        s.post(MAPS, &map("c", "x"));
        let told = bookmarked.events_until(s, "BOOKMARK");
        s.note("after what they cover", told.len());
        // Another may follow in the last second, depending on an internal timer.
        let rest = bookmarked.rest_unrecorded();
        s.note("then only bookmarks", rest.iter().all(|event| event["type"] == "BOOKMARK"));
        plain.end(s);
    });
}

#[test]
fn api_17_a_watcher_that_does_not_read_misses_nothing_up_to_the_end_of_its_stream() {
    judge(|s| {
        let from = s.post(MAPS, &map("big", "x")).version();
        let mut watch = s.watch_unrecorded(format!("{MAPS}?watch=1&resourceVersion={from}"));
        // 100 events of 400 KB: more than a connection holds back. How far behind a watcher may be is up to
        // each server (a real one closes this stream), but no event may be left out.
        let mut versions = Vec::new();
        for round in 0..100 {
            let body = json!({"data": {"k": "x".repeat(400_000), "round": round.to_string()}});
            let patch = Request::new("PATCH", format!("{MAPS}/big"))
                .body("application/merge-patch+json", body.to_string());
            versions.push(s.prepare(patch).version());
        }
        let newest = versions.last().cloned().unwrap_or_default();
        let told = watch.versions_up_to(&newest);
        s.note("something was told", !told.is_empty());
        s.note("what was told has no gap", versions.starts_with(&told));
        let last = told.last().cloned().unwrap_or_default();
        let mut resumed = s.watch_unrecorded(format!("{MAPS}?watch=1&resourceVersion={last}"));
        let rest = if last == newest { Vec::new() } else { resumed.versions_up_to(&newest) };
        s.note("a new watch goes on where it ended", [told, rest].concat() == versions);
    });
}

#[test]
fn api_15_a_watch_list_marks_the_end_of_its_first_part() {
    judge(|s| {
        maps(s, &["a", "b"]);
        let from = s.post(MAPS, &map("c", "x")).version();
        let initial =
            "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
        let mut watch = s.watch(format!("{MAPS}?{initial}"));
        watch.events(s, 4);
        s.post(MAPS, &map("d", "x"));
        watch.events(s, 1);
        let mut watch = s.watch(format!("{MAPS}?{initial}&resourceVersion={from}"));
        watch.events_until(s, "BOOKMARK");
        let mut watch = s.watch(format!("{MAPS}?watch=1&allowWatchBookmarks=true"));
        watch.events_until(s, "BOOKMARK");
        let mut empty = s.watch(format!("/api/v1/namespaces/{{ns}}/pods?{initial}"));
        empty.events(s, 1);
        let without = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=";
        let mut quiet = s.watch(format!("{MAPS}?{without}{from}"));
        quiet.events(s, 1);
    });
}

#[test]
fn api_15_the_marker_of_a_kind_is_the_zero_value_of_its_type() {
    judge(|s| {
        let initial =
            "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
        for path in [
            "/api/v1/namespaces/{ns}/pods",
            "/api/v1/namespaces/{ns}/secrets",
            "/api/v1/namespaces/{ns}/services",
            "/api/v1/namespaces/{ns}/events",
            "/api/v1/namespaces/{ns}/endpoints",
            "/api/v1/namespaces/{ns}/serviceaccounts",
            "/api/v1/namespaces/{ns}/persistentvolumeclaims",
            "/apis/apps/v1/namespaces/{ns}/deployments",
            "/apis/apps/v1/namespaces/{ns}/replicasets",
            "/apis/apps/v1/namespaces/{ns}/statefulsets",
            "/apis/apps/v1/namespaces/{ns}/daemonsets",
            "/apis/batch/v1/namespaces/{ns}/jobs",
            "/apis/batch/v1/namespaces/{ns}/cronjobs",
            "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses",
            "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
            "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
            "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices",
            "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
            "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers",
        ] {
            s.watch(format!("{path}?{initial}")).events(s, 1);
        }
    });
}

#[test]
fn api_16_selectors_see_the_old_and_the_new_state() {
    judge(|s| {
        let from = s.post(MAPS, &map("a", "y")).version();
        let query = format!("watch=1&resourceVersion={from}");
        let mut chosen = s.watch(format!("{MAPS}?{query}&labelSelector=app%3Dx"));
        let mut named = s.watch(format!("{MAPS}?{query}&fieldSelector=metadata.name%3Db"));
        s.post(MAPS, &map("b", "y"));
        s.patch("merge", format!("{MAPS}/b"), &json!({"metadata": {"labels": {"app": "x"}}}));
        s.patch("merge", format!("{MAPS}/b"), &json!({"data": {"k": "v"}}));
        s.patch("merge", format!("{MAPS}/b"), &json!({"metadata": {"labels": {"app": "z"}}}));
        s.patch("merge", format!("{MAPS}/b"), &json!({"metadata": {"labels": {"app": "x"}}}));
        s.delete(format!("{MAPS}/b"));
        chosen.events(s, 5);
        named.events(s, 6);
    });
}

#[test]
fn e12_flags_and_limits_of_watches_are_read_as_the_api_reads_them() {
    judge(|s| {
        maps(s, &["a"]);
        s.get(format!("{MAPS}?watch=false"));
        s.get(format!("{MAPS}?watch=0"));
        s.watch(format!("{MAPS}?watch=perhaps&timeoutSeconds=1")).end(s);
        s.get(format!("{MAPS}/a?watch=true"));
        s.watch(format!("{MAPS}?watch=1&limit=1&timeoutSeconds=1")).end(s);
    });
}

#[test]
fn e14_the_old_watch_paths_still_work() {
    judge(|s| {
        maps(s, &["a", "b"]);
        let root = "/api/v1/watch/namespaces/{ns}/configmaps";
        s.watch(format!("{root}?timeoutSeconds=1")).end(s);
        s.watch(format!("{root}/b?timeoutSeconds=1")).end(s);
    });
}

#[test]
fn api_19_a_watch_can_be_asked_for_over_a_websocket() {
    judge(|s| {
        maps(s, &["a"]);
        let upgrade = Request::new("GET", format!("{MAPS}?watch=1"))
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Origin", "http://localhost")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
        s.send(upgrade);
    });
}

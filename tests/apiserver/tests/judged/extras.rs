//! What clients rely on beside the 44 behaviours: events in both groups (E16), impersonation, and the errors about
//! nodes.
//!
//! They answer: do the special cases that real clients use work?
use serde_json::json;

use crate::harness::{Request, judge};

const EVENTS: &str = "/api/v1/namespaces/{ns}/events";
const NEW_EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/{ns}/events";

#[test]
fn e16_both_event_groups_are_one_storage() {
    judge(|s| {
        let old = json!({
            "metadata": {"name": "old"}, "involvedObject": {"kind": "Pod", "name": "a", "namespace": "{ns}", "apiVersion": "v1"},
            "reason": "Tested", "message": "a message", "type": "Normal", "count": 3, "source": {"component": "judge", "host": "h"},
            "firstTimestamp": "2020-01-02T03:04:05Z", "lastTimestamp": "2020-01-02T03:04:06Z",
        });
        s.post(EVENTS, &old);
        s.get(format!("{NEW_EVENTS}/old"));
        let new = json!({
            "metadata": {"name": "new"}, "regarding": {"kind": "Pod", "name": "a", "namespace": "{ns}", "apiVersion": "v1"},
            "reason": "Tested", "note": "a note", "type": "Warning", "action": "Test", "reportingController": "example.com/judge",
            "reportingInstance": "judge-1", "eventTime": "2020-01-02T03:04:05.000006Z",
        });
        let made = s.post(NEW_EVENTS, &new);
        s.get(format!("{EVENTS}/new"));
        s.get(format!("{EVENTS}?fieldSelector=involvedObject.name%3Da,reason%3DTested"));
        let mut watch = s.watch(format!("{EVENTS}?watch=1&resourceVersion={}", made.version()));
        let series = json!({"series": {"count": 2, "lastObservedTime": "2020-01-02T03:04:07.000000Z"}});
        s.patch("strategic-merge", format!("{NEW_EVENTS}/new"), &series);
        s.delete(format!("{EVENTS}/old"));
        watch.events(s, 2);
        s.post(EVENTS, &json!({"metadata": {"name": "wrong"}, "involvedObject": {"namespace": "elsewhere"}}));
        s.post(NEW_EVENTS, &json!({"metadata": {"name": "wrong"}, "note": "x"}));
    });
}

#[test]
fn e16_events_are_refused_by_the_rules_of_their_group() {
    const CORE: &str = "/api/v1/namespaces/{ns}/events";
    const NEW: &str = "/apis/events.k8s.io/v1/namespaces/{ns}/events";
    judge(|s| {
        let about = json!({"kind": "Pod", "name": "p", "namespace": "{ns}"});
        s.post(CORE, &json!({"metadata": {"name": "none"}, "involvedObject": {"kind": "Pod", "name": "p"}}));
        s.post(CORE, &json!({"metadata": {"name": "other"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "x"}}));
        s.post(CORE, &json!({"metadata": {"name": "timed"}, "involvedObject": about, "eventTime": "2020-01-01T00:00:00.000000Z"}));
        s.post(CORE, &json!({"metadata": {"name": "old"}, "involvedObject": about, "reason": "R", "message": "m", "type": "Normal", "count": 1}));
        let whole = json!({"metadata": {"name": "new"}, "regarding": about, "eventTime": "2020-01-01T00:00:00.000000Z", "type": "Normal",
            "reason": "R", "note": "n", "action": "A", "reportingController": "example.com/c", "reportingInstance": "i"});
        s.post(NEW, &whole);
        let with = |name: &str, value: serde_json::Value| {
            let mut event = whole.clone();
            event["metadata"]["name"] = json!("bad");
            event[name] = value;
            event
        };
        for (name, value) in [
            ("eventTime", json!(null)),
            ("type", json!("Odd")),
            ("deprecatedCount", json!(2)),
            ("deprecatedFirstTimestamp", json!("2020-01-01T00:00:00Z")),
            ("deprecatedLastTimestamp", json!("2020-01-01T00:00:00Z")),
            ("deprecatedSource", json!({"component": "c"})),
            ("reportingController", json!("no name!")),
            ("reportingInstance", json!("x".repeat(129))),
            ("action", json!("x".repeat(129))),
            ("reason", json!("x".repeat(129))),
            ("note", json!("x".repeat(1025))),
            ("regarding", json!({"kind": "Pod", "name": "p"})),
            ("series", json!({"count": 1, "lastObservedTime": "2020-01-01T00:00:00.000000Z"})),
            ("series", json!({"count": 2, "lastObservedTime": null})),
        ] {
            s.post(NEW, &with(name, value));
        }
        for change in [
            json!({"note": "other"}),
            json!({"reason": "other"}),
            json!({"type": "Warning"}),
            json!({"action": "other"}),
            json!({"regarding": {"name": "q"}}),
            json!({"related": {"kind": "Pod", "name": "q"}}),
            json!({"reportingInstance": "other"}),
            json!({"reportingController": "example.com/d"}),
            json!({"eventTime": "2021-01-01T00:00:00.000000Z"}),
            json!({"deprecatedCount": 5}),
            json!({"series": {"count": 3, "lastObservedTime": "2020-01-01T00:00:00.000000Z"}}),
        ] {
            s.patch("merge", format!("{NEW}/new?dryRun=All"), &change);
        }
        s.patch("merge", format!("{CORE}/new"), &json!({"message": "changed", "count": 7}));
        s.patch("merge", format!("{NEW}/new"), &json!({"metadata": {"labels": {"a": "b"}}}));
        s.patch("merge", format!("{CORE}/old"), &json!({"metadata": null}));
    });
}

#[test]
fn e1_kubectl_sends_protobuf() {
    judge(|s| {
        // runtime.Unknown (type, raw, no encoding) around a ConfigMap named a with k=v, as client-go writes it.
        let body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0d\x0a\x03\x0a\x01a\x12\x06\x0a\x01k\x12\x01v\x1a\0\"\0";
        s.send(
            Request::new("POST", "/api/v1/namespaces/{ns}/configmaps")
                .body("application/vnd.kubernetes.protobuf", body.to_vec()),
        );
        s.get("/api/v1/namespaces/{ns}/configmaps");
    });
}

#[test]
fn e13_e6_namespaces_and_nodes_as_records() {
    judge(|s| {
        s.get("/api/v1/namespaces/{ns}");
        s.post(
            "/api/v1/nodes",
            &json!({"metadata": {"name": "{ns}"}, "spec": {"podCIDR": "10.9.0.0/24", "unschedulable": true}}),
        );
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"cpu": "2"}}});
        s.patch("strategic-merge", "/api/v1/nodes/{ns}/status", &ready);
        let taint = json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
        s.patch("strategic-merge", "/api/v1/nodes/{ns}", &taint);
        s.get("/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue,metadata.name%3D{ns}");
        s.delete("/api/v1/nodes/{ns}");
    });
}

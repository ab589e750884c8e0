//! Deletions: behaviours 26, 27 and 29, E4 and E6.
//!
//! They answer: which answers and events are sent, and what stays, when something is deleted?
use serde_json::json;

use crate::harness::{Request, judge};
use crate::lists::maps;
use crate::writes::{deployment, pod};

const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";
const PODS: &str = "/api/v1/namespaces/{ns}/pods";

#[test]
fn api_26_every_deletion_of_a_pod_sends_modified_and_then_deleted() {
    judge(|s| {
        let from = s.post(PODS, &pod("a")).version();
        let mut watch = s.watch(format!("{PODS}?watch=1&resourceVersion={from}"));
        s.delete(format!("{PODS}/a"));
        watch.events(s, 2);
        s.post(PODS, &pod("b"));
        s.delete(format!("{PODS}/b?gracePeriodSeconds=0"));
        watch.events(s, 3);
    });
}

#[test]
fn e4_a_pod_on_a_node_is_deleted_in_two_steps() {
    judge(|s| {
        let mut bound = pod("a");
        bound["spec"]["nodeName"] = json!("n");
        let from = s.post(PODS, &bound).version();
        let mut watch = s.watch(format!("{PODS}?watch=1&resourceVersion={from}"));
        s.delete(format!("{PODS}/a"));
        s.get(format!("{PODS}/a"));
        s.delete(format!("{PODS}/a?gracePeriodSeconds=5"));
        s.delete(format!("{PODS}/a?gracePeriodSeconds=0"));
        watch.events(s, 4);
    });
}

#[test]
fn e4_pods_are_bound_and_evicted_through_subresources() {
    judge(|s| {
        s.post(PODS, &pod("a"));
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}});
        s.post(format!("{PODS}/a/binding"), &binding);
        s.post(format!("{PODS}/a/binding"), &binding);
        s.get(format!("{PODS}/a"));
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}});
        s.post(format!("{PODS}/a/eviction"), &eviction);
        s.get(format!("{PODS}/a"));
    });
}

#[test]
fn api_26_finalizers_keep_a_deleted_object() {
    judge(|s| {
        let held =
            json!({"metadata": {"name": "a", "finalizers": ["judge.example.com/a", "judge.example.com/b"]}});
        let from = s.post(MAPS, &held).version();
        let mut watch = s.watch(format!("{MAPS}?watch=1&resourceVersion={from}"));
        s.delete(format!("{MAPS}/a"));
        s.delete(format!("{MAPS}/a"));
        s.patch(
            "merge",
            format!("{MAPS}/a"),
            &json!({"metadata": {"finalizers": ["judge.example.com/a", "judge.example.com/new"]}}),
        );
        s.patch("merge", format!("{MAPS}/a"), &json!({"metadata": {"deletionTimestamp": null}}));
        s.patch("merge", format!("{MAPS}/a"), &json!({"metadata": {"finalizers": ["judge.example.com/a"]}}));
        s.patch("merge", format!("{MAPS}/a"), &json!({"metadata": {"finalizers": null}, "data": {"k": "v"}}));
        watch.events(s, 3);
        s.get(format!("{MAPS}/a"));
    });
}

#[test]
fn api_26_preconditions_must_hold_and_propagation_adds_finalizers() {
    judge(|s| {
        let made = s.post(MAPS, &json!({"metadata": {"name": "a"}}));
        let with = |options: serde_json::Value| Request::new("DELETE", format!("{MAPS}/a")).json(&options);
        s.send(with(json!({"preconditions": {"uid": "other"}})));
        s.send(with(json!({"preconditions": {"uid": made.text("/metadata/uid"), "resourceVersion": "1"}})));
        s.send(with(json!({"propagationPolicy": "Sideways"})));
        s.send(with(json!({"propagationPolicy": "Orphan", "orphanDependents": true})));
        s.send(with(json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"})));
        s.post(MAPS, &json!({"metadata": {"name": "b"}}));
        s.delete(format!("{MAPS}/b?propagationPolicy=Orphan"));
        s.post(MAPS, &json!({"metadata": {"name": "c"}}));
        s.delete(format!("{MAPS}/c?propagationPolicy=Background"));
    });
}

#[test]
fn e6_the_answer_of_a_deletion_depends_on_its_kind() {
    judge(|s| {
        let named = json!({"metadata": {"name": "a"}});
        let service = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}});
        for (path, body) in [
            (MAPS, &named),
            ("/api/v1/namespaces/{ns}/secrets", &named),
            ("/api/v1/namespaces/{ns}/serviceaccounts", &named),
            ("/api/v1/namespaces/{ns}/services", &service),
            ("/apis/apps/v1/namespaces/{ns}/deployments", &deployment("a")),
            ("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", &named),
            ("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles", &named),
        ] {
            s.prepare(Request::new("POST", path).json(body));
            s.delete(format!("{path}/a"));
        }
    });
}

#[test]
fn api_27_a_collection_is_deleted_by_selector() {
    judge(|s| {
        maps(s, &["a", "b"]);
        let from = s.post(MAPS, &json!({"metadata": {"name": "c", "labels": {"app": "x"}}})).version();
        let mut watch = s.watch(format!("{MAPS}?watch=1&resourceVersion={from}"));
        s.delete(format!("{MAPS}?labelSelector=app%3Dx"));
        s.delete(format!("{MAPS}?fieldSelector=metadata.name%3Da"));
        s.delete(format!("{MAPS}?labelSelector=app%3Dx"));
        watch.events(s, 2);
        s.get(MAPS);
        s.delete(MAPS);
        s.delete("/api/v1/namespaces/{ns}/services");
    });
}

#[test]
fn api_29_three_namespaces_cannot_be_deleted_and_others_are_finalised() {
    judge(|s| {
        for name in ["default", "kube-system", "kube-public"] {
            s.delete(format!("/api/v1/namespaces/{name}"));
        }
        s.prepare(
            Request::new("POST", "/api/v1/namespaces").json(&json!({"metadata": {"name": "{ns}-gone"}})),
        );
        s.get("/api/v1/namespaces/{ns}-gone");
        // Ours finalises an empty namespace itself, as a cluster's controller does: something has to be left in it.
        let held = json!({"metadata": {"name": "held", "finalizers": ["judge.example.com/held"]}});
        s.prepare(Request::new("POST", "/api/v1/namespaces/{ns}-gone/configmaps").json(&held));
        s.delete("/api/v1/namespaces/{ns}-gone");
        let finalized =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "{ns}-gone"}, "spec": {}});
        s.put("/api/v1/namespaces/{ns}-gone/finalize", &finalized);
        s.until(&Request::new("GET", "/api/v1/namespaces/{ns}-gone"), |answer| answer.code() == 404);
        s.get("/api/v1/namespaces/{ns}-gone");
    });
}

#[test]
fn api_26_an_eviction_may_name_a_policy() {
    judge(|s| {
        let mut bound = pod("a");
        bound["spec"]["nodeName"] = json!("n");
        s.post(PODS, &bound);
        let eviction = |policy: &str| {
            json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"},
                "deleteOptions": {"propagationPolicy": policy}})
        };
        s.post(format!("{PODS}/a/eviction"), &eviction("Sideways"));
        s.post(format!("{PODS}/a/eviction"), &eviction("Foreground"));
        s.get(format!("{PODS}/a"));
        s.post(format!("{PODS}/a/eviction"), &eviction("Orphan"));
        s.get(format!("{PODS}/a"));
    });
}

#[test]
fn e11_a_definition_uses_a_policy_only_when_it_is_being_deleted() {
    judge(|s| {
        crate::definitions::widgets(s);
        let held = json!({"apiVersion": "{group}/v1", "kind": "Widget", "metadata": {"name": "w", "finalizers": ["judge.example.com/a"]}});
        s.post("/apis/{group}/v1/namespaces/{ns}/widgets", &held);
        let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}";
        s.delete(format!("{definition}?propagationPolicy=Foreground"));
        // On a real server a controller sets it, slightly later.
        let going = |answer: &crate::harness::Answer| {
            answer.text("/status/conditions/2/reason") == "InstanceDeletionInProgress"
        };
        s.until(&Request::new("GET", definition), going);
        s.delete(format!("{definition}?propagationPolicy=Foreground"));
        s.delete(format!("{definition}?propagationPolicy=Orphan"));
        s.get(definition);
    });
}

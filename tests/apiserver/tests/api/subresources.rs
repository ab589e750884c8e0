//! The endpoints below an object: behaviours 24 and E4, as kube-apiserver 1.36.2 answers them.
//!
//! They answer: what do scale, binding, eviction, finalize and the parts of a pod do, and what do they refuse?
use serde_json::{Value, json};

use crate::client::{Answer, delete, get, merge_patch, post, put, server};

const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/d";

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 2,
        "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "x", "operator": "In", "values": ["q", "p"]}]},
        "template": {"metadata": {"labels": {"a": "b", "x": "p"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

fn refused(answer: &Answer) -> (u16, String) {
    (answer.code, answer.json()["message"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn api_24_a_scale_shows_and_sets_the_replicas() {
    let server = server();
    server.create(deployment()).unwrap();
    let path = format!("{DEPLOYMENT}/scale");
    let scale = get(&server, &path).json();
    assert_eq!((&scale["kind"], &scale["apiVersion"]), (&json!("Scale"), &json!("autoscaling/v1")));
    assert_eq!(scale["spec"], json!({"replicas": 2}));
    assert_eq!(scale["status"], json!({"replicas": 0, "selector": "a=b,x in (p,q)"}));
    let body = |replicas: i64| json!({"metadata": {"name": "d", "namespace": "default"}, "spec": {"replicas": replicas}});
    assert_eq!(put(&server, &path, &body(5)).json()["spec"]["replicas"], 5);
    assert_eq!(merge_patch(&server, &path, &json!({"spec": {"replicas": 7}})).json()["spec"]["replicas"], 7);
    let stored = get(&server, DEPLOYMENT).json();
    assert_eq!((&stored["spec"]["replicas"], &stored["metadata"]["generation"]), (&json!(7), &json!(3)));
    assert_eq!(
        refused(&put(&server, &path, &body(-5))),
        (422, "Scale.autoscaling \"d\" is invalid: spec.replicas: Invalid value: -5: must be greater than or equal to 0".into())
    );
    let mut stale = body(1);
    stale["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(put(&server, &path, &stale).code, 409);
    assert_eq!(put(&server, &path, &deployment()).code, 400);
    let none = get(&server, "/apis/apps/v1/namespaces/default/deployments/none/scale");
    assert_eq!(refused(&none), (404, "deployments.apps \"none\" not found".into()));
}

#[test]
fn api_24_the_scale_of_a_custom_kind_uses_the_paths_of_its_definition() {
    let server = server();
    let mut definition = crate::reads::widgets();
    definition["spec"]["versions"][0]["subresources"]["scale"] = json!({"specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.selector"});
    server.create(definition).unwrap();
    server.create(crate::reads::widget("w")).unwrap();
    let path = "/apis/example.com/v1/namespaces/default/widgets/w/scale";
    let body = json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": "w", "namespace": "default"}, "spec": {"replicas": 5}});
    assert_eq!(put(&server, path, &body).json()["spec"]["replicas"], 5);
    assert_eq!(server.get("widgets.example.com", "default", "w").unwrap()["spec"]["size"], 5);
    assert_eq!(get(&server, path).json()["status"], json!({"replicas": 0}));
    assert_eq!(merge_patch(&server, path, &json!({"spec": {"replicas": -1}})).code, 422);
}

#[test]
fn api_e04_a_pod_is_bound_once() {
    let server = server();
    server.create(pod("a")).unwrap();
    let path = format!("{PODS}/a/binding");
    let body = |node: &str| json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": node}});
    let bound = post(&server, &path, &body("n1"));
    assert_eq!((bound.code, &bound.json()["status"]), (201, &json!("Success")));
    let stored = get(&server, &format!("{PODS}/a")).json();
    assert_eq!((&stored["spec"]["nodeName"], &stored["metadata"]["generation"]), (&json!("n1"), &json!(1)));
    assert_eq!(stored["status"]["conditions"][0]["type"], "PodScheduled");
    assert_eq!(
        refused(&post(&server, &path, &body("n2"))),
        (
            409,
            "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n1\""
                .into()
        )
    );
    let unnamed = post(&server, &path, &json!({"target": {"name": "n1"}}));
    assert_eq!(refused(&unnamed), (400, "name in URL does not match name in Binding object".into()));
    server.create(pod("b")).unwrap();
    let mut other = body("n1");
    other["metadata"]["name"] = json!("b");
    assert_eq!(post(&server, "/api/v1/namespaces/default/bindings", &other).code, 201);
    assert_eq!(server.get("pods", "default", "b").unwrap()["spec"]["nodeName"], "n1");
}

#[test]
fn api_e04_an_eviction_deletes_unless_a_budget_forbids() {
    let server = server();
    server.create(pod("a")).unwrap();
    server
        .merge_patch(
            "pods/status",
            "default",
            "a",
            &json!({"status": {"phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}]}}),
        )
        .unwrap();
    server
        .create(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}))
        .unwrap();
    let path = format!("{PODS}/a/eviction");
    let body = json!({"metadata": {"name": "a"}});
    let unseen = post(&server, &path, &body);
    assert_eq!((unseen.code, unseen.header("retry-after")), (429, Some("10")));
    let budget = |allowed: i64| {
        let status = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1}});
        server.merge_patch("poddisruptionbudgets.policy/status", "default", "b", &status).unwrap();
    };
    budget(0);
    let full = post(&server, &path, &body);
    assert_eq!(
        full.json()["details"]["causes"][0]["message"],
        "The disruption budget b needs 1 healthy pods and has 1 currently"
    );
    budget(1);
    assert_eq!(post(&server, &path, &body).code, 201);
    assert_eq!(get(&server, &format!("{PODS}/a")).code, 404);
    let spent = server.get("poddisruptionbudgets.policy", "default", "b").unwrap();
    assert_eq!(spent["status"]["disruptionsAllowed"], 0);
    assert!(spent["status"]["disruptedPods"]["a"].is_string());
}

#[test]
fn api_29_a_namespace_waits_for_the_finalizers_of_others() {
    let server = server();
    let namespace = json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["example.com/mine"]}});
    let made = post(&server, "/api/v1/namespaces", &namespace).json();
    assert_eq!(made["spec"]["finalizers"], json!(["example.com/mine", "kubernetes"]));
    let kept = put(&server, "/api/v1/namespaces/n", &json!({"metadata": {"name": "n"}, "spec": {}})).json();
    assert_eq!(kept["spec"], made["spec"], "an update does not touch them");
    assert_eq!(delete(&server, "/api/v1/namespaces/n").json()["status"]["phase"], "Terminating");
    let waiting = get(&server, "/api/v1/namespaces/n").json();
    assert_eq!(waiting["spec"]["finalizers"], json!(["example.com/mine"]));
    let done = json!({"metadata": {"name": "n"}, "spec": {"finalizers": []}});
    assert_eq!(put(&server, "/api/v1/namespaces/n/finalize", &done).code, 200);
    assert_eq!(get(&server, "/api/v1/namespaces/n").code, 404);
}

#[test]
fn api_24_a_part_of_a_pod_is_written_without_the_rest() {
    let server = server();
    server.create(pod("a")).unwrap();
    let path = format!("{PODS}/a/ephemeralcontainers");
    let patch = json!({"metadata": {"labels": {"x": "y"}}, "spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}});
    let patched = merge_patch(&server, &path, &patch).json();
    assert_eq!(patched["spec"]["ephemeralContainers"][0]["name"], "e");
    assert_eq!(
        (&patched["metadata"]["labels"], &patched["metadata"]["generation"]),
        (&json!({"app": "x"}), &json!(2))
    );
    assert_eq!(merge_patch(&server, &path, &json!({"spec": {"ephemeralContainers": null}})).code, 422);
    let unbound = get(&server, &format!("{PODS}/a/log"));
    assert_eq!(refused(&unbound), (400, "pod a does not have a host assigned".into()));
}

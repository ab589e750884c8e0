//! Writes over HTTP: behaviours 22 to 28, and what clients rely on beside them.
//!
//! They answer: which code and which body does a write get? The rules themselves have their tables in
//! `src/cluster/tests.rs`; these tests check the bytes on the wire.
use serde_json::{Value, json};

use crate::client::{config_map, delete, get, merge_patch, post, put, request, server};
use crate::reads::{widget, widgets};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

#[test]
fn api_22_a_created_object_has_what_the_server_sets() {
    let server = server();
    let made = post(
        &server,
        PODS,
        &json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
    );
    let pod = made.json();
    assert_eq!((made.code, &pod["kind"], &pod["apiVersion"]), (201, &json!("Pod"), &json!("v1")));
    let metadata = &pod["metadata"];
    assert_eq!((&metadata["namespace"], &metadata["generation"]), (&json!("default"), &json!(1)));
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert_eq!(metadata["creationTimestamp"].as_str().unwrap().len(), "2026-01-01T00:00:00Z".len());
    assert_eq!(metadata["resourceVersion"], server.revision().to_string());
    let again = post(
        &server,
        PODS,
        &json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
    );
    assert_eq!((again.code, &again.json()["reason"]), (409, &json!("AlreadyExists")));
}

#[test]
fn api_23_an_update_must_know_the_current_version() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    let path = format!("{MAPS}/a");
    let mut map = get(&server, &path).json();
    map["data"] = json!({"k": "v"});
    assert_eq!(put(&server, &path, &map).code, 200);
    let stale = put(&server, &path, &map);
    assert_eq!((stale.code, &stale.json()["reason"]), (409, &json!("Conflict")));
    map["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    map["data"] = json!({"k": "w"});
    assert_eq!(put(&server, &path, &map).code, 200, "no version means unconditional");
    map["metadata"]["uid"] = json!("other");
    assert_eq!(put(&server, &path, &map).code, 409);
    assert_eq!(put(&server, &path, &config_map("b", "x")).code, 400);
    assert_eq!(put(&server, &format!("{MAPS}/none"), &config_map("none", "x")).code, 404);

    server.create(widgets()).unwrap();
    server.create(widget("w")).unwrap();
    let custom = put(&server, "/apis/example.com/v1/namespaces/default/widgets/w", &widget("w"));
    assert_eq!((custom.code, &custom.json()["reason"]), (422, &json!("Invalid")));
}

#[test]
fn api_24_a_status_has_an_endpoint_of_its_own() {
    let server = server();
    server.create(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})).unwrap();
    let patched =
        merge_patch(&server, &format!("{PODS}/a/status"), &json!({"status": {"phase": "Running"}})).json();
    assert_eq!(
        (&patched["status"]["phase"], &patched["metadata"]["generation"]),
        (&json!("Running"), &json!(1))
    );
    let ignored = merge_patch(&server, &format!("{PODS}/a"), &json!({"status": {"phase": "Failed"}})).json();
    assert_eq!(ignored["status"]["phase"], "Running");
    let mut pod = get(&server, &format!("{PODS}/a/status")).json();
    pod["status"]["podIP"] = json!("10.0.0.1");
    assert_eq!(put(&server, &format!("{PODS}/a/status"), &pod).json()["status"]["podIP"], "10.0.0.1");
    let listed = get(&server, "/api/v1/pods?fieldSelector=status.phase=Running").json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
}

#[test]
fn api_25_a_patch_names_its_language() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    let path = format!("{MAPS}/a");
    let patch = |language: &str, body: Value| {
        request(&server, "PATCH", &path, &[("Content-Type", language)], &body.to_string())
    };
    let added =
        patch("application/json-patch+json", json!([{"op": "add", "path": "/data", "value": {"k": "v"}}]));
    assert_eq!((added.code, &added.json()["data"]["k"]), (200, &json!("v")));
    let merged = patch("application/merge-patch+json; charset=utf-8", json!({"data": {"k": null, "l": "w"}}));
    assert_eq!(merged.json()["data"], json!({"l": "w"}));
    assert_eq!(patch("application/strategic-merge-patch+json", json!({"data": {"l": null}})).code, 200);
    assert_eq!(patch("application/json", json!({})).code, 415);
    assert_eq!(merge_patch(&server, &format!("{MAPS}/none"), &json!({})).code, 404);
}

#[test]
fn api_26_the_answer_of_a_delete_depends_on_its_kind() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    server.create(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})).unwrap();
    let map = delete(&server, &format!("{MAPS}/a"));
    let status = map.json();
    assert_eq!((map.code, &status["kind"], &status["status"]), (200, &json!("Status"), &json!("Success")));
    assert_eq!((&status["details"]["name"], &status["details"]["kind"]), (&json!("a"), &json!("configmaps")));
    assert_eq!(delete(&server, &format!("{PODS}/p")).json()["kind"], "Pod");
    assert_eq!(delete(&server, &format!("{PODS}/p")).code, 404);
}

#[test]
fn api_26_a_precondition_in_the_body_must_hold() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    let body = json!({"preconditions": {"uid": "other"}}).to_string();
    let json = [("Content-Type", "application/json")];
    assert_eq!(request(&server, "DELETE", &format!("{MAPS}/a"), &json, &body).code, 409);
}

#[test]
fn api_27_a_collection_is_deleted_by_selector() {
    let server = server();
    for (name, app) in [("a", "x"), ("b", "y"), ("c", "x")] {
        server.create(config_map(name, app)).unwrap();
    }
    let gone = delete(&server, &format!("{MAPS}?labelSelector=app=x")).json();
    assert_eq!((&gone["kind"], gone["items"].as_array().unwrap().len()), (&json!("ConfigMapList"), 2));
    assert_eq!(server.list("configmaps").unwrap().len(), 1);
}

#[test]
fn api_28_a_dry_run_changes_nothing() {
    let server = server();
    let before = server.revision();
    assert_eq!(post(&server, &format!("{MAPS}?dryRun=All"), &config_map("a", "x")).code, 201);
    assert_eq!((server.revision(), server.list("configmaps").unwrap().len()), (before, 0));
}

#[test]
fn e7_put_creates_leases() {
    let server = server();
    let lease = json!({"metadata": {"name": "l"}, "spec": {}});
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    assert_eq!(put(&server, path, &lease).code, 201);
}

#[test]
fn e19_a_body_above_three_mebibytes_is_413() {
    let server = server();
    let mut map = config_map("a", "x");
    map["data"] = json!({"k": "v".repeat(3 * 1024 * 1024)});
    assert_eq!(post(&server, MAPS, &map).code, 413);
}

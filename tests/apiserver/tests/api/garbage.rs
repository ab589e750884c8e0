//! Owners and what depends on them, over HTTP: behaviour 26.
//!
//! They answer: what does a client find after it deleted an owner, with a collector and without? The rules have their
//! tests in `src/cluster/tests/garbage.rs`.
use informer_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::client::{config_map, delete, get, post, server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn collecting() -> ApiServer {
    ApiServer::builder().seed(1).garbage_collection(true).start_blocking().expect("loopback has a free port")
}

/// An owner of two others.
fn family(server: &ApiServer) {
    let owner = server.create(config_map("owner", "x")).expect("a sound object");
    for name in ["first", "second"] {
        let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "blockOwnerDeletion": true,
            "uid": owner["metadata"]["uid"]});
        let body = json!({"metadata": {"name": name, "ownerReferences": [reference]}});
        assert_eq!(post(server, MAPS, &body).code, 201);
    }
}

fn names(server: &ApiServer) -> Vec<String> {
    let list = get(server, MAPS).json();
    let name = |item: &Value| item["metadata"]["name"].as_str().map(str::to_owned);
    list["items"].as_array().into_iter().flatten().filter_map(name).collect()
}

#[test]
fn api_26_without_a_collector_dependants_stay_and_policies_only_mark() {
    let server = server();
    family(&server);
    let marked = delete(&server, &format!("{MAPS}/owner?propagationPolicy=Foreground")).json();
    assert_eq!(marked["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert_eq!(names(&server), ["first", "owner", "second"]);
    assert_eq!(delete(&server, &format!("{MAPS}/owner?propagationPolicy=Background")).code, 200);
    assert_eq!(names(&server), ["first", "second"]);
}

#[test]
fn api_26_with_a_collector_dependants_go_before_or_after_their_owner() {
    for policy in ["", "?propagationPolicy=Background", "?propagationPolicy=Foreground"] {
        let server = collecting();
        family(&server);
        assert_eq!(delete(&server, &format!("{MAPS}/owner{policy}")).code, 200);
        assert_eq!(names(&server), [""; 0], "{policy}");
    }
}

#[test]
fn api_26_with_a_collector_orphans_stay_without_their_owner() {
    let server = collecting();
    family(&server);
    assert_eq!(delete(&server, &format!("{MAPS}/owner?propagationPolicy=Orphan")).code, 200);
    assert_eq!(names(&server), ["first", "second"]);
    let left = get(&server, &format!("{MAPS}/first")).json();
    assert_eq!(left["metadata"].get("ownerReferences"), None);
}

#[test]
fn api_26_a_policy_that_does_not_exist_is_422() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    let refused = delete(&server, &format!("{MAPS}/a?propagationPolicy=Sideways"));
    assert_eq!((refused.code, &refused.json()["details"]["kind"]), (422, &json!("DeleteOptions")));
    let refused = delete(&server, &format!("{MAPS}/a?propagationPolicy=Orphan&orphanDependents=true"));
    assert_eq!(refused.code, 422);
    assert_eq!(names(&server), ["a"]);
}

#[test]
fn an_object_removed_by_a_fault_is_followed_by_its_dependants() {
    let server = collecting();
    family(&server);
    server.faults().recreate("configmaps", "default", "owner", false).expect("it is there");
    assert_eq!(names(&server), ["owner"], "another uid is another owner");
}

#[test]
fn bugs_5_an_object_stays_while_an_owner_of_it_cannot_be_found_out() {
    let server = collecting();
    let owner = server.create(config_map("owner", "x")).expect("a sound object");
    let uid = &owner["metadata"]["uid"];
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid});
    let unknown = json!({"apiVersion": "nowhere.example.com/v1", "kind": "Thing", "name": "t", "uid": "t-1"});
    let role = |name: &str, owners: Value| {
        let metadata = json!({"name": name, "ownerReferences": owners});
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": []})
    };
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let kept = [("one", json!([map])), ("two", json!([unknown])), ("three", json!([map, unknown]))];
    for (name, owners) in &kept {
        assert_eq!(post(&server, roles, &role(name, owners.clone())).code, 201);
    }
    let child = json!({"metadata": {"name": "child", "ownerReferences": [map]}});
    assert_eq!(post(&server, MAPS, &child).code, 201);
    assert_eq!(delete(&server, &format!("{MAPS}/owner")).code, 200);
    assert_eq!(names(&server), [""; 0]);
    for (name, owners) in &kept {
        let found = get(&server, &format!("{roles}/{name}"));
        assert_eq!((found.code, &found.json()["metadata"]["ownerReferences"]), (200, owners), "{name}");
    }
}

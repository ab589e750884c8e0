//! Server-side apply, field ownership and the languages of patches over HTTP: behaviours 25 and 30, E5.
//!
//! They answer: what does a client that applies see, whether it is accepted or refused? `tests/judged` compares the
//! answers of a real server to the same requests; the rules have their tables in `src/cluster/apply/tests.rs`.
use informer_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::client::{Answer, get, post, put, request, server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const APPLY: &str = "application/apply-patch+yaml";

fn map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

fn apply(server: &ApiServer, query: &str, config: &Value) -> Answer {
    let path = format!("{MAPS}/a?{query}");
    request(server, "PATCH", &path, &[("Content-Type", APPLY)], &config.to_string())
}

fn owners(object: &Value) -> Vec<(String, String, Value)> {
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let owner = |entry: &Value| (text(entry, "manager"), text(entry, "operation"), entry["fieldsV1"].clone());
    entries.into_iter().flatten().map(owner).collect()
}

#[test]
fn api_e05_an_apply_creates_and_an_equal_one_changes_nothing() {
    let server = server();
    let made = apply(&server, "fieldManager=one", &map(json!({"x": "1"})));
    assert_eq!(made.code, 201);
    let entry = &made.json()["metadata"]["managedFields"][0];
    assert_eq!((&entry["operation"], &entry["fieldsType"]), (&json!("Apply"), &json!("FieldsV1")));
    assert_eq!(entry["fieldsV1"], json!({"f:data": {"f:x": {}}}));
    let revision = server.revision();
    let again = apply(&server, "fieldManager=one", &map(json!({"x": "1"})));
    assert_eq!((again.code, server.revision()), (200, revision));
    assert_eq!(again.json(), made.json());
}

#[test]
fn operator_a1_an_apply_with_a_version_creates_without_it_and_is_refused_where_another_version_is() {
    let server = server();
    let at = |version: &str, value: &str| {
        let mut body = map(json!({"x": value}));
        body["metadata"]["resourceVersion"] = version.into();
        apply(&server, "fieldManager=one&force=true", &body)
    };
    let made = at("1", "1");
    let version = made.json()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    assert_eq!(made.code, 201);
    assert_ne!(version, "1", "a server leaves the version out of what an apply creates");
    assert_eq!(at("1", "2").code, 409);
    assert_eq!(at(&version, "2").code, 200);
    assert_eq!(at(&version, "3").code, 409);
}

#[test]
fn api_e05_a_conflict_names_the_other_and_force_takes_the_field() {
    let server = server();
    apply(&server, "fieldManager=one", &map(json!({"x": "1", "y": "1"})));
    put(&server, &format!("{MAPS}/a?fieldManager=hand"), &map(json!({"x": "1", "y": "2"})));
    let refused = apply(&server, "fieldManager=two", &map(json!({"x": "2", "y": "3"})));
    let status = refused.json();
    assert_eq!((refused.code, &status["reason"]), (409, &json!("Conflict")));
    assert_eq!(
        status["message"],
        "Apply failed with 2 conflicts: conflicts with \"hand\" using v1:\n- .data.y\nconflicts with \"one\":\n- .data.x"
    );
    let causes = status["details"]["causes"].as_array().unwrap();
    assert!(causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict"));
    assert!(causes.iter().any(|cause| cause["message"] == "conflict with \"hand\" using v1"));
    let taken = apply(&server, "fieldManager=two&force=true", &map(json!({"x": "2"}))).json();
    assert_eq!(taken["data"], json!({"x": "2", "y": "2"}));
    let fields =
        |manager: &str| owners(&taken).into_iter().find(|owner| owner.0 == manager).map(|owner| owner.2);
    assert_eq!(fields("two"), Some(json!({"f:data": {"f:x": {}}})));
    assert_eq!(fields("one"), None, "all that one had is another's now");
}

#[test]
fn api_e05_a_field_that_is_left_out_is_removed_unless_another_manager_owns_it() {
    let server = server();
    apply(&server, "fieldManager=one", &map(json!({"x": "1", "y": "1"})));
    apply(&server, "fieldManager=two", &map(json!({"x": "1"})));
    let left = apply(&server, "fieldManager=one", &map(json!({"z": "1"}))).json();
    assert_eq!(left["data"], json!({"x": "1", "z": "1"}));
}

#[test]
fn api_e05_an_apply_is_refused_for_fields_that_it_must_not_have() {
    let server = server();
    apply(&server, "fieldManager=one", &map(json!({})));
    let unmanaged = apply(&server, "", &map(json!({})));
    assert_eq!((unmanaged.code, &unmanaged.json()["reason"]), (422, &json!("Invalid")));
    let unknown =
        apply(&server, "fieldManager=one", &json!({"apiVersion": "v1", "kind": "ConfigMap", "nope": 1}));
    let words =
        "failed to create typed patch object (/; /v1, Kind=ConfigMap): .nope: field not declared in schema";
    assert_eq!((unknown.code, &unknown.json()["message"]), (500, &json!(words)));
    let mut carrying = map(json!({}));
    carrying["metadata"]["managedFields"] = json!([]);
    assert_eq!(apply(&server, "fieldManager=one", &carrying).code, 400);
    let mut stale = map(json!({"x": "1"}));
    stale["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(apply(&server, "fieldManager=one", &stale).code, 409);
}

#[test]
fn api_30_updates_own_what_they_change_and_resets_end_it() {
    let server = server();
    let agent = |name: &str| {
        [("Content-Type", "application/json"), ("User-Agent", name)]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
    };
    let headers = agent("maker/1.0 (linux)");
    let headers: Vec<(&str, &str)> = headers.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let made = request(&server, "POST", MAPS, &headers, &map(json!({"x": "1"})).to_string()).json();
    assert_eq!(owners(&made), [("maker".into(), "Update".into(), json!({"f:data": {".": {}, "f:x": {}}}))]);
    let reset = [("Content-Type", "application/merge-patch+json")];
    let body = json!({"metadata": {"managedFields": [{}]}}).to_string();
    let bare = request(&server, "PATCH", &format!("{MAPS}/a"), &reset, &body).json();
    assert_eq!(bare.pointer("/metadata/managedFields"), None);
    let changed = put(&server, &format!("{MAPS}/a"), &map(json!({"x": "2"}))).json();
    assert_eq!(owners(&changed), [], "an object nobody owns stays so until it is applied to");
    let applied = apply(&server, "fieldManager=one", &map(json!({"y": "1"}))).json();
    let names: Vec<String> = owners(&applied).into_iter().map(|owner| owner.0).collect();
    assert_eq!(names, ["one", "before-first-apply"]);
}

#[test]
fn api_30_managed_fields_can_be_switched_off() {
    let server = ApiServer::builder().managed_fields(false).start_blocking().unwrap();
    post(&server, MAPS, &map(json!({"x": "1"})));
    let applied = apply(&server, "fieldManager=one", &map(json!({"x": "2"})));
    assert_eq!((applied.code, &applied.json()["data"]["x"]), (200, &json!("2")));
    let stored = get(&server, &format!("{MAPS}/a")).json();
    assert_eq!(stored.pointer("/metadata/managedFields"), None);
}

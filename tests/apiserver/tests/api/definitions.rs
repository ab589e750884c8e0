//! Definitions over HTTP: which names are accepted, and what is served under them.
//!
//! They answer: what does a client see of two definitions that want the same name? `tests/judged/naming.rs` compares
//! the answers with a real server.
use informer_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::client::{delete, get, merge_patch, post, server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(plural: &str, singular: &str, kind: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": plural, "singular": singular, "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
    })
}

/// The conditions of a definition, in short.
fn conditions(server: &ApiServer, plural: &str) -> Vec<String> {
    let found = get(server, &format!("{DEFINITIONS}/{plural}.example.com")).json();
    let all = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let word = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    all.iter()
        .map(|one| ["type", "status", "reason", "message"].map(|name| word(one, name)).join(" "))
        .collect()
}

fn served(server: &ApiServer, plural: &str) -> bool {
    get(server, &format!("/apis/example.com/v1/namespaces/default/{plural}")).code == 200
}

const ACCEPTED: [&str; 2] = [
    "NamesAccepted True NoConflicts no conflicts found",
    "Established True InitialNamesAccepted the initial names have been accepted",
];

#[test]
fn bugs_7_short_names_that_are_in_use_are_not_accepted_and_the_definition_stays_established() {
    let server = server();
    assert_eq!(post(&server, DEFINITIONS, &definition("gizmos", "gizmo", "Gizmo")).code, 201);
    let path = format!("{DEFINITIONS}/gizmos.example.com");
    let names = |names: Value| {
        assert_eq!(merge_patch(&server, &path, &json!({"spec": {"names": {"shortNames": names}}})).code, 200);
        get(&server, &path).json()["status"]["acceptedNames"]["shortNames"].clone()
    };
    assert_eq!(names(json!(["gz"])), json!(["gz"]));
    assert_eq!(names(json!(["gizmo", "giz"])), json!(["gz"]), "all or none");
    let refused = r#"NamesAccepted False ShortNamesConflict "gizmo" is already in use"#;
    assert_eq!(conditions(&server, "gizmos"), [refused, ACCEPTED[1]]);
    assert_eq!(names(json!(["gizmo", "gizmos", "gz"])), json!(["gz"]));
    let refused =
        r#"NamesAccepted False ShortNamesConflict ["gizmo" is already in use, "gizmos" is already in use]"#;
    assert_eq!(conditions(&server, "gizmos"), [refused, ACCEPTED[1]]);
    assert!(served(&server, "gizmos"));
    let discovered = get(&server, "/apis/example.com/v1").json();
    assert_eq!(discovered["resources"][0]["shortNames"], json!(["gz"]));
    assert_eq!(names(json!(["giz"])), json!(["giz"]));
    assert_eq!(conditions(&server, "gizmos"), ACCEPTED);
    assert_eq!(names(json!(null)), json!(null));
}

#[test]
fn bugs_9_a_definition_whose_kind_is_in_use_is_not_served_until_the_other_is_removed() {
    let server = server();
    assert_eq!(post(&server, DEFINITIONS, &definition("gizmos", "gizmo", "Gizmo")).code, 201);
    assert_eq!(post(&server, DEFINITIONS, &definition("gadgets", "gadget", "Gizmo")).code, 201);
    let refused = r#"NamesAccepted False ListKindConflict "GizmoList" is already in use"#;
    let waits = [refused, "Established False NotAccepted not all names are accepted"];
    assert_eq!(conditions(&server, "gadgets"), waits);
    assert_eq!(conditions(&server, "gizmos"), ACCEPTED);
    assert_eq!((served(&server, "gizmos"), served(&server, "gadgets")), (true, false));
    let discovered = get(&server, "/apis/example.com/v1").json();
    assert_eq!(discovered["resources"].as_array().map(Vec::len), Some(1));
    assert_eq!(delete(&server, &format!("{DEFINITIONS}/gizmos.example.com")).code, 200);
    assert_eq!(conditions(&server, "gadgets"), ACCEPTED);
    assert_eq!((served(&server, "gizmos"), served(&server, "gadgets")), (false, true));
}

#[test]
fn bugs_9_a_plural_and_a_singular_are_in_use_also_as_other_words_of_another_definition() {
    let server = server();
    assert_eq!(post(&server, DEFINITIONS, &definition("gizmos", "things", "Gizmo")).code, 201);
    assert_eq!(post(&server, DEFINITIONS, &definition("things", "thing", "Thing")).code, 201);
    let refused = r#"NamesAccepted False PluralConflict "things" is already in use"#;
    let waits = [refused, "Established False NotAccepted not all names are accepted"];
    assert_eq!(conditions(&server, "things"), waits);
    // The name is given up: the other definition gets it.
    let path = format!("{DEFINITIONS}/gizmos.example.com");
    assert_eq!(merge_patch(&server, &path, &json!({"spec": {"names": {"singular": "gizmo"}}})).code, 200);
    assert_eq!(conditions(&server, "things"), ACCEPTED);
    assert!(served(&server, "things"));
    // A definition that never was accepted is removed at once.
    assert_eq!(post(&server, DEFINITIONS, &definition("others", "gizmo", "Other")).code, 201);
    let refused = r#"NamesAccepted False SingularConflict "gizmo" is already in use"#;
    assert_eq!(conditions(&server, "others")[0], refused);
    assert_eq!(delete(&server, &format!("{DEFINITIONS}/others.example.com")).code, 200);
    assert_eq!(get(&server, &format!("{DEFINITIONS}/others.example.com")).code, 404);
}

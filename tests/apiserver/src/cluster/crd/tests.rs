//! Definitions: the checks of their schemas, on the core.
//!
//! They answer the questions of `definition/check.rs` and what it calls; `tests/judged/definitions_refused.rs` compares the texts
//! with a real server.
use serde_json::{Value, json};

use super::check;
use crate::cluster::call::Call;
use crate::cluster::store::{Cluster, Settings};

fn causes(root: &Value) -> Vec<String> {
    let definition = json!({
        "metadata": {"name": "widgets.example.com"}, "status": {"storedVersions": ["v1"]},
        "spec": {"group": "example.com", "scope": "Namespaced", "conversion": {"strategy": "None"},
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": root}}]},
    });
    let causes = check::causes(&definition, None);
    causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

fn of_field(field: &Value) -> Vec<String> {
    causes(&json!({"type": "object", "properties": {"f": field}}))
}

#[test]
fn a_valid_schema_has_no_causes() {
    let rule = json!([{"rule": "self.size() < 5 && self.all(a, a != 'x')"}]);
    let field = json!({"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 5}, "x-kubernetes-validations": rule});
    assert_eq!(of_field(&field), Vec::<String>::new());
}

#[test]
fn a_field_that_is_only_described_in_a_combination_is_not_structural() {
    let told = causes(&json!({"type": "object", "allOf": [{"properties": {"a": {"minLength": 1}}}]}));
    let path = "spec.validation.openAPIV3Schema";
    let why = format!(
        "{path}.properties[a]: Required value: because it is defined in {path}.allOf[0].properties[a]"
    );
    assert_eq!(told, [why]);
}

#[test]
#[cfg(feature = "cel")]
fn rules_are_refused_for_what_is_not_there_and_for_results_that_are_no_bool() {
    let list = |rule: &str| json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": [{"rule": rule}]});
    assert!(of_field(&list("self.all(a, self.all(b, a == b || a.contains('x')))")).is_empty());
    assert!(of_field(&list("nope == 'x'"))[0].contains("undeclared reference to 'nope' (in container '')"));
    assert!(of_field(&list("self[0]"))[0].contains("cel expression must evaluate to a bool"));
}

#[test]
fn old_states_are_only_known_of_items_with_an_identity() {
    let item =
        json!({"type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]});
    let told = of_field(&json!({"type": "array", "maxItems": 5, "items": item}));
    assert!(
        told[0].contains("oldSelf cannot be used on the uncorrelatable portion of the schema within"),
        "{told:?}"
    );
}

#[test]
fn names_and_scope_never_change() {
    let old = json!({"spec": {"group": "a.b", "scope": "Cluster", "names": {"plural": "xs", "kind": "X"}}});
    let new =
        json!({"spec": {"group": "a.b", "scope": "Namespaced", "names": {"plural": "xs", "kind": "X"}}});
    let causes = check::causes(&new, Some(&old));
    let told = causes.iter().find(|cause| cause.message.contains("field is immutable"));
    assert_eq!(told.map(|cause| cause.field.as_str()), Some("spec.scope"));
}

#[test]
fn stored_objects_are_read_by_the_current_schema() {
    let settings = Settings {
        first_revision: 10,
        event_window: 10,
        watch_queue: 10,
        seed: 1,
        managed_fields: false,
        validation: true,
    };
    let mut cluster = Cluster::new(settings, 0);
    let definitions =
        cluster.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions").cloned();
    let definitions = definitions.unwrap();
    let define = |properties: Value| {
        let root =
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
        json!({"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Cluster",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": root}}]}})
    };
    let text = json!({"type": "string"});
    let call = Call::plain(&definitions, "", "", 0);
    cluster.create(&call, define(json!({"gone": text, "kept": text}))).unwrap();
    let widgets = cluster.registry.find("example.com", "v1", "widgets").cloned().unwrap();
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"gone": "x", "kept": "y"}});
    let revision = cluster.create(&Call::plain(&widgets, "", "", 0), widget).unwrap().revision;
    let mut changed = define(json!({"kept": text, "new": {"type": "string", "default": "z"}}));
    let stored = cluster.get(&definitions, "", "widgets.example.com").unwrap();
    changed["metadata"]["resourceVersion"] = json!(stored.revision.to_string());
    cluster.update(&Call::plain(&definitions, "", "widgets.example.com", 0), changed).unwrap();
    let widgets = cluster.registry.find("example.com", "v1", "widgets").cloned().unwrap();
    let read = cluster.get(&widgets, "", "a").unwrap();
    assert_eq!(read.revision, revision);
    assert_eq!(read.decode()["spec"], json!({"kept": "y", "new": "z"}));
}

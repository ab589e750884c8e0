//! Stored objects and definitions that change: E10.
//!
//! They answer: what does a reader get for an object that was stored under another schema, or through another version?
use serde_json::{Value, json};

use crate::definitions::{define, definition};
use crate::harness::{Request, Session, judge};

const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}";
const WIDGETS: &str = "/apis/{group}/v1/namespaces/{ns}/widgets";
const OLD: &str = "/apis/{group}/v1beta1/namespaces/{ns}/widgets";

fn version(name: &str, storage: bool, properties: &Value) -> Value {
    json!({"name": name, "served": true, "storage": storage, "subresources": {"status": {}}, "schema": {"openAPIV3Schema":
        {"type": "object", "properties": {"spec": {"type": "object", "properties": properties},
            "status": {"type": "object", "properties": {"seen": {"type": "integer"}}}}}}})
}

fn defined(versions: Value) -> Value {
    let mut made = definition();
    made["spec"]["versions"] = versions;
    made
}

fn widget(version: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{{group}}/{version}"), "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

/// Changes the definition and waits until objects are read by it.
fn redefine(s: &mut Session, versions: &Value, read: impl Fn(&Value) -> bool) {
    let body = json!({"spec": {"versions": versions}}).to_string();
    s.prepare(Request::new("PATCH", DEFINITION).body("application/merge-patch+json", body));
    s.until(&Request::new("GET", format!("{WIDGETS}/a")), |answer| read(&answer.json()));
}

#[test]
fn e10_later_defaults_are_filled_in_and_fields_pruned_on_reading() {
    judge(|s| {
        let before = json!({"a": {"type": "string"}, "gone": {"type": "string"}});
        define(s, &defined(json!([version("v1", true, &before)])));
        s.post(WIDGETS, &widget("v1", "a", json!({"a": "x", "gone": "y"})));
        s.post(WIDGETS, &widget("v1", "b", json!({"gone": "y"})));
        let after = json!({"a": {"type": "string", "default": "d"}, "color": {"type": "string", "default": "red"},
            "deep": {"type": "object", "default": {}, "properties": {"n": {"type": "integer", "default": 1}}}});
        let mut changed = version("v1", true, &after);
        changed["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
        redefine(s, &json!([changed]), |widget| widget["spec"]["color"] == json!("red"));
        s.get(format!("{WIDGETS}/a"));
        s.get(WIDGETS);
        s.get(format!("{WIDGETS}?fieldSelector=spec.color%3Dred"));
        s.patch("merge", format!("{WIDGETS}/a"), &json!({"metadata": {"labels": {"l": "1"}}}));
        s.patch("merge", format!("{WIDGETS}/b"), &json!({"spec": {"color": "red"}}));
        s.patch("merge", format!("{WIDGETS}/b"), &json!({"spec": {"color": null}}));
        s.get(WIDGETS);
    });
}

#[test]
fn e10_versions_convert_by_their_names_only() {
    judge(|s| {
        let new = json!({"a": {"type": "string"}, "fresh": {"type": "integer", "default": 7}});
        let old = json!({"a": {"type": "string"}, "stale": {"type": "string", "default": "s"}});
        define(s, &defined(json!([version("v1", true, &new), version("v1beta1", false, &old)])));
        s.until(&Request::new("GET", OLD), |answer| answer.code() == 200);
        s.post(OLD, &widget("v1beta1", "a", json!({"a": "x", "stale": "y"})));
        s.get(format!("{OLD}/a"));
        s.get(format!("{WIDGETS}/a"));
        s.post(WIDGETS, &widget("v1", "b", json!({"a": "x", "fresh": 8})));
        s.get(format!("{OLD}/b"));
        s.get(OLD);
        s.patch("merge", format!("{OLD}/b"), &json!({"spec": {"a": "z"}}));
        s.patch("merge", format!("{OLD}/b/status"), &json!({"status": {"seen": 1}}));
        s.get(format!("{WIDGETS}/b"));
        s.get(WIDGETS);
    });
}

#[test]
fn e10_stored_versions_are_recorded() {
    judge(|s| {
        let fields = json!({"a": {"type": "string"}});
        define(s, &defined(json!([version("v1", false, &fields), version("v1beta1", true, &fields)])));
        let set = |s: &mut Session, versions: Value| {
            s.patch("merge", DEFINITION, &json!({"spec": {"versions": versions}}));
        };
        set(s, json!([version("v1", true, &fields), version("v1beta1", false, &fields)]));
        set(s, json!([version("v1", true, &fields)]));
        s.patch("merge", DEFINITION, &json!({"spec": {"scope": "Cluster"}}));
        s.patch("merge", DEFINITION, &json!({"spec": {"names": {"kind": "Gadget"}}}));
    });
}

//! Stored objects and definitions that change: E10.
//!
//! They answer: what does a reader get for an object that was stored under another schema, or through another version? And
//! which parts of it does a writer have to mend?
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

/// Stores a widget, then gives its spec narrower fields, and waits until another one that breaks them is refused.
fn narrowed(s: &mut Session, wide: &Value, narrow: &Value, stored: &Value) {
    narrowed_to(s, &version("v1", true, wide), &version("v1", true, narrow), stored);
}

fn narrowed_to(s: &mut Session, wide: &Value, narrow: &Value, stored: &Value) {
    define(s, &defined(json!([wide])));
    s.post(WIDGETS, &widget("v1", "a", stored.clone()));
    let body = json!({"spec": {"versions": [narrow]}}).to_string();
    s.prepare(Request::new("PATCH", DEFINITION).body("application/merge-patch+json", body));
    let other = widget("v1", "other", stored.clone());
    let post = Request::new("POST", format!("{WIDGETS}?dryRun=All")).json(&other);
    s.until(&post, |answer| answer.code() == 422);
}

#[test]
fn e10_combinations_check_also_what_did_not_change() {
    judge(|s| {
        let wide =
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
        let large = json!({"properties": {"a": {"minimum": 5}}});
        let small = json!({"properties": {"a": {"maximum": 4}}});
        let (mut all, mut narrow, mut stored) = (json!({"else": {"type": "string"}}), json!({}), json!({}));
        for (name, combined) in
            [("allOf", json!([large])), ("anyOf", json!([large])), ("oneOf", json!([large])), ("not", small)]
        {
            all[name] = wide.clone();
            narrow[name] = wide.clone();
            narrow[name][name] = combined;
            stored[name] = json!({"a": 1, "b": 1});
        }
        narrow["else"] = all["else"].clone();
        narrowed(s, &all, &narrow, &stored);
        let path = format!("{WIDGETS}/a");
        s.patch("merge", &path, &json!({"spec": {"else": "x"}}));
        for name in ["allOf", "anyOf", "oneOf", "not"] {
            s.patch("merge", &path, &json!({"spec": {name: {"b": 2}}}));
            s.patch("merge", &path, &json!({"spec": {name: {"a": 5}}}));
        }
    });
}

#[test]
fn e10_an_object_with_a_duplicate_may_have_others() {
    judge(|s| {
        let list = json!({"type": "array", "items": {"type": "string"}});
        let mut set = list.clone();
        set["x-kubernetes-list-type"] = json!("set");
        let all = |of: &Value| json!({"one": of, "two": of, "named": {"type": "object", "additionalProperties": of}});
        narrowed(s, &all(&list), &all(&set), &json!({"one": ["a", "b", "a", "a"], "two": ["x"]}));
        for spec in [
            json!({"two": ["y"]}),
            json!({"one": ["c", "a", "c"]}),
            json!({"two": ["x", "x"]}),
            json!({"one": ["a"]}),
            json!({"two": ["y"]}),
            json!({"one": ["a", "b", "a", "a", "b"]}),
            json!({"named": {"k": ["p", "p"]}}),
        ] {
            s.patch("merge", format!("{WIDGETS}/a"), &json!({"spec": spec}));
        }
    });
}

#[test]
fn e10_embedded_objects_are_checked_in_every_update_but_of_the_status() {
    judge(|s| {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let mut embedded = open.clone();
        embedded["x-kubernetes-embedded-resource"] = json!(true);
        let all = |of: &Value| json!({"one": of, "named": {"type": "object", "additionalProperties": of}, "n": {"type": "integer"}});
        narrowed(s, &all(&open), &all(&embedded), &json!({"one": {"apiVersion": "v1"}, "named": {"k": {}}}));
        s.patch("merge", format!("{WIDGETS}/a"), &json!({"spec": {"n": 1, "named": null}}));
        s.patch("merge", format!("{WIDGETS}/a"), &json!({"spec": {"n": 1, "one": null}}));
        s.patch("merge", format!("{WIDGETS}/a/status"), &json!({"status": {"seen": 1}}));
    });
}

#[test]
fn e10_only_the_status_is_checked_where_it_is_written() {
    judge(|s| {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"n": {"type": "integer"}}});
        let mut narrow = open.clone();
        narrow["properties"]["n"]["maximum"] = json!(5);
        narrowed(s, &json!({"loose": open}), &json!({"loose": narrow}), &json!({"loose": {"n": 9, "x": 1}}));
        for status in
            [json!({"seen": 1}), json!({"seen": "x"}), json!({"seen": 1.5}), json!("x"), json!(null)]
        {
            s.patch("merge", format!("{WIDGETS}/a/status"), &json!({"status": status}));
        }
    });
}

#[test]
fn e10_the_type_of_an_object_is_checked_in_every_update() {
    judge(|s| {
        let wide = version("v1", true, &json!({"n": {"type": "integer"}}));
        let mut narrow = wide.clone();
        narrow["schema"]["openAPIV3Schema"]["properties"]["kind"] =
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == 'Other'"}]});
        narrowed_to(s, &wide, &narrow, &json!({"n": 1}));
        s.patch("merge", format!("{WIDGETS}/a"), &json!({"spec": {"n": 2}}));
        s.patch("merge", format!("{WIDGETS}/a/status"), &json!({"status": {"seen": 1}}));
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

//! Custom resource definitions: behaviours 34 and 35, E10 and E11.
//!
//! They answer: what does a definition add, what does its schema do to objects, and what is deleted with it?
use serde_json::{Value, json};

use crate::harness::{Request, Session, judge};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/{group}/v1/namespaces/{ns}/widgets";

/// A definition with a status and a schema of any fields, of two served versions.
pub(crate) fn definition() -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.{group}"},
        "spec": {
            "group": "{group}", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}}},
                {"name": "v1beta1", "served": true, "storage": false, "schema": schema, "subresources": {"status": {}}},
            ],
        },
    })
}

/// A definition of one version, whose objects have a `spec` of this schema.
pub(crate) fn with_spec(spec: &Value) -> Value {
    let mut made = definition();
    made["spec"]["versions"] = json!([{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]);
    made
}

/// Defines widgets of these fields and rules; the field `n` of a widget selects the rule.
pub(crate) fn define_rules(s: &mut Session, mut fields: Value, rules: &[&str]) {
    fields["n"] = json!({"type": "integer"});
    let guarded =
        rules.iter().enumerate().map(|(n, rule)| json!({"rule": format!("self.n != {n} || ({rule})")}));
    let guarded: Vec<Value> = guarded.collect();
    let spec = json!({"type": "object", "required": ["n"], "properties": fields, "x-kubernetes-validations": guarded});
    define(s, &with_spec(&spec));
}

/// Creates the definition and waits until it is served, with requests that both servers support.
pub(crate) fn define(s: &mut Session, definition: &Value) {
    s.prepare(Request::new("POST", DEFINITIONS).json(definition));
    s.until(&Request::new("GET", WIDGETS), |answer| answer.code() == 200);
    s.until(&Request::new("GET", "/apis/{group}/v1"), |answer| answer.code() == 200);
}

pub(crate) fn widgets(s: &mut Session) {
    define(s, &definition());
}

/// A widget named `w`.
pub(crate) fn widget(spec: &Value) -> Value {
    json!({"apiVersion": "{group}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
}

fn with_schema(properties: &Value) -> Value {
    let mut made = definition();
    let versions = json!([{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": {
        "openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": properties},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }},
    }}]);
    made["spec"]["versions"] = versions;
    made
}

#[test]
fn api_34_a_definition_adds_discovery_and_conditions() {
    judge(|s| {
        s.post(DEFINITIONS, &definition());
        let established =
            |answer: &crate::harness::Answer| answer.text("/status/conditions/1/status") == "True";
        s.until(&Request::new("GET", format!("{DEFINITIONS}/widgets.{{group}}")), established);
        s.until(&Request::new("GET", "/apis/{group}/v1"), |answer| answer.code() == 200);
        s.get(format!("{DEFINITIONS}/widgets.{{group}}"));
        s.get("/apis/{group}");
        s.get("/apis/{group}/v1");
        s.get("/apis/{group}/v1beta1");
        s.get("/apis/{group}/v2");
        s.post(WIDGETS, &widget(&json!({"size": 1})));
        s.get("/apis/{group}/v1beta1/namespaces/{ns}/widgets/w");
    });
}

#[test]
fn api_34_a_definition_must_be_valid() {
    judge(|s| {
        let mut wrong = definition();
        wrong["metadata"]["name"] = json!("gadgets.{group}");
        s.post(DEFINITIONS, &wrong);
        let mut wrong = definition();
        wrong["spec"]["versions"][1]["storage"] = json!(true);
        s.post(DEFINITIONS, &wrong);
        let mut wrong = definition();
        wrong["spec"]["versions"][0]["schema"] = json!(null);
        s.post(DEFINITIONS, &wrong);
        let mut wrong = definition();
        wrong["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["type"] = json!("thing");
        s.post(DEFINITIONS, &wrong);
        let mut wrong = definition();
        wrong["spec"]["scope"] = json!("Everywhere");
        s.post(DEFINITIONS, &wrong);
    });
}

#[test]
fn e10_schemas_default_prune_and_refuse() {
    judge(|s| {
        define(
            s,
            &with_schema(&json!({
                "size": {"type": "integer", "default": 3, "minimum": 1, "maximum": 9_007_199_254_740_993_i64},
                "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                "name": {"type": "string", "maxLength": 5, "pattern": "^[a-z]+$"},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "port": {"x-kubernetes-int-or-string": true},
                "list": {"type": "array", "items": {"type": "object", "required": ["k"], "properties": {
                    "k": {"type": "string"}, "v": {"type": "string"}}},
                    "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
                "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            })),
        );
        let dry = format!("{WIDGETS}?dryRun=All");
        for spec in [
            json!({}),
            json!({"size": null, "color": null, "gone": 1, "any": {"kept": 1}}),
            json!({"size": 0}),
            json!({"size": "many"}),
            json!({"size": 9_007_199_254_740_993_i64}),
            // One fault each: a real server reports members in random order.
            json!({"color": "green"}),
            json!({"name": "Toolong"}),
            json!({"port": 80}),
            json!({"port": "http"}),
            json!({"port": true}),
            json!({"list": [{"k": "a"}, {"k": "a"}]}),
            json!({"list": [{"v": "a"}]}),
            json!({"set": ["a", "a"]}),
            json!([]),
        ] {
            s.post(&dry, &widget(&spec));
        }
    });
}

#[test]
fn e10_rules_in_cel_and_ratcheting() {
    judge(|s| {
        let properties = json!({
            "min": {"type": "integer"}, "max": {"type": "integer"},
            "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is fixed"}]},
        });
        let mut made = with_schema(&properties);
        made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] = json!([
            {"rule": "!has(self.min) || !has(self.max) || self.min <= self.max", "message": "min above max"},
        ]);
        define(s, &made);
        s.post(WIDGETS, &widget(&json!({"min": 2, "max": 1})));
        s.post(WIDGETS, &widget(&json!({"min": 1, "max": 2, "fixed": "a"})));
        s.patch("merge", format!("{WIDGETS}/w"), &json!({"spec": {"fixed": "b"}}));
        s.patch("merge", format!("{WIDGETS}/w"), &json!({"spec": {"max": 3}}));
        s.patch("merge", format!("{WIDGETS}/w"), &json!({"spec": {"max": 0}}));
    });
}

#[test]
fn e10_selectable_fields_and_deprecation() {
    judge(|s| {
        let mut made = with_schema(&json!({"color": {"type": "string"}}));
        let version = &mut made["spec"]["versions"][0];
        version["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
        version["deprecated"] = json!(true);
        version["deprecationWarning"] = json!("Widget is old");
        define(s, &made);
        let from = s.post(WIDGETS, &widget(&json!({"color": "red"}))).version();
        s.get(format!("{WIDGETS}?fieldSelector=spec.color%3Dred"));
        s.get(format!("{WIDGETS}?fieldSelector=spec.color%3Dblue"));
        s.get(format!("{WIDGETS}?fieldSelector=spec.size%3D1"));
        let mut watch =
            s.watch(format!("{WIDGETS}?watch=1&resourceVersion={from}&fieldSelector=spec.color%3Dblue"));
        s.patch("merge", format!("{WIDGETS}/w"), &json!({"spec": {"color": "blue"}}));
        s.patch("merge", format!("{WIDGETS}/w"), &json!({"spec": {"color": "red"}}));
        watch.events(s, 2);
    });
}

#[test]
fn e8_a_custom_object_must_name_its_kind() {
    judge(|s| {
        widgets(s);
        s.post(WIDGETS, &json!({"metadata": {"name": "a"}}));
        s.post(WIDGETS, &json!({"apiVersion": "{group}/v1", "kind": "Gadget", "metadata": {"name": "a"}}));
        s.post(WIDGETS, &json!({"apiVersion": "{group}/v9", "kind": "Widget", "metadata": {"name": "a"}}));
    });
}

#[test]
fn api_23_a_custom_object_needs_its_version_for_an_update() {
    judge(|s| {
        widgets(s);
        let made = s.post(WIDGETS, &widget(&json!({"size": 1})));
        s.put(format!("{WIDGETS}/w"), &widget(&json!({"size": 2})));
        let mut next = made.json();
        next["spec"]["size"] = json!(2);
        next["status"] = json!({"seen": 1});
        s.put(format!("{WIDGETS}/w"), &next);
        s.put(format!("{WIDGETS}/w"), &next);
        s.patch("merge", format!("{WIDGETS}/w/status"), &json!({"status": {"seen": 2}, "spec": {"size": 9}}));
        s.patch("merge", format!("{WIDGETS}/w"), &json!({"metadata": {"labels": {"a": "b"}}}));
        s.patch("strategic-merge", format!("{WIDGETS}/w"), &json!({"spec": {"size": 4}}));
    });
}

#[test]
fn e11_a_definition_is_deleted_with_its_objects() {
    judge(|s| {
        widgets(s);
        let from = s.post(WIDGETS, &widget(&json!({"size": 1}))).version();
        let mut watch = s.watch(format!("{WIDGETS}?watch=1&resourceVersion={from}"));
        s.delete(format!("{DEFINITIONS}/widgets.{{group}}"));
        watch.events(s, 1);
        s.until(&Request::new("GET", WIDGETS), |answer| answer.code() == 404);
        s.get(WIDGETS);
        s.post(WIDGETS, &widget(&json!({"size": 1})));
    });
}

//! Definitions that are refused, each for one fault: E10, behaviour 34.
//!
//! They answer: with which text does a real server refuse this definition? Nothing is stored.
//!
//! Next: `rules_refused.rs` has the rules.
use serde_json::{Value, json};

use crate::definitions::definition;
use crate::harness::{Request, Session, judge};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn post(s: &mut Session, body: &Value) {
    s.send(Request::new("POST", format!("{DEFINITIONS}?dryRun=All")).json(body));
}

/// Posts a definition of one version with each of these members put in.
fn each_version(s: &mut Session, members: &[(&str, Value)]) {
    for (name, value) in members {
        let mut made = definition();
        made["spec"]["versions"] = json!([made["spec"]["versions"][0]]);
        made["spec"]["versions"][0][*name] = value.clone();
        post(s, &made);
    }
}

/// Posts a definition with each of these schemas of a field `f`.
fn each_field(s: &mut Session, fields: &[Value]) {
    for field in fields {
        let root = json!({"type": "object", "properties": {"f": field}});
        post(s, &with_schema(&root));
    }
}

fn with_schema(root: &Value) -> Value {
    let mut made = definition();
    made["spec"]["versions"] =
        json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": root}}]);
    made
}

#[test]
fn api_34_names_groups_and_versions_are_checked() {
    judge(|s| {
        for (pointer, value) in [
            ("/spec/names/plural", json!("Widgets")),
            ("/spec/names/kind", json!("widget_kind")),
            ("/spec/names/kind", json!("")),
            ("/spec/names/listKind", json!("Widget")),
            ("/spec/names/listKind", json!("1List")),
            ("/spec/names/singular", json!("wid.get")),
            ("/spec/names/shortNames", json!(["ok", "No"])),
            ("/spec/names/categories", json!(["-x"])),
            ("/spec/group", json!("nodots")),
            ("/spec/group", json!("Upper.example.com")),
            ("/spec/group", json!("")),
            ("/spec/group", json!("widgets.k8s.io")),
            ("/spec/scope", json!("")),
            ("/spec/scope", json!("namespaced")),
            ("/spec/versions/0/name", json!("V1")),
            ("/spec/versions/0/name", json!("v1beta1")),
            ("/spec/versions/0/storage", json!(false)),
            ("/spec/versions/1/storage", json!(true)),
            ("/spec/versions/0/schema", json!(null)),
            ("/spec/preserveUnknownFields", json!(true)),
            ("/spec/conversion", json!({"strategy": "Magic"})),
            ("/spec/conversion", json!({"strategy": "Webhook"})),
            (
                "/spec/conversion",
                json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}),
            ),
            (
                "/spec/conversion",
                json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v2"],
                "clientConfig": {"url": "http://a"}}}),
            ),
            (
                "/spec/conversion",
                json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1", "v1"],
                "clientConfig": {"service": {"name": "", "namespace": "x"}}}}),
            ),
            (
                "/spec/conversion",
                json!({"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"],
                "clientConfig": {"url": "https://a"}}}),
            ),
        ] {
            let mut made = definition();
            made["spec"]["conversion"] = json!({"strategy": "None"});
            *made.pointer_mut(pointer).expect("a member of the definition") = value;
            post(s, &made);
        }
    });
}

#[test]
fn api_34_columns_subresources_and_selectable_fields_are_checked() {
    judge(|s| {
        let scale = |spec: &str, status: &str, selector: &str| json!({"scale": {"specReplicasPath": spec, "statusReplicasPath": status, "labelSelectorPath": selector}});
        each_version(
            s,
            &[
                ("additionalPrinterColumns", json!([{"name": "", "type": "string", "jsonPath": ".spec.a"}])),
                ("additionalPrinterColumns", json!([{"name": "a", "type": "text", "jsonPath": ".spec.a"}])),
                (
                    "additionalPrinterColumns",
                    json!([{"name": "a", "type": "string", "format": "x", "jsonPath": ".spec.a"}]),
                ),
                ("additionalPrinterColumns", json!([{"name": "a", "type": "string", "jsonPath": "spec.a"}])),
                ("additionalPrinterColumns", json!([{"name": "a", "type": "", "jsonPath": ""}])),
                ("subresources", scale("spec.n", ".status.n", "")),
                ("subresources", scale(".status.n", ".status.n", "")),
                ("subresources", scale(".spec.n", ".spec.n", "")),
                ("subresources", scale(".spec.n", ".status.n", ".metadata.labels")),
                ("subresources", scale("", "", "x")),
                ("selectableFields", json!([{"jsonPath": ".spec.none"}])),
                ("deprecationWarning", json!("")),
            ],
        );
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "a": {"type": "string"}, "b": {"type": "number"}, "c": {"type": "object", "properties": {"d": {"type": "integer"}}},
            "l": {"type": "array", "items": {"type": "string"}}, "m": {"type": "object", "additionalProperties": {"type": "string"}}}}}}});
        for fields in [
            json!([{"jsonPath": ".spec.b"}]),
            json!([{"jsonPath": ".spec.c"}]),
            json!([{"jsonPath": ".spec.l[0]"}]),
            json!([{"jsonPath": "spec.a"}]),
            json!([{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.a"}]),
            json!([{"jsonPath": ".metadata.name"}]),
            json!([{"jsonPath": ""}]),
            json!([{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.c.d"}]),
            json!([{"jsonPath": ".spec."}]),
        ] {
            let mut made = definition();
            made["spec"]["versions"] = json!([{"name": "v1", "served": true, "storage": true, "schema": schema, "selectableFields": fields}]);
            post(s, &made);
        }
    });
}

#[test]
fn e10_roots_and_metadata_of_schemas_are_checked() {
    judge(|s| {
        for root in [
            json!({}),
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "object", "nullable": true}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "additionalProperties": false}),
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}}}),
            json!({"type": "object", "properties": {"metadata": {"type": "string"}}}),
            json!({"type": "object", "properties": {"kind": {"type": "integer"}, "apiVersion": {"type": "string"}}}),
            json!({"type": "object", "properties": {"metadata": {"type": "object", "default": {}}}}),
            json!({"type": "object", "properties": {"kind": {"type": "string", "default": "x"}}}),
            json!({"type": "object", "properties": {"metadata": {"type": "object", "description": "x"}}}),
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"a": {"type": "string"}}}),
        ] {
            post(s, &with_schema(&root));
        }
        for root in [
            json!({"type": "string"}),
            json!({"type": "object", "oneOf": [{"required": ["a"]}], "properties": {"a": {"type": "string"}}}),
        ] {
            let mut made = with_schema(&root);
            made["spec"]["versions"][0]["subresources"] = json!({"status": {}});
            post(s, &made);
        }
    });
}

#[test]
fn e10_schemas_must_be_structural() {
    judge(|s| {
        each_field(
            s,
            &[
                json!({}),
                json!({"type": "thing"}),
                json!({"type": "null"}),
                json!({"type": "array"}),
                json!({"type": "array", "items": {}}),
                json!({"type": "array", "items": [{"type": "string"}]}),
                json!({"type": "object", "additionalProperties": {}}),
                json!({"type": "object", "additionalProperties": {"type": "string"}, "properties": {"a": {"type": "string"}}}),
                json!({"type": "string", "anyOf": [{"type": "string"}]}),
                json!({"type": "string", "oneOf": [{"description": "x", "title": "y", "nullable": true}]}),
                json!({"type": "string", "allOf": [{"default": "x"}]}),
                json!({"type": "object", "not": {"additionalProperties": {"type": "string"}}}),
                json!({"type": "object", "allOf": [{"properties": {"a": {"minLength": 1}}}]}),
                json!({"type": "object", "allOf": [{"properties": {"metadata": {}}}], "properties": {"metadata": {"type": "object"}}}),
                json!({"type": "array", "items": {"type": "string"}, "anyOf": [{"items": {"type": "string"}}]}),
                json!({"type": "string", "anyOf": [{"items": {"minLength": 1}}]}),
                json!({"type": "object", "oneOf": [{"x-kubernetes-preserve-unknown-fields": true}]}),
                json!({"type": "object", "oneOf": [{"x-kubernetes-validations": [{"rule": "true"}]}]}),
                json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
                json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "x"}]}),
                json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "string"}, {"type": "integer"}]}),
                json!({"x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true}),
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
                json!({"type": "object", "x-kubernetes-embedded-resource": true}),
                json!({"type": "string", "x-kubernetes-embedded-resource": true}),
                json!({"x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
                json!({"type": "string", "pattern": "["}),
                json!({"type": "string", "pattern": "(?=a)"}),
                json!({"type": "string", "pattern": "a)"}),
                json!({"type": "string", "pattern": "*"}),
                json!({"type": "string", "pattern": "(a"}),
                json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
                json!({"type": "string", "$ref": "#/x"}),
                json!({"type": "string", "id": "x"}),
                json!({"type": "object", "patternProperties": {"a": {"type": "string"}}}),
                json!({"type": "object", "definitions": {"a": {"type": "string"}}}),
                json!({"type": "object", "dependencies": {"a": ["b"]}}),
                json!({"type": "array", "items": {"type": "string"}, "additionalItems": true}),
            ],
        );
    });
}

#[test]
fn e10_lists_maps_and_their_keys_are_checked() {
    judge(|s| {
        let items = json!({"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "o": {"type": "object"}, "v": {"type": "integer"},
            "n": {"type": "string", "nullable": true, "default": "x"}}});
        let map = |keys: Value| json!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys});
        each_field(
            s,
            &[
                map(json!(["k"])),
                map(json!([])),
                map(json!(["none"])),
                map(json!(["v"])),
                map(json!(["k", "k"])),
                map(json!(["o"])),
                map(json!(["n"])),
                json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
                json!({"type": "array", "items": items, "x-kubernetes-list-map-keys": ["k"]}),
                json!({"type": "array", "items": items, "x-kubernetes-list-type": "set", "x-kubernetes-list-map-keys": ["k"]}),
                json!({"type": "array", "items": items, "x-kubernetes-list-type": "bag"}),
                json!({"type": "object", "x-kubernetes-list-type": "set"}),
                json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}),
                json!({"type": "array", "items": {"type": "object", "x-kubernetes-map-type": "atomic"}, "x-kubernetes-list-type": "set"}),
                json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}, "x-kubernetes-list-type": "set"}),
                json!({"type": "array", "items": {"type": "string", "nullable": true}, "x-kubernetes-list-type": "set"}),
                json!({"type": "string", "x-kubernetes-map-type": "atomic"}),
                json!({"type": "object", "x-kubernetes-map-type": "x"}),
            ],
        );
    });
}

#[test]
fn e10_defaults_must_be_valid() {
    judge(|s| {
        each_field(
            s,
            &[
                json!({"type": "string", "default": 1}),
                json!({"type": "integer", "default": "1"}),
                json!({"type": "integer", "minimum": 3, "default": 1}),
                json!({"type": "string", "enum": ["a", "b"], "default": "c"}),
                json!({"type": "string", "maxLength": 1, "default": "ab"}),
                json!({"type": "string", "pattern": "^a$", "default": "b"}),
                json!({"type": "string", "format": "date-time", "default": "x"}),
                json!({"type": "object", "default": {"x": 1}}),
                json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "default": {}}),
                json!({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}, "required": ["a"], "default": {}}),
                json!({"type": "array", "items": {"type": "string"}, "default": ["a", 1]}),
                json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "default": ["a", "a"]}),
                json!({"type": "string", "default": null}),
                json!({"type": "string", "nullable": true, "default": null}),
                json!({"type": "object", "additionalProperties": {"type": "string", "default": "x"}}),
                json!({"type": "string", "maxLength": 9, "default": "a", "x-kubernetes-validations": [{"rule": "self != 'a'"}]}),
                json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true, "default": {"a": 1}}),
            ],
        );
    });
}

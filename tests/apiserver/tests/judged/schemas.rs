//! Schemas of definitions: E10, one check at a time.
//!
//! They answer: what does each keyword of a schema do to an object, and with which text is it refused? Each object has
//! one fault, because a real server reports the faults of several members in random order.
use serde_json::{Value, json};

use crate::definitions::{define, widget, with_spec};
use crate::harness::{Request, Session, judge};

const WIDGETS: &str = "/apis/{group}/v1/namespaces/{ns}/widgets";

fn define_spec(s: &mut Session, spec: &Value) {
    define(s, &with_spec(spec));
}

fn post(s: &mut Session, spec: &Value) {
    s.send(Request::new("POST", format!("{WIDGETS}?dryRun=All&fieldValidation=Strict")).json(&widget(spec)));
}

#[test]
fn e10_scalars_have_types_bounds_and_formats() {
    judge(|s| {
        define_spec(
            s,
            &json!({"type": "object", "required": ["size"], "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 10, "format": "int32"},
                "big": {"type": "integer"},
                "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 4},
                "ratio": {"type": "number", "multipleOf": 0.5, "exclusiveMinimum": true, "minimum": 0},
                "on": {"type": "boolean"},
                "when": {"type": "string", "format": "date-time"},
                "id": {"type": "string", "format": "uuid"},
                "port": {"x-kubernetes-int-or-string": true},
            }}),
        );
        for spec in [
            json!({"size": 1}),
            json!({}),
            json!({"size": null}),
            json!({"size": 0}),
            json!({"size": 11}),
            json!({"size": "x"}),
            json!({"size": 1.5}),
            json!({"size": 3_000_000_000_u64}),
            json!({"size": 1, "big": 1.5}),
            json!({"size": 1, "color": "green"}),
            json!({"size": 1, "color": 5}),
            json!({"size": 1, "name": "A"}),
            json!({"size": 1, "name": "A1"}),
            json!({"size": 1, "name": "abcde"}),
            json!({"size": 1, "ratio": 0}),
            json!({"size": 1, "ratio": 0.3}),
            json!({"size": 1, "ratio": 1.5}),
            json!({"size": 1, "on": "x"}),
            json!({"size": 1, "when": "x"}),
            json!({"size": 1, "id": "x"}),
            json!({"size": 1, "port": true}),
            json!({"size": 1, "port": 1.5}),
            json!("x"),
        ] {
            post(s, &spec);
        }
    });
}

#[test]
fn e10_lists_and_maps_have_sizes_and_keys() {
    judge(|s| {
        define_spec(
            s,
            &json!({"type": "object", "properties": {
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}, "maxItems": 3, "minItems": 1},
                "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
                    "type": "object", "required": ["name"], "properties": {
                        "name": {"type": "string"}, "n": {"type": "integer", "default": 5}}}},
                "m": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2, "minProperties": 1},
            }}),
        );
        for spec in [
            json!({"tags": ["a", "a"]}),
            json!({"tags": ["a", "b", "c", "d"]}),
            json!({"tags": []}),
            json!({"tags": [1]}),
            json!({"tags": "x"}),
            json!({"ports": [{"name": "a"}, {"name": "b", "n": 1}]}),
            json!({"ports": [{"name": "a"}, {"name": "a"}]}),
            json!({"ports": [{"n": 1}]}),
            json!({"ports": [{"name": "a"}, null]}),
            json!({"ports": ["x"]}),
            json!({"tags": ["a", "a", "b", "a", "b"]}),
            json!({"m": {"a": "b"}}),
            json!({"m": {}}),
            json!({"m": {"a": 1, "b": 2, "c": 3}}),
        ] {
            post(s, &spec);
        }
    });
}

#[test]
fn e10_nulls_defaults_and_unknown_fields() {
    judge(|s| {
        define_spec(
            s,
            &json!({"type": "object", "properties": {
                "nul": {"type": "string", "nullable": true},
                "nuld": {"type": "string", "nullable": true, "default": "x"},
                "nnd": {"type": "string", "default": "y"},
                "nn": {"type": "string"},
                "any": {"x-kubernetes-preserve-unknown-fields": true},
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                    "in": {"type": "object", "properties": {"a": {"type": "string"}}}}},
                "emb": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
                "deep": {"type": "object", "default": {}, "properties": {
                    "x": {"type": "integer", "default": 7},
                    "y": {"type": "object", "properties": {"z": {"type": "string", "default": "zz"}}}}},
            }}),
        );
        for spec in [
            json!({"nul": null, "nuld": null, "nnd": null, "nn": null}),
            json!({"deep": {"y": {}}}),
            json!({"deep": null}),
            json!({"foo": 1, "bar": {"x": 1}}),
            json!({"any": {"x": 1}}),
            json!({"open": {"x": 1, "in": {"a": "b", "c": 1}}}),
            json!({"emb": {"x": 1}}),
            json!({"emb": {"apiVersion": "v1", "kind": "Foo", "x": 1, "metadata": {"name": "a", "x": 1}}}),
            json!({"emb": {"apiVersion": "v1", "kind": "Foo", "x": 1, "metadata": {"name": "a"}}}),
            json!({"emb": {"apiVersion": "", "kind": "Foo"}}),
            json!({"emb": {"apiVersion": "a/b/c", "kind": "Foo"}}),
            json!({"emb": {"apiVersion": "v1", "kind": ""}}),
            json!({"emb": {"apiVersion": "v1", "kind": "1_x"}}),
            json!({"emb": {"apiVersion": "v1", "kind": "Foo", "metadata": {"name": "A_b:c"}}}),
            json!({"emb": {"apiVersion": "v1", "kind": "Foo", "metadata": {"name": "a/b"}}}),
        ] {
            post(s, &spec);
        }
    });
}

#[test]
fn e10_schemas_are_combined() {
    judge(|s| {
        let both = json!({"a": {"type": "string"}, "b": {"type": "string"}});
        define_spec(
            s,
            &json!({"type": "object", "properties": {
                "one": {"type": "object", "properties": both, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
                "some": {"type": "object", "properties": both, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
                "no": {"type": "string", "not": {"enum": ["bad"]}},
                "all": {"type": "string", "allOf": [{"minLength": 3}, {"maxLength": 5}]},
            }}),
        );
        for spec in [
            json!({"one": {"a": "1"}}),
            json!({"one": {}}),
            json!({"one": {"a": "1", "b": "2"}}),
            json!({"some": {}}),
            json!({"some": {"a": "1", "b": "2"}}),
            json!({"no": "bad"}),
            json!({"all": "ab"}),
            json!({"all": "abcdef"}),
        ] {
            post(s, &spec);
        }
    });
}

#[test]
fn e10_rules_report_where_and_why_they_fail() {
    judge(|s| {
        define_spec(
            s,
            &json!({"type": "object",
            "x-kubernetes-validations": [
                {"rule": "!has(self.min) || !has(self.max) || self.min <= self.max",
                    "messageExpression": "self.min > 0 ? 'min above max' : 'odd'"},
                {"rule": "!has(self.forb) || self.forb != 'x'", "reason": "FieldValueForbidden", "fieldPath": ".forb", "message": "nope"},
                {"rule": "!has(self.dup) || self.dup != 'x'", "reason": "FieldValueDuplicate", "message": "dupp"},
                {"rule": "!has(self.req) || self.req != 'x'", "reason": "FieldValueRequired", "message": "reqq"},
            ],
            "properties": {
                "min": {"type": "integer"},
                "max": {"type": "integer", "maximum": 100, "x-kubernetes-validations": [{"rule": "self != 13"}]},
                "forb": {"type": "string"}, "dup": {"type": "string"}, "req": {"type": "string"},
                "err": {"type": "array", "maxItems": 5, "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": "self[3] == 1"}]},
                "strs": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 10,
                    "x-kubernetes-validations": [{"rule": "self.startsWith('a')", "message": "must start with a"}]}},
                "m": {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "string", "maxLength": 5,
                    "x-kubernetes-validations": [{"rule": "self != 'x'", "message": "not x"}]}},
                "in": {"type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self.matches('^[a-z]*$') && self.size() < 4"}]},
                "nums": {"type": "array", "maxItems": 5, "items": {"type": "integer"},
                    "x-kubernetes-validations": [{"rule": "self.isSorted() && self.sum() < 10 && self.all(n, n > 0)"}]},
                "when": {"type": "string", "format": "date-time", "x-kubernetes-validations": [{"rule": "self > timestamp('2020-01-01T00:00:00Z')", "message": "too old"}]},
            }}),
        );
        for spec in [
            json!({"min": 2, "max": 1}),
            json!({"max": 13}),
            json!({"max": 101}),
            json!({"max": "x"}),
            json!({"forb": "x"}),
            json!({"dup": "x"}),
            json!({"req": "x"}),
            json!({"err": [1]}),
            json!({"err": [1, 2, 3, 1]}),
            json!({"strs": ["a", "b"]}),
            json!({"m": {"k": "x"}}),
            json!({"max": 101, "min": 102}),
            json!({"in": "ab1"}),
            json!({"in": "abc"}),
            json!({"nums": [1, 2, 3]}),
            json!({"nums": [2, 1]}),
            json!({"nums": [1, 20]}),
            json!({"when": "2019-01-01T00:00:00Z"}),
            json!({"when": "2021-01-01T00:00:00Z"}),
        ] {
            post(s, &spec);
        }
    });
}

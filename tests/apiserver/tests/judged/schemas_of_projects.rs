//! Schemas of definitions, and their objects, as the definitions of large projects have them: E10.
//!
//! They answer: what becomes of fields below a wrong type, of nulls, numbers and formats, of the numbers of a scale, and of
//! long warnings? Each object has one fault, as in `schemas.rs`.
use serde_json::{Value, json};

use crate::definitions::{define, widget, with_spec};
use crate::harness::{Request, Session, judge};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/{group}/v1/namespaces/{ns}/widgets";
const WIDGET: &str = "/apis/{group}/v1/namespaces/{ns}/widgets/w";

fn define_fields(s: &mut Session, fields: &Value) {
    define(s, &with_spec(&json!({"type": "object", "properties": fields})));
}

/// A definition whose objects have a free spec and a status of this schema, and these subresources.
fn with_status(status: &Value, subresources: &Value) -> Value {
    let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut made = with_spec(&spec);
    let version = &mut made["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = status.clone();
    version["subresources"] = subresources.clone();
    made
}

fn post(s: &mut Session, spec: &Value) {
    s.send(Request::new("POST", format!("{WIDGETS}?dryRun=All")).json(&widget(spec)));
}

fn apply(s: &mut Session, spec: &Value) {
    let path = format!("{WIDGET}?dryRun=All&fieldManager=m&force=true");
    s.apply(path, &widget(spec));
}

/// A field whose number is written like this.
fn post_number(s: &mut Session, field: &str, number: &str) {
    let body = widget(&json!({field: "number"})).to_string().replace("\"number\"", number);
    s.send(Request::new("POST", format!("{WIDGETS}?dryRun=All")).body("application/json", body));
}

fn fields() -> Value {
    let known = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let mut open = known.clone();
    open["x-kubernetes-preserve-unknown-fields"] = json!(true);
    json!({"s": {"type": "string"}, "o": known, "l": {"type": "array", "items": known}, "open": open,
        "p": {"x-kubernetes-int-or-string": true}, "m": {"type": "object", "additionalProperties": {"type": "string"}},
        "kept": {"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": known},
        "deep": {"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": {"type": "array", "items": known}}})
}

#[test]
fn e10_fields_below_a_wrong_type_are_unknown() {
    judge(|s| {
        define_fields(s, &fields());
        for spec in [
            json!({"s": {"x": 1}}),
            json!({"s": [{"x": 1}]}),
            json!({"o": [{"a": 1, "x": {"y": 2}}]}),
            json!({"o": [[{"a": 1}]]}),
            json!({"l": {"a": 1, "x": 2}}),
            json!({"l": [[{"a": "1"}]]}),
            json!({"l": [5, {"a": "x", "z": 1}]}),
            json!({"p": {"x": 1}}),
            json!({"p": [{"x": 1}]}),
            json!({"open": [{"x": 1}]}),
            json!({"m": [{"x": 1}]}),
            json!({"m": {"k": {"x": 1}}}),
        ] {
            post(s, &spec);
        }
    });
}

#[test]
fn e10_a_list_that_keeps_unknown_fields_keeps_those_of_its_items() {
    judge(|s| {
        define_fields(s, &fields());
        for spec in
            [json!({"kept": [{"a": "1", "x": {"y": 1}}]}), json!({"deep": [[{"a": "1", "x": {"y": 1}}]]})]
        {
            post(s, &spec);
            apply(s, &spec);
        }
    });
}

#[test]
fn e10_an_applied_value_is_judged_with_its_nulls() {
    judge(|s| {
        define_fields(s, &fields());
        let all = [
            json!({"s": null}),
            json!({"p": null}),
            json!({"p": [1]}),
            json!({"p": {"x": 1}}),
            json!({"p": true}),
            json!({"o": {"a": null}}),
            json!({"l": null}),
            json!({"l": [null]}),
            json!({"l": [{"a": null}]}),
            json!({"m": {"k": null}}),
            json!({"open": {"a": null}}),
            json!({"s": [1]}),
        ];
        for spec in &all {
            apply(s, spec);
        }
        s.post(WIDGETS, &widget(&json!({"s": "a", "p": 1, "o": {"a": "x"}})));
        for spec in &all[..8] {
            apply(s, spec);
        }
    });
}

#[test]
fn e10_the_default_of_a_status_is_filled_at_a_creation() {
    judge(|s| {
        let phase = json!({"type": "object", "default": {}, "properties": {"phase": {"type": "string", "default": "New"}}});
        define(s, &with_status(&phase, &json!({"status": {}})));
        s.post(WIDGETS, &widget(&json!({"a": 1})));
        s.get(WIDGET);
        for status in [json!({"phase": "Old"}), json!(null)] {
            s.patch("merge", format!("{WIDGET}/status"), &json!({"status": status}));
        }
        let mut sent = widget(&json!({}));
        for phase in [json!("Old"), json!(5)] {
            sent["status"] = json!({"phase": phase});
            s.send(Request::new("POST", format!("{WIDGETS}?dryRun=All")).json(&sent));
        }
    });
}

#[test]
fn e10_a_merge_patch_leaves_no_nulls_in_maps_in_lists() {
    judge(|s| {
        define(s, &with_status(&json!({"type": "object"}), &json!({})));
        s.post(WIDGETS, &widget(&json!({"a": 1})));
        for spec in [
            json!({"n": {"b": 1, "c": null, "l": [{"x": null, "y": 1}, null, [{"z": null}]]}}),
            json!({"l": [{"x": null, "y": [null, {"k": null}]}]}),
            json!({"l": {"x": null, "y": 1}, "s": [{"q": null}]}),
        ] {
            s.patch("merge", WIDGET, &json!({"spec": spec}));
        }
    });
}

#[test]
fn e10_every_write_judges_the_numbers_and_the_selector_of_a_scale() {
    judge(|s| {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let scale = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector"});
        define(s, &with_status(&open, &json!({"status": {}, "scale": scale})));
        for wrong in
            [json!(-1), json!("a"), json!(1.5), json!(3_000_000_000_u64), json!(null), json!(true), json!({})]
        {
            post(s, &json!({"replicas": wrong}));
        }
        post_number(s, "replicas", "1.0");
        s.post(WIDGETS, &widget(&json!({"replicas": 1})));
        let status = format!("{WIDGET}/status");
        for wrong in [json!(-1), json!("a"), json!(3_000_000_000_u64)] {
            s.patch("merge", WIDGET, &json!({"spec": {"replicas": wrong}}));
            s.patch("merge", WIDGET, &json!({"status": {"replicas": wrong}}));
            s.patch("merge", &status, &json!({"status": {"replicas": wrong}}));
        }
        s.patch("merge", &status, &json!({"status": {"selector": 5}}));
        s.patch("merge", WIDGET, &json!({"spec": 5}));
        s.patch("merge", format!("{WIDGET}/scale"), &json!({"spec": {"replicas": -1}}));
    });
}

#[test]
fn e10_the_scale_of_a_kind_without_namespaces_names_none() {
    judge(|s| {
        let scale = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
        let mut made = with_status(&json!({"type": "object"}), &json!({"scale": scale}));
        made["spec"]["scope"] = json!("Cluster");
        s.prepare(Request::new("POST", DEFINITIONS).json(&made));
        let all = "/apis/{group}/v1/widgets";
        s.until(&Request::new("GET", all), |answer| answer.code() == 200);
        s.post(all, &widget(&json!({"replicas": 2})));
        s.get(format!("{all}/w/scale"));
    });
}

#[test]
fn e10_nulls_of_enums_and_formats_of_wrong_types() {
    judge(|s| {
        define_fields(
            s,
            &json!({
                "enum": {"type": "string", "nullable": true, "enum": ["a", "b"]},
                "size": {"type": "integer", "nullable": true, "enum": [1, 2]},
                "any": {"type": "string", "nullable": true, "anyOf": [{"minLength": 3}]},
                "byte": {"type": "string", "format": "byte"}, "date": {"type": "string", "format": "date"},
                "odd": {"type": "string", "format": "odd"}, "small": {"type": "integer", "format": "int32"},
                "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "on": {"type": "boolean", "format": "date"},
            }),
        );
        for spec in [
            json!({"enum": null}),
            json!({"size": null}),
            json!({"any": null}),
            json!({"byte": ""}),
            json!({"byte": "YQ"}),
            json!({"byte": "YQ=="}),
            json!({"date": ["x"]}),
            json!({"date": 5}),
            json!({"date": 1.5}),
            json!({"date": true}),
            json!({"odd": ["x"]}),
            json!({"small": "x"}),
            json!({"small": [1]}),
            json!({"small": true}),
            json!({"small": 1.5}),
            json!({"port": true}),
            json!({"port": 1.5}),
            json!({"port": [1]}),
            json!({"port": null}),
            json!({"on": "2020-01-01"}),
        ] {
            post(s, &spec);
        }
    });
}

#[test]
fn e10_large_floats_are_no_integers_and_factors_are_those_of_the_type() {
    judge(|s| {
        define_fields(
            s,
            &json!({"i": {"type": "integer"}, "i64": {"type": "integer", "format": "int64"}, "n": {"type": "number"},
                "half": {"type": "integer", "multipleOf": 0.5}, "odd": {"type": "integer", "multipleOf": 2.5},
                "more": {"type": "number", "multipleOf": 2.5}, "less": {"type": "number", "multipleOf": 0.01},
                "three": {"type": "integer", "multipleOf": 3}, "one": {"type": "integer", "enum": [1]},
                "p": {"x-kubernetes-int-or-string": true}}),
        );
        for (field, number) in [
            ("i", "1e17"),
            ("i", "1.0"),
            ("i", "1e15"),
            ("i", "9007199254740991"),
            ("i", "9007199254740993.0"),
            ("i", "1e30"),
            ("i", "18446744073709551615"),
            ("i64", "1e17"),
            ("n", "1e17"),
            ("n", "0.30000000000000004"),
            ("n", "7.2057594037927933e16"),
            ("n", "123456.78901234567"),
            ("n", "8.41e21"),
            ("p", "1e17"),
            ("p", "1.0"),
            ("one", "1.0"),
            ("half", "3"),
            ("half", "0"),
            ("half", "3.0"),
            ("odd", "4"),
            ("odd", "5"),
            ("more", "0"),
            ("more", "4"),
            ("more", "5"),
            ("more", "7.5"),
            ("less", "1"),
            ("less", "0.07"),
            ("less", "0.015"),
            ("three", "9223372036854775806"),
            ("three", "0"),
        ] {
            post_number(s, field, number);
        }
        s.post(WIDGETS, &widget(&json!({"i": 1, "n": 1.5})));
        for number in ["1", "1.0", "1.0", "1"] {
            let patch = json!({"spec": {"i": "number"}}).to_string().replace("\"number\"", number);
            s.send(Request::new("PATCH", WIDGET).body("application/merge-patch+json", patch));
        }
    });
}

#[test]
fn e10_an_object_without_a_name_is_not_judged_by_rules() {
    judge(|s| {
        let small = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self < 3", "message": "it is large"}]});
        define_fields(s, &json!({"i": small}));
        for metadata in [json!({}), json!({"name": "A"}), json!({"name": "a"})] {
            let mut sent = widget(&json!({"i": 5}));
            sent["metadata"] = metadata;
            s.post(WIDGETS, &sent);
        }
    });
}

#[test]
fn e10_long_warnings_are_cut_and_keys_of_owners_are_escaped() {
    judge(|s| {
        let keyed = json!({"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}});
        define_fields(
            s,
            &json!({"set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "map": {"type": "array", "items": keyed, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}}),
        );
        post(s, &json!({"set": ["a<b", "c>d", "e&f"], "map": [{"k": "<>&"}]}));
        for (count, length) in [(15, 200), (30, 200), (25, 400), (3, 2000), (200, 100)] {
            let name = |at: i32| format!("f{at:03}{}", "x".repeat(length));
            let fields: serde_json::Map<String, Value> = (0..count).map(|at| (name(at), json!(1))).collect();
            post(s, &fields.into());
        }
    });
}

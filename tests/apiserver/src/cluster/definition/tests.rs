//! Objects that replace others: what is checked again, and against which old value?
//!
//! They answer: which causes does an update get that a creation would not, or the other way round?
//! `tests/judged/versions_of_schemas.rs` and `rules_of_objects.rs` compare the same with a real server.
use serde_json::{Value, json};

use super::Definition;

fn definition(fields: &Value) -> Definition {
    Definition::new(&json!({"type": "object", "properties": fields})).unwrap()
}

/// The fields of the causes that an update gets.
fn refused(fields: &Value, new: &Value, old: &Value) -> Vec<String> {
    definition(fields).judge(new, Some(old), true).into_iter().map(|cause| cause.field).collect()
}

#[test]
fn combinations_check_what_did_not_change() {
    let numbers = json!({"a": {"type": "integer"}, "b": {"type": "integer"}});
    let (old, new) = (json!({"box": {"a": 1, "b": 1}}), json!({"box": {"a": 1, "b": 2}}));
    for (name, combined) in [
        ("allOf", json!([{"properties": {"a": {"minimum": 5}}}])),
        ("anyOf", json!([{"properties": {"a": {"minimum": 5}}}])),
        ("oneOf", json!([{"properties": {"a": {"minimum": 5}}}])),
        ("not", json!({"properties": {"a": {"maximum": 4}}})),
    ] {
        let schema = json!({"box": {"type": "object", "properties": numbers, name: combined}});
        assert!(!refused(&schema, &new, &old).is_empty(), "{name} of a box that changed");
        assert!(refused(&schema, &old, &old).is_empty(), "{name} of a box that did not change");
    }
}

#[test]
fn an_object_with_a_duplicate_may_have_others() {
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    let mut map = set.clone();
    map["x-kubernetes-list-type"] = json!("map");
    map["x-kubernetes-list-map-keys"] = json!(["k"]);
    map["items"] = json!({"type": "object"});
    let fields = json!({"one": set, "map": map, "named": {"type": "object", "additionalProperties": set}});
    let sound = json!({"one": ["a"]});
    let twice = json!({"one": ["a", "a"]});
    for (new, old, causes) in [
        (json!({"one": ["a", "b", "a", "a"]}), &sound, vec!["one[2]"]),
        (json!({"named": {"k": ["p", "p"]}}), &sound, vec!["named[k][1]"]),
        (json!({"map": [{"k": 1}, "x", "x"]}), &sound, vec!["map[1]", "map[2]", "map[1]"]),
        (json!({"one": ["b", "b"]}), &twice, vec![]),
        (json!({"named": {"k": ["p", "p"]}}), &twice, vec![]),
    ] {
        assert_eq!(refused(&fields, &new, old), causes, "{new} instead of {old}");
    }
}

#[test]
fn embedded_objects_are_checked_unless_the_status_is_written() {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true});
    let stored = json!({"one": {"apiVersion": "v1"}, "status": {"n": 1}});
    let fields = json!({"one": open, "status": {"type": "object", "properties": {"n": {"type": "integer"}}}});
    assert_eq!(refused(&fields, &stored, &stored), ["one.kind"]);
    let wrong = json!({"one": {"apiVersion": "v1"}, "status": {"n": "x"}});
    let causes = definition(&fields).judge_status(&wrong, Some(&stored));
    let told: Vec<_> = causes.iter().map(|cause| (&*cause.field, &*cause.message)).collect();
    let words = r#"Invalid value: "string": n in body must be of type integer: "string""#;
    assert_eq!(told, [("status.n", words)]);
    assert!(definition(&fields).judge_status(&stored, Some(&stored)).is_empty());
}

#[cfg(feature = "cel")]
#[test]
fn an_old_null_is_no_old_value() {
    let fixed = json!({"type": "string", "nullable": true, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]});
    let first = json!({"type": "string", "nullable": true,
        "x-kubernetes-validations": [{"rule": "!oldSelf.hasValue()", "optionalOldSelf": true}]});
    let fields = json!({"fixed": fixed, "first": first});
    let (null, some) = (json!({"fixed": null, "first": null}), json!({"fixed": "a", "first": "a"}));
    assert!(refused(&fields, &some, &null).is_empty());
    assert_eq!(refused(&fields, &json!({"fixed": "b", "first": "b"}), &some), ["first", "fixed"]);
}

#[cfg(feature = "cel")]
#[test]
fn a_whole_object_is_equal_if_its_metadata_is_but_for_its_version_and_owners() {
    let rules = json!([{"rule": "self == oldSelf"}]);
    let kept = Definition::new(&json!({"type": "object", "x-kubernetes-validations": rules})).unwrap();
    let old = json!({"metadata": {"name": "w", "resourceVersion": "1", "managedFields": []}});
    let same = json!({"metadata": {"name": "w"}});
    let labelled = json!({"metadata": {"name": "w", "labels": {"l": "1"}}});
    assert_eq!(kept.judge(&same, Some(&old), true).len(), 0, "it is the same");
    assert_eq!(kept.judge(&labelled, Some(&old), true).len(), 1, "it has a label");
}

#[test]
fn the_type_of_an_object_is_always_checked() {
    let stored = json!({"apiVersion": "v1", "kind": "Widget", "other": "Widget"});
    let other = json!({"type": "string", "enum": ["Other"]});
    assert_eq!(refused(&json!({"kind": other, "other": other}), &stored, &stored), ["kind"]);
    #[cfg(feature = "cel")]
    {
        let other = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == 'Other'"}]});
        assert_eq!(refused(&json!({"kind": other, "other": other}), &stored, &stored), ["kind"]);
    }
}

#[cfg(feature = "cel")]
#[test]
fn rules_below_names_that_rules_cannot_write_are_checked() {
    let small = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self < 3"}]});
    let fields = json!({"1a": small, "b$": {"type": "object", "properties": {"c": small}}});
    let causes = definition(&fields).judge(&json!({"1a": 5, "b$": {"c": 5}}), None, true);
    assert_eq!(causes.iter().map(|cause| &*cause.field).collect::<Vec<_>>(), ["1a", "b$.c"]);
}

#[test]
fn a_large_list_is_compared_with_the_old_one_by_its_keys() {
    // Compared one by one this would take minutes.
    let element = json!({"type": "object", "properties": {"k": {"type": "string", "maxLength": 3}}});
    let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": element});
    let old: Vec<Value> = (0..50_000).map(|name| json!({"k": format!("{name:06}")})).collect();
    let mut turned = old.clone();
    turned.reverse();
    let (old, turned) = (json!({"list": old}), json!({"list": turned}));
    assert!(refused(&json!({"list": list}), &turned, &old).is_empty(), "no name is checked again");
}

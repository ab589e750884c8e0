//! The algebra of field sets against a naive model, and the walkers on objects of real kinds.
//!
//! They answer: does each operation give the same set as operations on sets of whole paths, and are the fields of an
//! object those of a real server?
use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::compare::{self, compare};
use super::element::Element;
use super::set::FieldSet;
use super::shape::Place;
use super::{check, set};
use crate::cluster::schema::{Schema, load};

type Naive = BTreeSet<Vec<Element>>;

fn element() -> impl Strategy<Value = Element> {
    let texts =
        ["f:a", "f:b", "f:c.d", r#"k:{"name":"x"}"#, r#"k:{"port":80}"#, r#"v:"x""#, "v:1", "i:0", "f:\"q\\"];
    prop::sample::select(texts.to_vec()).prop_map(|text| Element::parse(text).unwrap().unwrap())
}

fn paths() -> impl Strategy<Value = Naive> {
    prop::collection::btree_set(prop::collection::vec(element(), 1..4), 0..12)
}

fn trie(paths: &Naive) -> FieldSet {
    let mut set = FieldSet::default();
    for path in paths {
        set.insert_path(path);
    }
    set
}

fn naive(set: &FieldSet) -> Naive {
    set.paths().into_iter().collect()
}

proptest! {
    #[test]
    fn a_set_holds_the_paths_put_into_it(paths in paths()) {
        let set = trie(&paths);
        prop_assert_eq!(&naive(&set), &paths);
        prop_assert!(paths.iter().all(|path| set.contains(path)));
        prop_assert_eq!(set.is_empty(), paths.is_empty());
    }

    #[test]
    fn fields_v1_reads_what_it_wrote(paths in paths()) {
        let set = trie(&paths);
        let mut text = String::new();
        set::encode(&set, &mut text);
        let value: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(set::decode(&value).unwrap(), set);
    }

    #[test]
    fn the_algebra_is_that_of_sets_of_paths(one in paths(), other in paths()) {
        let (ones, others) = (trie(&one), trie(&other));
        prop_assert_eq!(naive(&ones.clone().union(others.clone())), &one | &other);
        prop_assert_eq!(naive(&ones.intersection(&others)), &one & &other);
        prop_assert_eq!(naive(&ones.clone().difference(&others)), &one - &other);
        let below = |path: &Vec<Element>| (1..=path.len()).any(|end| other.contains(&path[..end]));
        let left: Naive = one.iter().filter(|path| !below(path)).cloned().collect();
        prop_assert_eq!(naive(&ones.recursive_difference(&others)), left);
    }

    #[test]
    fn equal_sets_are_equal_tries(one in paths(), other in paths()) {
        prop_assert_eq!(trie(&one) == trie(&other), one == other);
        // Also sets that were built in another way.
        let both: Naive = &one | &other;
        let thinned = trie(&both).difference(&trie(&other)).union(trie(&other));
        prop_assert_eq!(thinned, trie(&both));
    }
}

fn schema(group: &str, kind: &str) -> Schema {
    load::builtin(group, "v1", kind).unwrap()
}

fn text(set: &FieldSet) -> String {
    let mut text = String::new();
    set::encode(set, &mut text);
    text
}

#[test]
fn an_applied_pod_has_the_fields_of_its_schema() {
    let pod = json!({
        "metadata": {"labels": {"app": "x"}, "finalizers": ["a/b"]},
        "spec": {
            "containers": [{"name": "c", "args": ["x"], "ports": [{"containerPort": 80}], "securityContext": {}}],
            "nodeSelector": {"z": "1"},
        },
    });
    let set = compare::fields(Place::root(&schema("", "Pod")), &pod);
    assert_eq!(
        text(&set),
        concat!(
            r#"{"f:metadata":{"f:finalizers":{"v:\"a/b\"":{}},"f:labels":{"f:app":{}}},"#,
            r#""f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:args":{},"f:name":{},"#,
            r#""f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}},"#,
            r#""f:securityContext":{}}},"f:nodeSelector":{}}}"#
        )
    );
}

#[test]
fn a_comparison_shows_what_was_added_modified_and_removed() {
    let old = json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}});
    let new = json!({"metadata": {"labels": {"a": "2"}, "annotations": {"n": ""}},
        "spec": {"containers": [{"name": "d"}, {"name": "c", "image": "x"}]}});
    let found = compare(Place::root(&schema("", "Pod")), &old, &new);
    assert_eq!(
        text(&found.added),
        r#"{"f:metadata":{"f:annotations":{".":{},"f:n":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"d\"}":{".":{},"f:name":{}}}}}"#
    );
    assert_eq!(text(&found.modified), r#"{"f:metadata":{"f:labels":{"f:a":{}}}}"#);
    assert_eq!(text(&found.removed), r#"{"f:metadata":{"f:labels":{"f:b":{}}}}"#);
}

#[test]
fn an_applied_object_must_be_of_the_declared_types() {
    let pod = schema("", "Pod");
    let refuse = |value: Value| check::refuse(Place::root(&pod), &value);
    for (value, fault) in [
        (json!({"nope": 1}), ".nope: field not declared in schema"),
        (
            json!({"metadata": {"labels": {"a": 1}}}),
            ".metadata.labels.a: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (json!({"metadata": {"labels": [1]}}), ".metadata.labels: expected map, got &{[1]}"),
        (json!({"spec": {"priority": "x"}}), ".spec.priority: expected numeric (int or float), got string"),
        (json!({"spec": {"hostIPC": 1}}), ".spec.hostIPC: expected boolean, got &{1}"),
        (
            json!({"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}),
            ".spec.containers: duplicate entries for key [name=\"a\"]",
        ),
        (
            json!({"metadata": {"finalizers": [null]}}),
            ".metadata.finalizers: element 0: associative list without keys has an element that's an explicit null",
        ),
    ] {
        assert_eq!(refuse(value.clone()).as_deref(), Some(fault), "{value}");
    }
    assert_eq!(refuse(json!({"spec": {"containers": null, "hostIPC": true}})), None);
}

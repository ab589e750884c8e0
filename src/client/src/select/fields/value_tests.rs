//! Compares the values at a path with a naive reading of the object's JSON, for bodies of every shape and for
//! the bytes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube_core::DynamicObject;
use kube_core::metadata::PartialObjectMeta;
use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use crate::representation::{Encoded, MetadataOnly, Prune, Representation, Typed};
use crate::wire::{FieldPath, PathStep};

/// The values at a path, by a look into the JSON.
fn naive(value: &Value, path: &[PathStep]) -> Vec<String> {
    match (path.split_first(), value) {
        (None, Value::String(text)) => vec![text.clone()],
        (None, Value::Number(_) | Value::Bool(_)) => vec![value.to_string()],
        (Some((PathStep::Field(name), rest)), Value::Object(members)) => {
            members.get(&**name).map(|value| naive(value, rest)).unwrap_or_default()
        }
        (Some((PathStep::Elements, rest)), Value::Array(elements)) => {
            elements.iter().flat_map(|element| naive(element, rest)).collect()
        }
        _ => Vec::new(),
    }
}

fn path(text: &str) -> FieldPath {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn check(body: &impl Serialize, text: &str) -> Vec<String> {
    let (path, json) = (path(text), serde_json::to_value(body).unwrap());
    let expected = naive(&json, path.steps());
    assert_eq!(path.values_of(body).unwrap(), expected, "{text}");
    assert_eq!(Encoded::json(&json.to_string()).values_at(&path), expected, "{text} in {json}");
    expected
}

const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"n","resourceVersion":"7",
    "labels":{"app.kubernetes.io/name":"w\u0065b","x":""},"creationTimestamp":"2026-11-23T09:00:00Z","generation":3},
    "spec":{"nodeName":"node-a","hostNetwork":true,"priority":-7,"containers":[
        {"name":"one","image":"i\"1","ports":[{"containerPort":80},{"containerPort":443}]},
        {"name":"two","resources":{"limits":{"cpu":"2"}}}]},"status":{"phase":null}}"#;

#[test]
fn idx_34_values_are_found_in_typed_dynamic_and_metadata_bodies() {
    let (sent, prune) = (Encoded::json(POD), Prune::default());
    let typed = Typed::<Pod>::new().keep(&sent, &prune).unwrap();
    let dynamic: DynamicObject = prune.decode(POD).unwrap();
    for (text, expected) in [
        ("spec.nodeName", &["node-a"][..]),
        (".spec.hostNetwork", &["true"]),
        ("spec.priority", &["-7"]),
        ("spec.containers[*].image", &["i\"1"]),
        ("spec.containers[*].ports[*].containerPort", &["80", "443"]),
        ("spec.containers[*].resources.limits.cpu", &["2"]),
        ("metadata.labels['app.kubernetes.io/name']", &["web"]),
        ("metadata.labels.x", &[""]),
        ("metadata.creationTimestamp", &["2026-11-23T09:00:00Z"]),
        ("kind", &["Pod"]),
        ("status.phase", &[]),
        ("spec", &[]),
        ("spec.containers", &[]),
        ("spec.containers.image", &[]),
        ("spec.nodeName.x", &[]),
        ("spec.nodeName[*]", &[]),
        ("spec[*]", &[]),
        ("no.such.field", &[]),
    ] {
        assert_eq!(check(&typed, text), expected, "{text} of a type");
        assert_eq!(check(&dynamic, text), expected, "{text} of a tree");
        assert_eq!(sent.values_at(&path(text)), expected, "{text} of the bytes");
    }
    let metadata = MetadataOnly::<Pod>::new().keep(&sent, &prune).unwrap();
    let _: &PartialObjectMeta<Pod> = &metadata;
    assert_eq!(check(&metadata, "metadata.labels['app.kubernetes.io/name']"), ["web"]);
    assert_eq!(check(&metadata, "metadata.generation"), ["3"]);
}

#[test]
fn idx_34_every_kind_of_value_that_serde_knows_is_found_where_its_json_has_it() {
    #[derive(Serialize)]
    enum Choice {
        Unit,
        New(u8),
        Tuple(bool, char),
        Struct { x: f32 },
    }
    #[derive(Serialize)]
    struct All {
        choices: Vec<Choice>,
        one: Choice,
        tuple: Choice,
        new: Choice,
        pair: (u64, Option<i128>),
        floats: [f64; 5],
        numbers: BTreeMap<u16, i64>,
        flags: BTreeMap<bool, ()>,
    }
    let all = All {
        choices: vec![Choice::Unit, Choice::New(7), Choice::Tuple(true, 'é'), Choice::Struct { x: 0.5 }],
        one: Choice::Struct { x: 1.5 },
        tuple: Choice::Tuple(false, '"'),
        new: Choice::New(9),
        pair: (u64::MAX, Some(-1)),
        floats: [1.0, -0.0, 1e300, f64::NAN, 0.1],
        numbers: BTreeMap::from([(1, -1), (22, 2)]),
        flags: BTreeMap::from([(true, ())]),
    };
    for (text, expected) in [
        ("choices[*]", &["Unit"][..]),
        ("choices[*].New", &["7"]),
        ("choices[*].Tuple[*]", &["true", "é"]),
        ("choices[*].Struct.x", &["0.5"]),
        ("one.Struct.x", &["1.5"]),
        ("tuple.Tuple[*]", &["false", "\""]),
        ("new.New", &["9"]),
        ("pair[*]", &["18446744073709551615", "-1"]),
        ("floats[*]", &["1.0", "-0.0", "1e+300", "0.1"]),
        ("numbers.22", &["2"]),
        ("flags.true", &[]),
    ] {
        assert_eq!(check(&all, text), expected, "{text}");
    }
}

#[test]
fn a_scan_finds_escaped_names_and_numbers_as_a_parser_writes_them_and_never_panics() {
    let json = r#"{"a":{"\u0062":[1.0, 1e2, -0, 12345678901234567890123, "x\ty", true, null, {}, []]}}"#;
    let found = Encoded::json(json).values_at(&path("a.b[*]"));
    assert_eq!(found, naive(&serde_json::from_str(json).unwrap(), path("a.b[*]").steps()));
    for end in 0..json.len() {
        let cut = Encoded::json(&json[..end]).values_at(&path("a.b[*]"));
        assert!(found.starts_with(&cut), "{end}: {cut:?}");
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i16>().prop_map(|n| Value::from(f64::from(n) / 8.0)),
        r#"[a"\\\]\[é\n]{0,4}"#.prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(r#"[ab"é]"#, inner, 0..4).prop_map(|members| json!(members)),
        ]
    })
}

proptest! {
    #[test]
    fn idx_34_any_path_in_any_value_gives_what_a_look_into_the_json_gives(
        value in json_value(),
        steps in prop::collection::vec(prop::sample::select(vec!["['a']", "['b']", "['\"']", "['é']", "[*]"]), 1..5),
    ) {
        check(&value, &steps.concat());
    }
}

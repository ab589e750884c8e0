//! What is cut of an object, and what an encoded one tells of itself.

use std::collections::BTreeSet;

use super::*;
use k8s_openapi::api::core::v1::Pod;
use kube_core::DynamicObject;
use serde_json::Value;
use serde_json::json;

fn pruned(json: &[u8]) -> Result<String, String> {
    let prune = Prune::default().cut(["x"]);
    Encoded::json(json).pruned(&prune).map_err(|error| error.to_string())
}

#[test]
fn the_text_without_cut_fields_is_as_the_server_wrote_it() {
    let text = br#"{"b":1.50,"x":{"y":[2]}, "a":1e400}"#;
    assert_eq!(pruned(text).as_deref(), Ok(r#"{"b":1.50, "a":1e400}"#));
    assert_eq!(pruned(br#"{"b":1.50,"\u0078":2}"#).as_deref(), Ok(r#"{"b":1.50}"#), "a key with an escape");
}

#[test]
fn what_is_not_one_document_is_refused_also_in_what_is_cut() {
    for broken in [
        &br#"{"x":[tru],"a":1}"#[..],
        br#"{"x":1,"a":}"#,
        br#"{"x":1} {}"#,
        br#"{"a":1,"x":"#,
        b"{\"x\":\"\xff\"}",
    ] {
        assert!(pruned(broken).is_err(), "{}", String::from_utf8_lossy(broken));
    }
}

fn removed(mut value: Value, path: &[&str]) -> Value {
    match (&mut value, path) {
        (Value::Object(map), [last]) => {
            map.remove(*last);
        }
        (Value::Object(map), [first, rest @ ..]) => {
            if let Some(below) = map.remove(*first) {
                map.insert((*first).to_owned(), removed(below, rest));
            }
        }
        (Value::Array(items), path) => {
            for item in items.iter_mut() {
                *item = removed(item.take(), path);
            }
        }
        _ => {}
    }
    value
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "a", "labels": {"managedFields": "kept"}, "annotations": {"a.b/c": "x", "d": "y"},
            "managedFields": [{"manager": "m", "operation": "Update", "fieldsV1": {"f:metadata": {"\"": 1}}}],
        },
        "spec": {"containers": [
            {"name": "one", "env": [{"name": "A", "value": "1"}]},
            {"name": "two", "image": "i", "env": [{"name": "B", "value": "2"}]},
        ]},
        "status": {"phase": "Running"},
    })
}

#[test]
fn a_pruned_decode_equals_decoding_the_document_without_the_field() {
    let paths: [&[&str]; 6] = [
        &["metadata", "managedFields"],
        &["metadata", "annotations", "a.b/c"],
        &["spec", "containers", "env"],
        &["status"],
        &["metadata", "nothing", "there"],
        &["metadata", "name", "is a text"],
    ];
    for path in paths {
        let prune = Prune::nothing().cut(path.iter().copied());
        let without = removed(pod(), path);
        let text = pod().to_string();
        assert_eq!(prune.decode::<Value>(&text).unwrap(), without, "{path:?}");
        assert_eq!(prune.decode::<Pod>(&text).unwrap(), serde_json::from_value(without.clone()).unwrap());
        assert_eq!(prune.decode::<DynamicObject>(&text).unwrap(), serde_json::from_value(without).unwrap());
    }
}

#[test]
fn several_paths_are_cut_together_and_a_path_below_a_cut_field_changes_nothing() {
    let prune = Prune::default().cut(["spec", "containers"]).cut(["spec", "containers", "env"]).cut(["spec"]);
    let kept: Value = prune.decode(&pod().to_string()).unwrap();
    assert_eq!(kept, removed(removed(pod(), &["spec"]), &["metadata", "managedFields"]));
}

#[test]
fn invalid_json_is_refused_inside_a_cut_field_and_behind_the_document() {
    for broken in [r#"{"metadata":{"managedFields":[tru]}}"#, r#"{"metadata":{}} {}"#, r#"{"metadata":{"#] {
        assert!(Prune::default().decode::<Value>(broken).is_err(), "{broken}");
    }
}

#[test]
fn only_the_chosen_paths_are_kept_beside_the_metadata_in_every_representation() {
    let prune =
        Prune::only(["spec.containers[*].name", "spec.containers.image", "status", "metadata.name"]).unwrap();
    let mut chosen = removed(pod(), &["metadata", "managedFields"]);
    chosen["spec"]["containers"] = json!([{"name": "one"}, {"name": "two", "image": "i"}]);
    assert_eq!(prune.decode::<Value>(&pod().to_string()).unwrap(), chosen);
    let lazy = Lazy::<Pod>::new().keep(&Encoded::json(&pod().to_string()), &prune).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&lazy.text()).unwrap(), chosen);
    let host = Prune::only(["spec.host"]).unwrap();
    assert_eq!(
        host.decode::<Value>(r#"{"spec":{"host":{"a":1}},"data":2}"#).unwrap(),
        json!({"spec": {"host": {"a": 1}}})
    );
    assert!(Prune::only(["spec..host"]).is_err());
}

#[test]
fn a_choice_may_be_cut_further_and_equals_only_an_equal_choice() {
    let only = |paths: &[&str]| Prune::only(paths.iter().copied()).unwrap();
    let prune = only(&["spec"]).cut(["spec", "containers", "env"]).cut(["status"]);
    let kept: Value = prune.decode(&pod().to_string()).unwrap();
    let expected = removed(
        removed(removed(pod(), &["spec", "containers", "env"]), &["status"]),
        &["metadata", "managedFields"],
    );
    assert_eq!(kept, expected);
    assert_eq!(only(&["spec.a", "spec.b"]).paths(), only(&["spec.b", "spec.a"]).paths());
    let all = [Prune::nothing(), Prune::default(), only(&[]), only(&["spec"]), only(&["spec.a"]), prune];
    let distinct: BTreeSet<_> = all.iter().map(Prune::paths).collect();
    assert_eq!(distinct.len(), all.len());
}

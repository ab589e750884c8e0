//! Strategic merge patches of built-in objects, as tables: object, patch, result or refusal.
//!
//! They answer: do lists merge by key, do the directives direct, and are wrong patches refused with the real texts?
//! The real server's own answers are in `tests/judged`.
use serde_json::{Value, json};

use super::patch;
use crate::cluster::schema::load;

fn patched(kind: &str, mut object: Value, change: Value) -> Result<Value, String> {
    let group = if kind == "Deployment" { "apps" } else { "" };
    let schema = load::builtin(group, "v1", kind).unwrap();
    let change = change.as_object().unwrap().clone();
    patch(&schema, &mut object, change).map(|()| object).map_err(|error| error.to_string())
}

#[test]
fn api_25_a_list_merges_by_its_key_and_others_are_replaced() {
    let pod = json!({"spec": {"containers": [{"name": "a", "image": "x", "args": ["1"]}, {"name": "b"}]}});
    let change = json!({"spec": {"containers": [{"name": "a", "args": ["2"]}, {"name": "c"}]}});
    let expected = json!({"spec": {"containers": [{"name": "a", "image": "x", "args": ["2"]}, {"name": "b"}, {"name": "c"}]}});
    let found = patched("Pod", pod, change).unwrap();
    let names = |value: &Value| -> Vec<String> {
        let items = value.pointer("/spec/containers").and_then(Value::as_array).unwrap();
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&found), ["a", "c", "b"], "those of the patch in its order, the others around them");
    assert_eq!(found["spec"]["containers"][0], expected["spec"]["containers"][0]);
}

#[test]
fn api_25_directives_delete_replace_and_order() {
    let pod = || {
        json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["x/a", "x/b"]},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}]}})
    };
    for (change, at, expected) in [
        (
            json!({"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}),
            "/spec/containers",
            json!([{"name": "b"}]),
        ),
        (
            json!({"spec": {"containers": [{"$patch": "replace"}, {"name": "c"}]}}),
            "/spec/containers",
            json!([{"name": "c"}]),
        ),
        (
            json!({"metadata": {"labels": {"$patch": "replace", "b": "2"}}}),
            "/metadata/labels",
            json!({"b": "2"}),
        ),
        (json!({"metadata": {"labels": {"$patch": "delete"}}}), "/metadata/labels", json!({})),
        (
            json!({"metadata": {"labels": {"a": null, "b": null, "c": "3"}}}),
            "/metadata/labels",
            json!({"c": "3"}),
        ),
        (
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/a"], "finalizers": ["x/c"]}}),
            "/metadata/finalizers",
            json!(["x/c", "x/b"]),
        ),
        (
            json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}),
            "/spec/containers",
            json!([{"name": "b"}, {"name": "a"}]),
        ),
        (
            json!({"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
                "containers": [{"name": "c"}]}}),
            "/spec/containers",
            json!([{"name": "c"}, {"name": "a"}, {"name": "b"}]),
        ),
    ] {
        let found = patched("Pod", pod(), change.clone()).unwrap();
        assert_eq!(found.pointer(at), Some(&expected), "{change}");
    }
}

#[test]
fn api_25_retain_keys_drops_what_it_does_not_name() {
    let deployment =
        json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
    let change = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    let found = patched("Deployment", deployment.clone(), change).unwrap();
    assert_eq!(found["spec"]["strategy"], json!({"type": "Recreate"}));
    let wrong = json!({"spec": {"strategy": {"$retainKeys": ["rollingUpdate"], "type": "Recreate"}}});
    assert_eq!(patched("Deployment", deployment, wrong).unwrap_err(), "invalid patch format of retainKeys");
}

#[test]
fn api_25_a_patch_without_its_key_or_with_an_unknown_directive_is_refused() {
    let pod = json!({"spec": {"containers": [{"name": "a"}]}});
    for (change, why) in [
        (
            json!({"spec": {"containers": [{"image": "x"}]}}),
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (json!({"metadata": {"$patch": "bogus"}}), ""),
        (
            json!({"spec": {"$patch": "bogus", "x": 1}}),
            "unknown patch type: bogus in map: map[$patch:bogus x:1]",
        ),
        (
            json!({"spec": {"containers": [{"name": "a", "$patch": "merge"}]}}),
            "merging lists cannot yet be specified in the patch",
        ),
    ] {
        match patched("Pod", pod.clone(), change.clone()) {
            // For a missing member, a map that is a directive is not a value.
            Ok(object) => assert!(why.is_empty() && object.get("metadata").is_none(), "{change}"),
            Err(error) => assert_eq!(error, why),
        }
    }
}

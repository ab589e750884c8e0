//! Patches, apply and managed fields: behaviours 25, 30 and 41, E5.
//!
//! They answer: what do the languages of patches do to an object, and who owns its fields?
use serde_json::json;

use crate::harness::{Request, judge};
use crate::writes::deployment;

const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/{ns}/deployments";

#[test]
fn api_25_json_patches() {
    judge(|s| {
        s.post(MAPS, &json!({"metadata": {"name": "a"}, "data": {"k": "v"}}));
        for patch in [
            json!([{"op": "add", "path": "/data/l", "value": "w"}]),
            json!([{"op": "test", "path": "/data/k", "value": "other"}]),
            json!([{"op": "replace", "path": "/data/none", "value": "made"}]),
            json!([{"op": "remove", "path": "/data/never"}]),
            json!([{"op": "move", "from": "/data/l", "path": "/data/m"}, {"op": "copy", "from": "/data/k", "path": "/data/n"}]),
            json!([{"op": "jump", "path": "/data"}]),
            json!({"op": "add"}),
            json!([{"op": "replace", "path": "/metadata/name", "value": "b"}]),
            json!([{"op": "add", "path": "/data/number", "value": 1}]),
        ] {
            s.patch("json", format!("{MAPS}/a"), &patch);
        }
        s.send(Request::new("PATCH", format!("{MAPS}/a")).body("application/json-patch+json", "["));
        s.send(Request::new("PATCH", format!("{MAPS}/a")).body("application/merge-patch+json", "["));
        s.send(Request::new("PATCH", format!("{MAPS}/none")).body("application/json-patch+json", "[]"));
    });
}

#[test]
fn api_25_merge_patches() {
    judge(|s| {
        s.post(MAPS, &json!({"metadata": {"name": "a", "labels": {"a": "b", "c": "d"}}, "data": {"k": "v"}}));
        s.patch(
            "merge",
            format!("{MAPS}/a"),
            &json!({"metadata": {"labels": {"a": null, "e": "f"}}, "data": {"k": null, "l": "w"}}),
        );
        s.patch("merge", format!("{MAPS}/a"), &json!({"data": {"number": 1}}));
        s.patch("merge", format!("{MAPS}/a"), &json!([]));
        s.patch("merge", format!("{MAPS}/a"), &json!({"kind": "Secret"}));
    });
}

#[test]
fn api_25_strategic_merge_patches() {
    judge(|s| {
        s.post(DEPLOYMENTS, &deployment("a"));
        let pod = |spec: serde_json::Value| json!({"spec": {"template": {"spec": spec}}});
        for patch in [
            pod(json!({"containers": [{"name": "d", "image": "j"}]})),
            pod(json!({"containers": [{"name": "c", "image": "k", "env": [{"name": "A", "value": "1"}]}]})),
            pod(json!({"containers": [{"name": "c", "env": [{"name": "B", "value": "2"}]}]})),
            pod(json!({"containers": [{"name": "d", "$patch": "delete"}]})),
            pod(
                json!({"$setElementOrder/containers": [{"name": "e"}, {"name": "c"}], "containers": [{"name": "e", "image": "l"}]}),
            ),
            pod(json!({"containers": [{"$patch": "replace"}, {"name": "f", "image": "m"}]})),
            pod(json!({"containers": [{"image": "nameless"}]})),
            pod(json!({"$retainKeys": ["containers"], "containers": [{"name": "f", "image": "n"}]})),
            json!({"spec": {"$patch": "twist"}}),
            json!({"metadata": {"labels": {"$patch": "replace", "only": "this"}}}),
            json!({"metadata": {"finalizers": ["a.example.com/a"]}}),
            json!({"metadata": {"finalizers": ["a.example.com/b"]}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.example.com/a"]}}),
        ] {
            s.patch("strategic-merge", format!("{DEPLOYMENTS}/a"), &patch);
        }
    });
}

#[test]
fn e5_apply_creates_owns_and_conflicts() {
    judge(|s| {
        let path = |manager: &str| format!("{MAPS}/a?fieldManager={manager}");
        let map = |data: serde_json::Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
        s.apply(path("one"), &map(json!({"x": "1", "y": "1"})));
        s.apply(path("one"), &map(json!({"x": "1", "y": "1"})));
        s.apply(path("two"), &map(json!({"x": "2"})));
        s.apply(path("two") + "&force=true", &map(json!({"x": "2"})));
        s.apply(path("one"), &map(json!({"z": "1"})));
        s.patch("merge", format!("{MAPS}/a"), &json!({"data": {"z": "9"}}));
        s.apply(path("one"), &map(json!({"z": "1"})));
        s.get(format!("{MAPS}/a"));
        s.apply(format!("{MAPS}/a"), &map(json!({})));
        s.apply(
            path("one"),
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "nope": 1}}),
        );
        s.apply(path("one"), &json!({"metadata": {"name": "a"}}));
        s.apply(path("one"), &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}));
        let mut managed = map(json!({}));
        managed["metadata"]["managedFields"] = json!([{"manager": "x", "operation": "Apply"}]);
        s.apply(path("one"), &managed);
    });
}

#[test]
fn e5_apply_merges_lists_by_their_keys() {
    judge(|s| {
        let path = |manager: &str| format!("{DEPLOYMENTS}/a?fieldManager={manager}");
        s.apply(path("one"), &deployment("a"));
        let mut second = deployment("a");
        second["spec"]["template"]["spec"]["containers"] =
            json!([{"name": "d", "image": "j", "ports": [{"containerPort": 80}]}]);
        second["spec"].as_object_mut().unwrap().remove("replicas");
        s.apply(path("two"), &second);
        s.apply(path("one"), &deployment("a"));
        let status = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "status": {"replicas": 2}});
        s.apply(format!("{DEPLOYMENTS}/a/status?fieldManager=three"), &status);
        s.get(format!("{DEPLOYMENTS}/a"));
        let scaled = json!({"spec": {"replicas": 9}});
        s.patch("merge", format!("{DEPLOYMENTS}/a/scale?fieldManager=four"), &scaled);
        s.apply(path("one"), &deployment("a"));
    });
}

#[test]
fn api_30_updates_own_what_they_change() {
    judge(|s| {
        let made = s.post(
            format!("{MAPS}?fieldManager=one"),
            &json!({"metadata": {"name": "a"}, "data": {"x": "1"}}),
        );
        let mut next = made.json();
        next["data"] = json!({"x": "1", "y": "2"});
        s.put(format!("{MAPS}/a?fieldManager=two"), &next);
        s.patch(
            "merge",
            format!("{MAPS}/a?fieldManager=three"),
            &json!({"data": {"x": "3"}, "metadata": {"labels": {"l": "m"}}}),
        );
        s.patch("merge", format!("{MAPS}/a?fieldManager=three"), &json!({"data": {"x": null}}));
        s.patch("merge", format!("{MAPS}/a"), &json!({"metadata": {"managedFields": [{}]}}));
        s.patch("merge", format!("{MAPS}/a?fieldManager=four"), &json!({"data": {"q": "1"}}));
    });
}

#[test]
fn api_39_yaml_bodies_are_read_and_written() {
    judge(|s| {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: \"1\"\n  l: |\n    two\n    lines\n";
        s.send(Request::new("POST", MAPS).body("application/yaml", text));
        s.send(Request::new("GET", format!("{MAPS}/a")).header("Accept", "application/yaml"));
        s.send(Request::new("GET", format!("{MAPS}/none")).header("Accept", "application/yaml"));
        s.send(Request::new("GET", MAPS).header("Accept", "application/yaml"));
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  m: n\n";
        let apply = Request::new("PATCH", format!("{MAPS}/a?fieldManager=me"))
            .body("application/apply-patch+yaml", text);
        s.send(apply);
    });
}

#[test]
fn e20_texts_that_are_not_yaml() {
    judge(|s| {
        for broken in [
            "a: [1",
            "a: b: c",
            "x",
            "- a",
            "1",
            "{\"a\":",
            "a: 1\n b: 2",
            "a:\n\t- b",
            "a: \"x",
            "a: *x",
            "- a\nb: c",
            "a: 1\n- b",
            "%",
            "a: {b: c]",
            "a: |x",
            "a: `x`",
            "metadata:\n  labels: {a: b\n",
            "metadata:\n  name: 'a\n",
            "metadata:\n  name: a: b\n",
        ] {
            s.send(Request::new("POST", MAPS).body("application/yaml", broken));
        }
    });
}

#[test]
fn api_25_a_refused_patch_is_quoted_with_what_it_was_applied_to() {
    judge(|s| {
        let mut wanted = deployment("a");
        wanted["metadata"]["annotations"] = json!({"z": "<&>", "a": "\u{e4}\"\\"});
        wanted["spec"]["template"]["spec"]["containers"][0]["env"] = json!([{"value": "1", "name": "A"}]);
        wanted["spec"]["template"]["spec"]["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
        s.post(DEPLOYMENTS, &wanted);
        let strict = format!("{DEPLOYMENTS}/a?fieldValidation=Strict");
        let containers = "/spec/template/spec/containers";
        for patch in [
            json!([{"op": "add", "path": "/nope", "value": 1}]),
            json!([{"op": "add", "path": "/spec/nope", "value": {"b": 1, "a": {"c": 2}}}]),
            json!([{"op": "add", "path": "/metadata/nope", "value": 1}, {"op": "test", "path": "/spec/replicas", "value": 2}]),
            json!([{"op": "replace", "path": "/spec/replicas", "value": "two"}]),
            json!([{"op": "replace", "path": format!("{containers}/0/image"), "value": 1}]),
            json!([{"op": "add", "path": format!("{containers}/0/env/0/nope"), "value": 1}]),
            json!([{"op": "add", "path": format!("{containers}/-"), "value": {"name": "d", "image": 7}}]),
            json!([{"op": "remove", "path": "/metadata/annotations/z"}, {"op": "add", "path": "/spec/replicas", "value": true}]),
            json!([{"op": "copy", "from": "/metadata/name", "path": "/nope"}]),
        ] {
            s.patch("json", &strict, &patch);
        }
        for patch in [
            json!({"nope": 1}),
            json!({"spec": {"nope": {"b": 1, "a": {"c": 2}}}}),
            json!({"spec": {"replicas": "two"}}),
            json!({"metadata": {"labels": {"l": 1}}}),
            json!({"metadata": {"labels": null, "annotations": {"z": null}, "nope": true}}),
            json!({"spec": {"template": {"spec": {"containers": [{"image": 1, "name": "x"}]}}}}),
            json!({"spec": {"template": {"metadata": {"nope": 1}}}}),
            json!({"status": {"replicas": "x"}}),
            json!({"kind": "StatefulSet"}),
            json!({"kind": "Nothing"}),
            json!({"apiVersion": "v1"}),
            json!({"apiVersion": "v1", "kind": "ConfigMap"}),
            json!({"apiVersion": "apps/v9"}),
        ] {
            s.patch("merge", &strict, &patch);
        }
        s.post(MAPS, &json!({"metadata": {"name": "a"}, "binaryData": {"k": "dg=="}}));
        s.patch("merge", format!("{MAPS}/a"), &json!({"kind": "Secret"}));
        s.patch("merge", format!("{MAPS}/a"), &json!({"kind": "Secret", "data": {"k": "dg=="}}));
        s.patch("merge", format!("{MAPS}/a"), &json!({"binaryData": {"k": "%"}}));
    });
}

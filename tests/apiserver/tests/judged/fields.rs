//! Bodies as text: behaviour 28 (fieldValidation), and wrong types.
//!
//! They answer: what does a client get for unknown fields, for duplicate fields, and for values of another type?
use serde_json::json;

use crate::harness::{Request, judge};

const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";
const PODS: &str = "/api/v1/namespaces/{ns}/pods";

fn with(wish: &str) -> String {
    format!("?dryRun=All&fieldValidation={wish}")
}

#[test]
fn api_28_unknown_and_duplicate_fields_are_ignored_warned_about_or_refused() {
    judge(|s| {
        let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","foo":1,"name":"b"},
            "data":{"a":"b","a":"c"},"spec":{"x":1}}"#;
        for wish in ["Ignore", "Warn", "Strict", "Bogus", ""] {
            s.send(Request::new("POST", format!("{MAPS}{}", with(wish))).body("application/json", body));
        }
        s.prepare(Request::new("POST", MAPS).json(&json!({"metadata": {"name": "one"}})));
        let unknown = json!({"metadata": {"name": "one"}, "x": 1, "metadata2": {}});
        for wish in ["Ignore", "Warn", "Strict", "Nope"] {
            s.put(format!("{MAPS}/one{}", with(wish)), &unknown);
        }
    });
}

#[test]
fn api_28_a_strict_patch_of_unknown_fields_is_422() {
    judge(|s| {
        s.prepare(Request::new("POST", MAPS).json(&json!({"metadata": {"name": "one"}})));
        let merge = r#"{"metadata":{"foo":1},"x":1,"data":{"a":"b","a":"c"}}"#;
        let json = r#"[{"op":"add","path":"/x","value":1},{"op":"add","path":"/data","value":{"a":"c"},"foo":"bar"}]"#;
        for wish in ["Ignore", "Warn", "Strict"] {
            let path = format!("{MAPS}/one{}", with(wish));
            s.send(Request::new("PATCH", path.clone()).body("application/merge-patch+json", merge));
            s.send(Request::new("PATCH", path).body("application/json-patch+json", json));
        }
        s.patch("merge", format!("{MAPS}/one?dryRun=All"), &json!({"data": {"a": 1}}));
        s.patch("merge", format!("{MAPS}/one?dryRun=All"), &json!({"data": "x"}));
    });
}

#[test]
fn api_28_the_place_of_an_unknown_field_is_reported_with_its_items() {
    judge(|s| {
        let body = r#"{"metadata":{"name":"a","ownerReferences":[{"x":1}]},"spec":{"containers":[{"name":"x","image":"y","foo":1,
            "ports":[{"containerPort":1,"bar":{}},{"containerPort":2,"bar":{},"baz":1}]}],"zoo":1},"status":{"q":1}}"#;
        s.send(Request::new("POST", format!("{PODS}{}", with("Strict"))).body("application/json", body));
    });
}

#[test]
fn api_20_a_value_of_another_type_is_400_with_the_text_of_go() {
    judge(|s| {
        for body in [
            json!({"metadata": {"name": "a"}, "data": {"a": 1}}),
            json!({"metadata": {"name": "a"}, "data": "x"}),
            json!({"metadata": {"name": "a"}, "data": ["x"]}),
            json!({"metadata": {"name": 1}}),
            json!({"metadata": {"name": "a", "labels": {"a": true}}}),
            json!({"metadata": {"name": "a", "labels": []}}),
            json!({"metadata": "x"}),
            json!({"metadata": {"name": "a"}, "immutable": "yes"}),
            json!({"metadata": {"name": "a"}, "binaryData": {"a": "?"}}),
            json!({"metadata": {"name": "a", "generation": "x"}}),
            json!({"metadata": {"name": "a", "generation": 1.5}}),
            json!({"metadata": {"name": "a", "creationTimestamp": "x"}}),
            json!({"metadata": {"name": "a", "creationTimestamp": 5}}),
            json!({"metadata": {"name": "a", "finalizers": "x"}}),
        ] {
            s.post(format!("{MAPS}?dryRun=All"), &body);
        }
        let leases = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases?dryRun=All";
        for time in ["x", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05.123456789Z"]
        {
            s.post(leases, &json!({"metadata": {"name": "a"}, "spec": {"renewTime": time}}));
        }
    });
}

#[test]
fn api_20_a_wrong_type_deep_in_a_pod_is_reported_with_its_struct() {
    judge(|s| {
        let container = |extra: serde_json::Value| {
            let mut container = json!({"name": "x", "image": "y"});
            container
                .as_object_mut()
                .expect("an object")
                .extend(extra.as_object().expect("an object").clone());
            json!({"metadata": {"name": "a"}, "spec": {"containers": [container]}})
        };
        for extra in [
            json!({"ports": [{"containerPort": "1"}]}),
            json!({"ports": [{"containerPort": 1.5}]}),
            json!({"ports": [{"containerPort": 3_000_000_000_u64}]}),
            json!({"ports": {}}),
            json!({"resources": {"limits": {"cpu": true}}}),
            json!({"resources": {"limits": {"cpu": "1x"}}}),
            json!({"resources": {"limits": "x"}}),
            json!({"livenessProbe": {"httpGet": {"port": true}}}),
            json!({"env": [{"name": 5}]}),
            json!({"env": ["x"]}),
            json!({"args": [1]}),
        ] {
            s.post(format!("{PODS}?dryRun=All"), &container(extra));
        }
        for (name, value) in [
            ("hostNetwork", json!(1)),
            ("priority", json!("x")),
            ("activeDeadlineSeconds", json!("x")),
            ("nodeSelector", json!({"a": 1})),
            ("volumes", json!([{"name": "x", "secret": "x"}])),
            ("securityContext", json!("x")),
        ] {
            let mut body = container(json!({}));
            body["spec"][name] = value;
            s.post(format!("{PODS}?dryRun=All"), &body);
        }
    });
}

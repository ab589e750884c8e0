//! Creations and updates: behaviours 22 to 24 and 28, E2, E7 and E19.
//!
//! They answer: what does the server set, keep, restore and refuse when a whole object is written?
use serde_json::{Value, json};

use crate::harness::{Request, judge};

const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";
const PODS: &str = "/api/v1/namespaces/{ns}/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/{ns}/deployments";

pub(crate) fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

pub(crate) fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
        }},
    })
}

#[test]
fn api_22_a_created_object_has_what_the_server_sets() {
    judge(|s| {
        s.post(MAPS, &json!({"metadata": {"name": "a", "generation": 9, "uid": "mine", "selfLink": "/x"}}));
        s.post(PODS, &pod("a"));
        s.post(PODS, &pod("a"));
        s.post(DEPLOYMENTS, &deployment("a"));
        s.post(
            "/api/v1/namespaces/{ns}/secrets",
            &json!({"metadata": {"name": "a"}, "stringData": {"k": "v"}}),
        );
        s.post("/api/v1/namespaces/{ns}/serviceaccounts", &json!({"metadata": {"name": "a"}}));
        s.post("/api/v1/namespaces", &json!({"metadata": {"name": "{ns}-made"}}));
        s.post(
            "/api/v1/namespaces/{ns}/services",
            &json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}),
        );
        s.post("/api/v1/nodes", &json!({"metadata": {"name": "{ns}"}}));
    });
}

#[test]
fn api_22_names_are_checked_and_may_be_generated() {
    judge(|s| {
        s.post(MAPS, &json!({"metadata": {}}));
        s.post(MAPS, &json!({"metadata": {"generateName": "made-"}}));
        s.post(MAPS, &json!({"metadata": {"generateName": "x".repeat(70)}}));
        s.post(MAPS, &json!({"metadata": {"name": "Not_A_Name"}}));
        s.post(MAPS, &json!({"metadata": {"name": "a", "labels": {"-": "x y"}, "annotations": {"-": "x"}}}));
        s.post(MAPS, &json!({"metadata": {"name": "a", "namespace": "other"}}));
        s.post(MAPS, &json!({"metadata": {"name": "a", "resourceVersion": "5"}}));
        s.post(MAPS, &json!({"metadata": {"name": "b", "resourceVersion": "0"}}));
        s.post(MAPS, &json!({"metadata": {"name": "c", "finalizers": ["unqualified"]}}));
        let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "b"}]);
        s.post(MAPS, &json!({"metadata": {"name": "d", "ownerReferences": owner}}));
    });
}

#[test]
fn api_23_an_update_must_know_the_current_version() {
    judge(|s| {
        let mut map = s.post(MAPS, &json!({"metadata": {"name": "a"}})).json();
        map["data"] = json!({"k": "v"});
        s.put(format!("{MAPS}/a"), &map);
        map["data"] = json!({"k": "w"});
        s.put(format!("{MAPS}/a"), &map);
        s.put(format!("{MAPS}/a"), &json!({"metadata": {"name": "a"}, "data": {"k": "w"}}));
        s.put(format!("{MAPS}/a"), &json!({"metadata": {"name": "a", "uid": "other"}}));
        s.put(format!("{MAPS}/a"), &json!({"metadata": {"name": "b"}}));
        s.put(format!("{MAPS}/a"), &json!({"metadata": {}}));
        s.put(format!("{MAPS}/none"), &json!({"metadata": {"name": "none"}}));
        s.put(
            format!("{MAPS}/a"),
            &json!({"metadata": {"name": "a", "creationTimestamp": "2001-01-01T00:00:00Z"}}),
        );
        s.put(
            format!("{MAPS}/a"),
            &json!({"metadata": {"name": "a", "deletionTimestamp": "2001-01-01T00:00:00Z"}}),
        );
        s.patch("merge", format!("{MAPS}/a"), &json!({"metadata": {"uid": "other"}}));
        s.patch("merge", format!("{MAPS}/a"), &json!({"metadata": {"name": "other"}}));
        s.patch("merge", format!("{MAPS}/a"), &json!({"metadata": {"namespace": "other"}}));
        s.patch("merge", format!("{MAPS}/a"), &json!({"metadata": {"resourceVersion": "1"}}));
    });
}

#[test]
fn api_23_generation_counts_changes_of_the_desired_state() {
    judge(|s| {
        s.post(DEPLOYMENTS, &deployment("a"));
        s.patch("merge", format!("{DEPLOYMENTS}/a"), &json!({"metadata": {"annotations": {"a": "b"}}}));
        s.patch("merge", format!("{DEPLOYMENTS}/a"), &json!({"spec": {"replicas": 3}}));
        s.patch("merge", format!("{DEPLOYMENTS}/a/status"), &json!({"status": {"replicas": 3}}));
        s.patch("merge", format!("{DEPLOYMENTS}/a"), &json!({"status": {"replicas": 7}}));
        s.patch(
            "merge",
            format!("{DEPLOYMENTS}/a"),
            &json!({"spec": {"selector": {"matchLabels": {"app": "b"}}}}),
        );
    });
}

#[test]
fn api_24_a_status_has_an_endpoint_of_its_own() {
    judge(|s| {
        s.post(PODS, &pod("a"));
        let status = json!({"metadata": {"labels": {"l": "1"}, "annotations": {"a": "1"}}, "spec": {"nodeName": "n"},
            "status": {"phase": "Running", "podIP": "10.1.0.1"}});
        s.patch("merge", format!("{PODS}/a/status"), &status);
        s.get(format!("{PODS}/a/status"));
        s.post(DEPLOYMENTS, &deployment("a"));
        s.patch("merge", format!("{DEPLOYMENTS}/a/status"), &json!({"metadata": {"labels": {"l": "1"},
            "annotations": {"a": "1"}, "finalizers": ["a.b/c"]}, "status": {"readyReplicas": 1, "replicas": 1}}));
        s.get(format!("{DEPLOYMENTS}/a/scale"));
        s.patch("merge", format!("{DEPLOYMENTS}/a/scale"), &json!({"spec": {"replicas": 5}}));
        s.get(format!("{DEPLOYMENTS}/a"));
    });
}

#[test]
fn api_24_a_scale_is_read_and_written_in_every_way() {
    judge(|s| {
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let spec = json!({"replicas": 1, "serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": template});
        for (path, named) in [
            ("/apis/apps/v1/namespaces/{ns}/deployments", json!({"matchLabels": {"a": "b"}})),
            ("/apis/apps/v1/namespaces/{ns}/replicasets", json!({"matchLabels": {"a": "b"}})),
            ("/apis/apps/v1/namespaces/{ns}/statefulsets", json!({"matchLabels": {"a": "b"}})),
            ("/api/v1/namespaces/{ns}/replicationcontrollers", json!({"a": "b"})),
        ] {
            let mut spec = spec.clone();
            spec["selector"] = named;
            let body = json!({"metadata": {"name": "w"}, "spec": spec});
            s.prepare(Request::new("POST", format!("{path}?fieldValidation=Ignore")).json(&body));
            let scale = format!("{path}/w/scale");
            let read = s.get(&scale).json();
            s.patch("strategic-merge", &scale, &json!({"spec": {"replicas": 2}}));
            s.patch("merge", &scale, &json!({"spec": {"replicas": 3}}));
            s.patch("json", &scale, &json!([{"op": "replace", "path": "/spec/replicas", "value": 4}]));
            s.apply(
                format!("{scale}?fieldManager=me&force=true"),
                &json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 5}}),
            );
            s.put(&scale, &read);
            let mut free = read.clone();
            free["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
            s.put(format!("{scale}?dryRun=All"), &free);
            s.put(&scale, &free);
            s.patch("merge", &scale, &json!({"spec": {"replicas": -1}}));
            s.get(format!("{path}/w"));
            s.patch("strategic-merge", &scale, &json!({"spec": {"replicas": null}}));
            s.patch(
                "strategic-merge",
                &scale,
                &json!({"metadata": {"labels": {"x": "y"}}, "spec": {"replicas": 7}}),
            );
            s.patch("strategic-merge", &scale, &json!({"kind": "Deployment", "spec": {"replicas": 8}}));
            s.patch("merge", &scale, &json!({"kind": "Deployment"}));
            s.patch("merge", &scale, &json!({"metadata": {"name": "other"}}));
            s.patch("merge", &scale, &json!({"spec": {"replicas": "many"}}));
            s.put(format!("{path}/none/scale"), &free);
        }
    });
}

#[test]
fn api_28_a_dry_run_changes_nothing() {
    judge(|s| {
        s.post(format!("{MAPS}?dryRun=All"), &json!({"metadata": {"name": "a"}}));
        s.get(format!("{MAPS}/a"));
        s.post(MAPS, &json!({"metadata": {"name": "a"}}));
        s.patch("merge", format!("{MAPS}/a?dryRun=All"), &json!({"data": {"k": "v"}}));
        s.delete(format!("{MAPS}/a?dryRun=All"));
        s.get(format!("{MAPS}/a"));
        s.post(format!("{MAPS}?dryRun=Some"), &json!({"metadata": {"name": "b"}}));
        s.post(format!("{MAPS}?fieldManager={}", "m".repeat(129)), &json!({"metadata": {"name": "b"}}));
        s.post(format!("{MAPS}?fieldManager=me"), &json!({"metadata": {"name": "b"}, "data": {"k": "v"}}));
    });
}

#[test]
fn api_28_unknown_and_duplicate_fields_are_reported_or_refused() {
    judge(|s| {
        let body = r#"{"metadata": {"name": "a", "nope": 1}, "data": {"k": "v", "k": "w"}, "other": true}"#;
        for validation in ["Ignore", "Warn", "Strict", "Perhaps"] {
            let path = format!("{MAPS}?dryRun=All&fieldValidation={validation}");
            s.send(Request::new("POST", path).body("application/json", body));
        }
        s.send(Request::new("POST", MAPS).body("application/json", body));
        s.patch("merge", format!("{MAPS}/a?fieldValidation=Strict"), &json!({"metadata": {"nope": 1}}));
        s.patch("merge", format!("{MAPS}/a?fieldValidation=Warn"), &json!({"metadata": {"nope": 1}}));
    });
}

#[test]
fn e7_put_creates_leases_and_roles_and_nothing_else() {
    judge(|s| {
        let made = json!({"metadata": {"name": "a"}});
        s.put("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/a", &made);
        s.put("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles/a", &made);
        s.put(format!("{MAPS}/a"), &made);
        s.put(format!("{DEPLOYMENTS}/a"), &deployment("a"));
    });
}

#[test]
fn api_44_leases_have_times_of_six_digits() {
    judge(|s| {
        let leases = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases";
        let lease = |name: &str, time: &str| {
            json!({"metadata": {"name": name}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15,
                "acquireTime": time, "renewTime": time, "leaseTransitions": 0}})
        };
        s.post(leases, &lease("a", "2020-01-02T03:04:05.123456Z"));
        s.post(leases, &lease("b", "2020-01-02T03:04:05.123456+02:00"));
        s.post(leases, &lease("c", "2020-01-02T03:04:05Z"));
        s.post(leases, &lease("d", "2020-01-02T03:04:05.123Z"));
        s.put(format!("{leases}/a"), &lease("a", "2020-01-02T03:04:06.000000Z"));
    });
}

#[test]
fn e2_a_terminating_namespace_accepts_nothing_new() {
    judge(|s| {
        let held = json!({"metadata": {"name": "{ns}-going", "finalizers": ["judge.example.com/hold"]}});
        s.prepare(Request::new("POST", "/api/v1/namespaces").json(&held));
        let maps = "/api/v1/namespaces/{ns}-going/configmaps";
        s.prepare(Request::new("POST", maps).json(&json!({"metadata": {"name": "a"}})));
        s.delete("/api/v1/namespaces/{ns}-going");
        s.post(maps, &json!({"metadata": {"name": "a"}}));
        s.post(maps, &json!({"metadata": {"name": "b"}}));
    });
}

#[test]
fn e19_a_too_large_request_is_reported() {
    judge(|s| {
        let body = json!({"metadata": {"name": "a"}, "data": {"k": "v".repeat(3 * 1024 * 1024)}});
        s.post(MAPS, &body);
        s.post(MAPS, &json!({"metadata": {"name": "a"}, "data": {"k": "v".repeat(1024 * 1024 + 1)}}));
        s.post(MAPS, &json!({"metadata": {"name": "a", "annotations": {"k": "v".repeat(256 * 1024 + 1)}}}));
        s.get(format!("{MAPS}?labelSelector=a%20in%20({})", "x,".repeat(10_000) + "y"));
    });
}

#[test]
fn e20_causes_come_in_order() {
    judge(|s| {
        s.post(PODS, &json!({"metadata": {"name": "A_"}, "spec": {"containers": []}}));
        s.post(
            PODS,
            &json!({"metadata": {"name": "a"}, "spec": {"restartPolicy": "Sometimes",
            "containers": [{"name": "c"}, {"name": "c", "image": "i", "imagePullPolicy": "Now"}]}}),
        );
        s.post(
            MAPS,
            &json!({"metadata": {"name": "a"}, "data": {"b/ad": "x"}, "binaryData": {"b/ad": "eA=="}}),
        );
        s.post(MAPS, &json!({"metadata": {"name": "a"}}));
        s.patch("merge", format!("{MAPS}/a"), &json!({"metadata": {"labels": {"-": "x y"}}}));
        s.post(DEPLOYMENTS, &json!({"metadata": {"name": "a"}, "spec": {"replicas": -1}}));
        s.post("/api/v1/namespaces/{ns}/services", &json!({"metadata": {"name": "a"}, "spec": {}}));
    });
}

#[test]
fn api_22_daemon_sets_count_their_templates_in_an_annotation() {
    judge(|s| {
        let sets = "/apis/apps/v1/namespaces/{ns}/daemonsets";
        let container = json!([{"name": "c", "image": "i"}]);
        let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": container}});
        let spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template});
        s.post(sets, &json!({"metadata": {"name": "a"}, "spec": spec}));
        let annotations = json!({"own": "1", "deprecated.daemonset.template.generation": "5"});
        s.post(sets, &json!({"metadata": {"name": "b", "annotations": annotations}, "spec": spec}));
        s.patch("merge", format!("{sets}/a"), &json!({"metadata": {"labels": {"l": "1"}}}));
        s.patch(
            "merge",
            format!("{sets}/a"),
            &json!({"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}}),
        );
        s.patch(
            "merge",
            format!("{sets}/a"),
            &json!({"metadata": {"annotations": {"deprecated.daemonset.template.generation": "9"}}}),
        );
        s.patch("merge", format!("{sets}/a"), &json!({"metadata": {"annotations": null}}));
        s.patch("merge", format!("{sets}/a/status"), &json!({"status": {"numberReady": 1}}));
        for accept in ["PartialObjectMetadata", "Table"] {
            let accept = format!("application/json;as={accept};g=meta.k8s.io;v=v1");
            for query in ["", "?includeObject=Object"] {
                s.send(Request::new("GET", format!("{sets}/b{query}")).header("Accept", &accept));
            }
            let path = format!(
                "{sets}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
            );
            let mut watch = s.open(Request::new("GET", path).header("Accept", &accept));
            watch.events_until(s, "BOOKMARK");
        }
        s.get(sets);
    });
}

#[test]
fn api_22_jobs_are_labelled_like_their_pods() {
    judge(|s| {
        let jobs = "/apis/batch/v1/namespaces/{ns}/jobs";
        let container = json!([{"name": "c", "image": "i"}]);
        let pods = json!({"restartPolicy": "Never", "containers": container});
        let labelled = json!({"metadata": {"labels": {"app": "a"}}, "spec": pods});
        for (name, labels, template) in [
            ("neither", json!(null), json!({"spec": pods})),
            ("pods", json!(null), labelled.clone()),
            ("empty", json!({}), labelled.clone()),
            ("same", json!({"app": "a"}), labelled.clone()),
            ("own", json!({"app": "b"}), json!({"spec": pods})),
        ] {
            let metadata = json!({"name": name, "labels": labels});
            s.post(jobs, &json!({"metadata": metadata, "spec": {"template": template}}));
            s.get(format!("{jobs}/{name}"));
        }
    });
}

//! Table tests of the core's writes: create, update, patch, delete, namespaces, and the selectors beside them.

use super::*;

#[test]
fn api_22_a_generated_name_has_five_letters_more_and_at_most_63() {
    let mut bench = Bench::new("", "configmaps");
    let made = bench.create("default", json!({"metadata": {"generateName": "web-"}})).unwrap();
    assert!(made.name.starts_with("web-") && made.name.len() == 9, "{}", made.name);
    let long = bench.create("default", json!({"metadata": {"generateName": "a".repeat(80)}})).unwrap();
    assert_eq!(long.name.len(), 63);
}

#[test]
fn api_22_a_create_is_refused_for_the_reason_the_api_gives() {
    let mut bench = Bench::new("", "configmaps");
    for (namespace, body, code) in [
        ("default", json!({}), 422),
        ("default", json!({"metadata": {"name": "A"}}), 422),
        ("default", json!({"metadata": {"name": "a", "namespace": "other"}}), 400),
        ("default", json!({"metadata": {"name": "a", "resourceVersion": "7"}}), 500),
        ("default", json!({"kind": "Pod", "metadata": {"name": "a"}}), 400),
        ("default", json!({"metadata": {"name": "a", "labels": {"n": 1}}}), 400),
        ("default", json!([]), 400),
        ("nowhere", json!({"metadata": {"name": "a"}}), 404),
    ] {
        assert_eq!(bench.create(namespace, body.clone()).unwrap_err().code(), code, "{body}");
    }
    let zero = json!({"metadata": {"name": "a", "resourceVersion": "0"}});
    assert!(bench.create("default", zero).is_ok(), "0 counts as absent");
}

#[test]
fn api_23_generation_counts_changes_of_the_spec_only() {
    let mut bench = Bench::new("apps", "deployments");
    bench.create("default", json!({"metadata": {"name": "a"}, "spec": {"replicas": 1}})).unwrap();
    let generation = |object: &Object| object.decode()["metadata"]["generation"].clone();
    let labelled = bench.merge("a", json!({"metadata": {"labels": {"a": "b"}}})).unwrap();
    assert_eq!(generation(&labelled), 1);
    let scaled = bench.merge("a", json!({"spec": {"replicas": 2}})).unwrap();
    assert_eq!(generation(&scaled), 2);
    let stale = bench.merge("a", json!({"metadata": {"resourceVersion": "1001"}, "spec": {}})).unwrap_err();
    assert_eq!((stale.code(), stale.reason()), (409, "Conflict"));
}

#[test]
fn api_24_the_main_endpoint_does_not_change_the_status_nor_the_status_endpoint_the_rest() {
    let mut bench = Bench::new("apps", "deployments");
    bench.create("default", json!({"metadata": {"name": "a"}, "spec": {"replicas": 1}})).unwrap();
    let main = bench.merge("a", json!({"status": {"replicas": 9}})).unwrap();
    assert_eq!(main.decode()["status"], json!({}));
    let kind = Arc::clone(&bench.kind);
    let call = Call {
        kind: &kind,
        namespace: "default",
        name: "a",
        status: true,
        dry_run: false,
        validation: Validation::Ignore,
        now: 0,
        manager: "test",
        subresource: "status",
        user: None,
    };
    let patch = br#"{"spec": {"replicas": 7}, "status": {"replicas": 1}, "metadata": {"labels": {"no": "1"}, "annotations": {"yes": "1"}}}"#;
    let patched = bench.cluster.patch(&call, PatchKind::Merge, patch).unwrap().object.decode();
    assert_eq!((&patched["spec"]["replicas"], &patched["status"]["replicas"]), (&json!(1), &json!(1)));
    assert_eq!(
        (&patched["metadata"]["labels"], &patched["metadata"]["annotations"]["yes"]),
        (&Value::Null, &json!("1"))
    );
    assert_eq!(patched["metadata"]["generation"], 1);
}

#[test]
fn api_25_json_patches_fail_as_in_the_api() {
    let mut bench = Bench::new("", "configmaps");
    bench.create("default", json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).unwrap();
    for (patch, code) in [
        (json!([{"op": "test", "path": "/data/k", "value": "w"}]), 422),
        (json!([{"op": "remove", "path": "/data/none"}]), 422),
        (json!({"op": "remove"}), 400),
        (json!([{"op": "replace", "path": "/metadata/uid", "value": "other"}]), 422),
        (json!([{"op": "replace", "path": "/metadata/name", "value": "other"}]), 400),
    ] {
        let text = patch.to_string();
        let refused =
            bench.act("default", "a", |cluster, call| cluster.patch(call, PatchKind::Json, text.as_bytes()));
        assert_eq!(refused.unwrap_err().code(), code, "{patch}");
    }
    let text = br#"[{"op": "replace", "path": "/data/new", "value": "x"}]"#;
    let made = bench.act("default", "a", |cluster, call| cluster.patch(call, PatchKind::Json, text)).unwrap();
    assert_eq!(made.object.decode()["data"]["new"], "x", "replace of a missing member adds it");
}

#[test]
fn api_26_a_finalizer_keeps_an_object_until_it_is_removed() {
    let mut bench = Bench::new("", "configmaps");
    let made = bench.create("default", json!({"metadata": {"name": "a", "finalizers": ["x/y"]}})).unwrap();
    let watch = bench.open(&[("resourceVersion", &made.revision.to_string())]).watch;
    assert!(!bench.delete("a").unwrap());
    assert!(!bench.delete("a").unwrap(), "a second delete changes nothing");
    let more = bench.merge("a", json!({"metadata": {"finalizers": ["x/y", "x/z"]}})).unwrap_err();
    assert_eq!(more.code(), 422);
    bench.merge("a", json!({"metadata": {"finalizers": []}})).unwrap();
    assert_eq!(told(&bench.drain(watch)), [("MODIFIED", "a"), ("DELETED", "a")]);
    assert_eq!(names(&bench.list(&[]).unwrap()), [""; 0]);
}

#[test]
fn api_26_a_pod_on_a_node_waits_for_its_grace() {
    let mut bench = Bench::new("", "pods");
    let made =
        bench.create("default", json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n"}})).unwrap();
    let watch = bench.open(&[("resourceVersion", &made.revision.to_string())]).watch;
    assert!(!bench.delete("a").unwrap());
    let now = DeleteOptions { grace: Some(0), ..DeleteOptions::default() };
    assert!(bench.act("default", "a", |cluster, call| cluster.delete(call, &now)).unwrap().removed);
    assert_eq!(told(&bench.drain(watch)), [("MODIFIED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]);
}

#[test]
fn api_26_a_pod_without_a_node_is_marked_and_removed_at_once() {
    let mut bench = Bench::new("", "pods");
    let made = bench.named("a");
    let watch = bench.open(&[("resourceVersion", &made.revision.to_string())]).watch;
    assert!(bench.delete("a").unwrap());
    assert_eq!(told(&bench.drain(watch)), [("MODIFIED", "a"), ("DELETED", "a")]);
}

#[test]
fn api_26_preconditions_must_hold() {
    let mut bench = Bench::new("", "configmaps");
    bench.named("a");
    let other = DeleteOptions { uid: Some("other".into()), ..DeleteOptions::default() };
    let refused = bench.act("default", "a", |cluster, call| cluster.delete(call, &other)).unwrap_err();
    assert_eq!((refused.code(), refused.reason()), (409, "Conflict"));
}

#[test]
fn api_29_a_namespace_is_deleted_with_its_objects_and_waits_for_finalizers() {
    let mut bench = Bench::new("", "namespaces");
    let kind = bench.cluster.registry.find("", "v1", "configmaps").unwrap().clone();
    bench.act("", "", |cluster, call| cluster.create(call, json!({"metadata": {"name": "n"}}))).unwrap();
    let call = Call {
        kind: &kind,
        namespace: "n",
        name: "held",
        status: false,
        dry_run: false,
        validation: Validation::Ignore,
        now: 0,
        manager: "test",
        subresource: "",
        user: None,
    };
    for body in
        [json!({"metadata": {"name": "held", "finalizers": ["x/y"]}}), json!({"metadata": {"name": "free"}})]
    {
        bench.cluster.create(&call, body).unwrap();
    }
    let options = DeleteOptions::default();
    bench.act("", "n", |cluster, call| cluster.delete(call, &options)).unwrap();
    assert!(bench.cluster.get(&kind, "n", "free").is_err());
    let refused = bench.cluster.create(&call, json!({"metadata": {"name": "held"}})).unwrap_err();
    assert_eq!((refused.code(), refused.reason()), (403, "Forbidden"), "before the 409 of the name");
    bench.cluster.patch(&call, PatchKind::Merge, br#"{"metadata": {"finalizers": null}}"#).unwrap();
    assert!(!names(&bench.list(&[]).unwrap()).contains(&"n"));
    let kept = bench.act("", "default", |cluster, call| cluster.delete(call, &options)).unwrap_err();
    assert_eq!(kept.code(), 403);
}

#[test]
fn api_31_selectors_are_read_in_the_form_of_the_api() {
    let mut bench = Bench::new("", "pods");
    let labels =
        |app: &str| json!({"metadata": {"name": app, "labels": {"app": app}}, "spec": {"nodeName": app}});
    for app in ["a", "b"] {
        bench.create("default", labels(app)).unwrap();
    }
    bench.create("default", json!({"metadata": {"name": "none"}})).unwrap();
    for (labels, fields, expected) in [
        ("app=a", "", vec!["a"]),
        ("app==a", "", vec!["a"]),
        ("app!=a", "", vec!["b", "none"]),
        ("app in (a, b)", "", vec!["a", "b"]),
        ("app notin (a,c)", "", vec!["b", "none"]),
        ("app", "", vec!["a", "b"]),
        ("!app", "", vec!["none"]),
        ("app in (a,b),app!=a", "", vec!["b"]),
        ("", "metadata.name=b", vec!["b"]),
        ("", "metadata.namespace!=default", vec![]),
        ("", "spec.nodeName=a", vec!["a"]),
        ("", "spec.nodeName=", vec!["none"]),
        ("app", "status.phase=Pending,spec.nodeName!=a", vec!["b"]),
    ] {
        let page = bench.list(&[("labelSelector", labels), ("fieldSelector", fields)]).unwrap();
        assert_eq!(names(&page), expected, "{labels} {fields}");
    }
}

#[test]
fn api_31_nodes_do_not_have_the_field_namespace() {
    let bench = Bench::new("", "nodes");
    let text = SelectorText::parse("", "metadata.namespace=x").unwrap();
    let refused = text.of_kind(&bench.kind).unwrap_err();
    assert_eq!((refused.code(), refused.message()), (400, "field label not supported: metadata.namespace"));
}

//! A deletion of many objects, cut off after any number of them.
//!
//! They answer: does a start complete the deletions, wherever they were cut off, and keep objects with finalizers?
use super::*;
use crate::persistence::Committed;

/// A store from these changes, in which deletions were continued.
fn resumed(changes: &[Committed]) -> Cluster {
    let mut cluster = Cluster::new(SETTINGS, 0);
    cluster.recover(changes.iter().map(Committed::record));
    cluster.resume_deletions(0);
    cluster
}

fn is_there(cluster: &Cluster, group: &str, plural: &str, namespace: &str, name: &str) -> bool {
    let kind = cluster.registry.find(group, "v1", plural).cloned();
    kind.is_some_and(|kind| cluster.get(&kind, namespace, name).is_ok())
}

fn deleted(cluster: &mut Cluster, call: &Call<'_>) -> Vec<Vec<Committed>> {
    let before = cluster.as_changes();
    cluster.record_changes();
    cluster.take_committed();
    cluster.delete(call, &DeleteOptions::default()).unwrap();
    let changes = cluster.take_committed();
    let cut = |end: usize| before.iter().chain(&changes[..end]).cloned().collect();
    (1..=changes.len()).map(cut).collect()
}

#[test]
fn the_deletion_of_a_namespace_continues_wherever_it_was_cut_off() {
    let mut bench = Bench::new("", "pods");
    let namespaces = bench.cluster.registry.find("", "v1", "namespaces").cloned().unwrap();
    let home = Call::plain(&namespaces, "", "n", 0);
    bench.cluster.create(&home, json!({"metadata": {"name": "n"}})).unwrap();
    for name in ["a", "b", "c"] {
        let spec = json!({"containers": [{"name": "main", "image": "busybox"}]});
        bench.create("n", json!({"metadata": {"name": name}, "spec": spec})).unwrap();
    }
    let cuts = deleted(&mut bench.cluster, &home);
    assert!(cuts.len() > 6, "each pod is marked, then removed");
    for changes in cuts {
        let cluster = resumed(&changes);
        assert!(!is_there(&cluster, "", "namespaces", "", "n"), "after {} changes", changes.len());
        assert!(!is_there(&cluster, "", "pods", "n", "c"));
    }
}

#[test]
fn the_deletion_of_a_definition_continues_and_waits_for_objects_with_finalizers() {
    let mut cluster = Cluster::new(SETTINGS, 0);
    let definitions = cluster.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let definitions = definitions.cloned().unwrap();
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({"metadata": {"name": "widgets.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    let call = Call::plain(&definitions, "", "widgets.example.com", 0);
    cluster.create(&call, definition).unwrap();
    let widgets = cluster.registry.find("example.com", "v1", "widgets").unwrap().clone();
    let mut widget = |name: &str, finalizers: Value| {
        let metadata = json!({"name": name, "finalizers": finalizers});
        let body = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata});
        cluster.create(&Call::plain(&widgets, "default", name, 0), body).unwrap();
    };
    widget("a", json!([]));
    widget("b", json!([]));
    let whole = cluster.freeze();
    let cuts = deleted(&mut cluster, &call);
    assert!(cuts.len() > 2);
    for changes in cuts {
        let cluster = resumed(&changes);
        let group = "apiextensions.k8s.io";
        assert!(!is_there(&cluster, group, "customresourcedefinitions", "", "widgets.example.com"));
    }
    cluster.restore(&whole);
    let body = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "c", "finalizers": ["example.com/hold"]}});
    cluster.create(&Call::plain(&widgets, "default", "c", 0), body).unwrap();
    for changes in deleted(&mut cluster, &call) {
        let cluster = resumed(&changes);
        assert!(is_there(&cluster, "example.com", "widgets", "default", "c"));
        assert!(!is_there(&cluster, "example.com", "widgets", "default", "a"));
    }
}

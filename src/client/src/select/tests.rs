//! Tests of selections by label and owner: with and without an index they select what a server selects.

use informer_core::delta::WatchPart;
use informer_core::index::{AnyIndex, Index};
use informer_core::indexer::Store;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::snapshot::Snapshot;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use proptest::prelude::*;

use super::{FieldSelector, Fields, Select, by_label, by_owner, indexed};
use crate::selector::LabelSelector;

fn snapshot(pods: Vec<Pod>, indices: Vec<AnyIndex<Pod>>) -> Snapshot<Pod> {
    let mut store = Store::new(Snapshot::empty(), indices);
    let parts: Vec<_> = pods
        .into_iter()
        .enumerate()
        .map(|(at, pod)| {
            let version = ResourceVersion::from_number(at as u64 + 1).expect("not zero");
            let key = format!("shop/pod-{at:03}").parse().expect("a key");
            let meta = Meta::new(key, version, SourceId::default());
            (SourceId::default(), WatchPart::Applied(Object::new(meta, pod)))
        })
        .collect();
    store.apply_parts(parts).snapshot
}

fn labelled(labels: &[(String, String)]) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.labels = Some(labels.iter().cloned().collect());
    pod
}

fn names<'a>(objects: impl Iterator<Item = &'a Object<Pod>>) -> Vec<&'a str> {
    objects.map(|object| object.key().name()).collect()
}

#[test]
fn lst_02_the_empty_selector_selects_every_object_also_those_without_labels() {
    let snapshot = snapshot(vec![Pod::default(), labelled(&[("a".into(), "b".into())])], Vec::new());
    assert_eq!(names(snapshot.labelled(&LabelSelector::everything())), ["pod-000", "pod-001"]);
    let lacking: LabelSelector = "!a".parse().expect("a selector");
    assert_eq!(names(snapshot.labelled(&lacking)), ["pod-000"]);
}

#[test]
fn children_are_found_by_the_uid_of_each_of_their_owners() {
    let mut child = Pod::default();
    let owner = |uid: &str| OwnerReference { uid: uid.to_owned(), ..OwnerReference::default() };
    child.metadata.owner_references = Some(vec![owner("one"), owner("two")]);
    let snapshot = snapshot(vec![Pod::default(), child], vec![by_owner().into()]);
    for uid in ["one", "two"] {
        assert_eq!(names(by_owner().get(&snapshot, uid).expect("the index is there")), ["pod-001"]);
    }
    assert_eq!(by_owner::<Pod>().count(&snapshot, "three"), Ok(0));
}

#[test]
fn of_several_indices_the_one_that_gives_the_fewest_objects_is_visited() {
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let mut pods = vec![labelled(&[label("a", "x")]); 10];
    pods.extend(vec![labelled(&[label("a", "x"), label("b", "y")]); 2]);
    let snapshot = snapshot(pods, vec![by_label("a").into(), by_label("b").into()]);
    let visited =
        |selector: &str| indexed(&snapshot, &selector.parse().expect("a selector"), None).map(|of| of.len());
    assert_eq!(visited("a=x"), Some(12));
    assert_eq!(visited("a=x,b=y"), Some(2));
    assert_eq!(visited("a in (x,z),b!=y"), Some(12));
    assert_eq!((visited("a!=x"), visited("c=x")), (None, None), "every object is visited");
    assert_eq!(by_label("b").count(&snapshot, "y"), Ok(2));
}

#[test]
fn an_index_of_another_maker_is_not_used_whatever_its_name_is() {
    let pods = vec![labelled(&[("a".into(), "x".into())])];
    let snapshot = snapshot(pods, vec![Index::new("label:a", |_: &Object<Pod>| ["y".to_owned()]).into()]);
    assert_eq!(names(snapshot.labelled(&"a=x".parse().expect("a selector"))), ["pod-000"]);
}

/// A pod in one of two namespaces, on a node, with a label.
fn placed(namespace: &str, node: &str, app: &str) -> Pod {
    let mut pod = labelled(&[("app".to_owned(), app.to_owned())]);
    pod.metadata.namespace = Some(namespace.to_owned());
    pod.spec.get_or_insert_default().node_name = Some(node.to_owned()).filter(|node| !node.is_empty());
    pod
}

/// These pods, each in its own namespace and named after its place.
fn placed_snapshot(pods: &[Pod], indices: Vec<AnyIndex<Pod>>) -> Snapshot<Pod> {
    let objects = pods.iter().enumerate().map(|(at, pod)| {
        let version = ResourceVersion::from_number(at as u64 + 1).expect("not zero");
        let namespace = pod.metadata.namespace.clone().expect("it has one");
        let meta =
            Meta::new(ObjectKey::namespaced(namespace, format!("pod-{at:03}")), version, SourceId::default());
        Object::new(meta, pod.clone())
    });
    Snapshot::of(objects, indices)
}

fn fields() -> Fields<Pod> {
    Fields::new().field("spec.nodeName", |pod: &Pod| pod.spec.as_ref()?.node_name.as_deref())
}

fn at_paths() -> Fields<Pod> {
    Fields::new().path(".spec.nodeName").expect("a path")
}

#[test]
fn of_a_field_at_a_path_the_index_by_that_path_is_visited_unless_the_field_is_not_to_be_set() {
    let pods = [placed("a", "", "x"), placed("a", "n", "x"), placed("b", "n", "y"), placed("b", "m", "y")];
    let by_path = at_paths().index("spec.nodeName").expect("it is known");
    assert_eq!(&**by_path.name(), "field:spec.nodeName");
    let snapshot = placed_snapshot(&pods, vec![by_path.into(), by_label("app").into()]);
    let visited = |labels: &str, fields: &str| {
        let fields = at_paths().select(fields).expect("a selector");
        indexed(&snapshot, &labels.parse().expect("a selector"), Some(&fields)).map(|found| found.len())
    };
    assert_eq!(visited("", "spec.nodeName=n"), Some(2));
    assert_eq!(visited("app=y", "spec.nodeName=m"), Some(1));
    assert_eq!((visited("", "spec.nodeName="), visited("", "spec.nodeName!=n")), (None, None));
}

#[test]
fn a_path_of_a_field_has_one_value_and_a_number_or_a_boolean_has_its_text() {
    let error =
        Fields::<Pod>::new().path("spec.containers[*].image").expect_err("several values").to_string();
    assert!(error.ends_with("at character 16: a field selector needs one value for each object"), "{error}");
    let mut pod = placed("a", "n", "x");
    let spec = pod.spec.get_or_insert_default();
    (spec.host_network, spec.priority) = (Some(true), Some(3));
    let snapshot = placed_snapshot(&[pod], Vec::new());
    let fields =
        Fields::<Pod>::new().path("spec.hostNetwork").and_then(|fields| fields.path("spec.priority"));
    let fields = fields.expect("two paths");
    for (text, count) in [("spec.hostNetwork=true,spec.priority=3", 1), ("spec.priority!=3", 0)] {
        let (everything, selector) = (LabelSelector::everything(), fields.select(text).expect("a selector"));
        assert_eq!(snapshot.selected(&everything, &selector).count(), count, "{text}");
    }
}

#[test]
fn a_field_that_nobody_has_named_is_an_error_with_those_that_are_known() {
    let error = fields().select("spec.nodename=a").expect_err("it is not known").to_string();
    assert_eq!(
        error,
        "field \"spec.nodename\" is not known here; known are spec.nodeName, metadata.name, metadata.namespace"
    );
    assert!(fields().select("spec.nodeName").is_err() && fields().index("status.phase").is_err());
    assert!(fields().select("").is_ok_and(|everything| format!("{everything:?}") == "[]"));
}

#[test]
fn a_field_that_is_not_set_has_the_empty_value_and_name_and_namespace_are_those_of_the_key() {
    let pods = [placed("a", "", "x"), placed("a", "n", "x"), placed("b", "n", "x")];
    let (snapshot, everything) = (placed_snapshot(&pods, Vec::new()), LabelSelector::everything());
    let selected = |text: &str| {
        let fields = fields().select(text).expect("a selector");
        names(snapshot.selected(&everything, &fields)).join(" ")
    };
    assert_eq!(selected("spec.nodeName="), "pod-000");
    assert_eq!(selected("spec.nodeName!="), "pod-001 pod-002");
    assert_eq!(selected("metadata.namespace=a,spec.nodeName==n"), "pod-001");
    assert_eq!(selected("metadata.name=pod-002"), "pod-002");
    assert_eq!(selected("metadata.namespace="), "");
    let all = FieldSelector::everything();
    assert_eq!(snapshot.selected(&everything, &all).count(), 3);
}

proptest! {
    #[test]
    fn no_index_and_no_named_namespace_changes_what_labels_and_fields_select(
        pods in proptest::collection::vec(("[ab]", "(n|m|)", "[xy]"), 0..30),
        labels in proptest::sample::select(vec!["", "app=x", "app!=x", "app in (x,y)"]),
        texts in proptest::sample::subsequence(
            vec!["metadata.namespace=a", "spec.nodeName=n", "spec.nodeName!=m", "metadata.name!=pod-003", "spec.nodeName="],
            0..4,
        ),
    ) {
        let pods: Vec<Pod> = pods.iter().map(|(namespace, node, app)| placed(namespace, node, app)).collect();
        let labels: LabelSelector = labels.parse().expect("a selector");
        let selector = fields().select(&texts.join(",")).expect("a selector");
        let plain = placed_snapshot(&pods, Vec::new());
        let by_node = fields().index("spec.nodeName").expect("it is known");
        let indexed = placed_snapshot(&pods, vec![by_label("app").into(), by_node.into()]);
        let by_path = at_paths().index("spec.nodeName").expect("it is known");
        let by_path = placed_snapshot(&pods, vec![by_label("app").into(), by_path.into()]);
        let at_path = at_paths().select(&texts.join(",")).expect("a selector");
        let expected: Vec<_> = plain
            .labelled(&labels)
            .filter(|object| selector.matches(object))
            .map(|object| object.key().clone())
            .collect();
        for (snapshot, selector) in [(&plain, &selector), (&indexed, &selector), (&plain, &at_path), (&by_path, &at_path)] {
            let found: Vec<_> = snapshot.selected(&labels, selector).map(|object| object.key().clone()).collect();
            prop_assert_eq!(&found, &expected);
        }
    }
}

proptest! {
    #[test]
    fn an_index_changes_no_selection(
        pods in proptest::collection::vec(
            proptest::collection::vec(("[ab]", "[xy]"), 0..3),
            0..30,
        ),
        selector in proptest::sample::select(vec![
            "", "a=x", "a in (x,y)", "a=x,b=y", "a in (x,y),b in (y)", "a!=x,b=x", "a", "!b,a=y", "c=x", "a in (z)",
        ]),
    ) {
        let pods: Vec<Pod> = pods.iter().map(|labels| labelled(labels)).collect();
        let selector: LabelSelector = selector.parse().expect("a selector");
        let plain = snapshot(pods.clone(), Vec::new());
        let indexed = snapshot(pods, vec![by_label("a").into(), by_label("b").into()]);
        prop_assert_eq!(names(indexed.labelled(&selector)), names(plain.labelled(&selector)));
    }
}

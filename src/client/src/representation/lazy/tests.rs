//! What is kept as a text, read without decoding, decoded and shared.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_core::gvk::GroupVersionKind;
use serde_json::{Value, json};

use super::*;
use crate::representation::{Controlled, Dynamic, ReadFields, ReadMetadata, Typed};

fn sent() -> Value {
    json!({
        "metadata": {
            "name": "web-0", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 3,
            "labels": {"app": "web", "quoted": "a\"b"}, "annotations": {"note": "x"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "4c2f", "controller": true}],
            "managedFields": [{"manager": "m", "fieldsV1": {"f:x": {}}}],
        },
        "spec": {"nodeName": "node-a", "containers": [{"name": "c", "image": "i"}]},
    })
}

fn kept<K: Resource<DynamicType = ()> + Send + Sync + 'static>(sent: &Value) -> LazyBody<K> {
    Lazy::new().keep(&Encoded::json(&sent.to_string()), &Prune::default()).expect("it is an object")
}

#[test]
fn a_lazy_body_reads_as_the_typed_one_does() {
    let lazy = kept::<Pod>(&sent());
    let typed = Typed::<Pod>::new().keep(&Encoded::json(&sent().to_string()), &Prune::default()).unwrap();
    assert_eq!(*lazy.decoded().unwrap(), typed);
    assert_eq!(lazy.metadata(), typed.metadata());
    for label in ["app", "quoted", "none"] {
        assert_eq!(lazy.label(label), typed.label(label), "{label}");
    }
    assert_eq!((lazy.generation(), lazy.owner_uids()), (typed.generation(), typed.owner_uids()));
    assert_eq!(lazy.controller(), typed.controller());
    for path in ["spec.nodeName", "spec.containers[*].image", "metadata.labels.app", "spec.none"] {
        let path = path.parse().unwrap();
        assert_eq!(lazy.values_at(&path).unwrap(), typed.values_at(&path).unwrap());
    }
    let notes = lazy.read(|pod| {
        pod.annotations().map(|(key, note)| (key.into_owned(), note.into_owned())).collect::<Vec<_>>()
    });
    assert_eq!(notes, [("note".into(), "x".into())]);
}

#[test]
fn a_kept_text_has_its_types_and_not_what_is_cut() {
    let text = kept::<Pod>(&sent()).text().into_owned();
    assert!(text.starts_with(r#"{"apiVersion":"v1","kind":"Pod","metadata":"#), "{text}");
    assert!(!text.contains("managedFields"), "{text}");
    for named in [r#"{"kind":"Pod","metadata":{"name":"a"}}"#, r#"{"metadata":{"name":"a"},"kind":"Pod"}"#] {
        let body = Lazy::<Pod>::new().keep(&Encoded::json(named), &Prune::default()).unwrap();
        assert_eq!((&*body.text(), body.decoded().is_ok()), (named, true));
    }

    let widgets = GroupVersionKind::gvk("example.com", "v1", "Widget");
    let widgets = ApiResource::from_gvk_with_plural(&widgets, "widgets");
    let (sent, prune) = (sent().to_string(), Prune::default());
    let lazy = Lazy::of(&widgets).keep(&Encoded::json(&sent), &prune).unwrap();
    assert_eq!(*lazy.decoded().unwrap(), Dynamic::new(&widgets).keep(&Encoded::json(&sent), &prune).unwrap());
}

#[test]
fn what_is_not_one_object_by_its_brackets_is_refused_at_once() {
    let keep = |text: &str| Lazy::<Pod>::new().keep(&Encoded::json(text), &Prune::default());
    for broken in [
        r#"{"metadata":{"name":"a"}} {}"#,
        r#"{"metadata":{"name":"a"}"#,
        r#"{"metadata":{"name":"a","managedFields":[1]}]}"#,
        r#"{"metadata":{"name":"a"} "spec":{}}"#,
    ] {
        assert!(keep(broken).is_err(), "{broken}");
    }
    assert!(Lazy::<Pod>::new().keep(&Encoded::json(b"{\"a\":\"\xff\"}"), &Prune::default()).is_err());
}

#[test]
fn readers_at_the_same_time_share_what_is_decoded_and_it_is_freed_with_the_last() {
    let body = kept::<Pod>(&sent());
    let (one, other) = (body.decoded().unwrap(), body.decoded().unwrap());
    assert!(std::ptr::eq::<Pod>(&*one, &*other));
    drop(one);
    assert!(body.shared().is_some());
    drop(other);
    assert!(body.shared().is_none());
}

#[test]
fn what_does_not_decode_is_told_with_its_key_and_no_value() {
    let late = Arc::new(LateFindings::new(Some("eu".parse().unwrap())));
    let text = json!({"metadata": {"name": "a", "namespace": "n", "resourceVersion": "7"}, "data": {"password": 4711}}).to_string();
    let encoded = Encoded::json(&text).telling(&late);
    let body = Lazy::<ConfigMap>::new().keep(&encoded, &Prune::default()).unwrap();
    let cx = Context::from_waker(Waker::noop());
    assert!(late.poll_found(&cx).is_pending(), "nobody has read it");
    for _ in 0..2 {
        let error = body.decoded().unwrap_err().to_string();
        assert!(error.contains("data.password") && !error.contains("4711"), "{error}");
    }
    let Poll::Ready(found) = late.poll_found(&cx) else { panic!("it is told") };
    let found: Vec<_> = found.iter().map(|one| format!("{}@{}", one.key, one.version)).collect();
    assert_eq!(found, ["eu|n/a@7"]);
    assert!(body.decoded().is_err() && late.poll_found(&cx).is_pending(), "the third time");
    assert!(body.decoded().is_err() && late.poll_found(&cx).is_ready(), "the fourth time");
}

#[test]
fn a_text_of_which_nothing_else_is_kept_is_json_with_its_types() {
    let all_cut = Prune::nothing().cut(["metadata"]).cut(["spec"]);
    let body = Lazy::<Pod>::new().keep(&Encoded::json(&sent().to_string()), &all_cut).unwrap();
    assert_eq!(body.text(), r#"{"apiVersion":"v1","kind":"Pod"}"#);
}

#[test]
fn of_an_object_that_does_not_decode_an_outline_may() {
    let mut broken = sent();
    broken["spec"] = json!(4711);
    let body = kept::<Pod>(&broken);
    assert!(body.decoded().is_err());
    assert_eq!(body.outline().and_then(|pod| pod.metadata.name).as_deref(), Some("web-0"));
}

#[test]
fn findings_that_do_not_fit_are_told_when_they_are_read_again() {
    let late = Arc::new(LateFindings::default());
    let bodies: Vec<_> = (0..300)
        .map(|at| {
            let metadata = json!({"name": format!("n-{at}"), "resourceVersion": "7", "labels": {"a": 1}});
            let text = json!({ "metadata": metadata }).to_string();
            Lazy::<Pod>::new().keep(&Encoded::json(&text).telling(&late), &Prune::default()).unwrap()
        })
        .collect();
    let cx = Context::from_waker(Waker::noop());
    let mut told = std::collections::BTreeSet::new();
    // At their second reading all are told again, those before at the first.
    for reading in [&bodies[..], &bodies[..1], &bodies[200..]] {
        assert!(reading.iter().all(|body| body.metadata().labels.is_none()));
        let Poll::Ready(found) = late.poll_found(&cx) else { panic!("some are told") };
        assert!(found.len() <= 250);
        told.extend(found.into_iter().map(|one| one.key));
    }
    assert_eq!(told.len(), 300);
}

#[test]
fn a_debug_text_shows_no_value() {
    let body = LazyBody::of(&json!({"data": {"password": "secret"}})).unwrap();
    assert_eq!(format!("{body:?}"), "LazyBody(30 bytes)");
}

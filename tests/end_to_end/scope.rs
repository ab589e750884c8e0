//! Which pods, and how much of each: namespaces, selectors, representations.
//!
//! Answers "does an informer hold exactly what its description selects?"

use actix_informer::prelude::*;
use kube_core::discovery::ApiResource;

use crate::stage::{LONG, Pod, Stage};

pub(crate) async fn two_namespaces_are_one_informer(stage: Stage) {
    let (api, here) = (&stage.api, &*stage.namespace);
    let there = &*format!("{here}-too");
    api.create_namespace(there).await;
    api.create_many(here, 3).await;
    api.create_many(there, 5).await;
    let both = stage.server.client().resource::<Pod>();
    let builder = both.namespaces([here, there]).informer(&stage.runtime).expect("valid namespaces");
    let pods = stage.follow(builder, &[here, there]).await;
    let lister = pods.informer.lister();
    assert_eq!((lister.list_namespace(here).len(), lister.list_namespace(there).len()), (3, 5));
    api.delete(here, "pod-00000").await;
    let written = api.create(there, "own").await;
    let source = SourceId::new(there);
    lister.wait_for_source(&source, &written, LONG).await.expect("the write arrives");
    let own = lister.get(&ObjectKey::namespaced(there, "own")).expect("what was written is read");
    assert_eq!((own.version(), own.source()), (&written, &source));
    pods.agrees(api).await;
}

pub(crate) async fn a_pod_that_leaves_the_selector_is_deleted(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    api.create_many(namespace, 4).await;
    api.label(namespace, "pod-00003", "other").await;
    let chosen = stage.server.client().resource::<Pod>().namespace(namespace).labels("app=first");
    let pods = stage.follow(stage.described("chosen", chosen), &[]).await;
    pods.first.next(3).await;
    api.label(namespace, "pod-00001", "other").await;
    let left = pods.first.next(1).await;
    assert!(left[0].starts_with(&format!("Deleted(Watch) {namespace}/pod-00001@")), "{left:?}");
    let entered = api.label(namespace, "pod-00003", "first").await;
    assert_eq!(pods.first.next(1).await, [format!("Added(Watch) {namespace}/pod-00003@{entered}")]);
    let selected = format!("/api/v1/namespaces/{namespace}/pods?labelSelector=app%3Dfirst");
    let expected = api.list(&selected).await;
    assert_eq!(expected.len(), 3);
    pods.holds(&expected).await;
}

pub(crate) async fn metadata_and_dynamic_informers_see_the_same_pods(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    let client = stage.server.client();
    api.create_many(namespace, 10).await;
    let typed = stage.pods().await;
    let metadata = client.metadata::<Pod>().namespace(namespace);
    let metadata = stage.follow(stage.described("metadata", metadata), &[namespace]).await;
    let dynamic = client.dynamic(&ApiResource::erase::<Pod>(&())).namespace(namespace);
    let dynamic = stage.follow(stage.described("dynamic", dynamic), &[namespace]).await;

    let labelled = api.label(namespace, "pod-00004", "second").await;
    api.delete(namespace, "pod-00005").await;
    api.create(namespace, "late").await;
    typed.agrees(api).await;
    metadata.agrees(api).await;
    dynamic.agrees(api).await;

    let key = stage.key("pod-00004");
    let (meta, whole) = (metadata.informer.lister().get(&key), dynamic.informer.lister().get(&key));
    let (meta, whole) = (meta.expect("it is there"), whole.expect("it is there"));
    assert_eq!((meta.version(), whole.version()), (&labelled, &labelled));
    assert_eq!(meta.metadata.labels.as_ref().expect("it has labels")["app"], "second");
    assert_eq!(whole.data["spec"]["containers"][0]["name"], "main");
    assert!(meta.metadata.managed_fields.is_none(), "they are pruned");
}

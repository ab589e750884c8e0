//! Live changes: what a subscriber receives while the watch is open.
//!
//! Answers "is every change delivered, once, in order, with its cause?" and "can I read my own write?"

use crate::stage::{LONG, Stage};

pub(crate) async fn every_change_is_delivered_one_by_one(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    let pods = stage.pods().await;
    let created = api.create(namespace, "one").await;
    assert_eq!(pods.first.next(1).await, [format!("Added(Watch) {namespace}/one@{created}")]);
    for app in ["second", "third"] {
        let labelled = api.label(namespace, "one", app).await;
        assert_eq!(pods.first.next(1).await, [format!("Updated(Watch) {namespace}/one@{labelled}")]);
    }
    api.create(namespace, "two").await;
    pods.first.next(1).await;
    api.delete(namespace, "one").await;
    pods.first.received_at_last(&format!("Deleted(Watch) {namespace}/one@")).await;
    pods.agrees(api).await;
}

pub(crate) async fn another_object_of_the_same_name_is_a_deletion_and_an_addition(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    api.create(namespace, "phoenix").await;
    let pods = stage.pods().await;
    let first_life = pods.informer.lister().get(&stage.key("phoenix")).expect("it is listed");
    pods.first.next(1).await;
    api.delete(namespace, "phoenix").await;
    let reborn = api.create(namespace, "phoenix").await;
    let mut received =
        pods.first.received_at_last(&format!("Added(Watch) {namespace}/phoenix@{reborn}")).await;
    // A pod is marked before it is deleted; that update may have been merged into the deletion.
    received.retain(|line| !line.starts_with("Updated"));
    assert!(received[0].starts_with(&format!("Deleted(Watch) {namespace}/phoenix@")), "{received:?}");
    assert_eq!(received.len(), 2, "{received:?}");
    let second_life = pods.informer.lister().get(&stage.key("phoenix")).expect("it is created again");
    assert!(!second_life.is_same_life_as(&first_life));
    pods.agrees(api).await;
}

pub(crate) async fn an_own_write_is_there_after_waiting_for_its_version(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    let pods = stage.pods().await;
    let lister = pods.informer.lister();
    for n in 0..20 {
        let name = format!("own-{n}");
        let written = api.create(namespace, &name).await;
        lister.wait_for(&written, LONG).await.expect("the write arrives");
        let read = lister.get(&stage.key(&name)).expect("what was written is read");
        assert_eq!(read.version(), &written);
        assert_eq!(read.metadata.name.as_deref(), Some(&*name));
    }
    pods.agrees(api).await;
}

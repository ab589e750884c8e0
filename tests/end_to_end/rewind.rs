//! A server that is restored from a backup: its versions run backwards, and it says nothing about it.
//!
//! Answers "does an informer notice that its world is of another history, and go back with it?"

use crate::stage::{Stage, until};

pub(crate) async fn a_restored_backup_takes_the_store_back(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    for name in ["changed", "deleted", "same"] {
        api.create(namespace, name).await;
    }
    let pods = stage.pods().await;
    pods.agrees(api).await;
    let before = api.pods(&[namespace]).await;
    let backup = stage.server.backup().await;

    api.label(namespace, "changed", "second").await;
    api.delete(namespace, "deleted").await;
    // A starting kube-apiserver writes some objects of its own: the lost future must be longer than that.
    api.create_many(namespace, 1_000).await;
    pods.agrees(api).await;
    pods.first.told.clear_lines();
    stage.server.restore(backup).await;

    pods.holds(&before).await;
    until("the rewind is counted", || pods.counters().relists_by.rewind == 1).await;
    let told = pods.first.told.lines();
    assert!(told.iter().all(|line| line.contains("(Rewind) ")), "{told:?}");
    let has = |kind: &str, name: &str| {
        let beginning = format!("{kind}(Rewind) {namespace}/{name}@");
        told.iter().any(|line| line.starts_with(&beginning))
    };
    assert!(has("Updated", "changed") && has("Added", "deleted") && has("Missed", "pod-00000"), "{told:?}");
    assert!(has("Updated", "same"), "equal versions prove nothing after a rewind: {told:?}");
    assert_eq!(told.len(), 1_003);

    api.create(namespace, "in-the-new-history").await;
    pods.agrees(api).await;
}

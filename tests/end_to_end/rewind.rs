//! A server that is restored from a backup: its versions go backwards, and it does not announce that.
//!
//! Answers "does an informer notice that the server's history has changed, and go back with it?"

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
    // A starting kube-apiserver writes some objects of its own: the lost history must be longer than that.
    api.create_many(namespace, 1_000).await;
    pods.agrees(api).await;
    pods.first.received.clear_lines();
    stage.server.restore(backup).await;

    pods.holds(&before).await;
    until("the rewind is counted", || pods.counters().relists_by.rewind == 1).await;
    let received = pods.first.received.lines();
    assert!(received.iter().all(|line| line.contains("(Rewind) ")), "{received:?}");
    let has = |kind: &str, name: &str| {
        let beginning = format!("{kind}(Rewind) {namespace}/{name}@");
        received.iter().any(|line| line.starts_with(&beginning))
    };
    assert!(
        has("Updated", "changed") && has("Added", "deleted") && has("Missed", "pod-00000"),
        "{received:?}"
    );
    assert!(has("Updated", "same"), "equal versions prove nothing after a rewind: {received:?}");
    assert_eq!(received.len(), 1_003);

    api.create(namespace, "in-the-new-history").await;
    pods.agrees(api).await;
}

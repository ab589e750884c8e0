//! Ten thousand pods: all writes seen from the first on, and a list of all at the end.
//!
//! Answers "does the informer stay correct at this size?" Times are measured by the benches.

use informer_core::reflector::ReflectorConfig;

use crate::stage::Stage;

const PODS: usize = 10_000;

pub(crate) async fn ten_thousand_pods(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    let live = stage.pods_as("live", |config| config).await;
    api.create_many(namespace, PODS).await;
    let there = api.pods(&[namespace]).await;
    assert_eq!(there.len(), PODS);
    live.holds(&there).await;
    assert_eq!(live.counters().relists, 0);

    let streamed = stage.pods_as("streamed", |config| config).await;
    let listed = stage.pods_as("listed", |config| ReflectorConfig { watch_list: false, ..config }).await;
    for n in (0..PODS).step_by(PODS / 20) {
        api.label(namespace, &format!("pod-{n:05}"), "second").await;
        api.delete(namespace, &format!("pod-{:05}", n + 1)).await;
    }
    let there = api.pods(&[namespace]).await;
    for pods in [&live, &streamed, &listed] {
        pods.holds(&there).await;
        assert_eq!(pods.counters().failures, 0);
    }
    let late = live.watched().await;
    assert_eq!(late.received.len(), there.len());
    late.agrees(&live.informer).await;
}

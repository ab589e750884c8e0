//! The first list, in each way in which a server can be asked for it.
//!
//! Answers "how does a store get its first content?" Pages are in `outages.rs`: servers cut a list into pages only
//! when it is not requested at version 0, as the first list is.

use informer_core::reflector::ReflectorConfig;

use crate::stage::Stage;

pub(crate) async fn the_first_list_is_a_watch_list(stage: Stage) {
    stage.api.create_many(&stage.namespace, 25).await;
    let pods = stage.pods().await;
    pods.agrees(&stage.api).await;
    pods.streams().await;
    let counters = pods.counters();
    assert_eq!((counters.watch_lists, counters.watches, counters.lists), (1, 1, 0), "{counters:?}");
    assert!(pods.first.received.lines().iter().all(|line| line.starts_with("Added(InitialList) ")));
    stage.api.label(&stage.namespace, "pod-00003", "second").await;
    pods.agrees(&stage.api).await;
    assert_eq!(pods.counters().failures, 0);
}

pub(crate) async fn without_watch_lists_it_is_a_list_and_a_watch(stage: Stage) {
    stage.api.create_many(&stage.namespace, 25).await;
    let pods = stage.pods_as("listed", |config| ReflectorConfig { watch_list: false, ..config }).await;
    pods.agrees(&stage.api).await;
    pods.streams().await;
    let counters = pods.counters();
    assert_eq!((counters.watch_lists, counters.watches, counters.lists), (0, 1, 1), "{counters:?}");
    assert!(pods.first.received.lines().iter().all(|line| line.starts_with("Added(InitialList) ")));
    stage.api.delete(&stage.namespace, "pod-00003").await;
    pods.agrees(&stage.api).await;
    assert_eq!(pods.counters().failures, 0);
}

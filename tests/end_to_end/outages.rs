//! Servers that compact, crash, or cannot be reached: what was missed is found by listing again.
//!
//! Answers "is the store true again after an outage, and is exactly what happened delivered?"

use actix_informer::prelude::*;
use informer_core::reflector::ReflectorConfig;

use crate::followed::Followed;
use crate::relay::Relay;
use crate::server::Server;
use crate::stage::{Pod, Stage, until};

/// An informer for each way of listing: watch-list, one list, pages of four.
async fn each_way(stage: &Stage, client: &Client) -> [Followed<Pod>; 3] {
    let config = ReflectorConfig::new("pods");
    let listed = ReflectorConfig { watch_list: false, ..config.clone() };
    let paged = ReflectorConfig { page_size: Some(4), ..listed.clone() };
    let follow = |name: &'static str, config| async move {
        let source = client.resource::<Pod>().namespace(&*stage.namespace);
        let source = source.settings(|settings| *settings = config).name(name);
        let builder = source.informer(&stage.runtime).expect("a valid namespace");
        let pods = stage.follow(builder, &[&stage.namespace]).await;
        pods.streams().await;
        pods.agrees(&stage.api).await;
        pods.first.received.clear_lines();
        pods
    };
    [follow("streamed", config).await, follow("listed", listed).await, follow("paged", paged).await]
}

pub(crate) async fn an_expired_watch_is_listed_again_and_nothing_is_delivered_twice(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    api.create_many(namespace, 10).await;
    let all = each_way(&stage, &stage.server.client()).await;
    stage.server.expire_watches(api).await;
    for pods in &all {
        until("the expired watch is noticed", || pods.counters().relists_by.expired >= 1).await;
        pods.streams().await;
        pods.agrees(api).await;
        assert!(pods.first.received.is_empty(), "nothing has changed: {:?}", pods.first.received.lines());
    }
    let reached = all[2].informer.snapshot().version(&SourceId::default()).cloned().expect("it has listed");
    let page = format!("limit=4&resourceVersion={reached}&resourceVersionMatch=NotOlderThan");
    let page = api.list(&format!("/api/v1/namespaces/{namespace}/pods?{page}")).await;
    assert_eq!(page.len(), 4, "the paged informer's list comes in pages");
    if let Server::Memory(_) = &*stage.server {
        let requests = stage.server.in_memory().requests();
        let pages = requests.iter().filter(|request| request.parameter("continue").is_some()).count();
        assert_eq!(pages, 2, "ten pods are three pages of four");
    }
    let changed = api.label(namespace, "pod-00003", "second").await;
    for pods in &all {
        let received = pods.first.next(1).await;
        assert_eq!(received, [format!("Updated(Watch) {namespace}/pod-00003@{changed}")]);
    }
}

pub(crate) async fn a_missed_deletion_is_found_by_the_relist(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    api.create_many(namespace, 10).await;
    let relay = Relay::to(&stage.server).await;
    let all = each_way(&stage, &stage.server.client_through(&relay, None)).await;

    relay.cut();
    api.delete(namespace, "pod-00001").await;
    api.delete(namespace, "pod-00002").await;
    let reborn = api.create(namespace, "pod-00002").await;
    let changed = api.label(namespace, "pod-00003", "second").await;
    let created = api.create(namespace, "pod-99999").await;
    stage.server.expire_watches(api).await;
    relay.mend();

    for pods in &all {
        pods.agrees(api).await;
        assert!(pods.counters().relists_by.expired >= 1, "{:?}", pods.counters());
        let received = pods.first.next(5).await;
        let mut received: Vec<&str> = received.iter().map(String::as_str).collect();
        received.sort_unstable();
        assert_eq!(received.len(), 5, "{received:?}");
        assert_eq!(received[0], format!("Added(Relist) {namespace}/pod-00002@{reborn}"));
        assert_eq!(received[1], format!("Added(Relist) {namespace}/pod-99999@{created}"));
        assert!(received[2].starts_with(&format!("Missed(Relist) {namespace}/pod-00001@")), "{received:?}");
        assert!(received[3].starts_with(&format!("Missed(Relist) {namespace}/pod-00002@")), "{received:?}");
        assert_eq!(received[4], format!("Updated(Relist) {namespace}/pod-00003@{changed}"));
    }
}

pub(crate) async fn a_killed_server_is_found_again(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    api.create_many(namespace, 10).await;
    let pods = stage.pods().await;
    pods.streams().await;
    stage.server.kill().await;
    pods.state(|state| matches!(state, SourceState::Backoff { .. })).await;
    let lister = pods.informer.lister();
    assert_eq!(lister.list().len(), 10, "readers still read the last state");
    let late = pods.watched().await;
    assert_eq!(late.received.len(), 10, "so do late subscribers");
    stage.server.start().await;
    pods.streams().await;
    api.label(namespace, "pod-00003", "second").await;
    api.delete(namespace, "pod-00004").await;
    pods.agrees(api).await;
    late.agrees(&pods.informer).await;
    assert!(pods.informer.status().synced && pods.informer.last_error().is_some());
}

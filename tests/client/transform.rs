//! A transform is called once for each version of an object, and no reader sees an object without it.
//!
//! Answers "how often is it called, and is there a way around it?" against the in-memory API server: by list, watch,
//! watch-list, relist, tombstone and resync.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_informer::client::{Client, Config, ResourceSource};
use actix_informer::representation::Typed;
use futures_util::StreamExt;
use informer_actors::subscription::Events;
use informer_actors::subscription::Notify;
use informer_actors::subscription::SubscribeOptions;
use informer_apiserver::ApiServer;
use informer_core::delta::Cause;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::scripted::*;

/// Marks every map, and counts the calls.
fn marked(server: &ApiServer) -> (ResourceSource<ConfigMap>, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let marks = Typed::<ConfigMap>::new().transform(move |mut map| {
        count.fetch_add(1, Ordering::SeqCst);
        assert!(map.immutable.replace(true).is_none(), "transformed twice");
        Ok(map)
    });
    let client = Client::new(Config::from_kubeconfig_text(&server.kubeconfig(), None).unwrap()).unwrap();
    (client.resource::<ConfigMap>().keep_as(marks), calls)
}

fn map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"}, "data": {"k": value},
    })
}

fn newest(server: &ApiServer) -> u64 {
    server.revision().to_string().parse().unwrap()
}

/// The next event as `Added(Watch) name`, checked to show only transformed objects.
async fn received(events: &mut Events<ConfigMap>) -> String {
    let next = tokio::time::timeout(LONG, events.next()).await.expect("in time").expect("it runs");
    let (verb, objects, cause) = match &next {
        Notify::Added { object, cause } => ("Added", vec![object], cause),
        Notify::Updated { old, object, cause } => ("Updated", vec![old, object], cause),
        Notify::Deleted { last, exact: true, cause } => ("Deleted", vec![last], cause),
        Notify::Deleted { last, exact: false, cause } => ("Tombstone", vec![last], cause),
    };
    assert!(objects.iter().all(|object| object.body().immutable == Some(true)), "{next:?}");
    format!("{verb}({}) {}", cause.as_str(), next.key().name())
}

// INF-12: given a transform, when objects arrive by list, watch, relist and resync, then subscribers and
// store see only transformed objects, and the transform was called once for each object version decoded:
// tombstones, resync and unchanged objects add no call.
// - a by list, watch, relist and resync, subscribers see only transformed objects
// - b so does the store
// - c the transform is called once for each object version decoded, by watch-list too
// - d tombstones, resync and unchanged objects add no call; a deletion by watch, which brings one version
//   more, adds one
#[tokio::test]
async fn inf_12_only_transformed_objects_are_seen_and_each_version_is_transformed_once() {
    let mut server = ApiServer::builder().start().await.unwrap();
    for name in ["a", "b", "c", "d"] {
        server.create(map(name, "old")).unwrap();
    }
    let (source, calls) = marked(&server);
    let calls = move || calls.load(Ordering::SeqCst);
    let runtime = threads();
    let maps = follows(source, &runtime).start().unwrap();
    reached(&maps, |status| status.synced).await;
    let mut events = maps.events().unwrap();
    for name in ["a", "b", "c", "d"] {
        assert_eq!(received(&mut events).await, format!("Added(InitialList) {name}"));
    }
    assert_eq!(calls(), 4, "by list");

    server.update(map("a", "new")).unwrap();
    published(&maps, newest(&server)).await;
    assert_eq!((received(&mut events).await.as_str(), calls()), ("Updated(Watch) a", 5));

    server.stop();
    server.update(map("b", "new")).unwrap();
    server.delete("configmaps", "default", "c").unwrap();
    server.faults().compact();
    server.start_again().unwrap();
    published(&maps, newest(&server)).await;
    let mut relisted = [received(&mut events).await, received(&mut events).await];
    relisted.sort();
    assert_eq!(relisted, ["Tombstone(Relist) c", "Updated(Relist) b"]);
    assert_eq!(calls(), 6, "by relist: what changed, not what is unchanged or deleted");

    let every_second = SubscribeOptions::new().resync_every(Duration::from_secs(1));
    let mut resynced = maps.events_with(every_second).unwrap();
    for cause in [Cause::InitialList, Cause::Resync] {
        for name in ["a", "b", "d"] {
            let line = received(&mut resynced).await;
            assert!(line.ends_with(&format!("({}) {name}", cause.as_str())), "{line}");
        }
    }
    assert_eq!(calls(), 6, "a resync delivers what is stored");
    server.delete("configmaps", "default", "d").unwrap();
    published(&maps, newest(&server)).await;
    assert_eq!(
        (received(&mut events).await.as_str(), calls()),
        ("Deleted(Watch) d", 7),
        "its deletion is one version more"
    );
    assert!(maps.snapshot().iter().all(|object| object.body().immutable == Some(true)));
    drop((events, resynced));
    ends(maps).await;
}

// WL-15: given a transform, when three objects stream in, then the snapshot holds transformed objects and the
// transform was called three times (client-go: up to twice each).
// - a the snapshot holds transformed objects
// - b the transform was called three times
#[tokio::test]
async fn wl_15_three_objects_of_a_watch_list_are_transformed_in_three_calls() {
    let server = ApiServer::builder().start().await.unwrap();
    for name in ["a", "b", "c"] {
        server.create(map(name, "v")).unwrap();
    }
    let (source, calls) = marked(&server);
    let runtime = threads();
    let maps = source.informer(&runtime).unwrap().start().unwrap();
    reached(&maps, |status| status.synced).await;
    assert_eq!((maps.snapshot().len(), calls.load(Ordering::SeqCst)), (3, 3));
    assert!(maps.snapshot().iter().all(|object| object.body().immutable == Some(true)));
    let counters = maps.status().sources[0].counters.clone();
    assert_eq!((counters.watch_lists, counters.lists), (1, 0));
    ends(maps).await;
}

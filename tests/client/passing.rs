//! Objects that are passed on and not kept, against the in-memory API server, on simulated time.
//!
//! Answers "does a receiver that stores objects elsewhere get everything, whatever fails, and how much waits for it?"

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_informer::client::{Client, Config, Error};
use actix_informer::prelude::*;
use actix_informer::representation::{DecodeError, Encoded, Prune, Representation, Typed};
use actix_informer::source::{PassTo, Passed, PassedPart, PassedParts, passing};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use crate::scripted::{LONG, reached, threads};

mod worlds;

type Part = PassedPart<Passed<ConfigMap>>;

fn map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"}, "data": {"k": value},
    })
}

fn source(client: &Client) -> actix_informer::client::ResourceSource<ConfigMap, Typed<ConfigMap>> {
    client.resource::<ConfigMap>().namespace("default")
}

/// An informer of the config maps of a server of this process, and what it passes on.
fn simulated(
    maps: &[&str],
    scenario: impl AsyncFnOnce(&ApiServer, Informer<Passed<ConfigMap>>, PassedParts<ConfigMap>),
) {
    Runtime::simulated(7).run(|runtime| async move {
        let server = served(&runtime, 1).await;
        maps.iter().for_each(|name| drop(server.create(map(name, "1")).unwrap()));
        let client = Client::in_process(&runtime, server.service());
        let (to, parts) = passing();
        let informer = source(&client).pass_to(to).informer(&runtime).unwrap().start().unwrap();
        scenario(&server, informer, parts).await;
    });
}

async fn served(runtime: &Runtime, seed: u64) -> ApiServer {
    ApiServer::builder().seed(seed).in_process(runtime.wall_time()).start().await.unwrap()
}

/// `name=value` of what is there, `-name` of what is gone, `=` of a whole list.
fn text(part: &Part) -> String {
    let value = |map: &Object<Passed<ConfigMap>>| {
        map.body().body().map_or("?", |map| &map.data.as_ref().expect("data")["k"]).to_owned()
    };
    match part {
        PassedPart::Applied(map) => format!("{}={}", map.key().name(), value(map)),
        PassedPart::Deleted(map) => format!("-{}={}", map.key().name(), value(map)),
        PassedPart::Listed(_) => "=".to_owned(),
        other => format!("{other:?}"),
    }
}

/// What comes until so many are there.
async fn passed(parts: &mut PassedParts<ConfigMap>, count: usize) -> Vec<String> {
    let mut texts = Vec::new();
    while texts.len() < count {
        let more =
            tokio::time::timeout(LONG, parts.next()).await.expect("something comes").expect("it goes on");
        texts.extend(more.iter().map(text));
    }
    texts
}

#[test]
fn what_comes_is_passed_on_in_order_and_the_store_keeps_no_body() {
    simulated(&["a", "b"], async |server, maps, mut parts| {
        assert_eq!(passed(&mut parts, 3).await, ["a=1", "b=1", "="]);
        maps.synced_within(LONG).await.unwrap();
        server.update(map("a", "2")).unwrap();
        server.create(map("c", "1")).unwrap();
        server.delete("configmaps", "default", "b").unwrap();
        assert_eq!(passed(&mut parts, 3).await, ["a=2", "c=1", "-b=1"]);
        let reached_all = server.revision().to_string().parse().unwrap();
        maps.lister().wait_for(&reached_all, LONG).await.unwrap();
        let snapshot = maps.snapshot();
        let kept: Vec<_> =
            snapshot.iter().map(|map| (map.key().name(), map.body().body().is_some())).collect();
        assert_eq!(kept, [("a", false), ("c", false)]);
    });
}

#[test]
fn after_a_gap_what_changed_and_what_is_gone_is_passed_on_and_a_new_life_after_the_end_of_the_old_one() {
    simulated(&["changed", "gone", "reborn", "same"], async |server, maps, mut parts| {
        passed(&mut parts, 5).await;
        maps.synced_within(LONG).await.unwrap();
        let former = maps.snapshot();
        server.faults().deny("watch", "configmaps");
        server.faults().reset_watches();
        server.update(map("changed", "2")).unwrap();
        server.create(map("created", "1")).unwrap();
        ["gone", "reborn"]
            .iter()
            .for_each(|name| drop(server.delete("configmaps", "default", name).unwrap()));
        server.create(map("reborn", "2")).unwrap();
        server.faults().compact();
        server.faults().allow("watch", "configmaps");
        let texts = passed(&mut parts, 6).await;
        assert_eq!(texts, ["changed=2", "created=1", "-reborn=?", "reborn=2", "-gone=?", "="]);
        reached(&maps, |status| status.objects == 4 && status.relists() == 1).await;
        let uid = |snapshot: &Snapshot<Passed<ConfigMap>>| {
            snapshot.get(&ObjectKey::namespaced("default", "reborn")).unwrap().object_uid().cloned()
        };
        assert_ne!(uid(&former), uid(&maps.snapshot()));
    });
}

#[test]
fn an_object_that_is_newer_than_its_list_hides_no_later_page() {
    let page = |name: &str, version: &str, next: &str| {
        let mut item = map(name, "1");
        item["metadata"]["uid"] = json!(name);
        item["metadata"]["resourceVersion"] = json!(version);
        let metadata = json!({"resourceVersion": "8", "continue": next});
        json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": [item]})
    };
    Runtime::simulated(7).run(|runtime| async move {
        let client = Client::in_process(&runtime, move |request: http::Request<Bytes>| async move {
            let query = request.uri().query().unwrap_or_default();
            let body = match (query.contains("watch="), query.contains("continue=")) {
                (true, _) => stream::pending().left_stream(),
                (false, true) => stream::iter([page("b", "3", "")]).right_stream(),
                (false, false) => stream::iter([page("a", "9", "rest")]).right_stream(),
            };
            let body = body.map(|page| Ok(Bytes::from(page.to_string())));
            Ok(http::Response::builder().header("content-type", "application/json").body(body).unwrap())
        });
        let (to, mut parts) = passing();
        let maps = source(&client).pass_to(to).informer(&runtime).unwrap().start().unwrap();
        assert_eq!(passed(&mut parts, 3).await, ["a=1", "b=1", "="]);
        assert_eq!(maps.status().lists.count, 1);
    });
}

/// Counts the bodies that are alive.
struct Counted(Arc<AtomicUsize>);

struct Alive(Arc<AtomicUsize>);

impl Representation for Counted {
    type Body = Alive;

    fn keep(&self, _: &Encoded<'_>, _: &Prune) -> Result<Alive, DecodeError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Alive(Arc::clone(&self.0)))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn while_its_receiver_does_not_read_a_list_waits_with_few_bodies_and_does_not_time_out() {
    const MAPS: usize = 5_000;
    Runtime::simulation(7).lists_at_once(1).build().run(|runtime| async move {
        let server = served(&runtime, 1).await;
        for number in 0..MAPS {
            server.create(map(&format!("map-{number:05}"), "1")).unwrap();
        }
        let client = Client::in_process(&runtime, server.service());
        let (alive, (to, mut parts)) = (Arc::new(AtomicUsize::new(0)), passing());
        let counted = source(&client).keep_as_named("counted", Counted(Arc::clone(&alive)));
        let maps = counted.pass_to(to).informer(&runtime).unwrap().start().unwrap();
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        let waiting = alive.load(Ordering::Relaxed);
        assert!((1..=1_000).contains(&waiting), "{waiting} bodies wait");
        let status = maps.status();
        assert!(status.to_string().contains("it waits for the receiver of what it passes on"), "{status}");
        assert!(!status.synced && status.last_error().is_none(), "{status}");
        let others = client.resource::<Secret>().informer(&runtime).unwrap().start().unwrap();
        others.synced_within(LONG).await.expect("it delays no other list");
        let mut applied = 0;
        loop {
            let part = parts.next().await.expect("it goes on");
            applied += part.iter().filter(|part| matches!(part, PassedPart::Applied(_))).count();
            if matches!(part.last(), Some(PassedPart::Listed(_))) {
                break;
            }
        }
        maps.synced_within(LONG).await.unwrap();
        assert_eq!((applied, maps.snapshot().len(), alive.load(Ordering::Relaxed)), (MAPS, MAPS, 0));
        let status = maps.status();
        assert_eq!((status.lists.count, status.totals.counters.failures), (1, 0), "it was listed once");
        assert!(!status.to_string().contains("receiver"), "{status}");
    });
}

#[test]
fn without_its_receiver_the_source_fails_and_says_why() {
    simulated(&["a"], async |server, maps, mut parts| {
        passed(&mut parts, 2).await;
        maps.synced_within(LONG).await.unwrap();
        drop(parts);
        server.update(map("a", "2")).unwrap();
        let status = reached(&maps, |status| status.last_error().is_some()).await;
        let why = status.last_error().expect("an error").to_string();
        assert!(why.contains("the receiver of what is passed on was dropped"), "{why}");
        let status = reached(&maps, |status| status.totals.counters.failures > 2).await;
        assert_eq!(status.objects, 1, "what was there is still there");
    });
}

#[tokio::test]
async fn the_parts_end_with_the_runtime_also_while_a_handle_of_the_informer_lives() {
    let server = ApiServer::builder().start().await.unwrap();
    (0..1_200).for_each(|number| drop(server.create(map(&format!("map-{number:04}"), "1")).unwrap()));
    let client = Client::new(Config::from_kubeconfig_text(&server.kubeconfig(), None).unwrap()).unwrap();
    let (runtime, (to, mut parts)) = (threads(), passing());
    let maps = source(&client).pass_to(to).informer(&runtime).unwrap().start().unwrap();
    passed(&mut parts, 1).await;
    runtime.shutdown(LONG).await.unwrap();
    while tokio::time::timeout(LONG, parts.next()).await.expect("it ends").is_some() {}
    assert!(maps.status().stopped);
}

#[test]
fn one_way_is_of_one_informer() {
    Runtime::simulated(7).run(|runtime| async move {
        let server = served(&runtime, 1).await;
        let client = Client::in_process(&runtime, server.service());
        let (to, _parts) = passing();
        let first = source(&client).pass_to(to.clone()).informer(&runtime).unwrap().start().unwrap();
        let second = source(&client).pass_to(to).informer(&runtime).err();
        assert!(
            matches!(&second, Some(Error::Unsupported(what)) if what.contains("two informers")),
            "{second:?}"
        );
        drop(first);
    });
}

#[test]
fn several_sources_in_one_informer_are_refused() {
    Runtime::simulated(7).run(|runtime| async move {
        let server = served(&runtime, 1).await;
        let client = Client::in_process(&runtime, server.service());
        let of = |source: actix_informer::client::ResourceSource<ConfigMap>| {
            let (to, _): (PassTo<ConfigMap>, _) = passing();
            source.pass_to(to)
        };
        let maps = || client.resource::<ConfigMap>();
        let refused = [
            of(maps().namespaces(["a", "b"])).informer(&runtime).err(),
            of(maps().namespaces_with_labels("a=b")).informer(&runtime).err(),
            of(maps().cluster("east".parse().unwrap())).informer(&runtime).err(),
            of(maps()).source(&runtime).err(),
        ];
        #[cfg(feature = "persist")]
        {
            let (to, _) = passing();
            let saved = maps().packed().persist("never-written").pass_to(to).informer(&runtime).err();
            assert!(
                matches!(&saved, Some(Error::Unsupported(what)) if what.starts_with("`persist` of")),
                "{saved:?}"
            );
        }
        for why in refused {
            assert!(
                matches!(&why, Some(Error::Unsupported(what)) if what.starts_with("`pass_to` of")),
                "{why:?}"
            );
        }
    });
}

#[test]
fn a_list_that_fails_half_way_passes_nothing_on_twice_and_what_is_gone_meanwhile_is_told() {
    let names: Vec<String> = (0..1_200).map(|number| format!("map-{number:04}")).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    simulated(&names, async |server, maps, mut parts| {
        // The first page waits for the receiver, which takes a part of it.
        let mut texts = passed(&mut parts, 1).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        server.faults().fail_next(1, 500);
        server.delete("configmaps", "default", "map-0007").unwrap();
        while texts.last().is_none_or(|text| text != "=") {
            texts.extend(passed(&mut parts, 1).await);
        }
        maps.synced_within(LONG).await.unwrap();
        assert!(maps.status().totals.counters.failures > 0);
        let count = |wanted: &str| texts.iter().filter(|text| *text == wanted).count();
        assert_eq!((count("map-0007=1"), count("-map-0007=?"), count("map-0008=1")), (1, 1, 1));
        assert_eq!(texts.len(), 1_200 + 2, "each came once, one is gone, and the list is whole");
    });
}

#[test]
fn the_parts_end_when_the_informer_stops_also_while_the_receiver_is_behind() {
    let names: Vec<String> = (0..1_200).map(|number| format!("map-{number:04}")).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    simulated(&names, async |_, maps, mut parts| {
        passed(&mut parts, 1).await;
        maps.shutdown(LONG).await;
        while tokio::time::timeout(LONG, parts.next()).await.expect("it ends").is_some() {}
        assert!(maps.status().stopped);
    });
}

//! Tests of the metrics: their names, types and labels; no counter goes back; no two series are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text};
use prometheus_client::registry::Registry;

use super::write::{Labels, write};
use super::{Metrics, clients};
use crate::client::api::PostParams;
use crate::client::{Client, ClientFigures};
use crate::controller::{Controller, Outcome, ReconcileError, Request};
use crate::events::{EventText, EventType, Recorder};
use crate::leader_election::{LeaderElection, LeaseName};
use crate::object::{ObjectKey, SourceId};
use crate::prelude::*;
use crate::testing::ApiServer;

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_text::encode(&mut text, registry).expect("a String takes it");
    text
}

/// Each series with its value.
fn series(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut series = BTreeMap::new();
    for line in lines {
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        let former = series.insert(name.to_owned(), value.parse().expect("a number"));
        assert_eq!(former, None, "{name} comes twice: Prometheus would refuse the whole scrape");
    }
    series
}

/// Each family, as `type name{label,label}`.
fn families(text: &str) -> BTreeSet<String> {
    let mut families = BTreeSet::new();
    let mut now = ("", "");
    for line in text.lines() {
        if let Some(typed) = line.strip_prefix("# TYPE ") {
            let (name, kind) = typed.split_once(' ').expect("a name and a type");
            now = (name, kind);
        } else if !line.starts_with('#') {
            let labels = line.split_once('{').map_or("", |(_, labels)| labels);
            let quoted = labels.rsplit_once('}').map_or("", |(labels, _)| labels);
            let names = quoted.split("\",").filter_map(|label| Some(label.split_once('=')?.0));
            let names: BTreeSet<&str> = names.filter(|name| *name != "le").collect();
            let names: Vec<&str> = names.into_iter().collect();
            families.insert(format!("{} {}{{{}}}", now.1, now.0, names.join(",")));
        }
    }
    families
}

/// The metrics of a client whose requests were sent again and whose credentials a plugin gives.
fn rare(client: &Client) -> String {
    #[derive(Debug)]
    struct Rare(ClientFigures);

    impl Collector for Rare {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
            let labels = vec![("host", self.0.server.to_string())];
            write(&mut encoder, &[(labels, self.0.clone())], clients::CLIENTS)?;
            write(&mut encoder, &[(Labels::new(), self.0.clone())], clients::PLUGINS)
        }
    }

    let mut figures = client.figures();
    figures.requests[0].retries = 1;
    figures.credentials.calls.succeeded = 1;
    figures.credentials.expire_in = Some(Duration::from_secs(60));
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Rare(figures)));
    text(&registry)
}

async fn reconcile(request: Request<ConfigMap>) -> Result<Outcome, ReconcileError> {
    match request.key().name() {
        "requeued" => Ok(Outcome::RequeueAfter(Duration::from_secs(3600))),
        "failing" => Err(ReconcileError::terminal("it is wrong")),
        _ => Ok(Outcome::Done),
    }
}

/// A program that has one of each, and its registry.
fn run<F: Future<Output = ()>>(test: impl FnOnce(Runtime, Client, Registry) -> F) {
    Runtime::simulated(7).run(|runtime| async move {
        let server = ApiServer::builder().seed(7).in_process(runtime.wall_time()).start().await;
        let server = server.expect("it starts");
        let client = Client::in_process(&runtime, server.service());
        for name in ["one", "requeued", "failing"] {
            let mut map = ConfigMap::default();
            map.metadata.name = Some(name.to_owned());
            client
                .api::<ConfigMap>()
                .namespaced("default")
                .create(&PostParams::default(), &map)
                .await
                .expect("it is created");
        }
        let registry = Metrics::of(&runtime).registry();
        test(runtime, client, registry).await;
    });
}

#[test]
fn names_types_and_labels_are_those_of_the_list() {
    run(|runtime, client, registry| async move {
        let maps = client.resource::<ConfigMap>().namespace("default").informer(&runtime).expect("sound");
        let maps = maps.start().expect("it starts");
        let changes = maps.for_each(|_| async {}).expect("it subscribes");
        let controller = Controller::builder(&maps).name("maps").reconcile(reconcile).start().expect("sound");
        let recorder = Recorder::builder(&client, &runtime, "maps").start().expect("a name");
        let lease = LeaseName { namespace: "default", name: "maps" };
        let election = LeaderElection::builder(&client, &runtime, lease).start().expect("sound");
        election.acquired().await.expect("nobody else is there");
        maps.synced_within(Duration::from_secs(60)).await.expect("it syncs");
        let one = maps
            .lister()
            .snapshot()
            .get(&ObjectKey::namespaced("default", "one"))
            .cloned()
            .expect("it is cached");
        let text_of_event = EventText { reason: "Seen", action: "Look", note: "it is there" };
        recorder.event(&one, EventType::Normal, text_of_event);
        tokio::time::sleep(Duration::from_secs(30)).await;
        let text = text(&registry);
        let mut found = families(&text);
        found.append(&mut families(&rare(&client)));
        let listed: BTreeSet<String> = include_str!("names.txt").lines().map(str::to_owned).collect();
        let missing: Vec<_> = listed.difference(&found).collect();
        let new: Vec<_> = found.difference(&listed).cloned().collect();
        assert!(missing.is_empty() && new.is_empty(), "gone: {missing:#?}\nnew:\n{}", new.join("\n"));
        let series = series(&text);
        let result = |result: &str| {
            series[&format!("controller_runtime_reconcile_total{{controller=\"maps\",result=\"{result}\"}}")]
        };
        assert_eq!((result("success"), result("requeue_after"), result("error")), (1.0, 1.0, 1.0));
        assert_eq!(series["leader_election_master_status{name=\"default/maps\"}"], 1.0);
        let objects = "informer_objects{name=\"configmaps/ns=default\",group=\"\",version=\"v1\",resource=\"configmaps\"}";
        assert_eq!(series[objects], 3.0);
        drop((changes, controller));
    });
}

/// What client-go 0.36 (`component-base/metrics/prometheus`) and controller-runtime 0.25 export, and what
/// stands for it here. The labels are those of controller-runtime where both have the name.
#[test]
fn what_client_go_and_controller_runtime_export_is_there_with_the_same_type_and_labels() {
    let listed: BTreeSet<&str> = include_str!("names.txt").lines().collect();
    for line in include_str!("upstream.txt").lines().filter(|line| !line.starts_with('#')) {
        let (family, why_not) = line.split_once(" -- ").unwrap_or((line, ""));
        assert_eq!(listed.contains(family), why_not.is_empty(), "{line}");
    }
}

#[test]
fn a_counter_does_not_go_back_when_a_source_or_a_client_ends() {
    run(|runtime, client, registry| async move {
        let source = |namespace: &str| client.resource::<ConfigMap>().namespace(namespace);
        let maps = source("default").informer(&runtime).expect("sound").start().expect("it starts");
        maps.synced_within(Duration::from_secs(60)).await.expect("it syncs");
        let other = source("kube-system").source_id(SourceId::new("other")).source(&runtime).expect("sound");
        maps.add_source(other).expect("it is another namespace");
        maps.source_synced(&SourceId::new("other")).await.expect("it syncs");
        let passing = client.carried_by(&runtime);
        passing.api::<ConfigMap>().namespaced("default").get("one").await.expect("it is there");
        let before = series(&text(&registry));
        maps.remove_source(&SourceId::new("other")).await.expect("it is there");
        drop(passing);
        let after = series(&text(&registry));
        for (name, value) in before.iter().filter(|(name, _)| name.contains("_total")) {
            assert!(after.get(name) >= Some(value), "{name} was {value}, and is {:?}", after.get(name));
        }
        let lists = after.iter().find(|(name, _)| name.starts_with("reflector_lists_total"));
        let watches = after.iter().find(|(name, _)| name.starts_with("reflector_watches_total"));
        let begun = [lists, watches].into_iter().flatten().map(|(_, count)| count).sum::<f64>();
        assert!(begun >= 2.0, "two sources were followed: {begun}");
    });
}

#[test]
fn a_series_ends_with_what_it_describes_and_all_end_with_the_runtime() {
    let kept = std::cell::RefCell::new(None);
    run(|runtime, client, registry| {
        let kept = &kept;
        async move {
            let maps =
                client.resource::<ConfigMap>().informer(&runtime).expect("sound").start().expect("it starts");
            let changes = maps.for_each(|_| async {}).expect("it subscribes");
            let is_there = |of: &str| text(&registry).contains(of);
            assert!(is_there("informer_objects{") && is_there("subscription_events_total{"));
            drop(changes);
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(!is_there("subscription_events_total{"));
            maps.shutdown(Duration::from_secs(10)).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(!is_there("informer_objects{"));
            *kept.borrow_mut() = Some(registry);
        }
    });
    let registry = kept.into_inner().expect("the test has run");
    assert_eq!(text(&registry), "");
}

#[cfg(feature = "persist")]
#[test]
fn a_cache_that_cannot_be_saved_is_seen_until_it_can() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path().join("not-yet-there");
    run(|runtime, client, registry| async move {
        let source = client.resource::<ConfigMap>().packed().persist(folder.join("maps"));
        let maps = source.informer(&runtime).expect("sound").start().expect("it starts");
        maps.synced_within(Duration::from_secs(60)).await.expect("it syncs");
        let fails = || {
            let series = series(&text(&registry));
            let (_, value) =
                series.iter().find(|(name, _)| name.starts_with("informer_save_failing{")).expect("listed");
            *value
        };
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(fails(), 1.0, "there is no such folder");
        std::fs::create_dir(&folder).expect("it is made");
        let mut map = ConfigMap::default();
        map.metadata.name = Some("newer".to_owned());
        let maps_there = client.api::<ConfigMap>().namespaced("default");
        maps_there.create(&PostParams::default(), &map).await.expect("it is created");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(fails(), 0.0);
    });
}

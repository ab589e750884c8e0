//! One informer of several clusters (INF-82).
//!
//! The scripted servers hold keys that name their cluster, as a source of Kubernetes makes them. What keys look like is
//! `idx_29` beside `informer_core::meta`.

use std::time::Duration;

use actix::Actor;
use informer_actors::informer::Informer;
use informer_actors::list_watch::SourceSpec;
use informer_actors::runtime::Runtime;
use informer_actors::testing::{Recorder, RecorderHandle, Server};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{ClusterName, Object, ObjectKey, SourceId};
use informer_core::reflector::{ReflectorConfig, SourceState};

use crate::world::{LONG, settle, until};

fn cluster(name: &str) -> ClusterName {
    name.parse().expect("a name")
}

/// A server of one cluster; its name is the source's name too.
fn server(name: &str, keys: &[&str]) -> Server<String> {
    let server = Server::named(SourceId::new(name));
    keys.iter().for_each(|key| drop(server.apply(&format!("{name}|{key}"), name.to_owned())));
    server
}

fn spec(name: &str, server: &Server<String>) -> SourceSpec<String> {
    let config = ReflectorConfig::new("texts");
    SourceSpec::new(SourceId::new(name), server.connect(), config).in_cluster(cluster(name))
}

async fn started(runtime: &Runtime, servers: &[(&str, &Server<String>)]) -> Informer<String> {
    let builder =
        Informer::builder(runtime, "texts").index("body", |object: &Object<String>| [object.body().clone()]);
    let builder =
        servers.iter().fold(builder, |builder, (name, server)| builder.source_with(spec(name, server)));
    let informer = builder.start().expect("the spec is valid");
    informer.synced_within(LONG).await.expect("it syncs");
    informer
}

fn keys(objects: &[Object<String>]) -> Vec<String> {
    objects.iter().map(|object| object.key().to_string()).collect()
}

#[test]
fn inf_82_objects_of_one_name_in_two_clusters_are_two_objects_and_each_cluster_is_listed_for_itself() {
    Runtime::simulated(1).run(|runtime| async move {
        let [eu, us] = ["eu", "us"].map(|name| server(name, &["default/web", "node", "other/web"]));
        let informer = started(&runtime, &[("us", &us), ("eu", &eu)]).await;
        let lister = informer.lister();
        let all = ["eu|node", "eu|default/web", "eu|other/web", "us|node", "us|default/web", "us|other/web"];
        assert_eq!(keys(&lister.list()), all);
        assert_eq!(keys(&lister.list_namespace("default")), ["eu|default/web", "us|default/web"]);
        assert_eq!(keys(&lister.list_namespace_in(&cluster("us"), "default")), ["us|default/web"]);
        assert_eq!(keys(&lister.list_cluster(&cluster("eu"))), all[..3]);
        assert!(lister.list_cluster(&cluster("af")).is_empty());
        assert!(lister.list_namespace_in(&cluster("eu"), "none").is_empty());
        let web: ObjectKey = "us|default/web".parse().expect("a key");
        assert_eq!(lister.get(&web).expect("it is there").body(), "us");
        assert!(
            lister.get(&"default/web".parse().expect("a key")).is_none(),
            "there is no object without a cluster"
        );
        assert_eq!(keys(&lister.by_index("body", "us").expect("the index is there")), all[3..]);
    });
}

#[test]
fn inf_82_what_happens_in_one_cluster_leaves_the_objects_of_the_other_clusters() {
    Runtime::simulated(1).run(|runtime| async move {
        let [eu, us] = ["eu", "us"].map(|name| server(name, &["default/web", "default/db"]));
        let informer = started(&runtime, &[("eu", &eu), ("us", &us)]).await;
        let (recorder, received): (_, RecorderHandle<String>) = Recorder::new();
        let subscription = informer.subscribe(recorder.start()).expect("it runs");
        subscription.synced_within(LONG).await.expect("four objects");
        received.clear_lines();
        eu.freeze_watches(true);
        eu.delete("eu|default/web");
        eu.apply("eu|default/db", "changed".to_owned());
        eu.compact();
        eu.freeze_watches(false);
        eu.end_watches(None);
        let source = SourceId::new("eu");
        informer.lister().wait_for_source(&source, &eu.version(), LONG).await.expect("it lists again");
        until(|| received.agrees_with(&informer.snapshot()).is_ok()).await;
        assert_eq!(received.lines(), ["Updated(Relist) eu|default/db@5", "Missed(Relist) eu|default/web@2"]);
        assert_eq!(
            keys(&informer.lister().list_cluster(&cluster("us"))),
            ["us|default/db", "us|default/web"]
        );
        received.clear_lines();
        informer.remove_source(&source).await.expect("it is there");
        assert_eq!(received.lines(), ["Missed(Relist) eu|default/db@5"]);
        assert_eq!(keys(&informer.lister().list()), ["us|default/db", "us|default/web"]);
    });
}

#[test]
fn inf_82_an_answer_with_a_key_of_another_cluster_is_refused_as_a_whole_shown_and_counted() {
    Runtime::simulated(1).run(|runtime| async move {
        let (eu, us) = (server("eu", &["a/1"]), server("us", &["a/1"]));
        let informer = started(&runtime, &[("eu", &eu), ("us", &us)]).await;
        let of_eu = || informer.status().source(&SourceId::new("eu")).expect("it is there").clone();
        let failures = of_eu().counters.failures;
        eu.apply("us|a/1", "wrong".to_owned());
        until(|| of_eu().counters.failures > failures).await;
        let error = of_eu().last_error.expect("a failure has an error");
        assert!(matches!(&error, ListWatchError::ForeignCluster { .. }), "{error:?}");
        assert_eq!(error.to_string(), "foreign cluster: us|a/1 was brought by a source of cluster eu");
        let us_one: ObjectKey = "us|a/1".parse().expect("a key");
        assert_eq!(informer.lister().get(&us_one).expect("it is there").body(), "us");
        let recovered = eu.delete("us|a/1").expect("it was there");
        // A list without it is accepted again; the deletion itself still names the other cluster.
        eu.compact();
        informer.lister().wait_for_source(&SourceId::new("eu"), &recovered, LONG).await.expect("it recovers");
        assert_eq!(informer.lister().get(&us_one).expect("it was not applied").body(), "us");
        // A list is refused in the same way as a watch: nothing of it is published.
        let bad = server("af", &["a/1"]);
        bad.apply("a/2", "without a cluster".to_owned());
        informer.add_source(spec("af", &bad)).expect("the name is free");
        until(|| informer.status().source(&SourceId::new("af")).is_some_and(|s| s.counters.failures > 2))
            .await;
        let state = informer.status().source(&SourceId::new("af")).expect("it is there").state.clone();
        assert!(!matches!(state, SourceState::Streaming), "{state:?}");
        assert_eq!(informer.snapshot().len(), 2);
    });
}

// INF-82: given an informer whose sources name clusters, when objects of one name come from two of them, then
// they are two objects with two keys; a relist, a removal or a slow list of one cluster leaves the others
// alone; an answer with a key of another cluster is refused as a whole, shown and counted.
// - a they are two, and each cluster and its namespaces are listed for themselves:
//   `inf_82_objects_of_one_name_in_two_clusters_are_two_objects_and_each_cluster_is_listed_for_itself`
// - b a relist or removal of one leaves the others:
//   `inf_82_what_happens_in_one_cluster_leaves_the_objects_of_the_other_clusters`
// - c a foreign key is refused, shown and counted
// - d each cluster has a list budget of its own: `inf_82_each_cluster_has_a_list_budget_of_its_own`
// - e keys of one namespace and cluster share one allocation besides their names:
//   `inf_82_keys_of_a_namespace_and_cluster_share_one_allocation_besides_their_names`
#[test]
fn inf_82_a_source_that_was_declared_without_a_cluster_may_bring_no_key_that_names_one() {
    Runtime::simulated(1).run(|runtime| async move {
        let server = server("eu", &["a/1"]);
        let declared = SourceSpec::new(SourceId::new("eu"), server.connect(), ReflectorConfig::new("texts"));
        let informer = Informer::builder(&runtime, "texts").source_with(declared).start();
        let informer = informer.expect("the spec is valid");
        until(|| informer.last_error().is_some()).await;
        let error = informer.last_error().expect("it fails").to_string();
        assert_eq!(error, "foreign cluster: eu|a/1 was brought by a source without a cluster");
        assert!(informer.snapshot().is_empty());
    });
}

#[test]
fn inf_82_each_cluster_has_a_list_budget_of_its_own() {
    Runtime::simulation(1).lists_at_once(1).build().run(|runtime| async move {
        let (slow, quick) = (server("slow", &["a/1"]), server("quick", &["a/1"]));
        slow.hold_lists(true);
        let names = [("slow", &slow), ("quick", &quick)];
        let builder = Informer::builder(&runtime, "texts");
        let builder =
            names.iter().fold(builder, |builder, (name, server)| builder.source_with(spec(name, server)));
        let informer = builder.start().expect("the spec is valid");
        settle().await;
        let source = SourceId::new("quick");
        let listed = tokio::time::timeout(Duration::from_secs(5), informer.source_synced(&source)).await;
        listed.expect("no list of another cluster delays it").expect("it lists");
        assert!(!informer.status().synced, "the other one has not listed");
    });
}

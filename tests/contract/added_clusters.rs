//! Clusters that are added to a running informer as several namespaces (INF-94).
//!
//! `views.rs` shows a scripted server as a cluster of which each source sees one namespace.

use informer_actors::informer::{Informer, NamespaceSources, NamespacesError, Selection};
use informer_actors::list_watch::SourceSpec;
use informer_actors::runtime::Runtime;
use informer_actors::testing::Server;
use informer_core::meta::{ClusterName, SourceId};
use informer_core::reflector::ReflectorConfig;

use crate::views::{Cluster, synced};
use crate::world::{LONG, until};

fn name(name: &str) -> ClusterName {
    name.parse().expect("a name")
}

/// A cluster with an object in each of these namespaces.
fn cluster(of: &str, namespaces: &[&str]) -> Cluster {
    let keys: Vec<String> = namespaces.iter().map(|namespace| format!("{of}|{namespace}/1")).collect();
    Cluster::of(&keys.iter().map(String::as_str).collect::<Vec<_>>())
}

fn given(of: &str, cluster: &Cluster, namespaces: &[&str]) -> NamespaceSources<String> {
    NamespaceSources::given(cluster.each_of(&name(of)), namespaces.iter().copied()).in_cluster(name(of))
}

fn keys(informer: &Informer<String>) -> Vec<String> {
    informer.snapshot().keys().map(ToString::to_string).collect()
}

// INF-94: given an informer of several clusters, when one is away, then its objects stay, its state and the
// age of its data are known for itself, and the others go on; clusters are added and removed while it runs,
// and each has its own set of namespaces.
// - a the objects stay, and it is known how old they are:
//   `inf_94_a_cluster_that_is_away_keeps_its_objects_and_it_is_known_how_old_they_are`
// - b one is killed and comes back: `inf_94_of_two_clusters_one_is_killed_and_comes_back`
// - c clusters come and go:
//   `inf_94_clusters_come_and_go_while_the_informer_runs_and_the_others_notice_nothing`
// - d each has its own set of namespaces: `inf_94_each_cluster_has_its_own_set_of_namespaces`
// - e also one that is added while it runs, and added again
#[test]
fn inf_94_a_cluster_is_added_with_as_many_sources_as_namespaces_is_removed_and_comes_back_with_others() {
    Runtime::simulated(1).run(|runtime| async move {
        let (eu, us) = (cluster("eu", &["a", "b"]), cluster("us", &["a", "b", "c"]));
        let followed =
            synced(Informer::builder(&runtime, "texts").namespaces(given("eu", &eu, &["a"]))).await;
        let informer = &followed.informer;
        informer.add_namespaces(given("us", &us, &["a", "b"])).expect("another cluster");
        assert_eq!(followed.lines().await.len(), 2);
        assert_eq!(followed.sources(), ["eu|a", "us|a", "us|b"]);
        informer.set_namespaces_in(&name("us"), ["b", "c"]).expect("names");
        assert_eq!(followed.lines().await.len(), 2, "one goes, one comes");
        let twice = informer.add_namespaces(given("us", &us, &["a"])).expect_err("it is there");
        assert_eq!(twice.to_string(), "informer \"texts\" follows namespaces of cluster us already");

        informer.remove_cluster(&name("us")).await.expect("it is there");
        assert_eq!(
            (followed.sources(), keys(informer)),
            (vec!["eu|a".to_owned()], vec!["eu|a/1".to_owned()])
        );
        followed.lines().await;
        let moved = cluster("us", &["a", "d"]);
        informer.add_namespaces(given("us", &moved, &["a", "d"])).expect("it was removed");
        assert_eq!(followed.lines().await.len(), 2);
        assert_eq!(keys(informer), ["eu|a/1", "us|a/1", "us|d/1"]);
        assert_eq!(informer.status().namespaces.len(), 2, "one line for each cluster");
        moved.server.apply("us|d/1", "seen".to_owned());
        until(|| !followed.received.is_empty()).await;
        assert!(followed.lines().await[0].starts_with("Updated(Watch) us|d/1"));
    });
}

#[test]
fn inf_94_the_namespaces_of_a_cluster_that_is_added_may_be_selected_and_what_is_refused_changes_nothing() {
    Runtime::simulated(1).run(|runtime| async move {
        let (eu, us) = (cluster("eu", &["a"]), cluster("us", &["a", "b"]));
        let followed =
            synced(Informer::builder(&runtime, "texts").namespaces(given("eu", &eu, &["a"]))).await;
        let informer = &followed.informer;
        let plain = NamespaceSources::given(us.each(), ["a"]);
        let refused = informer.add_namespaces(plain).expect_err("its sources name a cluster");
        assert!(matches!(refused, NamespacesError::Source(_)), "{refused}");
        let unmade = NamespaceSources::given(us.each(), [""]).in_cluster(name("us"));
        let refused = informer.add_namespaces(unmade).expect_err("no namespace has this name");
        assert!(matches!(refused, NamespacesError::Refused { .. }), "{refused}");
        assert_eq!((followed.sources().len(), informer.status().namespaces.len()), (1, 1));

        let selects = Server::<String>::named(SourceId::new("us|namespaces"));
        selects.apply("b", String::new());
        let selection = || {
            let (id, config) = (SourceId::new("us|namespaces"), ReflectorConfig::new("namespaces"));
            Selection::watching(SourceSpec::new(id, selects.connect(), config).in_cluster(name("us")))
        };
        let selected =
            || NamespaceSources::selected(us.each_of(&name("us")), selection()).in_cluster(name("us"));
        for _ in 0..2 {
            informer.add_namespaces(selected()).expect("another cluster");
            informer.namespaces_synced().await.expect("it runs");
            assert_eq!(keys(informer), ["eu|a/1", "us|b/1"]);
            informer.remove_cluster(&name("us")).await.expect("it is there");
            assert_eq!(keys(informer), ["eu|a/1"]);
        }
        assert!(informer.shutdown(LONG).await.is_clean());
        assert!(matches!(informer.add_namespaces(selected()), Err(NamespacesError::Stopped { .. })));
    });
}

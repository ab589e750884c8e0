//! Clusters and shards that come and go: what one that is away leaves, and how old it is (INF-93, INF-94).

use std::time::Duration;

use actix::Actor;
use informer_actors::informer::{Informer, NamespaceSources};
use informer_actors::list_watch::SourceSpec;
use informer_actors::runtime::Runtime;
use informer_actors::testing::{Recorder, Server};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{ClusterName, SourceId};
use informer_core::reflector::{ReflectorConfig, SourceState};

use crate::views::Cluster;
use crate::world::{LONG, pass, settle, until};

const MINUTE: Duration = Duration::from_secs(60);

fn name(name: &str) -> ClusterName {
    name.parse().expect("a name")
}

fn id(name: &str) -> SourceId {
    SourceId::new(name)
}

fn server(name: &str, keys: &[&str]) -> Server<String> {
    let server = Server::named(id(name));
    keys.iter().for_each(|key| drop(server.apply(&format!("{name}|{key}"), String::new())));
    server
}

fn spec(cluster: &str, server: &Server<String>) -> SourceSpec<String> {
    SourceSpec::new(id(cluster), server.connect(), ReflectorConfig::new("texts")).in_cluster(name(cluster))
}

fn keys(informer: &Informer<String>) -> Vec<String> {
    informer.snapshot().iter().map(|object| object.key().to_string()).collect()
}

#[test]
fn inf_94_a_cluster_that_is_away_keeps_its_objects_and_it_is_known_how_old_they_are() {
    Runtime::simulated(1).run(|runtime| async move {
        let [eu, us] = ["eu", "us"].map(|name| server(name, &["a/1", "a/2"]));
        let builder = Informer::builder(&runtime, "texts");
        let builder = builder.source_with(spec("eu", &eu)).source_with(spec("us", &us));
        let informer = builder.start().expect("two clusters");
        let lister = informer.lister();
        assert_eq!((lister.age(&id("eu")), lister.age(&id("af"))), (None, None), "nothing was heard yet");
        informer.synced_within(LONG).await.expect("both list");
        us.refuse((0..99).map(|_| ListWatchError::Timeout("no answer".into())));
        us.end_watches(None);
        for _ in 0..30 {
            pass(MINUTE).await;
            eu.apply("eu|a/1", "the other cluster goes on".to_owned());
        }
        settle().await;
        assert!(lister.age(&id("us")).is_some_and(|age| age >= MINUTE * 29), "{:?}", lister.age(&id("us")));
        assert!(lister.age(&id("eu")).is_some_and(|age| age < MINUTE), "{:?}", lister.age(&id("eu")));
        let state = |name| informer.status().source(&id(name)).expect("it is there").state.clone();
        assert!(
            matches!(state("us"), SourceState::Backoff { .. })
                && matches!(state("eu"), SourceState::Streaming)
        );
        assert_eq!(keys(&informer), ["eu|a/1", "eu|a/2", "us|a/1", "us|a/2"]);
        let of_object = informer.snapshot().iter().last().map(|object| lister.age(object.source()));
        assert_eq!(of_object, Some(lister.age(&id("us"))), "an object names its source");
        eu.delete("eu|a/2");
        until(|| keys(&informer).len() == 3).await;
        pass(LONG * 2).await;
        us.apply("us|a/3", String::new());
        until(|| keys(&informer) == ["eu|a/1", "us|a/1", "us|a/2", "us|a/3"]).await;
        assert!(lister.age(&id("us")).is_some_and(|age| age < MINUTE), "{:?}", lister.age(&id("us")));
    });
}

#[test]
fn inf_94_clusters_come_and_go_while_the_informer_runs_and_the_others_notice_nothing() {
    Runtime::simulated(1).run(|runtime| async move {
        let [eu, us] = ["eu", "us"].map(|name| server(name, &["a/1"]));
        let informer = Informer::builder(&runtime, "texts").source_with(spec("eu", &eu)).start();
        let informer = informer.expect("one cluster");
        informer.synced_within(LONG).await.expect("it lists");
        let (recorder, received) = Recorder::new();
        let _subscription = informer.subscribe(recorder.start()).expect("it runs");
        until(|| received.len() == 1).await;
        received.clear_lines();
        informer.add_source(spec("us", &us)).expect("the name is free");
        informer.source_synced(&id("us")).await.expect("it lists");
        until(|| !received.is_empty()).await;
        informer.remove_cluster(&name("us")).await.expect("another one stays");
        informer.remove_cluster(&name("us")).await.expect("there is none any more");
        until(|| received.len() == 2).await;
        assert_eq!(received.lines(), ["Added(InitialList) us|a/1@2", "Missed(Relist) us|a/1@2"]);
        assert_eq!(keys(&informer), ["eu|a/1"]);
        let last = informer.remove_cluster(&name("eu")).await.expect_err("it is the last");
        assert_eq!(last.to_string(), "source \"eu\" is the last one of informer \"texts\"");
    });
}

#[test]
fn inf_94_each_cluster_has_its_own_set_of_namespaces() {
    Runtime::simulated(1).run(|runtime| async move {
        let clusters =
            ["eu", "us"].map(|of| Cluster::of(&["a/1", "b/1"].map(|key| &*format!("{of}|{key}").leak())));
        let sources = |n: usize, of: &str| {
            let (each, cluster) = (clusters[n].each_of(&name(of)), name(of));
            NamespaceSources::given(each, ["a"]).in_cluster(cluster)
        };
        let builder = Informer::builder(&runtime, "texts");
        let builder = builder.namespaces(sources(0, "eu")).namespaces(sources(1, "us"));
        let informer = builder.start().expect("two sets");
        informer.synced_within(LONG).await.expect("it syncs");
        assert_eq!(keys(&informer), ["eu|a/1", "us|a/1"]);
        informer.set_namespaces_in(&name("us"), ["a", "b"]).expect("names");
        informer.namespaces_synced().await.expect("it runs");
        assert_eq!(keys(&informer), ["eu|a/1", "us|a/1", "us|b/1"]);
        let none = informer.set_namespaces(["a"]).expect_err("a cluster has to be named");
        assert!(none.to_string().ends_with("was started without a set of namespaces"), "{none}");
        let none = informer.set_namespaces_in(&name("af"), ["a"]).expect_err("there is none");
        assert!(none.to_string().ends_with("of cluster af"), "{none}");
        let shown = informer.status().namespaces.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(shown, ["1 namespaces of cluster eu one by one", "2 namespaces of cluster us one by one"]);
        informer.remove_cluster(&name("us")).await.expect("it is there");
        assert_eq!(keys(&informer), ["eu|a/1"]);
    });
}

// INF-93: given an informer whose sources are shards, when shards are added, removed or cut anew
// (`hand_over`), then subscribers receive the objects that come and go, and nothing of what stays.
#[test]
fn inf_93_shards_are_sources_that_are_added_removed_and_cut_anew_while_nobody_is_told_of_what_stays() {
    Runtime::simulated(1).run(|runtime| async move {
        let all: Vec<String> = (0..60).map(|n| format!("a/{n}")).collect();
        let cluster = Cluster::of(&all.iter().map(String::as_str).collect::<Vec<_>>());
        let shard = |n: usize, of: usize| cluster.shard(n, of);
        let two = Informer::builder(&runtime, "texts").source_with(shard(0, 3)).source_with(shard(1, 3));
        let informer = two.start().expect("shards may exclude each other");
        informer.synced_within(LONG).await.expect("both list");
        assert_eq!(informer.snapshot().len(), 40);
        let (recorder, received) = Recorder::new();
        let _subscription = informer.subscribe(recorder.start()).expect("it runs");
        let events = async |count| {
            until(|| received.len() >= count).await;
            settle().await;
            let lines = received.lines();
            received.clear_lines();
            lines
        };
        events(40).await;
        let twice = informer.add_source(shard(1, 3)).expect_err("it is there");
        assert!(twice.to_string().contains("has a source \"shard-1/3\""), "{twice}");
        informer.add_source(shard(2, 3)).expect("the last shard");
        assert_eq!(events(20).await.len(), 20);
        let before = ["shard-0/3", "shard-1/3", "shard-2/3"].map(SourceId::new);
        let finer = (0..5).map(|n| shard(n, 5)).collect();
        informer.hand_over(&before, finer).await.expect("all list");
        cluster.server.apply("a/7", "changed".to_owned());
        assert_eq!(events(1).await, ["Updated(Watch) a/7@62"], "nothing else was told");
        informer.remove_source(&SourceId::new("shard-4/5")).await.expect("it is there");
        let gone = events(12).await;
        assert!(gone.len() == 12 && gone.iter().all(|line| line.starts_with("Missed(Relist)")), "{gone:?}");
    });
}

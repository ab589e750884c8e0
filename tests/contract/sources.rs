//! Informers of several sources, some of them empty (INF-36 for subscriptions), and bounds and scopes that are refused
//! (INF-62, INF-83).
//!
//! No list is held back here: the sources list at any time, as in a real program.

use std::time::Duration;

use actix::Actor;
use informer_actors::informer::{AddSourceError, Informer, StartError};
use informer_actors::list_watch::{Coverage, SourceSpec};
use informer_actors::runtime::Runtime;
use informer_actors::testing::{Recorder, Server};
use informer_core::delta_fifo::Bounds;
use informer_core::meta::SourceId;
use informer_core::reflector::ReflectorConfig;

use crate::world::{LONG, settle};

/// Sources with these numbers of objects, in this order.
fn informer_of(runtime: &Runtime, counts: &[usize]) -> (Informer<String>, Vec<Server<String>>) {
    let mut builder = Informer::builder(runtime, "several");
    let mut servers = Vec::new();
    for (place, count) in counts.iter().enumerate() {
        let name = SourceId::new(format!("source-{place}"));
        let server = Server::named(name.clone());
        (0..*count).for_each(|n| drop(server.apply(&format!("{name}/{n}"), String::new())));
        let config = ReflectorConfig::new("texts");
        builder = builder.source_with(SourceSpec::new(name, server.connect(), config));
        servers.push(server);
    }
    (builder.start().expect("the spec is valid"), servers)
}

#[test]
fn inf_36_a_subscription_of_several_sources_syncs_whichever_of_them_is_empty() {
    for counts in [[10, 0], [0, 10], [0, 0]] {
        Runtime::simulated(1).run(|runtime| async move {
            let (informer, _servers) = informer_of(&runtime, &counts);
            let (recorder, received) = Recorder::new();
            let early = informer.subscribe(recorder.start()).expect("it runs");
            informer.synced_within(LONG).await.expect("both have listed");
            early.synced_within(LONG).await.unwrap_or_else(|error| panic!("{counts:?}: {error}"));
            assert_eq!(received.len(), counts.iter().sum::<usize>());
            let late = informer.subscribe(Recorder::new().0.start()).expect("it runs");
            late.synced_within(LONG).await.unwrap_or_else(|error| panic!("{counts:?}, late: {error}"));
        });
    }
}

#[test]
fn inf_36_a_subscription_syncs_when_an_empty_source_lists_long_after_the_others() {
    Runtime::simulated(1).run(|runtime| async move {
        let (informer, servers) = informer_of(&runtime, &[10, 0, 0]);
        servers[1].hold_lists(true);
        servers[2].hold_lists(true);
        let subscription = informer.subscribe(Recorder::new().0.start()).expect("it runs");
        settle().await;
        servers[2].hold_lists(false);
        assert!(subscription.synced_within(Duration::from_secs(5)).await.is_err(), "one has not listed");
        servers[1].hold_lists(false);
        informer.synced_within(LONG).await.expect("all have listed");
        subscription.synced_within(LONG).await.expect("everything is delivered");
    });
}

// INF-62: given bounds of the queue with zero parts, zero bytes or a zero batch, when the informer is
// started, then it is refused with an error that names the bound; with one of each it syncs.
#[test]
fn inf_62_a_queue_that_could_take_or_hand_out_nothing_is_refused_by_the_name_of_its_bound() {
    let sound = Bounds::default();
    let bounds = [
        ("parts", Bounds { parts: 0, ..sound }),
        ("bytes", Bounds { bytes: 0, ..sound }),
        ("batch", Bounds { batch: 0, ..sound }),
    ];
    Runtime::simulated(1).run(|runtime| async move {
        for (name, bounds) in bounds {
            let server = Server::<String>::new();
            let informer = Informer::builder(&runtime, "texts").source(move || server.clone()).bounds(bounds);
            let error = informer.start().expect_err("it could never go on");
            assert_eq!(error, StartError::ZeroBound { informer: "texts".into(), bound: name });
            assert!(error.to_string().contains(name), "{error}");
        }
        let server = Server::<String>::new();
        let least = Bounds { parts: 1, bytes: 1, batch: 1 };
        let informer = Informer::builder(&runtime, "texts").source(move || server.clone()).bounds(least);
        informer.start().expect("one is enough").synced_within(LONG).await.expect("it syncs");
    });
}

// INF-83: given sources whose scopes surely overlap, or only some of which name a cluster, when an informer
// is started with them or one is added, then it is refused with an error that names both; a hand-over may
// overlap.
// - a refused, but for a hand-over
// - b sources of Kubernetes say what they cover:
//   `inf_83_the_same_namespace_twice_or_all_and_one_of_them_is_refused`
#[test]
fn inf_83_scopes_that_overlap_are_refused_when_a_source_is_declared_or_added() {
    Runtime::simulated(1).run(|runtime| async move {
        let [a, b, c] = ["a", "b", "c"].map(|name| Server::<String>::named(SourceId::new(name)));
        let spec = |name: &str, server: &Server<String>| {
            SourceSpec::new(SourceId::new(name), server.connect(), ReflectorConfig::new("texts"))
        };
        let all = |name: &str, server: &Server<String>| spec(name, server).covering(Coverage::everything());
        let x = |name: &str, server: &Server<String>| {
            spec(name, server).covering(Coverage::everything().namespace("x"))
        };
        let both = Informer::builder(&runtime, "texts").source_with(all("a", &a)).source_with(x("b", &b));
        let refused = both.start().map(drop);
        let overlapping =
            StartError::Overlapping { informer: "texts".into(), name: "b".into(), other: "a".into() };
        assert_eq!(refused, Err(overlapping));
        let informer = Informer::builder(&runtime, "texts").source_with(x("a", &a)).start();
        let informer = informer.expect("one alone overlaps nothing");
        let refused = informer.add_source(all("b", &b)).expect_err("it holds x, too");
        assert!(matches!(refused, AddSourceError::Overlapping { .. }), "{refused}");
        let shard = x("c", &c).covering(Coverage::everything().namespace("x").selectors("shard=1"));
        let refused = informer.add_source(shard).expect_err("the first has all of it");
        assert!(refused.to_string().contains("covers"), "{refused}");
        let old = [SourceId::new("a")];
        informer.hand_over(&old, vec![all("b", &b)]).await.expect("a hand-over overlaps on purpose");
        assert!(informer.status().source(&old[0]).is_none());
        let mixed = Informer::builder(&runtime, "mixed")
            .source_with(spec("a", &a).in_cluster("eu".parse().expect("a name")))
            .source_with(spec("b", &b));
        let refused = mixed.start().map(drop).expect_err("one names a cluster and the other does not");
        assert!(matches!(refused, StartError::MixedClusters { has_cluster: false, .. }), "{refused}");
    });
}

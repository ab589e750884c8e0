//! Sets of many namespaces, of none, of clusters that come and go, and namespaces that fail (rows 4, 5, 10, 11 and 13 of
//! the reading of the informer).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use informer_actors::informer::{ClusterWide, Informer, NamespaceSources, OfNamespace};
use informer_actors::runtime::Runtime;
use informer_core::meta::ClusterName;

use crate::views::{Cluster, synced};
use crate::world::{LONG, pass, until};

/// What one turn may handle.
const TURN: usize = 250;

fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("n{n:04}")).collect()
}

#[test]
fn informer_5_a_set_of_many_namespaces_is_followed_in_slices_of_what_one_turn_handles() {
    Runtime::simulated(1).run(|runtime| async move {
        let cluster = Cluster::of(&["n0000/one"]);
        let sources = NamespaceSources::given(cluster.each(), ["n0000"]);
        let followed = synced(Informer::builder(&runtime, "texts").namespaces(sources)).await;
        followed.informer.set_namespaces(names(1_000)).expect("names");
        let (mut before, mut slices) = (followed.sources().len(), 0);
        while before < 1_000 {
            tokio::task::yield_now().await;
            let now = followed.sources().len();
            assert!(now - before <= TURN, "{} sources in one turn", now - before);
            slices += usize::from(now > before);
            before = now;
        }
        assert!(slices >= 4, "{slices}");
        followed.informer.namespaces_synced().await.expect("it runs");
        assert!(followed.informer.status().sources.iter().all(|source| source.version.is_some()));
    });
}

#[test]
fn informer_10_of_clusters_that_come_and_go_under_new_names_nothing_is_left() {
    Runtime::simulated(1).run(|runtime| async move {
        let each = |cluster: &Cluster, name: &ClusterName| {
            NamespaceSources::given(cluster.each_of(name), ["a"]).in_cluster(name.clone())
        };
        let name = |number: usize| -> ClusterName { format!("c{number}").parse().expect("a name") };
        let cluster = |number: usize| Cluster::of(&[&*format!("c{number}|a/1")]);
        let builder = Informer::builder(&runtime, "texts").namespaces(each(&cluster(0), &name(0)));
        let followed = synced(builder).await;
        let informer = &followed.informer;
        for number in 1..20 {
            informer.add_namespaces(each(&cluster(number), &name(number))).expect("another cluster");
            informer.namespaces_synced().await.expect("it runs");
            assert_eq!(informer.status().namespaces.len(), 2);
            informer.remove_cluster(&name(number)).await.expect("it is there");
            until(|| informer.status().namespaces.len() == 1).await;
        }
        let gone = informer.set_namespaces_in(&name(7), ["b"]).expect_err("it has no set any more");
        assert!(gone.to_string().contains("without a set of namespaces of cluster c7"), "{gone}");
        // A name that comes back begins anew.
        informer.add_namespaces(each(&cluster(7), &name(7))).expect("it was removed");
        informer.namespaces_synced().await.expect("it runs");
        assert_eq!((informer.namespaces().len(), informer.snapshot().len()), (2, 2));
        assert!(informer.shutdown(LONG).await.is_clean());
    });
}

#[test]
fn informer_11_a_set_of_no_namespaces_may_be_the_first_one_and_is_synced_at_once() {
    Runtime::simulated(1).run(|runtime| async move {
        let cluster = Cluster::of(&["a/1"]);
        let sources = NamespaceSources::given(cluster.each(), Vec::<String>::new());
        let followed = synced(Informer::builder(&runtime, "texts").namespaces(sources)).await;
        assert!(followed.informer.status().synced && followed.informer.snapshot().is_empty());
        followed.informer.set_namespaces(["a"]).expect("a name");
        assert_eq!(followed.lines().await, ["Added(InitialList) a/1@2"]);
        followed.informer.set_namespaces(Vec::<String>::new()).expect("none");
        assert_eq!(followed.lines().await, ["Missed(Relist) a/1@2"]);
    });
}

#[test]
fn informer_13_a_cluster_wide_source_that_is_forbidden_and_fails_by_turns_is_asked_again_after_the_wait_alone()
 {
    Runtime::simulated(1).run(|runtime| async move {
        let names = names(10);
        let cluster = Cluster::of(&["n0000/one", "n0005/one"]);
        let policy = ClusterWide::above(8).retry_after(Duration::from_secs(600));
        let sources = NamespaceSources::given(cluster.each(), names.iter().map(String::as_str));
        let sources = sources.cluster_wide(policy, cluster.all());
        let followed = synced(Informer::builder(&runtime, "texts").namespaces(sources)).await;
        assert_eq!(followed.sources(), ["*"]);
        cluster.forbid(true);
        cluster.fail_by_turns();
        // What it answers changes several times while the other sources list.
        cluster.server.answer_after(Duration::from_secs(10));
        cluster.server.end_watches(None);
        let (mut before, mut exchanges) = (1, 0);
        for _ in 0..3_600 {
            pass(Duration::from_secs(1)).await;
            let now = followed.sources().len();
            exchanges += usize::from(now != before);
            before = now;
        }
        // Away from it once; then it is tried each ten minutes: it comes and it goes.
        assert!(exchanges <= 2 + 2 * 6, "{exchanges}");
        assert_eq!(followed.lines().await, Vec::<String>::new());
        assert!(followed.informer.status().namespaces[0].next_try_at.is_some());
    });
}

#[test]
fn informer_4_a_namespace_for_which_no_source_could_be_made_is_shown_and_tried_again_while_it_is_wanted() {
    Runtime::simulated(1).run(|runtime| async move {
        let cluster = Cluster::of(&["a/1", "b/1"]);
        let (each, asked) = (cluster.each(), Arc::new(AtomicUsize::new(0)));
        let often = Arc::clone(&asked);
        // The first question is that of the call, which would refuse it.
        let each: OfNamespace<String> = Arc::new(move |namespace| {
            if namespace == "b" && (1..3).contains(&often.fetch_add(1, Ordering::Relaxed)) {
                return Err("no credentials".into());
            }
            each(namespace)
        });
        let sources = NamespaceSources::given(each, ["a"]);
        let followed = synced(Informer::builder(&runtime, "texts").namespaces(sources)).await;
        let informer = &followed.informer;
        informer.set_namespaces(["a", "b"]).expect("names");
        let failed = informer.namespaces_synced().await.expect_err("not all of them are followed");
        assert!(
            failed.to_string().ends_with("cannot follow the namespace \"b\": no credentials"),
            "{failed}"
        );
        let shown = informer.status().namespaces[0].clone();
        assert_eq!(shown.to_string(), "2 namespaces one by one, 1 of them not: \"b\": no credentials");
        // Asked by the call, at once, and then each half a minute.
        pass(Duration::from_secs(61)).await;
        informer.namespaces_synced().await.expect("all of them are followed");
        assert_eq!((asked.load(Ordering::Relaxed), informer.snapshot().len()), (4, 2));
        assert_eq!(informer.status().namespaces[0].failed, 0);
    });
}

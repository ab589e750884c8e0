//! One cluster-wide watch instead of one watch for each of many namespaces, and back (INF-92).
//!
//! `views.rs` shows a scripted server as a whole cluster. Its view of all namespaces brings every object: what is not
//! wanted is dropped by the informer.

use std::time::Duration;

use informer_actors::informer::{ClusterWide, Informer, InformerBuilder, NamespaceSources};
use informer_actors::runtime::Runtime;
use informer_actors::testing::{Site, kill_at};

use crate::views::{Cluster, Followed, synced};
use crate::world::{LONG, pass, settle, until};

const RETRY: Duration = Duration::from_secs(300);

fn builder(runtime: &Runtime, cluster: &Cluster, names: &[String], above: usize) -> InformerBuilder<String> {
    let sources = NamespaceSources::given(cluster.each(), names.iter().map(String::as_str));
    let policy = ClusterWide::above(above).retry_after(RETRY);
    Informer::builder(runtime, "texts").namespaces(sources.cluster_wide(policy, cluster.all()))
}

/// A cluster of these namespaces with an object each, and their names.
fn cluster(count: usize) -> (Cluster, Vec<String>) {
    let names: Vec<String> = (0..count).map(|n| format!("n{n}")).collect();
    let cluster = Cluster::of(&[]);
    names.iter().for_each(|name| drop(cluster.server.apply(&format!("{name}/one"), String::new())));
    (cluster, names)
}

impl Followed {
    async fn set(&self, names: &[String]) -> Vec<String> {
        self.informer.set_namespaces(names.iter().map(String::as_str)).expect("names");
        self.lines().await
    }
}

// INF-92: given namespaces above a number that the user sets, when they are followed, then one cluster-wide
// watch follows them, whose other objects are dropped; at a quarter below the number each has its own watch
// again; while they are exchanged subscribers receive nothing of what stays, whatever dies meanwhile; a few
// new namespaces have their own watches beside it, more are listed together; if the cluster-wide watch is
// forbidden the namespaces stay, the state says why, and it is tried again.
// - a above, between and below, nobody is told
// - b a few beside it, more together, and an empty one goes without a list:
//   `inf_92_beside_the_cluster_wide_watch_a_few_new_namespaces_have_their_own_and_more_are_listed_together`
// - c forbidden, the namespaces stay and the state says why; tried again:
//   `inf_92_if_the_cluster_wide_watch_is_forbidden_the_namespaces_stay_the_state_says_why_and_it_is_tried_again`
// - d objects of other namespaces are dropped before they are decoded:
//   `inf_92_objects_of_other_namespaces_are_dropped_before_they_are_decoded_from_lists_and_watches`
// - e whatever dies meanwhile:
//   `inf_92_whatever_dies_while_watches_are_exchanged_nothing_that_stays_is_told_as_deleted`
// - f 1,000 namespaces are 1,000 watches, and above the number one:
//   `inf_92_a_thousand_namespaces_are_a_thousand_watches_and_above_the_number_they_are_one`
// - g on a real server whose permissions forbid the cluster-wide watch:
//   `inf_92_forbidden_to_watch_all_it_follows_each`
// - h not left while its first list is on its way:
//   `a_cluster_wide_source_whose_list_is_on_its_way_is_not_left_before_each_namespace_of_it_is_listed`
#[test]
fn inf_92_above_the_number_one_watch_follows_all_and_a_quarter_below_each_has_its_own_and_nobody_is_told() {
    Runtime::simulated(1).run(|runtime| async move {
        let (cluster, names) = cluster(20);
        let followed = synced(builder(&runtime, &cluster, &names[..8], 8)).await;
        assert_eq!(followed.sources().len(), 8);
        assert_eq!(followed.set(&names[..10]).await.len(), 2, "the two new ones");
        assert_eq!(followed.sources(), ["*"]);
        assert!(followed.informer.status().namespaces[0].cluster_wide);
        followed.holds(&cluster, &names[..10]);
        cluster.server.apply("n3/one", "seen".to_owned());
        cluster.server.apply("n15/one", "of another namespace".to_owned());
        cluster.server.delete("n4/one");
        until(|| followed.received.len() == 2).await;
        assert_eq!(followed.lines().await, ["Updated(Watch) n3/one@22", "Deleted(Watch) n4/one@24"]);
        assert_eq!(followed.set(&names[..7]).await.len(), 3, "those that go");
        assert_eq!(followed.sources(), ["*"], "a little below the number nothing is exchanged");
        assert_eq!(followed.set(&names[1..7]).await, ["Missed(Relist) n0/one@2"]);
        assert_eq!(followed.sources().len(), 6, "a quarter below it each has its own");
        followed.holds(&cluster, &names[1..7]);
        cluster.server.apply("n5/one", "seen".to_owned());
        until(|| !followed.received.is_empty()).await;
        assert_eq!(followed.lines().await, ["Updated(Watch) n5/one@25"]);
    });
}

#[test]
fn inf_92_beside_the_cluster_wide_watch_a_few_new_namespaces_have_their_own_and_more_are_listed_together() {
    Runtime::simulated(1).run(|runtime| async move {
        let (cluster, names) = cluster(20);
        let followed = synced(builder(&runtime, &cluster, &names[..10], 8)).await;
        assert_eq!(followed.sources(), ["*"], "it begins with one watch");
        let lists =
            || cluster.server.requests().iter().filter(|line| !line.starts_with("WATCH version=2")).count();
        let before = lists();
        assert_eq!(followed.set(&names[..12]).await.len(), 2);
        assert_eq!(followed.sources(), ["*", "n10", "n11"]);
        assert_eq!(
            followed.set(&names[..13]).await,
            ["Added(InitialList) n12/one@14"].map(|line| line.replace("InitialList", "Relist"))
        );
        assert_eq!(followed.sources(), ["*"]);
        assert!(lists() > before);
        followed.holds(&cluster, &names[..13]);
        // A namespace that is empty goes without another list.
        cluster.server.delete("n0/one");
        until(|| followed.received.len() == 1).await;
        followed.lines().await;
        let before = followed.informer.status().sources[0].counters.relists;
        assert_eq!(followed.set(&names[1..13]).await, Vec::<String>::new());
        assert_eq!(followed.informer.status().sources[0].counters.relists, before);
        assert_eq!(followed.set(&names[2..13]).await, ["Missed(Relist) n1/one@3"]);
        let by = followed.informer.status().sources[0].counters.relists_by.clone();
        assert_eq!((by.asked, by.failed, by.resumed), (2, 0, 0));
        cluster.server.apply("n0/two", "unseen".to_owned());
        cluster.server.apply("n1/two", "unseen".to_owned());
        pass(LONG).await;
        followed.holds(&cluster, &names[2..13]);
    });
}

#[test]
fn inf_92_if_the_cluster_wide_watch_is_forbidden_the_namespaces_stay_the_state_says_why_and_it_is_tried_again()
 {
    Runtime::simulated(1).run(|runtime| async move {
        let (cluster, names) = cluster(12);
        cluster.forbid(true);
        let followed = synced(builder(&runtime, &cluster, &names[..10], 8)).await;
        assert_eq!(followed.sources().len(), 10);
        followed.holds(&cluster, &names[..10]);
        let shown = followed.informer.status().namespaces[0].clone();
        assert!(!shown.cluster_wide);
        let expected =
            "10 namespaces one by one, as the cluster-wide watch is refused: denied: only single namespaces";
        assert_eq!(shown.to_string(), expected);
        assert!(followed.informer.status().to_string().contains(expected));
        pass(RETRY * 3).await;
        assert!((2..=5).contains(&cluster.refused()), "{}", cluster.refused());
        assert_eq!((followed.sources().len(), followed.lines().await), (10, Vec::new()));
        cluster.forbid(false);
        pass(RETRY * 2).await;
        assert_eq!((followed.sources(), followed.lines().await), (vec!["*".to_owned()], Vec::new()));
        assert_eq!(followed.informer.status().namespaces[0].refused, None);
        // Forbidden later: the objects stay, and the single ones take over.
        cluster.forbid(true);
        cluster.server.end_watches(None);
        until(|| followed.sources().len() == 10).await;
        assert_eq!(followed.lines().await, Vec::<String>::new());
        cluster.server.apply("n3/one", "seen".to_owned());
        until(|| !followed.received.is_empty()).await;
        followed.holds(&cluster, &names[..10]);
        assert!(followed.informer.shutdown(LONG).await.is_clean());
    });
}

/// A scenario in which the watches are exchanged in both directions while objects change.
async fn exchange(runtime: &Runtime) -> u64 {
    let (cluster, names) = cluster(12);
    let followed = synced(builder(runtime, &cluster, &names[..4], 6)).await;
    for (round, count) in [8, 3, 12, 9, 10, 2].into_iter().enumerate() {
        followed.informer.set_namespaces(names[..count].iter().map(String::as_str)).expect("names");
        cluster.server.apply(&format!("n1/{round}"), String::new());
        cluster.server.apply("n0/one", format!("in round {round}"));
        settle().await;
        cluster.server.apply("n1/one", format!("in round {round}"));
        let lines = followed.lines().await;
        let stays = lines.iter().filter(|line| line.contains(" n0/") || line.contains(" n1/"));
        assert!(stays.clone().all(|line| !line.starts_with("Missed")), "{lines:?}");
        until(|| followed.received.agrees_with(&followed.informer.snapshot()).is_ok()).await;
        let version = cluster.server.version();
        let reached = || followed.informer.snapshot().iter().any(|object| *object.version() == version);
        until(reached).await;
        followed.holds(&cluster, &names[..count]);
    }
    let restarts = followed.informer.status().restarts;
    assert!(followed.informer.shutdown(LONG).await.is_clean());
    restarts
}

#[test]
fn inf_92_whatever_dies_while_watches_are_exchanged_nothing_that_stays_is_told_as_deleted() {
    let sites = [
        Site::ReflectorReceived,
        Site::DeltaFifoPush,
        Site::DeltaFifoPop,
        Site::IndexerReplace,
        Site::IndexerPublished,
        Site::NamespacesPlanned,
    ];
    for (site, nth) in sites.into_iter().flat_map(|site| (1..60).step_by(4).map(move |nth| (site, nth))) {
        Runtime::simulation(3).faults(kill_at(site, nth)).build().run(|runtime| async move {
            exchange(&runtime).await;
        });
    }
}

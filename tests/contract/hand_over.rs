//! What happens to objects while one source takes over from another (row 1 of the reading of the informer).
//!
//! A list shows the server as it was when it was asked for, and takes a while; meanwhile the sources that go bring what
//! happens. Two scripted servers that receive the same writes are two sources of one cluster.

use std::collections::BTreeMap;

use informer_actors::informer::{ClusterWide, Informer, NamespaceSources};
use informer_actors::list_watch::SourceSpec;
use informer_actors::runtime::Runtime;
use informer_actors::testing::{Server, Site, kill_at};
use informer_core::delta_fifo::QueueOrder;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Meta, SourceId};
use informer_core::reflector::ReflectorConfig;

use crate::views::{Cluster, Followed, synced};
use crate::world::{LONG, settle, until};

/// A cluster of these namespaces with two objects each, all of which are followed by a watch each, and their names.
async fn followed(runtime: &Runtime, order: QueueOrder, count: usize) -> (Cluster, Vec<String>, Followed) {
    let names: Vec<String> = (0..12).map(|n| format!("n{n:02}")).collect();
    let cluster = Cluster::of(&[]);
    for name in &names {
        cluster.server.apply(&format!("{name}/one"), String::new());
        cluster.server.apply(&format!("{name}/two"), String::new());
    }
    let sources = NamespaceSources::given(cluster.each(), names[..count].iter().map(String::as_str));
    let sources = sources.cluster_wide(ClusterWide::above(8), cluster.all());
    let builder = Informer::builder(runtime, "texts").namespaces(sources).queue_order(order);
    let followed = synced(builder).await;
    (cluster, names, followed)
}

/// What happens in the window, in each form.
fn happen(server: &Server<String>, namespace: &str) {
    server.apply(&format!("{namespace}/new"), String::new());
    server.delete(&format!("{namespace}/one"));
    server.delete(&format!("{namespace}/two"));
    server.apply(&format!("{namespace}/two"), "made again".to_owned());
    server.apply(&format!("{namespace}/short"), String::new());
    server.delete(&format!("{namespace}/short"));
}

/// How that is told.
fn told(namespace: &str) -> [String; 6] {
    [
        format!("Added(Watch) {namespace}/new"),
        format!("Deleted(Watch) {namespace}/one"),
        format!("Deleted(Watch) {namespace}/two"),
        format!("Added(Watch) {namespace}/two"),
        format!("Added(Watch) {namespace}/short"),
        format!("Deleted(Watch) {namespace}/short"),
    ]
}

/// What was told as deleted comes back in a newer version only.
fn each_life_is_told_once(lines: &[String]) {
    let mut gone: BTreeMap<&str, u64> = BTreeMap::new();
    for line in lines {
        let (what, object) = line.split_once(' ').expect("what happened, and to which object");
        let (key, version) = object.split_once('@').expect("a key at a version");
        let version = version.parse().expect("a number");
        if what.starts_with("Deleted") || what.starts_with("Missed") {
            gone.insert(key, version);
        } else {
            assert!(gone.remove(key).is_none_or(|deleted| deleted < version), "{line} in {lines:?}");
        }
    }
}

/// The lines without versions, in order of their keys; those of one key as they came.
fn sorted(lines: Vec<String>) -> Vec<String> {
    let mut lines: Vec<String> = lines
        .into_iter()
        .map(|line| line.split_once('@').map_or_else(|| line.clone(), |(line, _)| line.to_owned()))
        .collect();
    lines.sort_by_key(|line| line.split_once(' ').map(|(_, key)| key.to_owned()));
    lines
}

#[test]
fn informer_1_while_one_watch_takes_over_from_many_nothing_comes_back_and_nothing_that_lives_is_told_as_deleted()
 {
    for order in [QueueOrder::InOrder, QueueOrder::PerKey] {
        Runtime::simulated(1).run(|runtime| async move {
            let (cluster, names, followed) = followed(&runtime, order, 8).await;
            cluster.server.hold_lists(true);
            followed.informer.set_namespaces(names[..10].iter().map(String::as_str)).expect("names");
            settle().await;
            happen(&cluster.server, "n01");
            until(|| followed.received.len() == 6).await;
            let lines = followed.received.lines();
            followed.received.clear_lines();
            assert_eq!(sorted(lines), sorted(told("n01").into()));
            cluster.server.hold_lists(false);
            let lines = sorted(followed.lines().await);
            let new = ["n08/one", "n08/two", "n09/one", "n09/two"];
            assert_eq!(lines, new.map(|key| format!("Added(InitialList) {key}")));
            assert_eq!(followed.sources(), ["*"]);
            let version = cluster.server.apply("n02/one", String::new());
            let reached = || followed.informer.snapshot().iter().any(|object| *object.version() == version);
            until(reached).await;
            assert_eq!(sorted(followed.lines().await), ["Updated(Watch) n02/one"]);
            followed.holds(&cluster, &names[..10]);
        });
    }
}

#[test]
fn informer_1_while_many_watches_take_over_from_one_nothing_comes_back_and_nothing_that_lives_is_told_as_deleted()
 {
    for order in [QueueOrder::InOrder, QueueOrder::PerKey] {
        Runtime::simulated(1).run(|runtime| async move {
            let (cluster, names, followed) = followed(&runtime, order, 10).await;
            followed.informer.set_namespaces(names[..7].iter().map(String::as_str)).expect("names");
            followed.lines().await;
            assert_eq!(followed.sources(), ["*"]);
            // A namespace that is empty goes without another list, so the one watch goes on meanwhile.
            ["n06/one", "n06/two"].iter().for_each(|key| drop(cluster.server.delete(key)));
            until(|| followed.received.len() == 2).await;
            followed.lines().await;
            cluster.server.hold_lists(true);
            followed.informer.set_namespaces(names[..6].iter().map(String::as_str)).expect("names");
            settle().await;
            happen(&cluster.server, "n01");
            until(|| followed.received.len() == 6).await;
            cluster.server.hold_lists(false);
            assert_eq!(sorted(followed.lines().await), sorted(told("n01").into()));
            assert_eq!(followed.sources().len(), 6);
            let version = cluster.server.apply("n01/new", String::new());
            let reached = || followed.informer.snapshot().iter().any(|object| *object.version() == version);
            until(reached).await;
            assert_eq!(sorted(followed.lines().await), ["Updated(Watch) n01/new"]);
            followed.holds(&cluster, &names[..6]);
        });
    }
}

/// Two servers of the same content, which is written to both.
struct Twins([Server<String>; 2]);

impl Twins {
    fn new() -> Self {
        let twins = Self(["a", "b"].map(|name| Server::named(SourceId::new(name))));
        ["x/one", "x/two"].iter().for_each(|key| twins.each(|server| drop(server.apply(key, String::new()))));
        twins
    }

    fn each(&self, write: impl Fn(&Server<String>)) {
        self.0.iter().for_each(write);
    }

    fn spec(&self, at: usize, name: &str) -> SourceSpec<String> {
        SourceSpec::new(SourceId::new(name), self.0[at].connect(), ReflectorConfig::new("texts"))
    }
}

/// One source takes over from another while the list of the new one is on its way. Gives the number of restarts.
async fn exchange(runtime: &Runtime) -> u64 {
    let twins = Twins::new();
    let followed = synced(Informer::builder(runtime, "texts").source_with(twins.spec(0, "a"))).await;
    twins.0[1].hold_lists(true);
    let (informer, spec) = (followed.informer.clone(), twins.spec(1, "b"));
    let taking_over =
        actix::spawn(async move { informer.hand_over(&[SourceId::new("a")], vec![spec]).await });
    settle().await;
    twins.each(|server| happen(server, "x"));
    until(|| followed.informer.snapshot().keys().any(|key| key.name() == "new")).await;
    twins.each(|server| server.hold_lists(false));
    taking_over.await.expect("no panic").expect("it lists");
    let lines = followed.lines().await;
    if followed.informer.status().restarts == 0 {
        assert_eq!(sorted(lines.clone()), sorted(told("x").into()));
        let asked = twins.0[1].requests();
        let first = asked.first().expect("a list");
        assert!(first.contains("version=\"3\""), "not older than what the other has told: {asked:?}");
    }
    each_life_is_told_once(&lines);
    assert_eq!(followed.sources(), ["b"]);
    twins.each(|server| happen(server, "y"));
    let version = twins.0[1].version();
    followed.informer.lister().wait_for(&version, LONG).await.expect("it is followed");
    followed.lines().await;
    let content: Vec<_> = followed.informer.snapshot().keys().map(ToString::to_string).collect();
    assert_eq!(content, ["x/new", "x/two", "y/new", "y/two"]);
    let restarts = followed.informer.status().restarts;
    assert!(followed.informer.shutdown(LONG).await.is_clean());
    restarts
}

#[test]
fn informer_1_a_wait_for_a_write_that_begins_before_a_hand_over_ends_when_the_new_source_has_brought_it() {
    Runtime::simulated(1).run(|runtime| async move {
        let twins = Twins::new();
        let followed = synced(Informer::builder(&runtime, "texts").source_with(twins.spec(0, "a"))).await;
        // The former source brings nothing more, so the wait goes on with the new one.
        twins.0[0].freeze_watches(true);
        let version = twins.0[0].apply("x/one", "written".to_owned());
        let written = Meta::new("x/one".parse().expect("a key"), version.clone(), SourceId::default());
        let lister = followed.informer.lister();
        let wait = actix::spawn(async move { lister.wait_for_write(&written, LONG).await });
        settle().await;
        assert!(!wait.is_finished());
        followed.informer.hand_over(&[SourceId::new("a")], vec![twins.spec(1, "b")]).await.expect("it lists");
        settle().await;
        assert!(!wait.is_finished(), "the new source may bring it");
        assert_eq!(twins.0[1].apply("x/one", "written".to_owned()), version);
        wait.await.expect("no panic").expect("the new source has it");
        let shown = followed.informer.snapshot();
        assert_eq!(shown.named(None, Some("x"), "one").map(|object| object.version().clone()), Some(version));
    });
}

#[test]
fn informer_1_while_one_source_takes_over_from_another_each_life_is_told_once_whatever_dies() {
    Runtime::simulated(1).run(|runtime| async move { assert_eq!(exchange(&runtime).await, 0) });
    let sites = [
        Site::ReflectorReceived,
        Site::DeltaFifoPush,
        Site::DeltaFifoPop,
        Site::IndexerApply,
        Site::IndexerReplace,
        Site::IndexerPublished,
    ];
    for (site, nth) in sites.into_iter().flat_map(|site| (2..30).step_by(3).map(move |nth| (site, nth))) {
        Runtime::simulation(3).faults(kill_at(site, nth)).build().run(|runtime| async move {
            exchange(&runtime).await;
        });
    }
}

/// One source takes over from another whose server went back, and which cannot notice it.
async fn exchange_after_rewind(runtime: &Runtime) {
    let twins = Twins::new();
    let followed = synced(Informer::builder(runtime, "texts").source_with(twins.spec(0, "a"))).await;
    let backups = twins.0.each_ref().map(Server::backup);
    twins.each(|server| happen(server, "x"));
    let newest = twins.0[0].version();
    let reached = || followed.informer.snapshot().version(&SourceId::new("a")) == Some(&newest);
    until(reached).await;
    twins.0[0].refuse((0..1_000).map(|_| ListWatchError::Denied("no longer".into())));
    twins.0.iter().zip(&backups).for_each(|(server, backup)| server.restore(backup));
    twins.each(|server| drop(server.apply("x/other", "of the new history".to_owned())));
    followed.informer.hand_over(&[SourceId::new("a")], vec![twins.spec(1, "b")]).await.expect("it lists");
    let held = || -> Vec<_> {
        let snapshot = followed.informer.snapshot();
        snapshot.iter().map(|object| (object.key().clone(), object.version().clone())).collect()
    };
    until(|| held() == twins.0[1].content()).await;
    until(|| followed.received.agrees_with(&followed.informer.snapshot()).is_ok()).await;
    assert!(followed.informer.shutdown(LONG).await.is_clean());
}

#[test]
fn informer_1_a_server_that_went_back_is_noticed_by_the_source_that_takes_over_whatever_dies() {
    Runtime::simulated(1).run(|runtime| async move { exchange_after_rewind(&runtime).await });
    let sites = [Site::ReflectorReceived, Site::DeltaFifoPush, Site::DeltaFifoPop, Site::IndexerPublished];
    for (site, nth) in sites.into_iter().flat_map(|site| (2..20).map(move |nth| (site, nth))) {
        Runtime::simulation(3).faults(kill_at(site, nth)).build().run(|runtime| async move {
            exchange_after_rewind(&runtime).await;
        });
    }
}

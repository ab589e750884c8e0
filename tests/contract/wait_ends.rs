//! Waits whose sources come and go: each ends with what has become of what it waits for (design.md: every wait ends).

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use informer_actors::informer::{
    Informer, NamespaceSources, OfNamespace, RemoveSourceError, Selection, WaitError, WaitForError,
};
use informer_actors::list_watch::{Coverage, SourceSpec};
use informer_actors::runtime::Runtime;
use informer_actors::testing::{Faults, Server, Site};
use informer_core::index::Index;
use informer_core::meta::{Meta, Object, ObjectKey, SourceId};
use informer_core::reflector::ReflectorConfig;

use crate::fed::version;
use crate::views::Cluster;
use crate::world::{LONG, settle};

fn id(name: &str) -> SourceId {
    SourceId::new(name)
}

fn spec(name: &str, server: &Server<String>) -> SourceSpec<String> {
    SourceSpec::new(id(name), server.connect(), ReflectorConfig::new("texts"))
}

fn key(text: &str) -> ObjectKey {
    text.parse().expect("a key")
}

/// What a write of this key has returned.
fn written(of: &str, number: u64) -> Meta {
    Meta::new(key(of), version(number), SourceId::default())
}

thread_local!(static DEADLY: Cell<bool> = const { Cell::new(false) });

/// A simulation in which no reflector can start while `DEADLY` says so.
fn run_deadly<F: Future<Output = ()> + 'static>(scenario: impl FnOnce(Runtime) -> F) {
    let dead = Faults::new(|site| assert!(site != Site::ReflectorStarted || !DEADLY.get(), "on purpose"));
    Runtime::simulation(1).faults(dead).build().run(scenario);
}

#[test]
fn informer_3_a_wait_for_a_write_goes_on_when_one_of_its_sources_is_removed() {
    Runtime::simulated(1).run(|runtime| async move {
        let [a, b] = ["a", "b"].map(|name| Server::named(id(name)));
        let informer = Informer::builder(&runtime, "texts").source_with(spec("a", &a));
        let informer = informer.source_with(spec("b", &b)).start().expect("the spec is valid");
        informer.synced_within(LONG).await.expect("it syncs");
        let lister = informer.lister();
        let wait = actix_rt::spawn({
            let lister = lister.clone();
            async move { lister.wait_for_write(&written("x/new", 9), LONG).await }
        });
        settle().await;
        informer.remove_source(&id("b")).await.expect("it is there");
        settle().await;
        assert!(!wait.is_finished(), "the other source may bring it");
        while a.apply("x/other", String::new()) < version(9) {}
        assert_eq!(wait.await.expect("no panic"), Ok(()));
        let gone = lister.wait_for_source(&id("b"), &version(9), LONG).await;
        assert!(matches!(gone, Err(WaitForError::UnknownSource { .. })), "{gone:?}");
    });
}

#[test]
fn informer_3_a_wait_for_a_write_ends_when_no_source_follows_its_key_any_more() {
    Runtime::simulated(1).run(|runtime| async move {
        let cluster = Cluster::of(&["a/1", "b/1"]);
        let make = cluster.each();
        let covering: OfNamespace<String> = Arc::new(move |namespace| {
            Ok(make(namespace)?.covering(Coverage::everything().namespace(namespace)))
        });
        let sources = NamespaceSources::given(covering, ["a", "b"]);
        let informer = Informer::builder(&runtime, "texts").namespaces(sources).start().expect("it starts");
        informer.synced_within(LONG).await.expect("it syncs");
        let lister = informer.lister();
        let wait = actix_rt::spawn(async move { lister.wait_for_write(&written("b/new", 99), LONG).await });
        settle().await;
        informer.remove_namespace("a").expect("a name");
        informer.namespaces_synced().await.expect("it is carried out");
        settle().await;
        assert!(!wait.is_finished(), "b is followed still");
        informer.remove_namespace("b").expect("a name");
        let ended = wait.await.expect("no panic");
        assert!(matches!(ended, Err(WaitForError::NotFollowed { .. })), "{ended:?}");
    });
}

#[test]
fn informer_4_a_wait_for_the_namespaces_ends_when_a_source_of_the_set_is_given_up() {
    run_deadly(|runtime| async move {
        let cluster = Cluster::of(&["a/1", "b/1"]);
        let sources = NamespaceSources::given(cluster.each(), ["a"]);
        let informer = Informer::builder(&runtime, "texts").namespaces(sources).start().expect("it starts");
        informer.namespaces_synced().await.expect("it lists");
        DEADLY.set(true);
        informer.add_namespace("b").expect("a name");
        let ended = tokio::time::timeout(LONG, informer.namespaces_synced()).await.expect("it ends");
        let Err(WaitError::SourceGivenUp { lost, .. }) = ended else { panic!("{ended:?}") };
        assert_eq!(&*lost, "b");
        DEADLY.set(false);
        informer.revive(&id("b")).expect("it is given up");
        informer.namespaces_synced().await.expect("it lists now");
    });
}

#[test]
fn informer_4_a_wait_for_the_namespaces_ends_when_what_selects_them_is_given_up() {
    run_deadly(|runtime| async move {
        let cluster = Cluster::of(&["a/1"]);
        let names = Server::named(id("names/all"));
        names.apply("a", String::new());
        let selection = Selection::watching(spec("names/all", &names));
        let sources = NamespaceSources::selected(cluster.each(), selection);
        DEADLY.set(true);
        let informer = Informer::builder(&runtime, "texts").namespaces(sources).start().expect("it starts");
        let ended = tokio::time::timeout(LONG, informer.namespaces_synced()).await.expect("it ends");
        let Err(WaitError::SourceGivenUp { lost, .. }) = ended else { panic!("{ended:?}") };
        assert_eq!(&*lost, "names/all");
        DEADLY.set(false);
        informer.revive(&id("names/all")).expect("it is given up");
        informer.namespaces_synced().await.expect("it lists now");
    });
}

#[test]
fn informer_12_after_the_stop_a_cluster_cannot_be_removed() {
    Runtime::simulated(1).run(|runtime| async move {
        let server = Server::new();
        let informer = Informer::builder(&runtime, "texts").source(move || server.clone());
        let informer: Informer<String> = informer.start().expect("the spec is valid");
        let cluster = "eu".parse().expect("a name");
        assert_eq!(informer.remove_cluster(&cluster).await, Ok(()), "there is none of this name");
        assert!(informer.shutdown(LONG).await.is_clean());
        let removed = informer.remove_cluster(&cluster).await;
        assert_eq!(removed, Err(RemoveSourceError::Stopped { informer: "texts".into() }));
    });
}

#[test]
fn informer_7_an_event_becomes_visible_before_a_large_index_is_complete() {
    const OBJECTS: usize = 20_000;
    Runtime::simulated(1).run(|runtime| async move {
        let server = Server::new();
        (0..OBJECTS).for_each(|n| drop(server.apply(&format!("a/{n:05}"), String::new())));
        let connected = server.clone();
        let informer = Informer::builder(&runtime, "texts").source(move || connected.clone());
        let informer = informer.start().expect("the spec is valid");
        informer.synced_within(LONG).await.expect("it syncs");
        let indexed = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&indexed);
        let body = Index::new("body", move |object: &Object<String>| {
            count.fetch_add(1, Ordering::Relaxed);
            [object.body().clone()]
        });
        informer.add_index(body).await.expect("a new name");
        let mut seen = Vec::new();
        for n in [0, OBJECTS - 1, OBJECTS] {
            let written = server.apply(&format!("a/{n:05}"), "new".to_owned());
            informer.lister().wait_for(&written, LONG).await.expect("it is brought");
            seen.push(indexed.load(Ordering::Relaxed));
            assert!(informer.snapshot().by_index("body", "new").is_err(), "the index is not there: {seen:?}");
        }
        server.delete("a/00001");
        let is_complete = |informer: &Informer<String>| informer.snapshot().by_index("body", "").is_ok();
        while !is_complete(&informer) {
            tokio::task::yield_now().await;
        }
        settle().await;
        let snapshot = informer.snapshot();
        assert!(seen.iter().all(|seen| *seen < OBJECTS), "{seen:?} of {OBJECTS} were indexed");
        let values = |value: &str| snapshot.by_index("body", value).expect("it is there").count();
        assert_eq!((values("new"), values("")), (3, OBJECTS - 3), "what changed meanwhile is in it once");
    });
}

//! Informers that are declared first and started later (FAC-12).
//!
//! A declared informer has its handles and actors; the scripted server must see no request before the start.

use actix::Actor;
use informer_actors::informer::Informer;
use informer_actors::list_watch::SourceSpec;
use informer_actors::runtime::Runtime;
use informer_actors::testing::{Faults, Recorder, Server, Site, kill_at};
use informer_core::index::Index;
use informer_core::meta::{ObjectKey, SourceId};
use informer_core::reflector::{ReflectorConfig, SourceState};

use crate::world::{LONG, pass, settle};

fn spec(name: &str, server: &Server<String>) -> SourceSpec<String> {
    SourceSpec::new(SourceId::new(name), server.connect(), ReflectorConfig::new("texts"))
}

fn server(name: &str, keys: &[&str]) -> Server<String> {
    let server = Server::named(SourceId::new(name));
    keys.iter().for_each(|key| drop(server.apply(key, (*key).to_owned())));
    server
}

fn declared(runtime: &Runtime, sources: &[(&str, &Server<String>)]) -> Informer<String> {
    let builder = Informer::builder(runtime, "texts");
    let builder =
        sources.iter().fold(builder, |builder, (name, server)| builder.source_with(spec(name, server)));
    builder.declare().expect("the spec is valid")
}

fn keys(informer: &Informer<String>) -> Vec<String> {
    informer.snapshot().iter().map(|object| object.key().to_string()).collect()
}

// FAC-12: given an informer that is declared and not started, when its handles are used, then nothing is
// asked for, each wait says that it is declared, and subscriptions, indices, listers and changes of its
// sources work at once or from the start; it is started once.
// - a nothing is asked for, and status and waits say that it is declared
// - b subscriptions, indices and listers work from the start
// - c sources are added, removed and exchanged at once:
//   `fac_12_sources_of_a_declared_informer_are_added_removed_and_exchanged_at_once`
// - d it is started once, and never after its stop
// - e it stops with its last handle, and a restart before the start asks for nothing:
//   `fac_12_a_declared_informer_is_shut_down_dropped_and_repaired_like_a_running_one`
#[test]
fn fac_12_a_declared_informer_asks_for_nothing_and_all_that_its_handles_made_works_from_the_start() {
    Runtime::simulated(1).run(|runtime| async move {
        let server = server("default", &["a/one", "b/two"]);
        let informer = declared(&runtime, &[("default", &server)]);
        let (recorder, received) = Recorder::new();
        let subscription = informer.subscribe(recorder.start()).expect("it runs");
        let by_body = Index::<String, String>::new("body", |text| [text.body().clone()]);
        informer.add_index(&by_body).await.expect("the name is free");
        let lister = informer.lister();
        pass(LONG).await;
        assert!(server.requests().is_empty() && !informer.has_begun());
        let status = informer.status();
        assert!(matches!(status.state(), SourceState::Declared));
        const DECLARED: &str =
            "declared, not started (`begin`, its factory's `start` or an operator starts it)";
        assert_eq!(status.to_string(), format!("informer \"texts\": {DECLARED}; 0 objects, not synced"));
        let error = informer.synced_within(LONG).await.expect_err("nothing is listed").to_string();
        assert_eq!(
            error,
            format!("informer \"texts\" is not synced after 3600s: source \"default\": {DECLARED}")
        );
        let error = subscription.synced_within(LONG).await.expect_err("nothing is listed").to_string();
        assert!(error.ends_with(&format!("source \"default\": {DECLARED}")), "{error}");
        assert_eq!(runtime.informers().len(), 1);

        informer.begin();
        assert!(informer.has_begun() && matches!(informer.state(), SourceState::Starting));
        subscription.synced_within(LONG).await.expect("it lists");
        assert_eq!(received.lines(), ["Added(InitialList) a/one@2", "Added(InitialList) b/two@3"]);
        assert_eq!(by_body.get(&lister.snapshot(), "a/one").expect("the index is there").count(), 1);
        let took = informer.status().sync_took.expect("it is synced");
        assert!(took < LONG, "counted from the start, not from the declaration: {took:?}");
        let asked = server.requests().len();
        informer.begin();
        settle().await;
        assert_eq!(server.requests().len(), asked, "a second start does nothing");
    });
}

#[test]
fn fac_12_sources_of_a_declared_informer_are_added_removed_and_exchanged_at_once() {
    Runtime::simulated(1).run(|runtime| async move {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| server(name, &[&format!("{name}/one")]));
        let informer = declared(&runtime, &[("a", &a), ("b", &b)]);
        let (recorder, received) = Recorder::new();
        let subscription = informer.subscribe(recorder.start()).expect("it runs");
        informer.add_source(spec("c", &c)).expect("the name is free");
        informer.remove_source(&SourceId::new("a")).await.expect("others stay");
        informer.hand_over(&[SourceId::new("b")], vec![spec("d", &d)]).await.expect("both are known");
        let sources = informer.status().sources;
        assert_eq!(sources.iter().map(|source| source.source.as_str()).collect::<Vec<_>>(), ["c", "d"]);
        assert!(sources.iter().all(|source| matches!(source.state, SourceState::Declared)));
        informer.begin();
        subscription.synced_within(LONG).await.expect("it lists");
        assert_eq!(keys(&informer), ["c/one", "d/one"]);
        assert_eq!(received.lines(), ["Added(InitialList) c/one@2", "Added(InitialList) d/one@2"]);
        assert!(a.requests().is_empty() && b.requests().is_empty());
    });
}

#[test]
fn fac_12_a_declared_informer_is_shut_down_dropped_and_repaired_like_a_running_one() {
    let faults = Faults::default();
    for faults in [faults, kill_at(Site::ReflectorStarted, 1)] {
        Runtime::simulation(1).faults(faults).build().run(|runtime| async move {
            let server = server("default", &["a/one"]);
            let informer = declared(&runtime, &[("default", &server)]);
            settle().await;
            let weak = informer.downgrade();
            drop(informer);
            weak.ended().await;
            assert!(!weak.is_held() && runtime.informers().is_empty());
            let informer = declared(&runtime, &[("default", &server)]);
            assert!(informer.shutdown(LONG).await.is_clean());
            informer.begin();
            settle().await;
            assert!(informer.has_stopped() && !informer.has_begun() && server.requests().is_empty());
            let informer = declared(&runtime, &[("default", &server)]);
            pass(LONG).await;
            assert!(matches!(informer.state(), SourceState::Declared), "{:?}", informer.state());
            informer.begin();
            informer.synced_within(LONG).await.expect("it lists");
            assert!(informer.lister().get(&ObjectKey::namespaced("a", "one")).is_some());
        });
    }
}

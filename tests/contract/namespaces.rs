//! Informers of namespaces that come and go: set by the program, or selected (INF-90, INF-91).
//!
//! A scripted server is a whole cluster; `views.rs` shows each source the objects of its namespace.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use informer_actors::informer::{
    Informer, InformerBuilder, NamespaceSources, NamespacesError, OfNamespace, Selection,
};
use informer_actors::list_watch::SourceSpec;
use informer_actors::runtime::Runtime;
use informer_actors::testing::{Server, Site, kill_at};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::SourceId;
use informer_core::reflector::{ReflectorConfig, SourceState};

use crate::views::{Cluster, synced};
use crate::world::{LONG, pass, until};

fn given(runtime: &Runtime, cluster: &Cluster, names: &[&str]) -> InformerBuilder<String> {
    let names = names.iter().copied();
    Informer::builder(runtime, "texts").namespaces(NamespaceSources::given(cluster.each(), names))
}

/// The selection of all objects of this server: their names are the namespaces.
fn watching(names: &Server<String>) -> Selection<String> {
    let config = ReflectorConfig::new("namespaces");
    Selection::watching(SourceSpec::new(SourceId::new("names/all"), names.connect(), config))
}

// INF-90: given a running informer that was started with namespaces, when others are set, added or removed,
// then the sources of new ones list and those of others are removed, one change after the other; subscribers
// receive exactly the difference, and a namespace that stays is not asked for anything; of changes that come
// meanwhile only the last one counts; none is allowed; a name that cannot be requested, a selected set and an
// informer without one are refused by type.
// - a exactly the difference, and nothing is asked of what stays
// - b only the last of several changes counts, and none is allowed:
//   `inf_90_changes_that_come_while_sources_are_exchanged_are_coalesced_and_the_last_one_counts`
// - c one that comes back while it is removed is listed anew:
//   `inf_90_a_namespace_that_comes_back_while_it_is_removed_is_listed_anew`
// - d refused by type: `inf_90_what_cannot_be_followed_is_refused_by_type_and_changes_nothing`
// - e a source of the set cannot be removed by itself, since the set would follow it again:
//   `inf_90_a_source_of_the_set_is_removed_by_its_namespace_alone`
// - f a function that panics over a namespace costs that namespace alone:
//   `inf_90_a_function_that_panics_over_a_namespace_costs_that_namespace_alone`
#[test]
fn inf_90_a_change_of_the_namespaces_is_told_as_exactly_the_difference() {
    Runtime::simulated(1).run(|runtime| async move {
        let cluster = Cluster::of(&["a/1", "b/1", "c/1", "c/2"]);
        let followed = synced(given(&runtime, &cluster, &["a", "b"])).await;
        assert_eq!(followed.sources(), ["a", "b"]);
        followed.informer.set_namespaces(["b", "c"]).expect("two names");
        let mut lines = followed.lines().await;
        lines.sort();
        assert_eq!(lines, ["Added(InitialList) c/1@4", "Added(InitialList) c/2@5", "Missed(Relist) a/1@2"]);
        assert_eq!(followed.sources(), ["b", "c"]);
        let asked = cluster.server.requests().len();
        followed.informer.set_namespaces(["b", "c"]).expect("the same names");
        assert_eq!(followed.lines().await, Vec::<String>::new());
        assert_eq!(cluster.server.requests().len(), asked, "nobody is asked anything");
        followed.informer.add_namespace("a").expect("a name");
        assert_eq!(followed.lines().await, ["Added(InitialList) a/1@2"]);
        followed.informer.remove_namespace("c").expect("a name");
        assert_eq!(followed.lines().await.len(), 2);
        cluster.server.apply("b/1", "changed".to_owned());
        cluster.server.apply("c/1", "unseen".to_owned());
        until(|| !followed.received.is_empty()).await;
        assert_eq!(followed.lines().await, ["Updated(Watch) b/1@6"]);
        followed.holds(&cluster, &["a", "b"]);
    });
}

#[test]
fn inf_90_a_source_of_the_set_is_removed_by_its_namespace_alone() {
    Runtime::simulated(1).run(|runtime| async move {
        let cluster = Cluster::of(&["a/1", "b/1"]);
        let followed = synced(given(&runtime, &cluster, &["a", "b"])).await;
        let error = followed.informer.remove_source(&SourceId::new("a")).await.expect_err("it is wanted");
        let why = "source \"a\" of informer \"texts\" follows one of its namespaces: remove the namespace";
        assert_eq!(error.to_string(), why);
        let exchanged = followed.informer.hand_over(&[SourceId::new("a")], Vec::new()).await;
        assert_eq!(exchanged.expect_err("it is wanted").to_string(), why);
        assert_eq!(followed.lines().await, Vec::<String>::new());
        followed.informer.remove_namespace("a").expect("a name");
        assert_eq!(followed.lines().await, ["Missed(Relist) a/1@2"]);
    });
}

#[test]
fn inf_90_a_function_that_panics_over_a_namespace_costs_that_namespace_alone() {
    Runtime::simulated(1).run(|runtime| async move {
        let cluster = Cluster::of(&["a/1", "b/1", "c/1"]);
        let (make, is_bad) = (cluster.each(), Arc::new(AtomicBool::new(false)));
        let panics = Arc::clone(&is_bad);
        let each: OfNamespace<String> = Arc::new(move |name| {
            assert!(name != "b" || !panics.load(Ordering::Relaxed), "on purpose");
            make(name)
        });
        let names = Server::named(SourceId::new("names/all"));
        names.apply("a", String::new());
        let sources = NamespaceSources::selected(each, watching(&names));
        let followed = synced(Informer::builder(&runtime, "texts").namespaces(sources)).await;
        is_bad.store(true, Ordering::Relaxed);
        names.apply("b", String::new());
        names.apply("c", String::new());
        until(|| followed.informer.namespaces().len() == 3).await;
        let failed = followed.informer.namespaces_synced().await.expect_err("the wait ends");
        assert_eq!(
            failed.to_string(),
            "informer \"texts\" cannot follow the namespace \"b\": making its source panicked: on purpose"
        );
        until(|| !followed.received.is_empty()).await;
        assert_eq!(followed.received.lines(), ["Added(InitialList) c/1@4"], "others are followed");
        let status = followed.informer.status();
        assert_eq!((status.restarts, followed.sources().contains(&"b".to_owned())), (0, false));
    });
}

#[test]
fn inf_90_changes_that_come_while_sources_are_exchanged_are_coalesced_and_the_last_one_counts() {
    Runtime::simulated(1).run(|runtime| async move {
        let cluster = Cluster::of(&["a/1", "b/1", "c/1"]);
        let followed = synced(given(&runtime, &cluster, &["a"])).await;
        let asked = cluster.server.requests().len();
        for _ in 0..100 {
            followed.informer.set_namespaces(["a", "b"]).expect("names");
            followed.informer.set_namespaces(["a", "c"]).expect("names");
            followed.informer.set_namespaces(["a"]).expect("names");
        }
        assert_eq!(followed.lines().await, Vec::<String>::new());
        assert_eq!(
            cluster.server.requests().len(),
            asked,
            "what comes and goes in one breath is not asked for"
        );
        followed.informer.set_namespaces(["b"]).expect("names");
        followed.informer.set_namespaces(["a", "c"]).expect("names");
        assert_eq!(followed.lines().await, ["Added(InitialList) c/1@4"]);
        followed.informer.set_namespaces(Vec::<String>::new()).expect("none");
        assert_eq!(followed.lines().await.len(), 2);
        assert!(followed.sources().is_empty() && matches!(followed.informer.state(), SourceState::Streaming));
        followed.informer.set_namespaces(["b"]).expect("names");
        assert_eq!(followed.lines().await, ["Added(InitialList) b/1@3"]);
    });
}

#[test]
fn inf_90_a_namespace_that_comes_back_while_it_is_removed_is_listed_anew() {
    Runtime::simulated(1).run(|runtime| async move {
        let cluster = Cluster::of(&["a/1", "b/1"]);
        let followed = synced(given(&runtime, &cluster, &["a", "b"])).await;
        followed.informer.remove_namespace("b").expect("a name");
        until(|| followed.sources() == ["a"] || !followed.received.is_empty()).await;
        followed.informer.add_namespace("b").expect("a name");
        assert_eq!(followed.lines().await, ["Missed(Relist) b/1@3", "Added(InitialList) b/1@3"]);
        followed.holds(&cluster, &["a", "b"]);
    });
}

#[test]
fn inf_90_what_cannot_be_followed_is_refused_by_type_and_changes_nothing() {
    Runtime::simulated(1).run(|runtime| async move {
        let cluster = Cluster::of(&["a/1"]);
        let followed = synced(given(&runtime, &cluster, &["a"])).await;
        let refused = followed.informer.set_namespaces(["b", ""]).expect_err("no name");
        assert_eq!(refused.to_string(), "informer \"texts\" cannot follow the namespace \"\": it is empty");
        assert_eq!((followed.lines().await, followed.sources()), (Vec::new(), vec!["a".to_owned()]));
        let server = cluster.server.clone();
        let plain = Informer::builder(&runtime, "plain").source(move || server.clone()).start();
        let none = plain.expect("it runs").set_namespaces(["a"]).expect_err("it has no set");
        assert_eq!(none.to_string(), "informer \"plain\" was started without a set of namespaces");
        assert!(given(&runtime, &cluster, &["a", "a"]).start().is_err(), "one name twice");
        assert!(given(&runtime, &cluster, &["", "a"]).start().is_err(), "no name");
        followed.informer.shutdown(LONG).await;
        let stopped = followed.informer.add_namespace("b").expect_err("it has stopped");
        assert!(matches!(stopped, NamespacesError::Stopped { .. }), "{stopped}");
        assert!(followed.informer.namespaces_synced().await.is_err());
    });
}

#[test]
fn inf_91_namespaces_that_are_selected_are_followed_as_they_come_and_go() {
    Runtime::simulated(1).run(|runtime| async move {
        let cluster = Cluster::of(&["a/1", "b/1", "c/1"]);
        let names = Server::named(SourceId::new("names/all"));
        ["a", "b"].iter().for_each(|name| drop(names.apply(name, String::new())));
        let sources = NamespaceSources::selected(cluster.each(), watching(&names));
        let followed = synced(Informer::builder(&runtime, "texts").namespaces(sources)).await;
        followed.holds(&cluster, &["a", "b"]);
        names.apply("c", String::new());
        until(|| followed.informer.namespaces().len() == 3).await;
        assert_eq!(followed.lines().await, ["Added(InitialList) c/1@4"]);
        names.delete("a");
        until(|| followed.informer.namespaces().len() == 2).await;
        assert_eq!(followed.lines().await, ["Missed(Relist) a/1@2"]);
        let refused = followed.informer.set_namespaces(["a"]).expect_err("they are selected");
        assert_eq!(refused.to_string(), "the namespaces of informer \"texts\" are selected");
        names.freeze_watches(true);
        names.delete("b");
        names.apply("b", "another life".to_owned());
        names.apply("d", String::new());
        names.delete("d");
        let asked = cluster.server.requests().len();
        names.freeze_watches(false);
        pass(LONG).await;
        assert_eq!(followed.lines().await, Vec::<String>::new(), "what comes and goes in one breath");
        let of_namespaces = |line: &String| line.starts_with("LIST");
        let lists = cluster.server.requests().iter().skip(asked).filter(|line| of_namespaces(line)).count();
        assert_eq!(lists, 0, "is not listed");
        followed.holds(&cluster, &["b", "c"]);
    });
}

#[test]
fn inf_91_an_informer_is_synced_when_every_selected_namespace_has_listed_also_if_there_is_none() {
    Runtime::simulated(1).run(|runtime| async move {
        let cluster = Cluster::of(&["a/1"]);
        let names = Server::named(SourceId::new("names/all"));
        let sources = NamespaceSources::selected(cluster.each(), watching(&names));
        let followed = synced(Informer::builder(&runtime, "none").namespaces(sources)).await;
        followed.holds(&cluster, &[""; 0]);
        names.apply("a", String::new());
        until(|| !followed.received.is_empty()).await;
        assert_eq!(followed.lines().await, ["Added(InitialList) a/1@2"]);
        cluster.server.hold_lists(true);
        names.refuse([ListWatchError::Denied("no".into())]);
        let sources = NamespaceSources::selected(cluster.each(), watching(&names));
        let late = Informer::builder(&runtime, "late").namespaces(sources).start().expect("it runs");
        late.wait_until(|status| matches!(status.state(), SourceState::Denied { .. }))
            .await
            .expect("it runs");
        late.wait_until(|status| status.sources.len() == 2).await.expect("it is selected");
        pass(LONG).await;
        assert!(!late.status().synced, "the namespace has not listed");
        cluster.server.hold_lists(false);
        late.synced_within(LONG).await.expect("it lists");
        assert_eq!(late.snapshot().len(), 1);
    });
}

#[test]
fn inf_91_an_informer_of_the_program_selects_the_namespaces_by_what_its_objects_say() {
    Runtime::simulated(1).run(|runtime| async move {
        let cluster = Cluster::of(&["a/1", "b/1", "c/1"]);
        let names = Server::named(SourceId::new("names"));
        for (name, team) in [("a", "shop"), ("b", "pay"), ("c", "shop")] {
            names.apply(name, team.to_owned());
        }
        let connected = names.clone();
        let spec =
            SourceSpec::new(SourceId::new("names"), connected.connect(), ReflectorConfig::new("names"));
        let all = Informer::builder(&runtime, "names").source_with(spec).start().expect("it runs");
        let selection = Selection::of(SourceId::new("names/shop"), &all, |name| name.body() == "shop");
        drop(all);
        let sources = NamespaceSources::selected(cluster.each(), selection);
        let followed = synced(Informer::builder(&runtime, "texts").namespaces(sources)).await;
        followed.holds(&cluster, &["a", "c"]);
        names.apply("a", "pay".to_owned());
        names.apply("b", "shop".to_owned());
        until(|| followed.informer.namespaces() == ["b".into(), "c".into()]).await;
        let mut lines = followed.lines().await;
        lines.sort();
        assert_eq!(lines, ["Added(InitialList) b/1@3", "Missed(Relist) a/1@2"]);
        names.delete("c");
        until(|| followed.informer.namespaces() == ["b".into()]).await;
        assert_eq!(followed.lines().await, ["Missed(Relist) c/1@4"]);
        assert!(followed.informer.shutdown(LONG).await.is_clean());
    });
}

// INF-91: given an informer that follows the namespaces that a source selects, its own or an informer of the
// program, when namespaces come and go, then each that comes is listed and each that goes is removed; one
// that comes and goes, or goes and comes back, in one breath changes nothing; the informer is synced when
// every namespace of the first list has listed, also if there is none; of 1,000 namespaces no event is lost
// and none is told twice, whatever dies meanwhile.
// - a they come and go, and in one breath nothing changes:
//   `inf_91_namespaces_that_are_selected_are_followed_as_they_come_and_go`
// - b synced when every one has listed, also if there is none, and the state says why not:
//   `inf_91_an_informer_is_synced_when_every_selected_namespace_has_listed_also_if_there_is_none`
// - c an informer of the program selects
// - d of 1,000 no event is lost and none told twice:
//   `inf_91_of_a_thousand_namespaces_that_come_and_go_no_event_is_lost_and_none_is_told_twice`
// - e whatever dies meanwhile:
//   `inf_91_whatever_dies_while_namespaces_come_and_go_is_started_again_and_nothing_is_lost`
// - f on both servers, under load: `inf_91_namespaces_come_and_go_under_load`
#[test]
fn inf_91_a_selection_waits_for_the_other_informer_without_a_permit_that_this_one_needs() {
    Runtime::simulation(1).lists_at_once(1).build().run(|runtime| async move {
        let cluster = Cluster::of(&["a/1", "b/1"]);
        let names = Server::named(SourceId::new("names"));
        names.apply("a", "shop".to_owned());
        let connected = names.clone();
        let spec =
            SourceSpec::new(SourceId::new("names"), connected.connect(), ReflectorConfig::new("names"));
        let all = Informer::builder(&runtime, "names").source_with(spec).declare().expect("it is declared");
        let selection = Selection::of(SourceId::new("names/shop"), &all, |name| name.body() == "shop");
        let sources = NamespaceSources::selected(cluster.each(), selection);
        let texts = Informer::builder(&runtime, "texts").namespaces(sources).start().expect("it runs");
        assert!(texts.synced_within(LONG).await.is_err(), "what has not begun has not listed nothing");
        all.begin();
        texts.synced_within(LONG).await.expect("the other one has got the permit");
        assert_eq!(texts.namespaces(), ["a".into()]);
    });
}

#[test]
fn inf_91_of_a_thousand_namespaces_that_come_and_go_no_event_is_lost_and_none_is_told_twice() {
    Runtime::simulated(1).run(|runtime| async move {
        let cluster = Cluster::of(&[]);
        let names = Server::named(SourceId::new("names/all"));
        for n in 0..1_000 {
            names.apply(&format!("n{n}"), String::new());
            cluster.server.apply(&format!("n{n}/one"), String::new());
        }
        let sources = NamespaceSources::selected(cluster.each(), watching(&names));
        let followed = synced(Informer::builder(&runtime, "texts").namespaces(sources)).await;
        assert_eq!(followed.informer.snapshot().len(), 1_000);
        for n in (0..1_000).step_by(2) {
            names.delete(&format!("n{n}"));
            names.apply(&format!("m{n}"), String::new());
            cluster.server.apply(&format!("m{n}/one"), String::new());
            cluster.server.apply(&format!("n{}/one", n + 1), "changed".to_owned());
        }
        until(|| followed.informer.namespaces().first().is_some_and(|name| &**name == "m0")).await;
        until(|| followed.informer.namespaces().last().is_some_and(|name| &**name == "n999")).await;
        until(|| followed.informer.namespaces().len() == 1_000 && followed.received.len() >= 1_500).await;
        let mut told: BTreeMap<String, usize> = BTreeMap::new();
        for line in followed.lines().await {
            let (kind, key) = line.split_once(' ').expect("a line");
            let kind = kind.split_once('(').map_or(kind, |(kind, _)| kind);
            *told.entry(format!("{kind} {}", &key[..1])).or_default() += 1;
        }
        let told: Vec<_> = told.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
        assert_eq!(told, [("Added m", 500), ("Missed n", 500), ("Updated n", 500)]);
        assert!(followed.informer.status().restarts == 0 && followed.informer.status().failed.is_none());
    });
}

#[test]
fn inf_91_whatever_dies_while_namespaces_come_and_go_is_started_again_and_nothing_is_lost() {
    let sites =
        [Site::ReflectorReceived, Site::DeltaFifoPush, Site::IndexerPublished, Site::NamespacesPlanned];
    for (site, nth) in sites.into_iter().flat_map(|site| [1, 2, 3, 5, 8, 13].map(|nth| (site, nth))) {
        Runtime::simulation(3).faults(kill_at(site, nth)).build().run(|runtime| async move {
            let cluster = Cluster::of(&["a/1", "b/1", "c/1"]);
            let names = Server::named(SourceId::new("names/all"));
            names.apply("a", String::new());
            let sources = NamespaceSources::selected(cluster.each(), watching(&names));
            let followed = synced(Informer::builder(&runtime, "texts").namespaces(sources)).await;
            names.apply("b", String::new());
            until(|| followed.informer.namespaces().len() == 2).await;
            names.delete("a");
            names.apply("c", String::new());
            until(|| followed.informer.namespaces() == ["b".into(), "c".into()]).await;
            followed.lines().await;
            followed.holds(&cluster, &["b", "c"]);
            assert!(followed.informer.shutdown(LONG).await.is_clean(), "{site:?} {nth}");
        });
    }
}

//! The store and its watches compared with a naive model: every version is kept whole, every watch is a scan.
//!
//! Whatever is written, interrupted and resumed, a client that lists once and then only watches holds what the store
//! holds, and its view passes only through states the store had, seen through its selector.
use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::{Bench, SETTINGS, Settings};
use crate::cluster::store::Cluster;
use crate::cluster::watch::{Drained, Start};

/// What can happen.
#[derive(Debug, Clone)]
enum Action {
    Put(u8, u8),
    Delete(u8),
    Drain,
    Cut,
    Compact(u8),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0..6u8, 0..3u8).prop_map(|(name, app)| Action::Put(name, app)),
        3 => (0..6u8).prop_map(Action::Delete),
        3 => Just(Action::Drain),
        1 => Just(Action::Cut),
        1 => (0..9u8).prop_map(Action::Compact),
    ]
}

type View = BTreeMap<String, u64>;

/// A client with one selector: a list, then a watch, a new list only when its version is too old.
struct Client {
    selector: &'static str,
    view: View,
    version: u64,
    watch: Option<usize>,
}

impl Client {
    fn list(&mut self, bench: &Bench) {
        let page = bench.list(&[("labelSelector", self.selector)]).unwrap();
        self.view = page.objects.iter().map(|object| (object.name.to_string(), object.revision)).collect();
        self.version = page.revision;
    }

    fn watch(&mut self, bench: &mut Bench) -> usize {
        if let Some(watch) = self.watch {
            return watch;
        }
        loop {
            let version = self.version.to_string();
            let query = [("resourceVersion", version.as_str()), ("labelSelector", self.selector)];
            match bench.try_open(&query).unwrap() {
                Start::Open(opened) => return *self.watch.insert(opened.watch),
                Start::TooOld(_) => self.list(bench),
            }
        }
    }

    /// Takes all pending events; checks each step against the states that the store had.
    fn drain(&mut self, bench: &mut Bench, past: &BTreeMap<u64, View>) {
        let watch = self.watch(bench);
        for (event_type, name, version) in bench.drain(watch) {
            prop_assert_step(self.version < version);
            match event_type.as_str() {
                "ADDED" => prop_assert_step(self.view.insert(name, version).is_none()),
                "MODIFIED" => prop_assert_step(self.view.insert(name, version).is_some()),
                _ => prop_assert_step(self.view.remove(&name).is_some()),
            }
            self.version = version;
            assert_eq!(past.get(&version), Some(&self.view), "the view at {version} is the store's");
        }
        if let Drained::Ended(_) = bench.cluster.drain(watch, 1) {
            bench.cluster.unwatch(watch);
            self.watch = None;
            self.drain(bench, past);
        }
    }
}

fn prop_assert_step(holds: bool) {
    assert!(holds, "events rise in version, and are ADDED, MODIFIED, DELETED where they must be");
}

fn seen(bench: &Bench, selector: &str) -> View {
    let page = bench.list(&[("labelSelector", selector)]).unwrap();
    page.objects.iter().map(|object| (object.name.to_string(), object.revision)).collect()
}

fn apply(bench: &mut Bench, action: &Action) {
    match action {
        Action::Put(name, app) => {
            let (name, app) = (format!("o{name}"), format!("app{app}"));
            let patch = json!({"metadata": {"labels": {"app": app}}});
            if bench.merge(&name, patch).is_err() {
                bench.labelled(&name, &app);
            }
        }
        Action::Delete(name) => {
            // Deleting what is not there is refused, which is fine here.
            let _refused = bench.delete(&format!("o{name}"));
        }
        Action::Compact(keep) => bench.cluster.keep_revisions(None, u64::from(*keep)),
        Action::Drain | Action::Cut => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_client_that_lists_and_watches_has_the_state_of_the_store(
        actions in proptest::collection::vec(action(), 1..80),
        selector in prop_oneof![Just(""), Just("app=app0"), Just("app!=app0"), Just("app in (app1,app2)")],
        window in 2usize..40,
        queue in 1usize..20,
    ) {
        let settings = Settings { event_window: window, watch_queue: queue, ..SETTINGS };
        let mut bench = Bench::with(settings, "", "configmaps");
        let mut client = Client { selector, view: View::new(), version: 0, watch: None };
        client.list(&bench);
        let mut past = BTreeMap::new();
        for action in &actions {
            let before = bench.cluster.revision();
            apply(&mut bench, action);
            let after = bench.cluster.revision();
            prop_assert!(after <= before + 1, "one write, one version");
            past.insert(after, seen(&bench, selector));
            match action {
                Action::Drain => client.drain(&mut bench, &past),
                Action::Cut => {
                    if let Some(watch) = client.watch.take() {
                        bench.cluster.unwatch(watch);
                    }
                }
                _ => {}
            }
        }
        client.drain(&mut bench, &past);
        prop_assert_eq!(client.view, seen(&bench, selector));
    }

    #[test]
    fn any_version_the_history_reaches_is_listed_exactly_as_it_was(
        actions in proptest::collection::vec(action(), 1..60),
        window in 2usize..40,
    ) {
        let mut bench = Bench::with(Settings { event_window: window, ..SETTINGS }, "", "configmaps");
        let mut past = BTreeMap::new();
        past.insert(bench.cluster.revision(), View::new());
        for action in &actions {
            apply(&mut bench, action);
            past.insert(bench.cluster.revision(), seen(&bench, ""));
        }
        let floor = floor(&bench.cluster, &bench);
        for (version, view) in past {
            let text = version.to_string();
            let exact = bench.list(&[("resourceVersion", &text), ("resourceVersionMatch", "Exact")]);
            if version < floor && version != bench.cluster.revision() {
                prop_assert_eq!(exact.unwrap_err().code(), 410);
            } else {
                let names: View = exact.unwrap().objects.iter().map(|o| (o.name.to_string(), o.revision)).collect();
                prop_assert_eq!(names, view);
            }
        }
    }
}

fn floor(cluster: &Cluster, bench: &Bench) -> u64 {
    cluster.floor(&bench.kind.resource)
}

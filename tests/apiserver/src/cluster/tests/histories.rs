//! Many clients over one random history: each with a selector and a way to start, interrupted and resumed at random.
//!
//! They answer: does every client hold, after every event, a state that the store had at that version, as its selector shows it?
//! The store is one lock, so concurrent requests are some interleaving of these steps; proptest draws the interleaving.
//! The naive model keeps every state whole. `model.rs` is the same for one client and exact lists.
use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::{Bench, SETTINGS, Settings};
use crate::cluster::object::Object;
use crate::cluster::watch::{Drained, Start};

/// How a client starts without state (or after its state is too old).
#[derive(Debug, Clone, Copy)]
enum Beginning {
    /// A list, then a watch from its version.
    List,
    /// Pages of two, then a watch from their version.
    Pages,
    /// A watch that sends existing objects first.
    Watch,
    /// The same with a marked bookmark.
    WatchList,
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u8),
    Delete(u8),
    Drain(u8),
    Cut(u8),
    Forget(u8),
    Compact(u8),
    Jump(u8),
}

/// Every object that ever existed, by name, with its label, at every version.
type State = BTreeMap<String, (String, u64)>;
type View = BTreeMap<String, u64>;

/// The query of a selector, and what it means for a name and a label.
type Selection = (&'static [(&'static str, &'static str)], fn(&str, &str) -> bool);

struct Client {
    selector: Selection,
    beginning: Beginning,
    view: View,
    version: Option<u64>,
    watch: Option<usize>,
}

const CLIENTS: [Selection; 5] = [
    (&[], |_, _| true),
    (&[("labelSelector", "app=app0")], |_, app| app == "app0"),
    (&[("labelSelector", "app!=app0")], |_, app| app != "app0"),
    (&[("fieldSelector", "metadata.name=o1")], |name, _| name == "o1"),
    (
        &[("fieldSelector", "metadata.namespace=default"), ("labelSelector", "app in (app1,app2)")],
        |_, app| app != "app0",
    ),
];

impl Client {
    fn query(&self, more: &[(&'static str, String)]) -> Vec<(String, String)> {
        let own = self.selector.0.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        own.chain(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone()))).collect()
    }

    fn begin(&mut self, bench: &mut Bench) {
        match self.beginning {
            Beginning::List | Beginning::Pages => {
                let (mut view, mut token) = (View::new(), String::new());
                loop {
                    let mut more = vec![("continue", token.clone())];
                    if matches!(self.beginning, Beginning::Pages) {
                        more.push(("limit", "2".to_owned()));
                    }
                    let page = bench.list(&pairs(&self.query(&more))).expect("nothing happens between pages");
                    view.extend(page.objects.iter().map(|object| known(object)));
                    self.version = Some(page.revision);
                    match page.continue_token {
                        Some(next) => token = next,
                        None => break,
                    }
                }
                self.view = view;
            }
            Beginning::Watch => self.open(bench, &[]),
            Beginning::WatchList => {
                let text = |value: &str| value.to_owned();
                let more = [
                    ("sendInitialEvents", text("true")),
                    ("resourceVersionMatch", text("NotOlderThan")),
                    ("allowWatchBookmarks", text("true")),
                ];
                self.open(bench, &more);
            }
        }
    }

    /// Opens a watch; takes over what it begins with.
    fn open(&mut self, bench: &mut Bench, more: &[(&'static str, String)]) {
        match bench.try_open(&pairs(&self.query(more))).expect("a sound watch") {
            Start::Open(opened) => {
                if let Some(snapshot) = &opened.initial {
                    self.view = snapshot.after(None).map(|(_, object)| known(object)).collect();
                    self.version = Some(snapshot.revision);
                }
                self.watch = Some(opened.watch);
            }
            Start::TooOld(_) => self.version = None,
        }
    }

    /// Takes all pending events, starting or resuming if needed.
    fn catch_up(&mut self, bench: &mut Bench, past: &BTreeMap<u64, State>) {
        while self.watch.is_none() {
            match self.version {
                Some(version) => self.open(bench, &[("resourceVersion", version.to_string())]),
                None => self.begin(bench),
            }
        }
        let watch = self.watch.expect("opened above");
        for (event_type, name, version) in bench.drain(watch) {
            assert!(self.version.is_some_and(|known| known < version), "versions rise");
            let known = match event_type.as_str() {
                "DELETED" => self.view.remove(&name).is_some(),
                "ADDED" => self.view.insert(name, version).is_none(),
                _ => self.view.insert(name, version).is_some(),
            };
            assert!(known, "an event is ADDED, MODIFIED or DELETED as the client must see it");
            self.version = Some(version);
            assert_eq!(self.view, self.shown(&past[&version]), "the view at {version} is the store's");
        }
        if let Drained::Ended(_) = bench.cluster.drain(watch, 1) {
            self.cut(bench);
            self.catch_up(bench, past);
        }
    }

    fn cut(&mut self, bench: &mut Bench) {
        if let Some(watch) = self.watch.take() {
            bench.cluster.unwatch(watch);
        }
    }

    fn shown(&self, state: &State) -> View {
        let seen = state.iter().filter(|(name, (app, _))| (self.selector.1)(name, app));
        seen.map(|(name, (_, version))| (name.clone(), *version)).collect()
    }
}

fn pairs(query: &[(String, String)]) -> Vec<(&str, &str)> {
    query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

fn known(object: &Object) -> (String, u64) {
    (object.name.to_string(), object.revision)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..6u8, 0..3u8).prop_map(|(name, app)| Step::Put(name, app)),
        3 => (0..6u8).prop_map(Step::Delete),
        5 => (0..5u8).prop_map(Step::Drain),
        2 => (0..5u8).prop_map(Step::Cut),
        1 => (0..5u8).prop_map(Step::Forget),
        1 => (0..9u8).prop_map(Step::Compact),
        1 => (1..200u8).prop_map(Step::Jump),
    ]
}

/// Makes the write, if it is one, in the store and in the model.
fn write(bench: &mut Bench, state: &mut State, step: &Step) {
    match step {
        Step::Put(name, app) => {
            let (name, app) = (format!("o{name}"), format!("app{app}"));
            let written = if state.contains_key(&name) {
                bench.merge(&name, json!({"metadata": {"labels": {"app": app}}})).expect("it is there")
            } else {
                bench.labelled(&name, &app)
            };
            state.insert(name, (app, written.revision));
        }
        Step::Delete(name) => {
            let name = format!("o{name}");
            assert_eq!(bench.delete(&name).is_ok(), state.remove(&name).is_some());
        }
        Step::Compact(keep) => bench.cluster.keep_revisions(None, u64::from(*keep)),
        Step::Jump(by) => bench.cluster.jump(u64::from(*by)),
        Step::Drain(_) | Step::Cut(_) | Step::Forget(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_client_of_a_random_history_has_the_state_of_the_store_at_its_version(
        steps in proptest::collection::vec(step(), 1..120),
        beginnings in prop::array::uniform5(prop_oneof![
            Just(Beginning::List), Just(Beginning::Pages), Just(Beginning::Watch), Just(Beginning::WatchList),
        ]),
        window in 2usize..40,
        queue in 1usize..20,
    ) {
        let settings = Settings { event_window: window, watch_queue: queue, ..SETTINGS };
        let mut bench = Bench::with(settings, "", "configmaps");
        let mut clients: Vec<Client> = CLIENTS
            .iter()
            .zip(beginnings)
            .map(|(selector, beginning)| {
                Client { selector: *selector, beginning, view: View::new(), version: None, watch: None }
            })
            .collect();
        let (mut state, mut past) = (State::new(), BTreeMap::new());
        past.insert(bench.cluster.revision(), state.clone());
        for step in &steps {
            write(&mut bench, &mut state, step);
            past.insert(bench.cluster.revision(), state.clone());
            match step {
                Step::Drain(client) => clients[usize::from(*client)].catch_up(&mut bench, &past),
                Step::Cut(client) => clients[usize::from(*client)].cut(&mut bench),
                Step::Forget(client) => {
                    clients[usize::from(*client)].cut(&mut bench);
                    clients[usize::from(*client)].version = None;
                }
                _ => {}
            }
        }
        for client in &mut clients {
            client.catch_up(&mut bench, &past);
            prop_assert_eq!(&client.view, &client.shown(&state));
        }
    }
}

//! Table tests of the core: one store, changed by calls, read by lists and watches.
//!
//! They check the rules of versions, lists, watches and writes without a socket. `model` holds the property test
//! against a naive store.
mod garbage;
mod histories;
mod model;
mod writes;

use std::sync::Arc;

use serde_json::{Value, json};

use super::call::{Call, PatchKind, Validation};
use super::delete::DeleteOptions;
use super::encoding::Representation;
use super::kind::Kind;
use super::list::Page;
use super::object::Object;
use super::options::{ListOptions, WatchOptions};
use super::selector::SelectorText;
use super::status::ApiError;
use super::store::{Cluster, Settings};
use super::watch::{Drained, Opened, Start};

const SETTINGS: Settings = Settings {
    first_revision: 1_000,
    event_window: 100,
    watch_queue: 50,
    seed: 1,
    managed_fields: true,
    validation: false,
};

/// A store with the calls that tests need.
struct Bench {
    cluster: Cluster,
    kind: Arc<Kind>,
}

impl Bench {
    fn new(group: &str, plural: &str) -> Self {
        Self::with(SETTINGS, group, plural)
    }

    fn with(settings: Settings, group: &str, plural: &str) -> Self {
        let cluster = Cluster::new(settings, 0);
        let kind = cluster.registry.find(group, "v1", plural).expect("a built-in kind").clone();
        Self { cluster, kind }
    }

    fn act<R>(&mut self, namespace: &str, name: &str, act: impl FnOnce(&mut Cluster, &Call<'_>) -> R) -> R {
        let kind = Arc::clone(&self.kind);
        let call = Call {
            kind: &kind,
            namespace,
            name,
            status: false,
            dry_run: false,
            validation: Validation::Ignore,
            now: 1_700_000_000,
            manager: "test",
            subresource: "",
            user: None,
        };
        act(&mut self.cluster, &call)
    }

    fn create(&mut self, namespace: &str, body: Value) -> Result<Arc<Object>, ApiError> {
        self.act(namespace, "", |cluster, call| cluster.create(call, body))
    }

    fn named(&mut self, name: &str) -> Arc<Object> {
        self.create("default", json!({"metadata": {"name": name}})).unwrap()
    }

    fn labelled(&mut self, name: &str, value: &str) -> Arc<Object> {
        self.create("default", json!({"metadata": {"name": name, "labels": {"app": value}}})).unwrap()
    }

    fn merge(&mut self, name: &str, patch: Value) -> Result<Arc<Object>, ApiError> {
        let text = patch.to_string();
        let patched =
            self.act("default", name, |cluster, call| cluster.patch(call, PatchKind::Merge, text.as_bytes()));
        patched.map(|written| written.object)
    }

    fn delete(&mut self, name: &str) -> Result<bool, ApiError> {
        let options = DeleteOptions::default();
        self.act("default", name, |cluster, call| cluster.delete(call, &options))
            .map(|deleted| deleted.removed)
    }

    fn list(&self, query: &[(&str, &str)]) -> Result<Page, ApiError> {
        let options = ListOptions::parse(&owned(query), &self.kind)?;
        self.cluster.list(&self.kind, None, &options).map(super::list::Listing::page)
    }

    fn open(&mut self, query: &[(&str, &str)]) -> Opened {
        match self.try_open(query).unwrap() {
            Start::Open(opened) => opened,
            Start::TooOld(error) => panic!("{error}"),
        }
    }

    fn try_open(&mut self, query: &[(&str, &str)]) -> Result<Start, ApiError> {
        let options = WatchOptions::parse(&owned(query), &self.kind, true)?;
        self.cluster.watch(&Arc::clone(&self.kind), None, &options)
    }

    /// All pending events, as (type, name, version).
    fn drain(&mut self, watch: usize) -> Vec<(String, String, u64)> {
        let mut told = Vec::new();
        while let Drained::Some(deliveries) = self.cluster.drain(watch, 7) {
            for delivery in deliveries {
                let line: Value =
                    serde_json::from_slice(&delivery.line(&self.kind, Representation::PLAIN, true)).unwrap();
                let text = |at: &str| line.pointer(at).and_then(Value::as_str).unwrap().to_owned();
                let version = text("/object/metadata/resourceVersion").parse().unwrap();
                told.push((text("/type"), text("/object/metadata/name"), version));
            }
        }
        told
    }
}

fn owned(query: &[(&str, &str)]) -> Vec<(String, String)> {
    query.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn names(page: &Page) -> Vec<&str> {
    page.objects.iter().map(|object| &*object.name).collect()
}

fn told(events: &[(String, String, u64)]) -> Vec<(&str, &str)> {
    events.iter().map(|(event_type, name, _)| (event_type.as_str(), name.as_str())).collect()
}

#[test]
fn api_01_each_write_takes_the_next_version_of_the_whole_store() {
    let mut bench = Bench::new("", "configmaps");
    let before = bench.cluster.revision();
    assert_eq!(bench.named("a").revision, before + 1);
    assert_eq!(bench.named("b").revision, before + 2);
    assert_eq!(bench.list(&[]).unwrap().revision, before + 2);
    assert_eq!(bench.create("default", json!({"metadata": {"name": "a"}})).unwrap_err().code(), 409);
    assert_eq!(bench.cluster.revision(), before + 2, "a refused write takes no version");
}

#[test]
fn api_02_a_write_that_changes_nothing_keeps_its_version_and_sends_no_event() {
    let mut bench = Bench::new("", "configmaps");
    let made = bench.labelled("a", "x");
    let watch = bench.open(&[("resourceVersion", &made.revision.to_string())]).watch;
    let again = bench.merge("a", json!({"metadata": {"labels": {"app": "x"}}})).unwrap();
    assert_eq!(again.revision, made.revision);
    assert_eq!(bench.drain(watch), []);
}

#[test]
fn api_03_a_deletion_has_a_version_of_its_own() {
    let mut bench = Bench::new("", "configmaps");
    let made = bench.named("a");
    let watch = bench.open(&[("resourceVersion", &made.revision.to_string())]).watch;
    bench.delete("a").unwrap();
    assert_eq!(bench.drain(watch), [("DELETED".to_owned(), "a".to_owned(), made.revision + 1)]);
}

#[test]
fn api_05_exact_shows_the_state_at_that_version() {
    let mut bench = Bench::new("", "configmaps");
    let first = bench.named("a").revision.to_string();
    bench.named("b");
    bench.delete("a").unwrap();
    let exact = bench.list(&[("resourceVersion", &first), ("resourceVersionMatch", "Exact")]).unwrap();
    assert_eq!((names(&exact), exact.revision.to_string()), (vec!["a"], first.clone()));
    let legacy = bench.list(&[("resourceVersion", &first), ("limit", "5")]).unwrap();
    assert_eq!(names(&legacy), ["a"]);
    bench.cluster.keep_revisions(None, 0);
    let gone = bench.list(&[("resourceVersion", &first), ("resourceVersionMatch", "Exact")]).unwrap_err();
    assert_eq!((gone.code(), gone.reason()), (410, "Expired"));
}

#[test]
fn api_06_forbidden_combinations_are_refused() {
    let bench = Bench::new("", "configmaps");
    for (query, code) in [
        (vec![("resourceVersionMatch", "Exact")], 422),
        (vec![("resourceVersionMatch", "NotOlderThan"), ("resourceVersion", "5"), ("continue", "x")], 422),
        (vec![("resourceVersionMatch", "Exact"), ("resourceVersion", "0")], 422),
        (vec![("resourceVersionMatch", "Newest"), ("resourceVersion", "5")], 422),
        (vec![("sendInitialEvents", "true")], 422),
        (vec![("resourceVersion", "abc")], 400),
        (vec![("resourceVersion", "5"), ("continue", "x")], 400),
        (vec![("continue", "x")], 400),
        (vec![("limit", "many")], 400),
        (vec![("fieldSelector", "spec.nope=1")], 400),
        (vec![("labelSelector", "a in b")], 400),
    ] {
        assert_eq!(bench.list(&query).unwrap_err().code(), code, "{query:?}");
    }
}

#[test]
fn api_07_pages_come_from_one_snapshot_in_the_byte_order_of_keys() {
    let mut bench = Bench::new("", "configmaps");
    let namespaces = bench.cluster.registry.find("", "v1", "namespaces").unwrap().clone();
    for name in ["zo", "zo-b"] {
        let call = Call {
            kind: &namespaces,
            namespace: "",
            name: "",
            status: false,
            dry_run: false,
            validation: Validation::Ignore,
            now: 0,
            manager: "test",
            subresource: "",
            user: None,
        };
        bench.cluster.create(&call, json!({"metadata": {"name": name}})).unwrap();
    }
    bench.create("zo", json!({"metadata": {"name": "a"}})).unwrap();
    bench.create("zo-b", json!({"metadata": {"name": "b"}})).unwrap();
    bench.create("zo", json!({"metadata": {"name": "c"}})).unwrap();
    assert_eq!(names(&bench.list(&[]).unwrap()), ["b", "a", "c"], "- sorts before /");

    let first = bench.list(&[("limit", "1")]).unwrap();
    assert_eq!((names(&first), first.remaining), (vec!["b"], Some(2)));
    bench.create("zo", json!({"metadata": {"name": "aa"}})).unwrap();
    let token = first.continue_token.unwrap();
    let second = bench.list(&[("limit", "1"), ("continue", &token)]).unwrap();
    assert_eq!((names(&second), second.remaining, second.revision), (vec!["a"], Some(1), first.revision));
    let token = second.continue_token.unwrap();
    let third = bench.list(&[("limit", "1"), ("continue", &token)]).unwrap();
    assert_eq!((names(&third), third.remaining, third.continue_token.clone()), (vec!["c"], None, None));
}

#[test]
fn api_07_with_a_selector_the_number_of_remaining_items_is_not_given() {
    let mut bench = Bench::new("", "configmaps");
    for name in ["a", "b", "c"] {
        bench.labelled(name, "x");
    }
    let page = bench.list(&[("limit", "1"), ("labelSelector", "app=x")]).unwrap();
    assert_eq!((page.remaining, page.continue_token.is_some()), (None, true));
}

#[test]
fn api_08_an_expired_token_comes_with_a_fresh_one_that_goes_on_at_the_latest_version() {
    let mut bench = Bench::new("", "configmaps");
    for name in ["a", "b", "c"] {
        bench.named(name);
    }
    let token = bench.list(&[("limit", "1")]).unwrap().continue_token.unwrap();
    bench.named("bb");
    bench.cluster.keep_revisions(None, 0);
    let refused = bench.list(&[("limit", "9"), ("continue", &token)]).unwrap_err();
    assert_eq!((refused.code(), refused.reason()), (410, "Expired"));
    let status = refused.to_status();
    let fresh = status["metadata"]["continue"].as_str().unwrap();
    let rest = bench.list(&[("limit", "9"), ("continue", fresh)]).unwrap();
    assert_eq!((names(&rest), rest.revision), (vec!["b", "bb", "c"], bench.cluster.revision()));
}

#[test]
fn api_11_a_watch_from_a_version_sends_everything_after_it_in_order() {
    let mut bench = Bench::new("", "configmaps");
    let first = bench.named("a").revision.to_string();
    bench.named("b");
    bench.merge("a", json!({"data": {"k": "v"}})).unwrap();
    let watch = bench.open(&[("resourceVersion", &first)]).watch;
    bench.delete("b").unwrap();
    let events = bench.drain(watch);
    assert_eq!(told(&events), [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]);
    assert!(events.windows(2).all(|pair| pair[0].2 < pair[1].2));
}

#[test]
fn api_12_a_watch_from_before_the_history_is_too_old() {
    let mut bench = Bench::with(Settings { event_window: 2, ..SETTINGS }, "", "configmaps");
    let first = bench.named("a").revision;
    for name in ["b", "c"] {
        bench.named(name);
    }
    let open = bench.open(&[("resourceVersion", &first.to_string())]);
    assert_eq!(told(&bench.drain(open.watch)), [("ADDED", "b"), ("ADDED", "c")]);
    bench.named("d");
    match bench.try_open(&[("resourceVersion", &first.to_string())]).unwrap() {
        Start::TooOld(error) => {
            let expected = format!("too old resource version: {first} ({})", first + 1);
            assert_eq!((error.code(), error.reason(), error.message()), (410, "Expired", expected.as_str()));
        }
        Start::Open(_) => panic!("the event after the first version is forgotten"),
    }
}

#[test]
fn api_16_a_selector_is_applied_to_the_state_before_and_after() {
    let mut bench = Bench::new("", "configmaps");
    let version = bench.cluster.revision().to_string();
    let watch = bench.open(&[("resourceVersion", &version), ("labelSelector", "app=x")]).watch;
    bench.labelled("a", "y");
    let entered = bench.merge("a", json!({"metadata": {"labels": {"app": "x"}}})).unwrap().revision;
    bench.merge("a", json!({"data": {"k": "v"}})).unwrap();
    let left = bench.merge("a", json!({"data": {"k": "w"}, "metadata": {"labels": {"app": "y"}}})).unwrap();
    bench.delete("a").unwrap();
    let Drained::Some(deliveries) = bench.cluster.drain(watch, 9) else { panic!("events wait") };
    let lines: Vec<Value> = deliveries
        .iter()
        .map(|delivery| {
            serde_json::from_slice(&delivery.line(&bench.kind, Representation::PLAIN, true)).unwrap()
        })
        .collect();
    let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["ADDED", "MODIFIED", "DELETED"]);
    assert_eq!(lines[0]["object"]["metadata"]["resourceVersion"], entered.to_string());
    assert_eq!(lines[2]["object"]["metadata"]["resourceVersion"], left.revision.to_string());
    assert_eq!(lines[2]["object"]["data"]["k"], "v", "a leaving object is told in its old state");
}

#[test]
fn api_17_a_thousand_slow_watchers_keep_no_events_of_their_own_and_lose_none() {
    let mut bench = Bench::with(Settings { watch_queue: 40, ..SETTINGS }, "", "configmaps");
    let version = bench.cluster.revision().to_string();
    let watches: Vec<usize> =
        (0..1_000).map(|_| bench.open(&[("resourceVersion", &version)]).watch).collect();
    for number in 0..40 {
        bench.named(&format!("m{number}"));
    }
    let table = bench.cluster.table(&bench.kind.storage).unwrap();
    assert!(
        table.history.after(0).all(|event| Arc::strong_count(event) == 1),
        "the history alone holds them"
    );
    assert_eq!(bench.drain(watches[7]).len(), 40);
    bench.named("last");
    assert_eq!(bench.cluster.watch_count(None), 1, "all but the one that took its events are let go");
    assert_eq!(told(&bench.drain(watches[7])), [("ADDED", "last")]);
    assert_eq!(bench.drain(watches[8]), []);
}

#[test]
fn api_17_large_events_are_returned_a_few_at_a_time() {
    let mut bench = Bench::new("", "configmaps");
    let version = bench.cluster.revision().to_string();
    let followed = bench.open(&[("resourceVersion", &version)]).watch;
    let own = bench.open(&[("resourceVersion", &version), ("labelSelector", "!none")]).watch;
    for name in ["a", "b", "c", "d"] {
        let data = "x".repeat(40_000);
        bench.create("default", json!({"metadata": {"name": name}, "data": {"k": data}})).unwrap();
    }
    for watch in [followed, own] {
        let Drained::Some(first) = bench.cluster.drain(watch, 256) else { panic!("four wait") };
        assert_eq!(first.len(), 2);
        assert_eq!(told(&bench.drain(watch)), [("ADDED", "c"), ("ADDED", "d")]);
    }
}

#[test]
fn api_17_a_watcher_that_falls_behind_is_closed_and_loses_nothing_when_it_resumes() {
    let mut bench = Bench::with(Settings { watch_queue: 3, ..SETTINGS }, "", "configmaps");
    let version = bench.cluster.revision().to_string();
    let watch = bench.open(&[("resourceVersion", &version)]).watch;
    for name in ["a", "b", "c"] {
        bench.named(name);
    }
    assert_eq!(bench.cluster.watch_count(None), 1);
    bench.named("d");
    assert_eq!(bench.cluster.watch_count(None), 0);
    assert!(matches!(bench.cluster.drain(watch, 9), Drained::Ended(_)));
    let resumed = bench.open(&[("resourceVersion", &version)]).watch;
    assert_eq!(told(&bench.drain(resumed)), [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c"), ("ADDED", "d")]);
}

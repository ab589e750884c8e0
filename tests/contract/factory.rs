//! Informers that are shared by a factory (FAC-01 to FAC-11), over the in-memory API server in the same simulation.
//!
//! What was asked of the server is read from its log of requests; waits are for what an informer shows.

use std::sync::Arc;
use std::time::Duration;

use actix::Actor;
use actix_informer::factory::{FactoryError, InformerFactory};
use actix_informer::representation::{Prune, Typed};
use actix_informer::{client::Client, status::Reporting};
use informer_actors::informer::{AnyInformer, Body, Informer, Versions};
use informer_actors::runtime::Runtime;
use informer_actors::testing::{Faults, Recorder, RecorderHandle};
use informer_apiserver::ApiServer;
use informer_core::index::Index;
use informer_core::reflector::SourceState;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube_core::DynamicObject;
use kube_core::discovery::ApiResource;
use serde_json::{Value, json};

use crate::world::{LONG, settle, until};

/// A server, a client of it, and the runtime of both.
pub(crate) struct Cluster {
    pub(crate) server: Arc<ApiServer>,
    pub(crate) client: Client,
    pub(crate) runtime: Runtime,
}

pub(crate) fn run<F: Future<Output = ()>>(scenario: impl FnOnce(Cluster) -> F) {
    run_with(Faults::default(), scenario);
}

/// The same with a fault hook.
pub(crate) fn run_with<F: Future<Output = ()>>(faults: Faults, scenario: impl FnOnce(Cluster) -> F) {
    Runtime::simulation(7).faults(faults).build().run(|runtime| async move {
        let server = ApiServer::builder().seed(7).in_process(runtime.wall_time()).start().await;
        let server = Arc::new(server.expect("a server in memory"));
        let client = Client::in_process(&runtime, server.service());
        scenario(Cluster { server, client, runtime }).await;
    });
}

fn map(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}})
}

impl Cluster {
    pub(crate) fn factory(&self) -> InformerFactory {
        InformerFactory::new(&self.runtime, &self.client)
    }

    pub(crate) fn create(&self, namespace: &str, name: &str) {
        self.server.create(map(namespace, name)).expect("a new object");
    }

    /// How many lists and watch-lists of a resource were begun.
    fn lists(&self, resource: &str) -> usize {
        let requests = self.server.requests();
        let of_it = requests.iter().filter(|request| request.resource == resource);
        of_it.filter(|one| one.verb == "list" || one.parameter("sendInitialEvents").is_some()).count()
    }
}

pub(crate) fn keys<S: Body>(informer: &Informer<S>) -> Vec<String> {
    informer.snapshot().iter().map(|object| object.key().to_string()).collect()
}

pub(crate) fn names(factory: &InformerFactory) -> Vec<String> {
    factory.informers().iter().map(|(_, informer)| informer.name().to_owned()).collect()
}

pub(crate) fn recorded<S: Body>(
    informer: &Informer<S>,
) -> (informer_actors::subscription::Subscription<S>, RecorderHandle<S>) {
    let (recorder, received) = Recorder::new();
    (informer.subscribe(recorder.start()).expect("it runs"), received)
}

// FAC-01: given the same kind, scope, selectors and representation requested twice, when both are used, then
// there is one informer: one list, one store, two handles.
// - a one informer, one list, one store, two handles
// - b in whatever way selectors and namespaces are written
#[test]
fn fac_01_equal_requests_are_one_informer_one_list_one_store_and_two_handles() {
    run(|cluster| async move {
        cluster.create("default", "a");
        let factory = cluster.factory();
        let first = factory.informer::<ConfigMap>().expect("declared");
        let second = factory.clone().informer::<ConfigMap>().expect("found");
        let (mine, received) = recorded(&first);
        let (theirs, also) = recorded(&second);
        factory.start().expect("open");
        factory.synced_within(LONG).await.expect("it lists");
        for subscription in [&mine, &theirs] {
            subscription.synced_within(LONG).await.expect("one object");
        }
        assert_eq!((received.lines(), first.name()), (also.lines(), second.name()));
        assert_eq!((names(&factory), cluster.lists("configmaps")), (vec!["configmaps".to_owned()], 1));
        let held =
            |informer: &Informer<ConfigMap>| informer.snapshot().iter().next().cloned().expect("one object");
        assert!(std::ptr::eq(held(&first).body(), held(&second).body()), "one store");
        drop((first, mine));
        settle().await;
        assert!(!second.has_stopped(), "the other handle keeps it");
        cluster.create("default", "b");
        until(|| keys(&second) == ["default/a", "default/b"]).await;
        // Written in other ways, and in the other order.
        let one = factory.resource::<ConfigMap>().namespaces(["x", "y"]).labels("app in (a,b),!old");
        let other = factory.resource::<ConfigMap>().namespaces(["y", "x"]).labels("!old, app in (b, a)");
        let (one, other) = (factory.of(one).expect("declared"), factory.of(other).expect("found"));
        assert_eq!(one.name(), other.name());
        let single = factory.of(factory.resource::<ConfigMap>().namespace("x")).expect("declared");
        let listed = factory.of(factory.resource::<ConfigMap>().namespaces(["x"])).expect("found");
        assert_eq!((single.name(), names(&factory).len()), (listed.name(), 3));
    });
}

// FAC-02: given Start called twice, when counted, then each informer runs once; informers requested between
// are started by the second call.
// - a each informer runs once, and nothing is asked for before the first call
// - b informers requested between are started by the second call
#[test]
fn fac_02_each_informer_is_started_once_and_one_requested_between_two_starts_by_the_second() {
    run(|cluster| async move {
        let factory = cluster.factory();
        let maps = factory.informer::<ConfigMap>().expect("declared");
        settle().await;
        assert!(cluster.server.requests().is_empty(), "nothing is asked for before the start");
        factory.start().expect("open");
        maps.synced_within(LONG).await.expect("it lists");
        let nodes = factory.informer::<Node>().expect("declared");
        settle().await;
        assert!(matches!(nodes.state(), SourceState::Declared) && cluster.lists("nodes") == 0);
        factory.start().expect("open");
        factory.start().expect("open");
        factory.synced_within(LONG).await.expect("both list");
        assert_eq!((cluster.lists("configmaps"), cluster.lists("nodes")), (1, 1));
        assert_eq!((maps.status().restarts, maps.status().relists()), (0, 0));
    });
}

// FAC-03: given namespace filter "a", when objects exist in a and b, then only a's are seen.
// - a only a's are seen, in the first list and later, typed and as metadata
// - b a cluster-scoped kind is seen whole
#[test]
fn fac_03_a_namespace_of_the_factory_holds_for_kinds_that_have_namespaces() {
    run(|cluster| async move {
        for (namespace, name) in [("default", "seen"), ("kube-system", "unseen")] {
            cluster.create(namespace, name);
        }
        cluster
            .server
            .create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}))
            .expect("new");
        let factory =
            InformerFactory::builder(&cluster.runtime, &cluster.client).namespaces(["default"]).build();
        let maps = factory.informer::<ConfigMap>().expect("declared");
        let meta = factory.of(factory.metadata::<ConfigMap>()).expect("declared");
        let nodes = factory.informer::<Node>().expect("declared");
        let all = factory.of(factory.resource::<ConfigMap>().all_namespaces()).expect("declared");
        factory.start().expect("open");
        factory.synced_within(LONG).await.expect("all list");
        assert_eq!(
            (keys(&maps), keys(&meta)),
            (vec!["default/seen".to_owned()], vec!["default/seen".to_owned()])
        );
        assert_eq!((keys(&nodes).len(), keys(&all).len()), (1, 2));
        cluster.create("kube-system", "later");
        until(|| keys(&all).len() == 3).await;
        settle().await;
        assert_eq!(keys(&maps), ["default/seen"]);
    });
}

// FAC-05: given a dynamic informer, when objects are created, updated, deleted, then Added, Updated, Deleted
// are told with the dynamic object.
#[test]
fn fac_05_a_dynamic_informer_of_a_factory_tells_added_updated_and_deleted_with_the_dynamic_object() {
    run(|cluster| async move {
        let factory = cluster.factory();
        let resource = ApiResource::erase::<ConfigMap>(&());
        let maps: Informer<DynamicObject> = factory.of(factory.dynamic(&resource)).expect("declared");
        let (subscription, received) = recorded(&maps);
        factory.start().expect("open");
        subscription.synced_within(LONG).await.expect("an empty list");
        cluster.create("default", "a");
        until(|| received.len() == 1).await;
        let mut changed = map("default", "a");
        changed["data"] = json!({"k": "v"});
        cluster.server.update(changed).expect("it is there");
        until(|| received.len() == 2).await;
        let object = maps.lister().get(&"default/a".parse().expect("a key")).expect("it is there");
        assert_eq!(
            (object.data["data"]["k"].as_str(), object.types.clone().expect("it has them").kind),
            (Some("v"), "ConfigMap".to_owned())
        );
        cluster.server.delete("configmaps", "default", "a").expect("it is there");
        until(|| received.len() == 3).await;
        let told: Vec<_> = received
            .lines()
            .iter()
            .map(|line| line.split('@').next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(told, ["Added(Watch) default/a", "Updated(Watch) default/a", "Deleted(Watch) default/a"]);
    });
}

// FAC-07: given a factory's shutdown, when it returns, then no task of it remains; a later start or request
// is an error.
// - a no task of it remains, also of an informer that was declared, or dropped shortly before
// - b a later start or request is an error
// - c what waits is delivered, and informers of others run on
#[test]
fn fac_07_after_a_shutdown_nothing_of_a_factory_runs_and_requests_and_starts_are_refused() {
    run(|cluster| async move {
        cluster.create("default", "a");
        let other = cluster.factory().informer::<Secret>().expect("declared, by another factory");
        let factory = cluster.factory();
        let maps = factory.informer::<ConfigMap>().expect("declared");
        let (subscription, received) = recorded(&maps);
        factory.start().expect("open");
        maps.synced_within(LONG).await.expect("it lists");
        let declared = factory.informer::<Node>().expect("declared, never started");
        drop(factory.of(factory.metadata::<Node>()).expect("declared, and dropped at once"));
        let report = factory.shutdown(LONG).await;
        assert!(report.is_clean(), "{report}");
        assert_eq!(received.len(), 1, "what waits is delivered");
        assert_eq!(cluster.runtime.informers().len(), 1, "that of the other factory");
        assert!(maps.status().stopped && declared.status().stopped && subscription.ended().is_some());
        for factory in [&factory, &factory.with_client(&cluster.client)] {
            assert!(matches!(factory.informer::<ConfigMap>(), Err(FactoryError::ShutDown)));
            assert!(matches!(factory.start(), Err(FactoryError::ShutDown)));
            assert!(factory.informers().is_empty());
        }
        let error = factory.start().unwrap_err().to_string();
        assert_eq!(error, "the informer factory was shut down");
        assert!(factory.shutdown(LONG).await.is_clean(), "again");
        assert!(!other.has_stopped());
    });
}

// FAC-08: given two holders of one informer, when both have released it, then it stops, its store is freed
// and its metrics vanish; a later request makes a fresh one that lists anew.
// - a it stops, its store is freed and its metrics vanish
// - b not before both have released it, listers included
// - c a later request makes a fresh one that lists anew
#[test]
fn fac_08_the_last_handle_ends_an_informer_its_store_and_its_metrics_and_the_next_request_lists_anew() {
    run(|cluster| async move {
        cluster.create("default", "a");
        let factory = cluster.factory();
        let [first, second] = [(); 2].map(|()| factory.informer::<ConfigMap>().expect("one informer"));
        factory.start().expect("open");
        first.synced_within(LONG).await.expect("it lists");
        let in_store = Arc::new(());
        let kept = Arc::downgrade(&in_store);
        let index = Index::<ConfigMap>::new("none", move |_| vec![Arc::strong_count(&in_store).to_string()]);
        first.add_index(&index).await.expect("the name is free");
        drop(index);
        let (lister, weak) = (second.lister(), first.downgrade());
        drop(first);
        drop(second);
        settle().await;
        assert!(!lister.snapshot().is_empty() && !weak.has_stopped(), "a lister is a handle");
        drop(lister);
        weak.ended().await;
        assert!(weak.upgrade().is_none() && factory.informers().is_empty());
        assert_eq!(kept.strong_count(), 0, "its store and indices are freed");
        assert!(cluster.runtime.report().informers.is_empty(), "its metrics have ended");
        until(|| cluster.server.watches("configmaps") == 0).await;

        let again = factory.informer::<ConfigMap>().expect("declared anew");
        assert!(matches!(again.state(), SourceState::Declared) && again.snapshot().is_empty());
        assert_eq!(again.name(), "configmaps", "the name is free again");
        factory.start().expect("open");
        again.synced_within(LONG).await.expect("it lists");
        assert_eq!((cluster.lists("configmaps"), keys(&again)), (2, vec!["default/a".to_owned()]));
        // One that is shut down while a handle is held is replaced, too.
        assert!(again.shutdown(LONG).await.is_clean());
        let third = factory.informer::<ConfigMap>().expect("declared anew");
        assert!(!third.has_stopped() && again.has_stopped());
        // So is one that is being shut down and still delivers.
        let _stuck = third.for_each(|_| std::future::pending()).expect("it runs");
        factory.start().expect("open");
        third.synced_within(LONG).await.expect("it lists");
        let stopping = third.clone();
        let shutdown = actix_rt::spawn(async move { stopping.shutdown(LONG).await });
        settle().await;
        let fourth = factory.informer::<ConfigMap>().expect("declared anew");
        assert!(!shutdown.is_finished() && !fourth.has_stopped() && third.has_stopped());
        drop(shutdown.await.expect("no panic"));
    });
}

#[test]
fn fac_09_requests_that_differ_are_different_informers_with_names_of_their_own() {
    run(|cluster| async move {
        let factory = cluster.factory();
        let maps = || factory.resource::<ConfigMap>();
        let slim = || Typed::<ConfigMap>::new().transform(|map| Ok(ConfigMap { data: None, ..map }));
        let elsewhere = factory.with_client(&Client::in_process(&cluster.runtime, cluster.server.service()));
        let typed = [
            maps(),
            maps().namespace("a"),
            maps().namespaces(["a", "b"]),
            maps().labels("app=a"),
            maps().fields("metadata.name=a"),
            maps().prune(Prune::nothing()),
            maps().keep_as_named("slim", slim()),
            maps().keep_as_named("slimmer", slim()),
            maps().cluster("eu".parse().expect("a name")),
            elsewhere.resource::<ConfigMap>(),
        ];
        let typed: Vec<_> = typed.into_iter().map(|one| factory.of(one).expect("declared")).collect();
        let metadata = factory.of(factory.metadata::<ConfigMap>()).expect("declared");
        let dynamic = factory.of(factory.dynamic(&ApiResource::erase::<ConfigMap>(&()))).expect("declared");
        let all: Vec<AnyInformer> =
            typed.iter().map(AnyInformer::from).chain([(&metadata).into(), (&dynamic).into()]).collect();
        let mut distinct: Vec<_> = all.iter().map(|informer| informer.name().to_owned()).collect();
        assert_eq!(names(&factory), distinct, "in the order of the requests");
        assert_eq!(distinct[6], "configmaps/as=slim");
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 12, "{distinct:?}");
        assert_eq!(factory.of(maps().keep_as_named("slim", slim())).expect("found").name(), typed[6].name());
    });
}

// FAC-09: given two requests of one kind that differ in scope, selectors or representation (transform and
// pruning belong to it), when made, then they are two informers, never a silent reuse; what can be neither is
// a typed error.
// - a they are two informers with distinct names:
//   `fac_09_requests_that_differ_are_different_informers_with_names_of_their_own`
// - b a transform without a name is a typed error
// - c other list settings, another size limit and another name for one key are typed errors
#[test]
fn fac_09_what_can_be_neither_shared_nor_apart_is_a_typed_error() {
    run(|cluster| async move {
        let factory = cluster.factory();
        let maps = || factory.resource::<ConfigMap>();
        let unnamed = maps().keep_as(Typed::<ConfigMap>::new().transform(Ok));
        let error = factory.of(unnamed).unwrap_err().to_string();
        assert_eq!(
            error,
            "the representation of configmaps needs a name, so that it can be compared: use `keep_as_named`"
        );
        let _first = factory.of(maps().name("mine")).expect("declared");
        assert!(factory.of(maps()).is_ok(), "a request without a name takes any");
        for (request, setting) in [
            (maps().name("other"), "name"),
            (maps().settings(|settings| settings.page_size = Some(7)), "list settings"),
            (maps().frame_limit(1 << 10), "size limit"),
        ] {
            let error = factory.of(request).unwrap_err();
            let FactoryError::Different { setting: found, .. } = &error else { panic!("{error}") };
            assert_eq!(*found, setting);
            assert_eq!(
                error.to_string(),
                format!(
                    "informer \"mine\" exists with another {setting}: requests of one informer must agree in it"
                )
            );
        }
        let unsound = factory.of(maps().labels("a in (")).unwrap_err();
        assert!(matches!(unsound, FactoryError::Client(_)), "{unsound}");
        assert_eq!(names(&factory), ["mine"], "a refused request changes nothing");
    });
}

// FAC-14: given a factory's informers, when their snapshots are taken together, then each is read by its
// informer's handle, none changes afterwards, and a wait ends when each has reached its version.
#[test]
fn fac_14_the_snapshots_of_all_informers_are_read_by_their_handles_and_awaited_by_version() {
    run(|cluster| async move {
        let factory = cluster.factory();
        let maps = factory.informer::<ConfigMap>().expect("declared");
        let nodes = factory.informer::<Node>().expect("declared");
        factory.start().expect("open");
        factory.synced_within(LONG).await.expect("both list");
        let before = factory.snapshot();
        assert_eq!(
            before.iter().map(|(name, ..)| name.to_string()).collect::<Vec<_>>(),
            [maps.name(), nodes.name()]
        );
        let made = cluster.server.create(map("default", "late")).expect("a new name");
        let version =
            made["metadata"]["resourceVersion"].as_str().expect("stored").parse().expect("a number");
        let wanted = Versions::new().of(&maps, &version);
        let after = factory.snapshot().at_least(&wanted, LONG).await.expect("the watch brings it");
        let key = "default/late".parse().expect("a key");
        assert!(after.get(&maps).is_some_and(|maps| maps.contains(&key)));
        assert!(before.get(&maps).is_some_and(|maps| !maps.contains(&key)), "a snapshot never changes");
        assert!(after.get(&nodes).is_some());
    });
}

// FAC-10: given several informers of which one cannot sync, when the factory waits with a deadline, then the
// result gives each one's name, state and last error.
#[test]
fn fac_10_the_wait_for_all_gives_each_ones_name_state_and_last_error_at_its_deadline() {
    run(|cluster| async move {
        let factory = cluster.factory();
        cluster.server.faults().deny("list", "secrets");
        cluster.server.faults().deny("watch", "secrets");
        let informers = (
            factory.informer::<ConfigMap>().expect("declared"),
            factory.informer::<Secret>().expect("declared"),
        );
        factory.start().expect("open");
        let nodes = factory.informer::<Node>().expect("declared, not started");
        let before = cluster.runtime.now();
        let error = factory.synced_within(Duration::from_secs(20)).await.unwrap_err();
        assert_eq!(cluster.runtime.now() - before, Duration::from_secs(20));
        let [maps, secrets, declared] = error.informers.as_slice() else { panic!("{error}") };
        assert_eq!((&*maps.name, &*secrets.name, &*declared.name), ("configmaps", "secrets", "nodes"));
        assert!(matches!(maps.state, SourceState::Streaming) && maps.error.is_none());
        assert!(matches!(secrets.state, SourceState::Denied { .. }) && secrets.last_error.is_some());
        assert!(matches!(declared.state, SourceState::Declared) && declared.last_error.is_none());
        let text = error.to_string();
        assert!(text.starts_with("2 of 3 informers are not synced: informer \"secrets\" is not synced after 20s: source \"default\": denied: "), "{text}");
        assert!(
            text.ends_with(
                "informer \"nodes\" is not synced after 20s: source \"default\": declared, not started (`begin`, \
                 its factory's `start` or an operator starts it)"
            ),
            "{text}"
        );
        drop((informers, nodes));
        factory.synced_within(LONG).await.expect("none is left to wait for");
    });
}

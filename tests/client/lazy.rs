//! Lazy caches, against the in-memory API server and a scripted one.
//!
//! Answers "what works on texts as on types, and what follows if a text does not decode?"

use actix_informer::client::{Client, Config};
use actix_informer::controller::{Controller, Outcome, Owns, Request, predicates};
use actix_informer::informer::{by_label, by_owner};
use actix_informer::prelude::*;
use actix_informer::representation::LazyBody;
use actix_informer::subscription::lazy_kube_events;
use futures_util::StreamExt;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::DynamicObject;
use kube_core::discovery::ApiResource;
use kube_runtime::watcher::Event;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::harness::*;
use crate::raw_server::answer;
use crate::scripted::*;

fn client_of(server: &ApiServer) -> Client {
    Client::new(Config::from_kubeconfig_text(&server.kubeconfig(), None).unwrap()).unwrap()
}

fn map(name: &str, app: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}}, "data": {"k": value},
    })
}

/// As [`object`], with this value where a text must be.
fn broken(item: &str) -> String {
    let mut map: Value = serde_json::from_str(&object(item)).unwrap();
    map["data"] = json!({"k": 4711});
    map.to_string()
}

fn list(items: &[String]) -> String {
    let body = format!(
        r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[{}]}}"#,
        items.join(",")
    );
    answer("200 OK", "content-type: application/json\r\n", &body)
}

fn named<S: Send + Sync + 'static>(informer: &Informer<S>, name: &str) -> Object<S> {
    informer.snapshot().iter().find(|object| object.key().name() == name).expect("it is there").clone()
}

#[tokio::test]
async fn a_text_that_does_not_decode_when_it_is_read_is_set_aside_until_another_version_comes() {
    let api = Scripted::start(list(&[object("one@1"), broken("two@2")])).await;
    let runtime = threads();
    let maps = follows(config_maps(&api.url()).lazy(), &runtime).start().unwrap();
    let status = reached(&maps, |status| status.synced).await;
    assert_eq!(
        (held(&maps), status.undecodable),
        (vec!["one@1".into(), "two@2".into()], 0),
        "nobody has read it"
    );

    let error = named(&maps, "two").decoded().unwrap_err().to_string();
    assert!(error.contains("data.k") && !error.contains("4711"), "{error}");
    assert!(named(&maps, "one").decoded().is_ok());
    reached(&maps, |status| status.undecodable == 1).await;
    let snapshot = maps.snapshot();
    let found: Vec<_> =
        snapshot.undecodable().map(|one| format!("{}@{}", one.key.name(), one.version)).collect();
    assert_eq!(found, ["two@2"]);
    assert_eq!(held(&maps), ["one@1", "two@2"], "its text is still there");

    // A list that brings the same version does not make it decode.
    api.list(list(&[object("one@1"), broken("two@2"), object("three@9")]));
    api.bytes("garbage\n");
    reached(&maps, |status| status.objects == 3).await;
    assert_eq!(maps.status().undecodable, 1);
    api.bytes(event("MODIFIED", &object("two@12")));
    reached(&maps, |status| status.undecodable == 0).await;
    assert!(named(&maps, "two").decoded().is_ok());
    ends(maps).await;
}

#[tokio::test]
async fn a_finding_while_no_watch_is_open_is_told_by_the_next_one() {
    let api = Scripted::start(list(&[broken("one@1")])).await;
    let source = config_maps(&api.url()).lazy();
    local(async {
        let source = made(source);
        let mut parts = source.list(latest(), KnownObjects::nothing());
        let Some(Ok(ListPart::Objects(objects))) = parts.next().await else { panic!("one is listed") };
        assert!(objects[0].decoded().is_err(), "nobody watches yet");
        let mut batches = source.watch(from("9"), KnownObjects::nothing());
        assert!(batches.next().await.unwrap().unwrap().is_empty(), "it is open");
        let told = batches.next().await.unwrap().unwrap();
        let [WatchPart::LateUndecodable(late)] = &told[..] else { panic!("{told:?}") };
        assert_eq!((late.key.name(), late.version.to_string()), ("one", "1".to_owned()));
    })
    .await;
}

#[tokio::test]
async fn a_finding_during_the_initial_events_of_a_watch_list_is_told_behind_them() {
    let api = Scripted::start(list(&[])).await;
    let source = config_maps(&api.url()).lazy();
    local(async {
        let source = made(source);
        let request = WatchRequest { initial_events: true, ..from("9") };
        let mut batches = source.watch(request, KnownObjects::nothing());
        assert!(batches.next().await.unwrap().unwrap().is_empty(), "it is open");
        api.bytes(event("ADDED", &broken("one@1")));
        let initial = batches.next().await.unwrap().unwrap();
        let [WatchPart::Applied(one)] = &initial[..] else { panic!("{initial:?}") };
        assert!(one.decoded().is_err());
        let end = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
        api.bytes(event("BOOKMARK", end));
        let end = batches.next().await.unwrap().unwrap();
        assert!(matches!(&end[..], [WatchPart::Bookmark { initial_events_end: true, .. }]), "{end:?}");
        let told = batches.next().await.unwrap().unwrap();
        assert!(matches!(&told[..], [WatchPart::LateUndecodable(_)]), "{told:?}");
    })
    .await;
}

#[tokio::test]
async fn selectors_indices_and_predicates_read_texts_as_they_read_types() {
    let server = ApiServer::builder().start().await.unwrap();
    let owner = server.create(map("owner", "web", "1")).unwrap();
    let mut child = map("child", "db", "1");
    child["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner["metadata"]["uid"], "controller": true}]);
    server.create(child).unwrap();
    let (client, runtime) = (client_of(&server), threads());
    let (of_app, of_owner) = (by_label("app"), by_owner());
    let builder = client.resource::<ConfigMap>().lazy().informer(&runtime).unwrap();
    let maps = builder.index_with(&of_app).index_with(&of_owner).start().unwrap();
    maps.synced_within(LONG).await.unwrap();
    let snapshot = maps.snapshot();
    let names = |selector: &str| {
        let selector = selector.parse().unwrap();
        snapshot.labelled(&selector).map(|map| map.key().name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("app=web"), ["owner"]);
    assert_eq!(names("app!=web,!tier"), ["child"]);
    assert_eq!(of_app.count(&snapshot, "db"), Ok(1));
    let uid = owner["metadata"]["uid"].as_str().unwrap();
    assert_eq!(of_owner.count(&snapshot, uid), Ok(1));

    let options = SubscribeOptions::new().changes(predicates::labels_changed());
    let mut events = maps.events_with(options).unwrap();
    for _ in 0..2 {
        tokio::time::timeout(LONG, events.next()).await.unwrap();
    }
    server.update(map("owner", "web", "2")).unwrap();
    server.update(map("owner", "shop", "2")).unwrap();
    let next = tokio::time::timeout(LONG, events.next()).await.unwrap().expect("it runs");
    let Notify::Updated { object, .. } = next else { panic!("{next:?}") };
    assert_eq!(object.decoded().unwrap().metadata.labels.as_ref().unwrap()["app"], "shop");
}

#[tokio::test]
async fn a_controller_gives_its_function_decoded_objects_and_a_key_that_does_not_decode_rests() {
    let api = Scripted::start(list(&[object("one@1"), broken("two@2")])).await;
    let runtime = threads();
    let maps = follows(config_maps(&api.url()).lazy(), &runtime).start().unwrap();
    let (note, mut seen) = mpsc::unbounded_channel();
    let reconcile = move |request: Request<ConfigMap>| {
        let name = request.key().name();
        let text = match request.object() {
            // The lazy cache is awaited for a write of its kind.
            Some(map) => format!("{name}@{} {}", map.version(), request.written(map.body())),
            None => format!("{name} is gone, {:?}", request.deleted().map(|last| last.version().to_string())),
        };
        note.send(text).unwrap();
        async { Ok(Outcome::Done) }
    };
    let controller = Controller::builder(&maps).owns(&maps).reconcile_decoded(reconcile).start().unwrap();
    assert_eq!(seen.recv().await.as_deref(), Some("one@1 1"));
    reached(&maps, |status| status.undecodable == 1).await;
    api.bytes(event("MODIFIED", &object("two@12")));
    assert_eq!(seen.recv().await.as_deref(), Some("two@12 1"));
    let status = controller.status();
    assert_eq!(status.counts.terminal, 1, "{status}");
    assert!(status.last_failure.is_some_and(|failure| failure.why.contains("data.k")));
    // A last state that does not decode does not hide that the object is gone.
    api.bytes(event("DELETED", &object("one@13")));
    assert_eq!(seen.recv().await.as_deref(), Some(r#"one is gone, Some("13")"#));
    api.bytes(event("DELETED", &broken("two@14")));
    assert_eq!(seen.recv().await.as_deref(), Some("two is gone, None"));
}

#[tokio::test]
async fn the_stream_for_kube_rs_has_decoded_objects_without_those_that_do_not_decode() {
    let api = Scripted::start(list(&[object("one@1"), broken("two@2")])).await;
    let runtime = threads();
    let maps = follows(config_maps(&api.url()).lazy(), &runtime).start().unwrap();
    let mut events = lazy_kube_events(maps.events().unwrap());
    let mut next = async || tokio::time::timeout(LONG, events.next()).await.unwrap().unwrap().unwrap();
    assert!(matches!(next().await, Event::Init));
    let Event::InitApply(ConfigMap { metadata, .. }) = next().await else { panic!("one is there") };
    assert_eq!(metadata.name.as_deref(), Some("one"));
    assert!(matches!(next().await, Event::InitDone));
    reached(&maps, |status| status.undecodable == 1).await;
    api.bytes(event("DELETED", &broken("two@13")));
    let Event::Delete(ConfigMap { metadata, data, .. }) = next().await else { panic!("two is gone") };
    assert_eq!((metadata.name.as_deref(), data), (Some("two"), None));
}

#[tokio::test]
async fn a_factory_shares_lazy_informers_and_keeps_them_apart_from_typed_ones() {
    let server = ApiServer::builder().start().await.unwrap();
    server.create(map("one", "web", "1")).unwrap();
    let (client, runtime) = (client_of(&server), threads());
    let factory = InformerFactory::new(&runtime, &client);
    let texts: Informer<LazyBody<ConfigMap>> = factory.of(factory.resource::<ConfigMap>().lazy()).unwrap();
    let same = factory.of(factory.resource::<ConfigMap>().lazy()).unwrap();
    let typed = factory.informer::<ConfigMap>().unwrap();
    assert_eq!(factory.informers().len(), 2);
    factory.start().unwrap();
    texts.synced_within(LONG).await.unwrap();
    typed.synced_within(LONG).await.unwrap();
    assert_eq!(same.snapshot().len(), 1);
    assert_eq!(*named(&same, "one").decoded().unwrap(), *named(&typed, "one").body());
}

#[tokio::test]
async fn a_kind_that_is_known_at_run_time_may_be_lazy_also_by_its_name() {
    let server = ApiServer::builder().start().await.unwrap();
    server.create(map("one", "web", "1")).unwrap();
    let (client, runtime) = (client_of(&server), threads());
    let of_kind = client.dynamic(&ApiResource::erase::<ConfigMap>(&())).lazy();
    let maps: Informer<LazyBody<DynamicObject>> = of_kind.informer(&runtime).unwrap().start().unwrap();
    maps.synced_within(LONG).await.unwrap();
    let one = named(&maps, "one").decoded().unwrap();
    assert_eq!(one.data["data"]["k"], "1");
    assert_eq!(one.types.as_ref().map(|types| &*types.kind), Some("ConfigMap"));

    let of_name = client.named("configmaps").lazy();
    let found = of_name.name("found").informer(&runtime).unwrap().start().unwrap();
    found.synced_within(LONG).await.unwrap();
    assert_eq!(*named(&found, "one").decoded().unwrap(), *one);
}

#[tokio::test]
async fn an_overlay_over_a_lazy_cache_shows_own_writes_at_once() {
    let server = ApiServer::builder().start().await.unwrap();
    let (client, runtime) = (client_of(&server), threads());
    let source = client.resource::<ConfigMap>().lazy();
    let maps = source.clone().informer(&runtime).unwrap().start().unwrap();
    maps.synced_within(LONG).await.unwrap();
    let mine = source.overlay(&maps).unwrap();
    let api = client.api::<ConfigMap>().namespaced("default");
    let wish = serde_json::from_value(map("one", "web", "1")).unwrap();
    let written = api.create(&PostParams::default(), &wish).await.unwrap();
    mine.written(&written).unwrap();
    let key = ObjectKey::namespaced("default", "one");
    let shown = mine.get(&key).expect("it is shown");
    assert_eq!(shown.into_object().decoded().unwrap().metadata.uid, written.metadata.uid);
}

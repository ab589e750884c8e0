//! The second wire, against the in-memory API server and servers that have no protobuf.
//!
//! Answers "does an informer over protobuf show what one over JSON shows, and who decides which of them it is?"

use std::collections::BTreeMap;

use actix_informer::client::api::PostParams;
use actix_informer::client::{Client, Config, ResourceSource};
use actix_informer::informer::{by_label, by_owner};
use actix_informer::object::FieldPath;
use actix_informer::prelude::*;
use actix_informer::representation::{
    LazyBody, MetadataOnly, Prune, ReadFields, ReadMetadata, Representation, WireKind,
};
use futures_util::StreamExt;
use informer_apiserver::{ApiServer, Credential, User};
use informer_core::list_watch_error::ErrorClass;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube_core::DynamicObject;
use kube_core::discovery::ApiResource;
use kube_core::gvk::GroupVersionKind;
use serde::Serialize;
use serde_json::{Value, json};

use crate::harness::*;
use crate::raw_server::{Connection, RawServer, answer};
use crate::scripted::*;

fn client_of(server: &ApiServer) -> Client {
    Client::new(Config::from_kubeconfig_text(&server.kubeconfig(), None).unwrap()).unwrap()
}

fn pod(name: &str, app: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}, "annotations": {"a": "é\n\""},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": format!("uid-{app}"),
                "controller": true}]},
        "spec": {"nodeName": format!("node-{app}"), "containers": [{"name": "c", "image": "i",
            "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "500m"}},
            "livenessProbe": {"httpGet": {"port": "http", "path": "/"}}}]},
    })
}

fn is_protobuf<K>(body: &LazyBody<K>) -> bool {
    body.read(|object| matches!(object.wire(), WireKind::Protobuf(_)))
}

fn shown<S: Send + Sync + 'static>(
    informer: &Informer<S>,
    of: impl Fn(&S) -> Value,
) -> BTreeMap<String, Value> {
    let snapshot = informer.snapshot();
    let all =
        snapshot.iter().map(|object| (format!("{}@{}", object.key(), object.version()), of(object.body())));
    all.collect()
}

fn typed<K: Serialize>(body: &K) -> Value {
    serde_json::to_value(body).unwrap()
}

fn texts<K>(body: &LazyBody<K>) -> Value {
    serde_json::from_str(&body.text()).unwrap()
}

async fn pair<K, R: Representation>(
    source: ResourceSource<K, R>,
    runtime: &Runtime,
    watch_list: bool,
) -> [Informer<R::Body>; 2]
where
    ResourceSource<K, R>: Clone,
{
    let start = |source: ResourceSource<K, R>, name: &str| {
        let settings = |settings: &mut informer_core::reflector::ReflectorConfig| {
            settings.watch_list = watch_list;
            settings.page_size = Some(2);
        };
        source.settings(settings).name(name).informer(runtime).unwrap().start().unwrap()
    };
    let both = [start(source.clone(), "json"), start(source.protobuf(), "protobuf")];
    for informer in &both {
        informer.synced_within(LONG).await.unwrap();
    }
    both
}

async fn agree<S: Send + Sync + 'static>(
    server: &ApiServer,
    [json, protobuf]: &[Informer<S>; 2],
    of: impl Fn(&S) -> Value,
) -> usize {
    for informer in [json, protobuf] {
        published(informer, server.revision()).await;
    }
    let (expected, found) = (shown(json, &of), shown(protobuf, &of));
    assert_eq!(found, expected);
    let status = protobuf.status();
    assert_eq!((status.undecodable, status.restarts), (0, 0), "{status}");
    found.len()
}

#[tokio::test]
async fn an_informer_over_protobuf_shows_what_one_over_json_shows_through_lists_watches_and_relists() {
    for watch_list in [false, true] {
        let server = ApiServer::builder().start().await.unwrap();
        for n in 0..5 {
            server.create(pod(&format!("p{n}"), "web")).unwrap();
        }
        let (client, runtime) = (client_of(&server), threads());
        let pods = client.resource::<Pod>().namespace("default").prune(Prune::nothing());
        let lazy = pair(pods.clone().lazy(), &runtime, watch_list).await;
        let whole = pair(pods.clone(), &runtime, watch_list).await;
        let metadata = pair(client.metadata::<Pod>().namespace("default"), &runtime, watch_list).await;
        let dynamic = client.dynamic(&ApiResource::erase::<Pod>(&())).namespace("default");
        let dynamic = pair(dynamic, &runtime, watch_list).await;
        #[cfg(feature = "packed")]
        let packed = pair(pods.packed(), &runtime, watch_list).await;

        let check = async |count| {
            assert_eq!(agree(&server, &lazy, texts).await, count);
            agree(&server, &lazy, |body| typed(&body.decode().unwrap())).await;
            agree(&server, &lazy, |body| typed(&*body.metadata())).await;
            agree(&server, &whole, typed).await;
            agree(&server, &metadata, typed).await;
            agree(&server, &dynamic, typed).await;
            #[cfg(feature = "packed")]
            agree(&server, &packed, texts).await;
        };
        check(5).await;
        assert!(lazy[1].snapshot().iter().all(|pod| is_protobuf(pod)), "watch list: {watch_list}");
        #[cfg(feature = "packed")]
        assert!(packed[1].snapshot().iter().all(|pod| is_protobuf(pod)));
        assert!(!lazy[0].snapshot().iter().any(|pod| is_protobuf(pod)));

        server.create(pod("late", "web")).unwrap();
        let mut changed = server.get("pods", "default", "p1").unwrap();
        changed["metadata"]["labels"]["app"] = "db".into();
        server.update(changed).unwrap();
        server
            .update_status(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p2", "namespace":
            "default"}, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}))
            .unwrap();
        server.delete("pods", "default", "p0").unwrap();
        check(5).await;
        assert!(lazy[1].snapshot().iter().all(|pod| is_protobuf(pod)));

        // What was missed comes by a list.
        server.faults().freeze_watches(true);
        server.delete("pods", "default", "p1").unwrap();
        server.create(pod("after", "web")).unwrap();
        server.faults().compact();
        server.faults().end_watches();
        server.faults().freeze_watches(false);
        check(5).await;
    }
}

#[tokio::test]
async fn what_reads_single_fields_of_a_text_reads_them_of_a_message() {
    let server = ApiServer::builder().start().await.unwrap();
    server.create(pod("one", "web")).unwrap();
    server.create(pod("two", "db")).unwrap();
    let (client, runtime) = (client_of(&server), threads());
    let image: FieldPath = "spec.containers[*].image".parse().unwrap();
    let source = client.resource::<Pod>().namespace("default").lazy().protobuf();
    let of_node = source.by_path("spec.nodeName").unwrap();
    let (of_app, of_owner) = (by_label("app"), by_owner());
    let builder = source.informer(&runtime).unwrap();
    let pods = builder.index_with(&of_node).index_with(&of_app).index_with(&of_owner).start().unwrap();
    pods.synced_within(LONG).await.unwrap();
    let snapshot = pods.snapshot();
    assert_eq!(of_node.count(&snapshot, "node-web"), Ok(1));
    assert_eq!(of_app.count(&snapshot, "db"), Ok(1));
    assert_eq!(of_owner.count(&snapshot, "uid-db"), Ok(1));
    let selector = "app in (web)".parse().unwrap();
    let of_web: Vec<_> = snapshot.labelled(&selector).collect();
    assert_eq!(of_web.len(), 1);
    assert_eq!(of_web[0].values_at(&image).unwrap(), ["i"]);
    assert_eq!(
        of_web[0].values_at(&"spec.containers[*].ports[*].containerPort".parse().unwrap()).unwrap(),
        ["80"]
    );
    assert_eq!(of_web[0].label("app").as_deref(), Some("web"));
    assert!(of_web[0].kept_bytes() < of_web[0].text().len());
}

#[tokio::test]
async fn a_custom_kind_in_the_same_client_comes_in_json_and_its_metadata_in_protobuf() {
    let server = ApiServer::builder().start().await.unwrap();
    let names = json!({"plural": "gadgets", "singular": "gadget", "kind": "Gadget"});
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    server
        .create(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "gadgets.example.org"}, "spec": {"group": "example.org", "scope": "Namespaced",
                "names": names, "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}}))
        .unwrap();
    let metadata = json!({"name": "one", "namespace": "default", "labels": {"a": "b"}});
    server
        .create(json!({"apiVersion": "example.org/v1", "kind": "Gadget", "metadata": metadata, "spec": {"size": 3}}))
        .unwrap();
    let (client, runtime) = (client_of(&server), threads());
    let gadget = ApiResource::from_gvk(&GroupVersionKind::gvk("example.org", "v1", "Gadget"));
    let lazy = pair(client.dynamic(&gadget).lazy(), &runtime, false).await;
    let metadata =
        pair(client.dynamic(&gadget).keep_as(MetadataOnly::<DynamicObject>::new()), &runtime, false).await;
    let named = pair(client.named("gadgets").lazy(), &runtime, false).await;
    let maps = pair(client.named("configmaps").lazy(), &runtime, false).await;
    assert_eq!(agree(&server, &lazy, texts).await, 1);
    assert_eq!(agree(&server, &metadata, typed).await, 1);
    assert_eq!(agree(&server, &named, texts).await, 1);
    assert!(
        !lazy[1].snapshot().iter().any(|one| is_protobuf(one))
            && !named[1].snapshot().iter().any(|one| is_protobuf(one))
    );
    let map = client_of(&server).api::<ConfigMap>().namespaced("default");
    let one = ConfigMap {
        metadata: kube_core::ObjectMeta { name: Some("one".into()), ..Default::default() },
        ..Default::default()
    };
    map.create(&PostParams::default(), &one).await.unwrap();
    agree(&server, &maps, texts).await;
    assert!(
        maps[1].snapshot().iter().all(|one| is_protobuf(one)),
        "a name is found to be of a built-in kind"
    );
}

/// Answers lists and gets with this, and tells what was accepted.
async fn recording(
    status: &'static str,
    body: String,
) -> (RawServer, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let (accepted, told) = tokio::sync::mpsc::unbounded_channel();
    let server = RawServer::start(move |mut connection: Connection| {
        let (sent, accepted) =
            (answer(status, "content-type: application/json\r\n", &body), accepted.clone());
        async move {
            while let Some(head) = connection.request().await {
                let line = head.lines().find_map(|line| line.strip_prefix("accept: "));
                let _ = accepted.send(line.unwrap_or_default().to_owned());
                connection.write(&sent).await;
            }
        }
    })
    .await;
    (server, told)
}

#[tokio::test]
async fn a_server_that_answers_json_is_read_and_protobuf_is_asked_for_only_where_it_is_known() {
    let item = config_map("one", 3);
    let (server, mut accepted) = recording("200 OK", list_of(&[item], "9")).await;
    let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
    let gadget = ApiResource::from_gvk(&GroupVersionKind::gvk("example.org", "v1", "Gadget"));
    local(async {
        let maps = list(&made(client.resource::<ConfigMap>().lazy().protobuf()), latest()).await.unwrap();
        assert_eq!(maps.items, ["a/one@3"]);
        assert_eq!(accepted.recv().await.unwrap(), "application/vnd.kubernetes.protobuf,application/json");
        let _ = list(&made(client.metadata::<ConfigMap>().protobuf()), latest()).await;
        let asked = accepted.recv().await.unwrap();
        let as_list = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        assert_eq!(asked, format!("application/vnd.kubernetes.protobuf{as_list},application/json{as_list}"));
        let _ = list(&made(client.dynamic(&gadget).lazy().protobuf()), latest()).await;
        assert_eq!(accepted.recv().await.unwrap(), "application/json", "a custom kind has no message");
        let own = client.resource::<ConfigMap>().keep_as(Length).protobuf();
        list(&made(own), latest()).await.unwrap();
        assert_eq!(
            accepted.recv().await.unwrap(),
            "application/json",
            "it does not say that it reads protobuf"
        );
    })
    .await;
}

/// A representation of a user's.
struct Length;

impl Representation for Length {
    type Body = usize;

    fn keep(
        &self,
        object: &actix_informer::representation::Encoded<'_>,
        _: &Prune,
    ) -> Result<usize, actix_informer::representation::DecodeError> {
        Ok(object.text()?.len())
    }
}

#[tokio::test]
async fn a_refusal_and_an_error_event_in_protobuf_say_what_they_say_in_json() {
    let server = ApiServer::builder()
        .rbac()
        .user_token("nobody", User::new("nobody"))
        .event_window(2)
        .start()
        .await
        .unwrap();
    let kubeconfig = server.kubeconfig_for(&Credential::Token("nobody".into()));
    let denied = Client::new(Config::from_kubeconfig_text(&kubeconfig, None).unwrap()).unwrap();
    for n in 0..9 {
        server.create(pod(&format!("p{n}"), "web")).unwrap();
    }
    local(async {
        let of = |client: &Client| client.resource::<Pod>().namespace("default").lazy();
        let mut words = Vec::new();
        for source in [of(&denied), of(&denied).protobuf()] {
            let error = list(&made(source), latest()).await.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Denied, "{error}");
            words.push(error.to_string().split(" (Audit-ID").next().unwrap().to_owned());
        }
        assert!(words[1].contains("cannot list resource"), "{words:?}");
        assert_eq!(words[0], words[1]);
        let client = client_of(&server);
        let mut ends = Vec::new();
        for source in [of(&client), of(&client).protobuf()] {
            let (parts, end) = watch(&made(source), from("1")).await;
            let error = end.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Relist, "{error}");
            ends.push((parts, error.to_string().split(" (Audit-ID").next().unwrap().to_owned()));
        }
        assert_eq!(ends[0], ends[1]);
    })
    .await;
}

#[tokio::test]
async fn an_object_that_does_not_decode_or_is_too_large_is_named_and_the_others_are_there() {
    #[derive(serde::Deserialize)]
    #[expect(dead_code, reason = "only decoded")]
    struct Numbers {
        data: Option<BTreeMap<String, u8>>,
    }
    let server = ApiServer::builder().start().await.unwrap();
    let map = |name: &str, value: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"},
            "data": {"k": value}})
    };
    for (name, value) in [("large", "x".repeat(20_000)), ("text", "hunter2".to_owned())] {
        server.create(map(name, &value)).unwrap();
    }
    let client = client_of(&server);
    local(async {
        let maps = client.resource::<ConfigMap>().namespace("default").frame_limit(4_096).protobuf();
        let page = list(&made(maps.clone().lazy().protobuf()), latest()).await.unwrap();
        let large = page.items.iter().find(|item| item.starts_with("!default/large@")).unwrap();
        assert!(large.contains("more than the limit"), "{large}");
        assert!(page.items.iter().any(|item| item.starts_with("default/text@")), "{page:?}");
        let page = list(&made(maps.project::<Numbers>()), latest()).await.unwrap();
        let text = page.items.iter().find(|item| item.starts_with("!default/text@")).unwrap();
        assert!(text.ends_with("does not decode: data.k: invalid type: string, expected u8"), "{text}");
        let initial = WatchRequest { initial_events: true, version: latest().version, ..from("1") };
        let source =
            made(client.resource::<ConfigMap>().namespace("default").frame_limit(4_096).lazy().protobuf());
        let mut batches = source.watch(initial, KnownObjects::nothing());
        let mut parts: Vec<String> = Vec::new();
        while !parts.iter().any(|part| part.starts_with("==")) {
            parts.extend(batches.next().await.unwrap().unwrap().iter().map(crate::harness::text));
        }
        assert!(parts.iter().any(|part| part.starts_with("!default/large@")), "{parts:?}");
    })
    .await;
}

#[tokio::test]
async fn a_debug_text_shows_no_value_and_the_memory_report_knows_the_fields() {
    let server = ApiServer::builder().start().await.unwrap();
    server
        .create(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "default"},
            "data": {"token": "aHVudGVyMg=="}}),
        )
        .unwrap();
    let (client, runtime) = (client_of(&server), threads());
    let secrets =
        client.resource::<Secret>().namespace("default").lazy().protobuf().informer(&runtime).unwrap();
    let secrets = secrets.start().unwrap();
    secrets.synced_within(LONG).await.unwrap();
    let body = secrets.snapshot().iter().next().unwrap().clone();
    assert!(
        is_protobuf(&body) && body.text().contains("aHVudGVyMg==") && !format!("{body:?}").contains("aHVu")
    );
    let memory = runtime.memory();
    let fields: Vec<&str> = memory.informers[0].fields.iter().map(|field| &*field.path).collect();
    assert!(fields.contains(&"data") && fields.contains(&"metadata.name"), "{fields:?}");
}

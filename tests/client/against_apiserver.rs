//! The client against the in-memory API server, over HTTP and HTTPS.
//!
//! Answers "do requests and answers in their real form fit together?" for lists, watches, gets, writes, and for a
//! whole informer. What a server should never do is in the other modules.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_informer::client::{Client, Config};
use actix_informer::representation::Typed;
use futures_util::{FutureExt, StreamExt};
use http::Method;
use informer_actors::list_watch::{KnownObjects, ListWatch};
use informer_actors::runtime::Runtime;
use informer_actors::subscription::Notify;
use informer_apiserver::ApiServer;
use informer_core::delta::Cause;
use informer_core::list_watch_error::{ErrorClass, ListWatchError};
use informer_core::meta::ObjectKey;
use informer_core::request::{AskedVersion, ListRequest, WatchRequest};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_core::discovery::ApiResource;
use serde_json::{Value, json};

use crate::harness::*;

fn pod(name: &str, app: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

fn client(server: &ApiServer) -> Client {
    Client::new(Config::from_kubeconfig_text(&server.kubeconfig(), None).unwrap()).unwrap()
}

fn names(page: &Page) -> Vec<&str> {
    page.items.iter().map(|item| item.split('@').next().unwrap()).collect()
}

/// Reads a watch up to the first part that begins with this text.
async fn parts_until<S: 'static>(
    source: &impl ListWatch<S>,
    request: WatchRequest,
    last: &str,
) -> Vec<String> {
    let mut batches = source.watch(request, KnownObjects::nothing());
    let mut all: Vec<String> = Vec::new();
    while !all.iter().any(|part| part.starts_with(last)) {
        all.extend(batches.next().await.unwrap().unwrap().iter().map(text));
    }
    all
}

#[tokio::test]
async fn pods_are_listed_in_pages_and_watched_from_there_over_http_and_https() {
    for builder in [ApiServer::builder(), ApiServer::builder().tls().token("s3cret")] {
        let server = builder.start().await.unwrap();
        for n in 0..5 {
            server.create(pod(&format!("p{n}"), "a")).unwrap();
        }
        local(async {
            let source = made(client(&server).resource::<Pod>());
            let mut request = ListRequest { limit: Some(2), ..latest() };
            let mut seen = Vec::new();
            let version = loop {
                let page = list(&source, request.clone()).await.unwrap();
                seen.extend(names(&page).into_iter().map(str::to_owned));
                match page.token {
                    Some(token) => request.token = Some(token),
                    None => break page.version,
                }
            };
            assert_eq!(seen, ["default/p0", "default/p1", "default/p2", "default/p3", "default/p4"]);
            server.create(pod("late", "a")).unwrap();
            server.delete("pods", "default", "p0").unwrap();
            let received = parts_until(&source, from(&version), "-default/p0@").await;
            assert!(received[0].starts_with("+default/late@"), "{received:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn wl_02_a_watch_list_brings_the_initial_events_and_their_end_bookmark() {
    let server = ApiServer::builder().start().await.unwrap();
    server.create(pod("one", "a")).unwrap();
    server.create(pod("two", "a")).unwrap();
    let initial = WatchRequest { version: AskedVersion::Latest, initial_events: true, ..from("1") };
    local(async {
        let source = made(client(&server).resource::<Pod>());
        let received = parts_until(&source, initial.clone(), "==").await;
        assert!(
            received[0].starts_with("+default/one@") && received[1].starts_with("+default/two@"),
            "{received:?}"
        );
        assert_eq!(received[2], format!("=={}", server.revision()));
        server.faults().refuse_watch_list(true);
        let (_, ended) = watch(&source, initial).await;
        assert_eq!(ended.unwrap_err().class(), ErrorClass::Unsupported);
    })
    .await;
}

#[tokio::test]
async fn the_server_evaluates_selectors_in_lists_watches_and_gets() {
    let server = ApiServer::builder().start().await.unwrap();
    server.create(pod("in", "a")).unwrap();
    server.create(pod("out", "b")).unwrap();
    local(async {
        let source = made(client(&server).resource::<Pod>().namespace("default").labels("app=a"));
        assert_eq!(names(&list(&source, latest()).await.unwrap()), ["default/in"]);
        let get = |name: &'static str| source.get(ObjectKey::namespaced("default", name));
        assert_eq!(get("in").await.unwrap().unwrap().key().name(), "in");
        assert!(get("out").await.unwrap().is_none());
        assert!(get("nothing").await.unwrap().is_none());
        assert!(source.get(ObjectKey::namespaced("other", "in")).await.unwrap().is_none());
        let absent = ListRequest { name: Some("no-such-name".to_owned()), ..latest() };
        let page = list(&source, absent).await.unwrap();
        assert_eq!((page.items.len(), page.version), (0, server.revision().to_string()));
    })
    .await;
}

#[tokio::test]
async fn get_brings_an_object_without_its_managed_fields_and_none_for_a_missing_one() {
    let server = ApiServer::builder().start().await.unwrap();
    server.create(pod("one", "a")).unwrap();
    local(async {
        let source = made(client(&server).resource::<Pod>());
        let object = source.get(ObjectKey::namespaced("default", "one")).await.unwrap().unwrap();
        assert_eq!(object.metadata.name.as_deref(), Some("one"));
        assert_eq!(object.metadata.managed_fields, None);
        assert!(source.get(ObjectKey::namespaced("default", "two")).await.unwrap().is_none());
        let error = source.get(ObjectKey::namespaced("default", "../x")).await.unwrap_err();
        assert!(matches!(error, ListWatchError::Source { .. }), "{error}");
    })
    .await;
}

#[tokio::test]
async fn dynamic_and_metadata_sources_see_the_same_objects() {
    let server = ApiServer::builder().start().await.unwrap();
    server.create(pod("one", "a")).unwrap();
    local(async {
        let client = client(&server);
        let dynamic = made(client.dynamic(&ApiResource::erase::<Pod>(&())));
        let object = dynamic.get(ObjectKey::namespaced("default", "one")).await.unwrap().unwrap();
        assert_eq!(object.data["spec"]["containers"][0]["image"], "i");
        assert_eq!(names(&list(&dynamic, latest()).await.unwrap()), ["default/one"]);
        let metadata = made(client.metadata::<Pod>());
        let page = list(&metadata, latest()).await.unwrap();
        assert_eq!(names(&page), ["default/one"]);
        let object = metadata.get(ObjectKey::namespaced("default", "one")).await.unwrap().unwrap();
        assert_eq!(object.metadata.labels.as_ref().unwrap()["app"], "a");
        server.create(pod("two", "b")).unwrap();
        let received = parts_until(&made(client.resource::<Pod>()), from(&page.version), "+").await;
        let by_metadata = parts_until(&metadata, from(&page.version), "+").await;
        assert_eq!(received, by_metadata);
    })
    .await;
}

#[tokio::test]
async fn refusals_of_the_server_arrive_typed() {
    let server = ApiServer::builder().tls().token("s3cret").start().await.unwrap();
    local(async {
        let wrong = Config::from_kubeconfig_text(&server.kubeconfig(), None).unwrap().token("wrong");
        let stranger = made(Client::new(wrong).unwrap().resource::<Pod>());
        assert_eq!(list(&stranger, latest()).await.unwrap_err().class(), ErrorClass::Unauthorized);
        let source = made(client(&server).resource::<ConfigMap>());
        server.faults().deny("list", "configmaps");
        assert_eq!(list(&source, latest()).await.unwrap_err().class(), ErrorClass::Denied);
        server.faults().allow("list", "configmaps");
        server.faults().gone_next(1);
        assert_eq!(list(&source, latest()).await.unwrap_err().class(), ErrorClass::Relist);
        let ahead = ListRequest { version: AskedVersion::From("99999999".parse().unwrap()), ..latest() };
        assert!(matches!(list(&source, ahead).await, Err(ListWatchError::TooLargeVersion(_))));
    })
    .await;
}

#[tokio::test]
async fn what_a_client_writes_its_sources_see() {
    let server = ApiServer::builder().start().await.unwrap();
    let client = client(&server);
    let body =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    let path = "/api/v1/namespaces/default/configmaps";
    let body = Some(("application/json", serde_json::to_vec(&body).unwrap()));
    let created = client.request(Method::POST, path, body).await.unwrap();
    assert_eq!(created.status().as_u16(), 201);
    local(async {
        let page = list(&made(client.resource::<ConfigMap>()), latest()).await.unwrap();
        assert_eq!(names(&page), ["default/a"]);
    })
    .await;
}

fn map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"}, "data": {"k": value},
    })
}

/// A list of a thousand maps, three of which change unseen, listed again, as a watch-list or as a list.
async fn relisted(watch_list: bool) {
    const CHANGED: usize = 3;
    let mut server = ApiServer::builder().start().await.unwrap();
    for n in 0..1_000 {
        server.create(map(&format!("n{n}"), "old")).unwrap();
    }
    let decoded = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&decoded);
    let counting = Typed::<ConfigMap>::new().transform(move |map| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(map)
    });
    let runtime = Runtime::threads().start().unwrap();
    let source = client(&server).resource::<ConfigMap>().keep_as(counting);
    let maps = source.settings(|settings| settings.watch_list = watch_list).informer(&runtime);
    let maps = maps.unwrap().start().unwrap();
    maps.synced_within(Duration::from_secs(30)).await.unwrap();
    let before = maps.snapshot();
    assert_eq!((before.len(), decoded.load(Ordering::SeqCst)), (1_000, 1_000));
    let mut events = maps.events().unwrap();
    for _ in 0..1_000 {
        assert!(matches!(events.next().await, Some(Notify::Added { .. })));
    }

    server.stop();
    for n in 0..CHANGED {
        server.update(map(&format!("n{n}"), "new")).unwrap();
    }
    server.faults().compact();
    server.start_again().unwrap();
    let newest = server.revision().to_string().parse().unwrap();
    maps.lister().wait_for(&newest, Duration::from_secs(30)).await.unwrap();

    assert_eq!(decoded.load(Ordering::SeqCst), 1_000 + CHANGED);
    let after = maps.snapshot();
    for n in 0..1_000 {
        let key = ObjectKey::namespaced("default", format!("n{n}"));
        let (old, new) = (before.get(&key).unwrap(), after.get(&key).unwrap());
        assert_eq!(old.ptr_eq(new), n >= CHANGED, "{key}");
        assert!(
            Arc::ptr_eq(old.key().shared_name(), new.key().shared_name()),
            "the text of {key} is held twice"
        );
    }
    for _ in 0..CHANGED {
        let received = events.next().await;
        assert!(matches!(received, Some(Notify::Updated { cause: Cause::Relist, .. })), "{received:?}");
    }
    let counters = maps.status().sources[0].counters.clone();
    assert_eq!((counters.lists > 0, counters.watch_lists > 1), (!watch_list, watch_list), "{counters:?}");
    // One publish delivered them: anything else that it delivered would be there.
    assert!(events.next().now_or_never().is_none(), "nothing else is delivered");
    drop(events);
    assert!(maps.shutdown(Duration::from_secs(30)).await.is_clean());
}

// REF-48: given a relist of 1,000 objects, 3 of which changed, when applied, then 3 are decoded and delivered
// as Updated{cause: Relist}; the 997 others keep the same `Object` (pointer-equal).
// - a 3 are decoded
// - b 3 are delivered as Updated{cause: Relist}
// - c the others keep the same `Object`
#[tokio::test]
async fn ref_48_and_wl_23_a_relist_decodes_and_delivers_what_changed_and_keeps_every_other_object() {
    relisted(true).await;
    relisted(false).await;
}

#[tokio::test]
async fn ref_52_after_a_rewind_each_object_is_decoded_anew_although_uid_and_version_are_the_stored_ones() {
    let mut server = ApiServer::builder().start().await.unwrap();
    for n in 0..10 {
        server.create(map(&format!("n{n}"), "old")).unwrap();
    }
    let decoded = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&decoded);
    let counting = Typed::<ConfigMap>::new().transform(move |map| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(map)
    });
    let runtime = Runtime::threads().start().unwrap();
    let maps = client(&server).resource::<ConfigMap>().keep_as(counting).informer(&runtime).unwrap();
    let maps = maps.start().unwrap();
    maps.synced_within(Duration::from_secs(30)).await.unwrap();
    let before = maps.snapshot();
    let backup = server.backup();
    for n in 0..5 {
        server.create(map(&format!("lost{n}"), "lost")).unwrap();
    }
    let newest = server.revision().to_string().parse().unwrap();
    maps.lister().wait_for(&newest, Duration::from_secs(30)).await.unwrap();
    assert_eq!((maps.snapshot().len(), decoded.load(Ordering::SeqCst)), (15, 15));

    server.stop();
    server.restore(&backup);
    server.start_again().unwrap();
    let rewound = maps.wait_until(|status| status.objects == 10 && status.sources[0].counters.rewinds == 1);
    tokio::time::timeout(Duration::from_secs(30), rewound).await.expect("in time").unwrap();
    assert_eq!(decoded.load(Ordering::SeqCst), 25);
    for old in before.iter() {
        let now = maps.lister().get(old.key()).unwrap();
        assert!(
            now.version() == old.version() && now.object_uid() == old.object_uid() && !now.ptr_eq(old),
            "{now:?}"
        );
    }
    assert!(maps.shutdown(Duration::from_secs(30)).await.is_clean());
}

//! What the writes of an `Api` return, laid over the cache of an informer: kept as the informer keeps objects.
//!
//! Answers "does an answer pass the same prune, transform and selectors as an event of the watch?" on simulated time.

use std::time::Duration;

use actix_informer::client::ResourceSource;
use actix_informer::client::api::Deleted;
use actix_informer::informer::{Laid, OverlayError};
use actix_informer::overlay::WriteOverlayError;
use actix_informer::prelude::*;
use actix_informer::representation::Typed;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

const MINUTE: Duration = Duration::from_secs(60);

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

fn map(name: &str, app: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.metadata.labels = Some([("app".to_owned(), app.to_owned())].into());
    map.data = Some([("secret".to_owned(), "x".to_owned()), ("apple".to_owned(), "12".to_owned())].into());
    map
}

/// Drops a key from the data; refuses and panics on request.
fn without_secret() -> Typed<ConfigMap> {
    Typed::new().transform(|mut map: ConfigMap| {
        let data = map.data.get_or_insert_default();
        data.remove("secret");
        assert!(!data.contains_key("panic"), "as asked");
        if data.contains_key("refuse") { Err("refused".into()) } else { Ok(map) }
    })
}

/// A server, an informer of a selection, and an `Api`.
struct Shop {
    server: ApiServer,
    maps: Informer<ConfigMap>,
    source: ResourceSource<ConfigMap>,
    api: Api<ConfigMap>,
}

async fn shop(runtime: &Runtime) -> Shop {
    let server = ApiServer::builder().seed(7).in_process(runtime.wall_time()).start().await.unwrap();
    let client = Client::in_process(runtime, server.service());
    let source =
        client.resource::<ConfigMap>().namespace("default").labels("app=cart").keep_as(without_secret());
    let maps = source.clone().informer(runtime).unwrap().start().unwrap();
    maps.synced_within(MINUTE).await.unwrap();
    Shop { server, maps, source, api: client.api::<ConfigMap>().namespaced("default") }
}

#[test]
fn idx_13_an_answer_is_kept_as_the_informer_keeps_objects_and_one_that_is_not_followed_is_refused() {
    Runtime::simulated(7).run(|runtime| async move {
        let Shop { server, maps, source, api } = shop(&runtime).await;
        let mine = source.overlay(&maps).unwrap();
        server.faults().freeze_watches(true);
        let created = api.create(&PostParams::default(), &map("prices", "cart")).await.unwrap();
        let before = maps.snapshot();
        assert_eq!(mine.written(&created).unwrap(), Laid::Shown);
        let shown = mine.get(&key("prices")).expect("it was written");
        assert!(shown.is_written() && before.is_empty());
        assert_eq!(shown.data.as_ref().unwrap().keys().collect::<Vec<_>>(), ["apple"], "the transform ran");
        assert!(
            created.metadata.managed_fields.is_some() && shown.metadata.managed_fields.is_none(),
            "pruned"
        );

        let version = shown.version().clone();
        server.faults().freeze_watches(false);
        maps.lister().wait_for_write(shown.cached_meta(), MINUTE).await.unwrap();
        let cached = mine.get(&key("prices")).expect("the watch has it");
        assert!(!cached.is_written() && *cached.version() == version);
        assert_eq!(cached.body(), shown.body(), "the same as the watch brings");

        let mut elsewhere = created.clone();
        elsewhere.metadata.namespace = Some("other".to_owned());
        let refused = mine.written(&elsewhere).unwrap_err();
        assert!(matches!(refused, WriteOverlayError::Overlay(OverlayError::NotFollowed { .. })), "{refused}");
        elsewhere.metadata.resource_version = None;
        assert!(matches!(mine.written(&elsewhere), Err(WriteOverlayError::Body(_))));
    });
}

#[test]
fn an_answer_that_the_informer_does_not_select_or_whose_object_is_gone_hides_the_object() {
    Runtime::simulated(7).run(|runtime| async move {
        let Shop { server, maps, source, api } = shop(&runtime).await;
        let mine = source.overlay(&maps).unwrap();
        for name in ["left", "gone", "ending"] {
            let created = api.create(&PostParams::default(), &map(name, "cart")).await.unwrap();
            mine.written(&created).unwrap();
        }
        let last = api.get("ending").await.unwrap();
        let meta = actix_informer::object::meta_of(&last).unwrap();
        maps.lister().wait_for_write(&meta, MINUTE).await.unwrap();
        assert_eq!((mine.snapshot().len(), maps.snapshot().len()), (3, 3));
        server.faults().freeze_watches(true);

        let other = Patch::Merge(json!({"metadata": {"labels": {"app": "pay"}}}));
        let left = api.patch("left", &PatchParams::default(), &other).await.unwrap();
        mine.written(&left).unwrap();
        let finalizer = Patch::Merge(json!({"metadata": {"finalizers": ["example.org/wait"]}}));
        mine.written(&api.patch("ending", &PatchParams::default(), &finalizer).await.unwrap()).unwrap();
        mine.deleted(&key("gone"), &api.delete("gone", &DeleteParams::default()).await.unwrap()).unwrap();
        let ending = api.delete("ending", &DeleteParams::default()).await.unwrap();
        assert!(matches!(ending, Deleted::Object(_)));
        mine.deleted(&key("ending"), &ending).unwrap();

        let shown = mine.snapshot();
        assert_eq!(shown.hidden().collect::<Vec<_>>(), [&key("gone"), &key("left")]);
        let ending = shown.get(&key("ending")).expect("it has a finalizer");
        assert!(ending.metadata.deletion_timestamp.is_some() && shown.is_written(&key("ending")));
        assert_eq!(shown.cache().len(), 3, "the watch has brought nothing of that");
        server.faults().freeze_watches(false);
        maps.wait_until(|status| status.objects == 1).await.unwrap();
        let shown = mine.snapshot();
        assert_eq!((shown.len(), shown.hidden().count()), (1, 0), "the watch has it");
    });
}

#[test]
fn an_answer_that_the_transform_refuses_is_an_error_that_names_the_object() {
    Runtime::simulated(7).run(|runtime| async move {
        let Shop { server: _server, maps, source, api } = shop(&runtime).await;
        let mine = source.overlay(&maps).unwrap();
        for (bad, why) in
            [("refuse", "transform failed: refused"), ("panic", "transform failed: it panicked: as asked")]
        {
            let mut map = map(bad, "cart");
            map.data.get_or_insert_default().insert(bad.to_owned(), String::new());
            let created = api.create(&PostParams::default(), &map).await.unwrap();
            let error = mine.written(&created).unwrap_err();
            assert_eq!(error.to_string(), format!("default/{bad}: {why}"));
        }
        assert_eq!(mine.snapshot().len(), 0);
    });
}

//! IDX-13 and IDX-14 on the running pipeline: what the writes of an `Api` return, laid over the cache of an informer.
//!
//! Answers "does the writer see its write at once, and nobody else, and does an answer pass the same prune, transform and
//! selectors as an event of the watch?" on simulated time. What an overlay decides is tested beside its machine.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix_informer::actix::Actor;
use actix_informer::client::ResourceSource;
use actix_informer::client::api::Deleted;
use actix_informer::fake::FakeInformer;
use actix_informer::informer::Index;
use actix_informer::object::meta_of;
use actix_informer::overlay::{Laid, OverlayLimits, WriteOverlayError};
use actix_informer::prelude::*;
use actix_informer::representation::{DecodeError, Encoded, Prune, Representation, Typed};
use actix_informer::testing::Recorder;
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
    let maps = source.clone().informer(runtime).unwrap().index("apple", |map| apple(map)).start().unwrap();
    maps.synced_within(MINUTE).await.unwrap();
    Shop { server, maps, source, api: client.api::<ConfigMap>().namespaced("default") }
}

fn apple(map: &ConfigMap) -> Option<String> {
    map.data.as_ref()?.get("apple").cloned()
}

impl Shop {
    /// A shop whose cache has the object `prices`, and whose watch brings nothing more.
    async fn frozen(runtime: &Runtime) -> Self {
        let shop = shop(runtime).await;
        let created = shop.api.create(&PostParams::default(), &map("prices", "cart")).await.unwrap();
        shop.reaches(&created).await;
        shop.server.faults().freeze_watches(true);
        shop
    }

    async fn reaches(&self, written: &ConfigMap) {
        self.maps.lister().wait_for_write(&meta_of(written).unwrap(), MINUTE).await.unwrap();
    }

    async fn patch(&self, apple: &str) -> ConfigMap {
        let patch = Patch::Merge(json!({"data": {"apple": apple}}));
        self.api.patch("prices", &PatchParams::default(), &patch).await.unwrap()
    }
}

/// Runs everything that can run now: time moves only when nothing else can.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

// IDX-13: given our own write returned at version 5 and laid over a cache at 4, when read, then 5; once the
// informer has published 6, then 6.
// - a laid over a cache at 4 it is read
// - b once the informer has published 6, then 6
// - c in whatever order answers and events come:
//   `idx_13_and_idx_14_a_reader_sees_the_newer_of_the_cache_and_our_writes_in_whatever_order_both_come`
// - d only readers that ask for it see it, and no subscriber
// - e the answer is kept as the informer keeps objects:
//   `idx_13_an_answer_is_kept_as_the_informer_keeps_objects_and_one_that_is_not_followed_is_refused`
// - f on both servers, while the watch is held, bounded, and taken over by it:
//   `idx_13_what_was_written_is_shown_at_once_and_the_watch_takes_it_over`
#[test]
fn idx_13_readers_that_ask_see_our_write_at_once_and_subscribers_are_told_what_the_watch_brings() {
    Runtime::simulated(7).run(|runtime| async move {
        let (shop, key) = (Shop::frozen(&runtime).await, key("prices"));
        let (recorder, received) = Recorder::new();
        let subscription = shop.maps.subscribe(recorder.start()).unwrap();
        subscription.synced_within(MINUTE).await.unwrap();
        let mine = shop.source.overlay(&shop.maps).unwrap();
        assert_eq!(mine.written(&shop.patch("ours").await).unwrap(), Laid::Shown);
        settle().await;

        let snapshot = mine.snapshot();
        assert_eq!(snapshot.get(&key).and_then(|map| apple(map)).as_deref(), Some("ours"));
        assert_eq!(snapshot.by_index("apple", "ours").unwrap().count(), 1);
        assert!(snapshot.is_written(&key) && mine.get(&key).is_some_and(|shown| shown.is_written()));
        let cached = shop.maps.snapshot().get(&key).and_then(|map| apple(map));
        assert_eq!(cached.as_deref(), Some("12"), "another reader");
        assert_eq!(received.len(), 1, "only the first list was delivered");

        let theirs = shop.patch("theirs").await;
        shop.server.faults().freeze_watches(false);
        shop.reaches(&theirs).await;
        let snapshot = mine.snapshot();
        assert_eq!(snapshot.get(&key).and_then(|map| apple(map)).as_deref(), Some("theirs"));
        assert!(!snapshot.is_written(&key) && mine.counters().reached == 1);
        settle().await;
        assert_eq!(received.agrees_with(&shop.maps.snapshot()), Ok(()));
    });
}

#[test]
fn idx_14_a_deletion_by_somebody_else_ends_our_write_also_when_its_answer_comes_later() {
    Runtime::simulated(7).run(|runtime| async move {
        let (shop, key) = (Shop::frozen(&runtime).await, key("prices"));
        let mine = shop.source.overlay(&shop.maps).unwrap();
        let ours = shop.patch("ours").await;
        mine.written(&ours).unwrap();
        shop.api.delete("prices", &DeleteParams::default()).await.unwrap();
        assert!(mine.get(&key).is_some(), "nobody has said yet that it is gone");
        shop.server.faults().freeze_watches(false);
        shop.maps.wait_until(|status| status.objects == 0).await.unwrap();
        assert!(mine.get(&key).is_none());
        assert_eq!(mine.written(&ours).unwrap(), Laid::Outdated);
        assert!(mine.get(&key).is_none() && mine.snapshot().written().next().is_none());
    });
}

#[test]
fn an_answer_that_the_watch_never_brings_ends_with_its_time() {
    Runtime::simulated(7).run(|runtime| async move {
        let (shop, key) = (Shop::frozen(&runtime).await, key("prices"));
        let limits = OverlayLimits::new(10, Duration::from_secs(5));
        let mine = shop.source.overlay_with(&shop.maps, limits).unwrap();
        mine.written(&shop.patch("ours").await).unwrap();
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(mine.get(&key).is_some_and(|shown| shown.is_written()));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(mine.get(&key).is_some_and(|shown| !shown.is_written()));
        assert_eq!(mine.counters().expired, 1);
    });
}

/// Keeps what runs this where it is dropped. It would wait for ever if the lock were held.
#[derive(Clone, Default)]
struct OnDrop(Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>);

impl Representation for OnDrop {
    type Body = Self;

    fn keep(&self, _: &Encoded<'_>, _: &Prune) -> Result<Self, DecodeError> {
        Ok(self.clone())
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.get().iter().for_each(|run| run());
    }
}

#[test]
fn an_overlay_works_over_a_fake_with_its_indices_and_runs_no_code_of_the_body_under_its_lock() {
    Runtime::simulated(7).run(|runtime| async move {
        let on_drop = OnDrop::default();
        let written = |version: u64| {
            let mut map = map("prices", "cart");
            map.metadata.namespace = Some("default".to_owned());
            map.metadata.resource_version = Some(version.to_string());
            map
        };
        let object = |version| Object::new(meta_of(&written(version)).unwrap(), on_drop.clone());
        let mut fake = FakeInformer::new([object(1)]);
        fake.add_index(Index::<OnDrop>::new("all", |_| ["all".to_owned()])).unwrap();
        let client = Client::in_process(&runtime, ApiServer::builder().start().await.unwrap().service());
        let source = client.resource::<ConfigMap>().keep_as(on_drop.clone());
        let mine = source.overlay(fake.lister()).unwrap();
        assert_eq!(mine.written(&written(2)).unwrap(), Laid::Shown);
        let again = mine.clone();
        let looks = Box::new(move || assert!(again.counters().laid > 0));
        assert!(on_drop.0.set(looks).is_ok());
        assert_eq!(mine.written(&written(2)).unwrap(), Laid::Outdated, "it is dropped at once");
        let shown = mine.snapshot();
        assert_eq!(shown.by_index("all", "all").unwrap().count(), 1);
        drop(shown);
        fake.apply(object(3)).unwrap();
        let counters = mine.counters();
        assert_eq!((counters.laid, counters.reached, counters.outdated), (1, 1, 1));
    });
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
        assert!(matches!(refused, WriteOverlayError::NotFollowed { .. }), "{refused}");
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
        let meta = meta_of(&last).unwrap();
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

//! The answers to a program's own writes, laid over the cache while the watch is slow (IDX-13).
//!
//! Answers "does a reader see his own creates, changes, deletions and recreations at once, and does the watch take each of
//! them over?". The informer is behind a relay that holds its connections; the writes go past it.

use actix_informer::client::{Client, ResourceSource};
use actix_informer::overlay::{Laid, OverlayLimits, WriteOverlay, WriteOverlayError};
use actix_informer::prelude::*;
use actix_informer::representation::Typed;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::relay::Relay;
use crate::stage::{LONG, Stage, until};

type Mine = WriteOverlay<ConfigMap, Typed<ConfigMap>>;

fn map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

fn state(map: &Object<ConfigMap>) -> (ObjectKey, ResourceVersion) {
    (map.key().clone(), map.version().clone())
}

/// An informer whose connections a relay can hold, an overlay of at most two answers, and an `Api` beside them.
struct Shop {
    relay: Relay,
    maps: Informer<ConfigMap>,
    mine: Mine,
    api: Api<ConfigMap>,
    stage: Stage,
}

impl Shop {
    async fn open(stage: Stage) -> Self {
        let relay = Relay::to(&stage.server).await;
        let client: Client = stage.server.client_through(&relay, None);
        let source: ResourceSource<ConfigMap> = client.resource::<ConfigMap>().namespace(&*stage.namespace);
        let maps = source.clone().informer(&stage.runtime).expect("a namespace").start().expect("it runs");
        maps.synced_within(LONG).await.expect("it lists");
        let mine = source.overlay_with(&maps, OverlayLimits::new(2, LONG)).expect("no selectors");
        let api = stage.server.client().api::<ConfigMap>().namespaced(&stage.namespace);
        Self { relay, maps, mine, api, stage }
    }

    async fn create(&self, name: &str) -> ConfigMap {
        self.api.create(&PostParams::default(), &map(name)).await.expect("a new object")
    }

    async fn delete(&self, name: &str) -> Result<Laid, WriteOverlayError> {
        let answer = self.api.delete(name, &DeleteParams::default()).await.expect("it is there");
        self.mine.deleted(&self.stage.key(name), &answer)
    }

    /// What readers of the overlay see under a key: its uid, and whether a write shows it.
    fn shown(&self, name: &str) -> Option<(Option<String>, bool)> {
        let shown = self.mine.get(&self.stage.key(name))?;
        Some((shown.metadata.uid.clone(), shown.is_written()))
    }

    /// Lets the watch go on, and waits until the cache shows the same as the overlay did, without it.
    async fn taken_over(&self) {
        let expected: Vec<_> = self.mine.snapshot().iter().map(state).collect();
        self.relay.mend();
        let cached = || self.maps.snapshot().iter().map(state).collect::<Vec<_>>();
        until("the watch has brought every write", || cached() == expected).await;
        let shown = self.mine.snapshot();
        assert!(shown.iter().all(|map| !shown.is_written(map.key())), "the cache counts alone");
    }
}

pub(crate) async fn idx_13_what_was_written_is_shown_at_once_and_the_watch_takes_it_over(stage: Stage) {
    let shop = Shop::open(stage).await;
    let old = shop.create("old").await;
    let key = shop.stage.key("old");
    until("it is in the cache", || shop.maps.snapshot().get(&key).is_some()).await;

    shop.relay.hold();
    let new = shop.create("new").await;
    assert_eq!(shop.mine.written(&new).expect("there is room"), Laid::Shown);
    assert_eq!(shop.shown("new"), Some((new.metadata.uid.clone(), true)));
    assert!(shop.maps.snapshot().get(&shop.stage.key("new")).is_none(), "the watch is held");
    let patch = Patch::Merge(json!({"data": {"apple": "12"}}));
    let changed = shop.api.patch("old", &PatchParams::default(), &patch).await.expect("it is there");
    shop.mine.written(&changed).expect("there is room");
    assert_eq!(shop.shown("old"), Some((old.metadata.uid.clone(), true)));
    let more = shop.create("more").await;
    let refused = shop.mine.written(&more).expect_err("two answers are shown");
    assert!(matches!(refused, WriteOverlayError::Full { .. }), "{refused}");
    shop.api.delete("more", &DeleteParams::default()).await.expect("it is there");
    shop.taken_over().await;
    assert_eq!(shop.mine.counters().reached, 2);
    assert_eq!(shop.shown("old"), Some((old.metadata.uid, false)));
}

pub(crate) async fn idx_13_a_deletion_and_another_life_are_shown_at_once_and_the_watch_brings_none_back(
    stage: Stage,
) {
    let shop = Shop::open(stage).await;
    for name in ["gone", "again"] {
        shop.create(name).await;
    }
    until("both are in the cache", || shop.maps.snapshot().len() >= 2).await;
    shop.relay.hold();
    assert_eq!(shop.delete("gone").await.expect("there is room"), Laid::Shown);
    shop.delete("again").await.expect("there is room");
    assert_eq!((shop.shown("gone"), shop.shown("again")), (None, None));
    let second = shop.create("again").await;
    shop.mine.written(&second).expect("it takes the place of the deletion");
    assert_eq!(shop.shown("again"), Some((second.metadata.uid.clone(), true)), "another life");
    shop.taken_over().await;
    assert_eq!((shop.shown("gone"), shop.shown("again")), (None, Some((second.metadata.uid, false))));
    assert_eq!(shop.mine.counters().expired, 0);
}

//! IDX-13 and IDX-14 on the running pipeline: what writes have returned, laid over the cache.
//!
//! Answers "does the writer see its write at once, and nobody else?" What an overlay decides is tested beside its core.

use std::time::Duration;

use informer_actors::informer::{FakeInformer, Informer, OverlayError};
use informer_actors::runtime::Runtime;
use informer_core::index::Index;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::overlay::{Laid, OverlayLimits};

use crate::world::{LONG, World, pass, run, settle, three};

fn key() -> ObjectKey {
    "a/one".parse().expect("a key")
}

impl World {
    /// What a write of `a/one` returns: the object, with the uid that it has in the cache.
    fn returned(&self, version: &ResourceVersion, body: &str) -> Object<String> {
        let cached = self.informer.snapshot().get(&key()).and_then(|object| object.object_uid().cloned());
        let meta = Meta::new(key(), version.clone(), SourceId::default()).uid(cached);
        Object::new(meta, body.to_owned())
    }
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
    run(three, |world| async move {
        world.synced().await;
        let (watched, mine) = (world.watched(), world.informer.lister().overlay());
        watched.synced().await;
        world.server.freeze_watches(true);
        let version = world.server.apply("a/one", "ours".to_owned());
        assert_eq!(mine.written(world.returned(&version, "ours")), Ok(Laid::Shown));
        settle().await;

        let snapshot = mine.snapshot();
        assert_eq!(snapshot.get(&key()).expect("it is there").body(), "ours");
        assert_eq!(snapshot.by_index("body", "ours").expect("it has the index").count(), 1);
        assert!(snapshot.is_written(&key()) && mine.get(&key()).is_some_and(|shown| shown.is_written()));
        assert_eq!(world.informer.snapshot().get(&key()).expect("it is there").body(), "1", "another reader");
        assert_eq!(watched.received.len(), 3, "only the first list was delivered");

        let theirs = world.server.apply("a/one", "theirs".to_owned());
        world.server.freeze_watches(false);
        world.reaches(&theirs).await;
        assert_eq!(mine.snapshot().get(&key()).expect("it is there").body(), "theirs");
        assert!(!mine.snapshot().is_written(&key()) && mine.is_empty());
        watched.agrees(&world).await;
    });
}

#[test]
fn idx_14_a_deletion_by_somebody_else_ends_our_write_also_when_its_answer_comes_later() {
    run(three, |world| async move {
        world.synced().await;
        let mine = world.informer.lister().overlay();
        world.server.freeze_watches(true);
        let version = world.server.apply("a/one", "ours".to_owned());
        let returned = world.returned(&version, "ours");
        mine.written(returned.clone()).expect("it is followed");
        let deleted = world.server.delete("a/one").expect("it is there");
        assert!(mine.get(&key()).is_some(), "nobody has said yet that it is gone");
        world.server.freeze_watches(false);
        world.reaches(&deleted).await;
        assert!(mine.get(&key()).is_none());
        assert_eq!(mine.written(returned), Ok(Laid::Outdated));
        assert!(mine.get(&key()).is_none() && mine.is_empty());
    });
}

#[test]
fn an_answer_that_the_watch_never_brings_ends_with_its_time() {
    run(three, |world| async move {
        world.synced().await;
        let limits = OverlayLimits::new(10, Duration::from_secs(5));
        let mine = world.informer.lister().overlay_with(limits);
        world.server.freeze_watches(true);
        let version = world.server.apply("a/one", "ours".to_owned());
        mine.written(world.returned(&version, "ours")).expect("it is followed");
        pass(Duration::from_secs(4)).await;
        assert!(mine.get(&key()).is_some_and(|shown| shown.is_written()));
        pass(Duration::from_secs(1)).await;
        assert!(mine.get(&key()).is_some_and(|shown| !shown.is_written()));
        assert_eq!(mine.counters().expired, 1);
    });
}

#[test]
fn an_overlay_works_over_a_fake_with_its_indices_and_runs_no_code_of_the_body_under_its_lock() {
    /// Runs this where it is dropped. It would wait for ever if the lock were held.
    struct OnDrop(Option<Box<dyn Fn() + Send + Sync>>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.iter().for_each(|run| run());
        }
    }
    let object = |version, body| {
        let version = ResourceVersion::from_number(version).expect("not zero");
        Object::new(Meta::new(key(), version, SourceId::default()), body)
    };
    let mut fake = FakeInformer::new([object(1, OnDrop(None))]);
    fake.add_index(Index::<OnDrop>::new("all", |_| ["all".to_owned()])).expect("a free name");
    let mine = fake.lister().overlay();
    let looks = || {
        let again = mine.clone();
        OnDrop(Some(Box::new(move || assert!(again.counters().laid > 0))))
    };
    assert_eq!(mine.written(object(2, looks())), Ok(Laid::Shown));
    assert_eq!(mine.written(object(2, looks())), Ok(Laid::Outdated), "it is dropped at once");
    let shown = mine.snapshot();
    assert_eq!(shown.by_index("all", "all").expect("it has the index").count(), 1);
    drop(shown);
    fake.apply(object(3, OnDrop(None))).expect("newer");
    assert_eq!((mine.len(), mine.counters().reached, mine.counters().outdated), (0, 1, 1));
}

#[test]
fn an_answer_about_a_key_that_no_source_covers_is_refused_and_so_is_a_wait_for_it() {
    Runtime::simulated(1).run(|runtime| async move {
        let server = informer_actors::testing::Server::<String>::new();
        let spec = informer_actors::list_watch::SourceSpec::new(
            SourceId::default(),
            server.connect(),
            informer_core::reflector::ReflectorConfig::new("texts"),
        );
        let spec = spec.covering(informer_actors::list_watch::Coverage::everything().namespace("a"));
        let informer = Informer::builder(&runtime, "texts").source_with(spec).start().expect("sound");
        let mine = informer.lister().overlay();
        let version = ResourceVersion::from_number(5).expect("not zero");
        let meta = Meta::new("b/one".parse().expect("a key"), version, SourceId::default());
        let refused = mine.written(Object::new(meta.clone(), String::new()));
        assert!(matches!(refused, Err(OverlayError::NotFollowed { .. })), "{refused:?}");
        let waited = informer.lister().wait_for_write(&meta, LONG).await.expect_err("it never comes");
        assert_eq!(waited.to_string(), "informer \"texts\" has no source that follows b/one");
    });
}

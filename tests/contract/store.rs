//! RF and IDX on the running pipeline: what is published, when, and what the indices contain.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer_actors::informer::AddIndexError;
use informer_actors::informer::Lister;
use informer_actors::testing::Server;
use informer_actors::testing::{Faults, Site};
use informer_core::index::Index;

use crate::world::{nothing, run, run_with, settle, three};

// RF-06: given Replace([], "123") as the first list, when popped, then it is one entry; applied, an empty
// snapshot at 123 is published and the informer is synced.
// - a popped, it is one entry: `rf_06_an_empty_replace_is_one_entry`
// - b an empty snapshot at its version is published
// - c the informer is synced
#[test]
fn rf_06_an_empty_first_list_is_published_at_its_version_and_syncs() {
    run(nothing, |world| async move {
        world.synced().await;
        let snapshot = world.informer.snapshot();
        assert!(snapshot.is_empty());
        assert_eq!(snapshot.versions().len(), 1);
        assert_eq!(*snapshot.versions().first().expect("one source"), world.server.version());
    });
}

// RF-18: given Replace of two items as the first list, when applied, then synced() is pending and readers see
// neither until the one publish that holds both; right after, Ok.
// - a synced() is pending and readers see neither until the one publish
// - b that holds both, and right after it is Ok
#[test]
fn rf_18_synced_is_pending_until_the_one_publish_that_holds_the_whole_list() {
    run(
        |server| {
            three(server);
            server.hold_lists(true);
        },
        |world| async move {
            let early = world.informer.synced_within(Duration::from_secs(5)).await;
            assert!(early.is_err(), "the list has not ended");
            assert!(world.informer.snapshot().is_empty(), "half a list is never seen");
            world.server.hold_lists(false);
            world.synced().await;
            assert_eq!(world.informer.snapshot().len(), 3);
        },
    );
}

#[test]
fn rf_26_the_version_of_the_snapshot_follows_the_newest_applied_event_and_bookmark() {
    run(three, |world| async move {
        world.synced().await;
        world.apply("a/one", "x").await;
        world.delete("a/two").await;
        let unrelated = world.server.version();
        world.server.bookmark();
        world.reaches(&unrelated).await;
        assert_eq!(*world.informer.snapshot().versions().first().expect("one source"), unrelated);
    });
}

// IDX-02: given an update that changes the index value, when queried, then old bucket no longer has it, new
// one does.
// - a the old bucket no longer has it
// - b the new one does
#[test]
fn idx_02_an_update_that_changes_the_index_value_moves_the_object_to_another_bucket() {
    run(three, |world| async move {
        world.synced().await;
        world.apply("a/one", "moved").await;
        let lister = world.informer.lister();
        assert!(lister.by_index("body", "1").expect("the index exists").is_empty());
        assert_eq!(lister.by_index("body", "moved").expect("the index exists").len(), 1);
    });
}

// IDX-05: given an unknown index name, when queried, then an error names it (no panic).
#[test]
fn idx_05_an_unknown_index_is_an_error_that_names_it() {
    run(three, |world| async move {
        world.synced().await;
        let error = world.informer.lister().by_index("colour", "red").expect_err("there is no such index");
        assert!(error.to_string().contains("colour"), "{error}");
    });
}

// IDX-06: given objects in the store, when an index is added, then it appears in one later snapshot with all
// of them; a name already taken is an error and changes nothing.
// - a it appears in one later snapshot, and in none before it is whole:
//   `idx_06_an_added_index_appears_in_one_later_snapshot_with_all_objects`
// - b with all objects
// - c also those that change while it is built: `parts_applied_while_an_index_is_built_are_in_it`
// - d a name already taken is an error
// - e and changes nothing: `idx_06_a_name_already_taken_is_an_error_and_changes_nothing`
#[test]
fn idx_06_an_index_added_late_appears_whole_in_one_later_snapshot_and_a_taken_name_changes_nothing() {
    run(three, |world| async move {
        world.synced().await;
        let by_name = Index::<String>::new("name", |object| vec![object.key().name().to_owned()]);
        world.informer.add_index(by_name.clone()).await.expect("the name is free");
        settle().await;
        assert_eq!(world.informer.lister().by_index("name", "one").expect("it is there").len(), 2);
        let again = world.informer.add_index(by_name).await;
        assert_eq!(again, Err(AddIndexError::Exists("name".to_owned())));
        world.apply("c/one", "4").await;
        assert_eq!(world.informer.lister().by_index("name", "one").expect("it is there").len(), 3);
    });
}

#[test]
fn idx_18_an_index_function_that_panics_loses_only_that_entry() {
    run(three, |world| async move {
        world.synced().await;
        let picky = Index::<String>::new("picky", |object| {
            assert!(object.body() != "2", "this index refuses objects of version two");
            vec![object.body().clone()]
        });
        world.informer.add_index(picky).await.expect("the name is free");
        settle().await;
        let lister = world.informer.lister();
        assert_eq!(lister.by_index("picky", "1").expect("it is there").len(), 1);
        assert!(lister.by_index("picky", "2").expect("it is there").is_empty());
        assert!(lister.get(&"a/two".parse().expect("a key")).is_some(), "the object itself is stored");
        assert_eq!(world.informer.status().data.index_failures, 1);
        world.apply("a/two", "5").await;
        assert_eq!(lister.by_index("picky", "5").expect("it is there").len(), 1);
    });
}

/// What a reader sees at each slice of a Replace and right after the publish: how many objects, and how many
/// new ones.
type Sights = Arc<Mutex<(Option<Lister<String>>, Vec<(Site, usize, usize)>)>>;

fn looks(sights: &Sights) -> Faults {
    let sights = Arc::clone(sights);
    Faults::new(move |site| {
        let mut sights = sights.lock().expect("no panic");
        let (true, Some(lister)) = (matches!(site, Site::IndexerReplace | Site::IndexerPublished), &sights.0)
        else {
            return;
        };
        let snapshot = lister.snapshot();
        let new = snapshot.iter().filter(|object| object.body() == "new").count();
        sights.1.push((site, snapshot.len(), new));
    })
}

// RF-25: given store {a,b} and Replace([b',c]), when a reader takes snapshots at any instant, then each holds
// {a,b} or {b',c}, never a mixture.
#[test]
fn rf_25_a_reader_sees_the_state_before_a_replace_or_after_it_and_nothing_between() {
    let sights = Sights::default();
    let old = |server: &Server<String>| {
        server.serve_watch_list(false);
        (0..1_000).for_each(|n| drop(server.apply(&format!("a/{n}"), "old".to_owned())));
    };
    run_with(looks(&sights), old, |world| async move {
        world.synced().await;
        world.streaming().await;
        // The connection is lost, everything changes, and the watch's version is compacted away.
        world.server.freeze_watches(true);
        (0..500).for_each(|n| drop(world.server.delete(&format!("a/{n}"))));
        (500..1_600).for_each(|n| drop(world.server.apply(&format!("a/{n}"), "new".to_owned())));
        world.server.compact();
        sights.lock().expect("no panic").0 = Some(world.informer.lister());
        world.server.freeze_watches(false);
        world.agrees().await;
        let (_, seen) = std::mem::take(&mut *sights.lock().expect("no panic"));
        let (published, slices) = seen.split_last().expect("a list was applied");
        assert!(slices.len() >= 4, "{seen:?}");
        assert!(slices.iter().all(|seen| *seen == (Site::IndexerReplace, 1_000, 0)), "{seen:?}");
        assert_eq!(*published, (Site::IndexerPublished, 1_100, 1_100));
    });
}

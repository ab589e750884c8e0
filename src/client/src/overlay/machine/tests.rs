//! What readers see when answers to writes are laid over a cache: in which order ever answers and events come.

mod model;

use std::time::Duration;

use informer_core::delta::{Cause, Replacement, WatchPart};
use informer_core::index::{AnyIndex, Index};
use informer_core::indexer::{Progress, Store};
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId, Uid};
use informer_core::snapshot::Snapshot;

use super::{Laid, Overlaid, Overlay, OverlayLimits, Shown};

const START: Duration = Duration::ZERO;

fn key(text: &str) -> ObjectKey {
    text.parse().expect("a key")
}

fn version(number: u64) -> ResourceVersion {
    ResourceVersion::from_number(number).expect("not zero")
}

fn brought_by(source: &SourceId, name: &str, uid: &str, number: u64, words: &str) -> Object<String> {
    let meta = Meta::new(key(name), version(number), source.clone()).uid(Uid::new(uid));
    Object::new(meta, words.to_owned())
}

fn life(name: &str, uid: &str, number: u64) -> Object<String> {
    brought_by(&SourceId::default(), name, uid, number, "")
}

fn worded(name: &str, number: u64, words: &str) -> Object<String> {
    brought_by(&SourceId::default(), name, "u1", number, words)
}

/// How tests write an object down: `a/x u1@3`.
fn written(object: &Object<String>) -> String {
    let uid = object.object_uid().expect("each has one");
    format!("{} {uid}@{}", object.key(), object.version())
}

fn overlay() -> Overlay<String> {
    Overlay::new(OverlayLimits::default())
}

/// The only source of most caches here.
fn only() -> [SourceId; 1] {
    [SourceId::default()]
}

/// A cache of these objects, whose source has reached this version.
fn cache(objects: &[Object<String>], reached: u64) -> Snapshot<String> {
    let mut store = Store::new(Snapshot::of(objects.iter().cloned(), []), Vec::new());
    let reached = WatchPart::Bookmark { version: version(reached), initial_events_end: false };
    store.apply_parts([(SourceId::default(), reached)]).snapshot
}

fn over(
    overlay: &mut Overlay<String>,
    cache: &Snapshot<String>,
    indices: &[AnyIndex<String>],
) -> Overlaid<String> {
    Overlaid::new(cache.clone(), overlay.laid(cache, START), indices)
}

/// What a reader sees of `a/x`, and whether it is a write of ours.
fn seen(overlay: &mut Overlay<String>, cache: &Snapshot<String>) -> (String, bool) {
    let (one, all) = (overlay.get(cache, &key("a/x"), START), over(overlay, cache, &[]));
    assert_eq!(one.as_deref().map(written), all.get(&key("a/x")).map(written), "both ways to read agree");
    assert_eq!(one.as_ref().is_some_and(Shown::is_written), all.is_written(&key("a/x")));
    match one {
        Some(shown) => (written(&shown), shown.is_written()),
        None => ("absent".to_owned(), false),
    }
}

#[test]
fn idx_13_our_own_write_is_read_until_the_informer_has_published_a_version_at_or_above() {
    let mut overlay = overlay();
    let old = cache(&[life("a/x", "u", 4)], 4);
    assert_eq!(overlay.handle_written(&old, life("a/x", "u", 5), &only(), START), Ok(Laid::Shown));
    assert_eq!(seen(&mut overlay, &old), ("a/x u@5".into(), true));
    assert_eq!(seen(&mut overlay, &cache(&[life("a/x", "u", 6)], 6)), ("a/x u@6".into(), false));
    assert!(overlay.entries.is_empty() && overlay.counters.reached == 1);
    let same = cache(&[life("a/x", "u", 6)], 6);
    assert_eq!(overlay.handle_written(&same, life("a/x", "u", 6), &only(), START), Ok(Laid::Outdated));
    assert_eq!(seen(&mut overlay, &same), ("a/x u@6".into(), false), "nothing to lay over");
}

// IDX-14: given our write laid over the cache and racing a delete, when the informer publishes the delete or
// a new uid, then the overlay of that key is gone and is not resurrected.
// - a a published delete ends it
// - b and so does a new uid
// - c it is not resurrected by an answer that comes late
// - d in whatever order answers and events come:
//   `idx_13_and_idx_14_a_reader_sees_the_newer_of_the_cache_and_our_writes_in_whatever_order_both_come`
#[test]
fn idx_14_a_published_deletion_or_new_uid_ends_the_overlay_of_its_key_for_good() {
    for (published, shown) in [(cache(&[], 6), "absent"), (cache(&[life("a/x", "v", 6)], 6), "a/x v@6")] {
        let mut overlay = overlay();
        let old = cache(&[life("a/x", "u", 4)], 4);
        assert_eq!(overlay.handle_written(&old, life("a/x", "u", 5), &only(), START), Ok(Laid::Shown));
        assert_eq!(seen(&mut overlay, &published), (shown.into(), false));
        let late = overlay.handle_written(&published, life("a/x", "u", 5), &only(), START);
        assert_eq!(late, Ok(Laid::Outdated), "an answer that comes late resurrects nothing");
        assert_eq!(seen(&mut overlay, &published), (shown.into(), false));
    }
}

#[test]
fn idx_14_a_write_that_creates_again_stays_while_the_watch_brings_the_end_of_the_life_before() {
    let mut overlay = overlay();
    let old = cache(&[life("a/x", "u", 4)], 4);
    assert_eq!(overlay.handle_written(&old, life("a/x", "v", 7), &only(), START), Ok(Laid::Shown));
    assert_eq!(seen(&mut overlay, &old), ("a/x v@7".into(), true));
    assert_eq!(seen(&mut overlay, &cache(&[], 6)), ("a/x v@7".into(), true), "u is deleted at 6");
    assert_eq!(seen(&mut overlay, &cache(&[], 8)), ("absent".into(), false), "somebody deleted v, too");
}

#[test]
fn a_life_that_we_have_deleted_is_hidden_by_its_uid_until_the_watch_has_the_deletion() {
    let mut overlay = overlay();
    let (old, last) = (cache(&[life("a/x", "u", 4)], 4), life("a/x", "u", 4));
    assert_eq!(overlay.handle_deleted(&old, last.cached_meta(), &only(), START), Ok(Laid::Shown));
    assert_eq!(seen(&mut overlay, &old), ("absent".into(), false));
    let hidden = over(&mut overlay, &old, &[]);
    assert_eq!(hidden.hidden().collect::<Vec<_>>(), [&key("a/x")]);
    let changed = cache(&[life("a/x", "u", 5)], 5);
    assert_eq!(seen(&mut overlay, &changed), ("absent".into(), false), "a change before the deletion");
    let again = life("a/x", "u", 5);
    assert_eq!(overlay.handle_written(&changed, again, &only(), START), Ok(Laid::Outdated), "a late answer");
    assert_eq!(seen(&mut overlay, &cache(&[life("a/x", "v", 7)], 7)), ("a/x v@7".into(), false));
    assert!(overlay.entries.is_empty());
}

#[test]
fn an_object_that_a_write_takes_out_of_the_selection_is_hidden_until_the_watch_is_there() {
    let mut overlay = overlay();
    let (old, left) = (cache(&[life("a/x", "u", 4)], 4), life("a/x", "u", 5));
    assert_eq!(overlay.handle_left(&old, left.cached_meta(), &only(), START), Ok(Laid::Shown));
    assert_eq!(seen(&mut overlay, &old), ("absent".into(), false));
    assert_eq!(seen(&mut overlay, &cache(&[], 5)), ("absent".into(), false));
    assert!(overlay.entries.is_empty());
}

#[test]
fn an_overlay_that_is_full_refuses_the_next_key_and_keeps_what_it_shows() {
    let mut overlay = Overlay::new(OverlayLimits::new(2, Duration::MAX));
    let old = cache(&[], 1);
    for name in ["a/x", "a/y"] {
        assert_eq!(overlay.handle_written(&old, life(name, "u", 5), &only(), START), Ok(Laid::Shown));
    }
    let full = overlay.handle_written(&old, life("a/z", "u", 6), &only(), START).expect_err("two are shown");
    assert_eq!(full.to_string(), "a/z is not laid over the cache: 2 other keys are, which is the limit");
    assert_eq!(
        overlay.handle_written(&old, life("a/y", "u", 7), &only(), START),
        Ok(Laid::Shown),
        "a known key"
    );
    let shown = over(&mut overlay, &old, &[]);
    assert_eq!(shown.written().map(written).collect::<Vec<_>>(), ["a/x u@5", "a/y u@7"]);
    assert_eq!((overlay.counters.refused, overlay.counters.replaced), (1, 1));
    assert_eq!(
        overlay.handle_written(&cache(&[life("a/x", "u", 5)], 5), life("a/z", "u", 6), &only(), START),
        Ok(Laid::Shown),
        "what the cache has reached makes room"
    );
}

#[test]
fn an_answer_ends_with_its_time_also_without_any_publish_and_that_is_counted() {
    let mut overlay = Overlay::new(OverlayLimits::new(10, Duration::from_secs(60)));
    let (old, at) = (cache(&[life("a/x", "u", 4)], 4), Duration::from_secs(100));
    assert_eq!(overlay.handle_written(&old, life("a/x", "u", 5), &only(), at), Ok(Laid::Shown));
    let shows = |overlay: &mut Overlay<String>, seconds| {
        overlay.laid(&old, Duration::from_secs(seconds)).contains_key(&key("a/x"))
    };
    assert!(shows(&mut overlay, 159) && !shows(&mut overlay, 160));
    assert_eq!((overlay.counters.expired, overlay.entries.len()), (1, 0));
}

#[test]
fn a_rewind_or_the_end_of_its_source_ends_an_answer_and_an_older_list_alone_does_not() {
    let mut overlay = overlay();
    let ours = life("a/x", "u", 50);
    let before = cache(&[], 40);
    let mut store = Store::new(before.clone(), Vec::new());
    let list = Replacement::new(version(10), Cause::Rewind, Vec::new(), Vec::new());
    store.begin_replace(SourceId::default(), list);
    let rewound = loop {
        if let Progress::Done(publish) = store.advance(usize::MAX) {
            break publish.snapshot;
        }
    };
    for (after, ends) in [(cache(&[], 10), false), (rewound, true), (Snapshot::empty(), true)] {
        overlay.handle_written(&before, ours.clone(), &only(), START).expect("there is room");
        assert_eq!(seen(&mut overlay, &before).0, "a/x u@50");
        assert_eq!(seen(&mut overlay, &after).0 == "absent", ends);
        overlay.end_entries(&cache(&[], 60), START);
    }
    assert_eq!(overlay.counters.rewound, 2);
}

#[test]
fn versions_are_compared_with_the_source_of_the_key_alone() {
    let (here, there) = (SourceId::new("here"), SourceId::new("there"));
    let mut overlay = overlay();
    let old = Snapshot::of([brought_by(&there, "b/y", "u", 900, "")], []);
    let ours = brought_by(&here, "a/x", "u", 5, "");
    let followed_by = [here.clone()];
    assert_eq!(overlay.handle_written(&old, ours, &followed_by, START), Ok(Laid::Shown));
    assert_eq!(seen(&mut overlay, &old), ("a/x u@5".into(), true), "another source is at 900");
    let reached = Snapshot::of([brought_by(&here, "b/z", "u", 5, "")], []);
    assert_eq!(seen(&mut overlay, &reached), ("absent".into(), false));
}

#[test]
fn where_several_sources_may_follow_a_key_all_of_them_have_to_reach_the_version() {
    let shards = [SourceId::new("one"), SourceId::new("two")];
    let reached = |one, two| {
        let objects =
            [brought_by(&shards[0], "b/y", "u", one, ""), brought_by(&shards[1], "b/z", "u", two, "")];
        Snapshot::of(objects, [])
    };
    let mut overlay = overlay();
    let ours = brought_by(&shards[0], "a/x", "u", 5, "");
    assert_eq!(overlay.handle_written(&reached(4, 4), ours, &shards, START), Ok(Laid::Shown));
    assert_eq!(seen(&mut overlay, &reached(9, 4)), ("a/x u@5".into(), true));
    assert_eq!(seen(&mut overlay, &reached(9, 5)), ("absent".into(), false));
}

#[test]
fn an_overlaid_snapshot_reads_like_one_by_index_and_namespace_too() {
    let by_word = Index::<String>::new("word", |object| [object.body().clone()]);
    let other = Index::<String>::new("other", |_| ["all".to_owned()]);
    let old = [worded("a/x", 1, "red"), worded("a/y", 2, "red"), worded("b/z", 3, "red")];
    let cache = Snapshot::of(old, [(&by_word).into(), (&other).into()]);
    let mut overlay = overlay();
    overlay.handle_written(&cache, worded("a/x", 5, "blue"), &only(), START).expect("there is room");
    overlay.handle_written(&cache, worded("a/new", 6, "red"), &only(), START).expect("there is room");
    overlay
        .handle_deleted(&cache, worded("a/y", 2, "").cached_meta(), &only(), START)
        .expect("there is room");
    let shown = over(&mut overlay, &cache, &[(&by_word).into()]);
    let names = |objects: Vec<&Object<String>>| objects.into_iter().map(written).collect::<Vec<_>>();
    assert_eq!(
        names(by_word.get(&shown, "red").expect("its function was given").collect()),
        ["a/new u1@6", "b/z u1@3"]
    );
    assert_eq!(names(by_word.get(&shown, "blue").expect("its function was given").collect()), ["a/x u1@5"]);
    assert_eq!(names(shown.namespace("a").collect()), ["a/new u1@6", "a/x u1@5"]);
    assert_eq!(shown.len(), 3);
    assert!(other.get(&shown, "all").is_err(), "an index that could not be brought up to date is none");
    assert_eq!(shown.cache().len(), 3);
    assert_eq!(by_word.count(&cache, "red"), Ok(3), "the cache itself has not changed");
}

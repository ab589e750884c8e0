//! A whole list of one source: what vanished, what stayed, and that nobody sees half of it.

use super::{Play, at, bookmark, gone, is_busy, put, reported, texts, undecodable};
use crate::delta::{Cause, Changes, Replacement, WatchPart};
use crate::index::Index;
use crate::indexer::{Progress, Store, Successors};
use crate::meta::{Object, SourceId};
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{brought_by, key, life, object, version, worded, written};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Relists a store that listed `a/a`, `a/b`, `a/c` (u1@1..3) at version 5, at version 9.
fn check(cause: Cause, objects: &[Object<String>], changes: &[&str], incidents: &[&str]) {
    let mut play = Play::listed(5, &[object("a/a", 1), object("a/b", 2), object("a/c", 3)]);
    let publishes = play.published.len();
    let applied = play.replace(9, cause, objects);
    assert_eq!(texts(&applied), changes);
    assert_eq!(reported(&applied), incidents);
    assert_eq!((at(&play), play.published.len()), ("9".into(), publishes + 1));
}

#[test]
fn rf_03_what_a_relist_lacks_is_deleted_inexactly_and_what_is_unchanged_is_not_a_change() {
    let deleted = ["- a/b u1@2 inexact Relist", "- a/c u1@3 inexact Relist"];
    check(Cause::Relist, &[object("a/a", 1)], &deleted, &[]);
}

// RF-04: given a queued Added(x) and then Replace([]), when applied, then Changes are Added x, then Deleted x
// with exact: false and cause Relist.
// - a Added x, then Deleted x with exact: false and cause Relist
// - b the queue keeps that order:
//   `rf_07_what_was_pushed_is_popped_in_that_order_and_no_replace_is_split_or_overtaken`
#[test]
fn rf_04_what_was_added_before_an_empty_relist_is_added_then_deleted_inexactly() {
    let mut play = Play::listed(5, &[]);
    let added = play.apply(vec![put(object("a/x", 6))]);
    let deleted = play.replace(7, Cause::Relist, &[]);
    assert_eq!(
        (texts(&added), texts(&deleted)),
        (vec!["+ a/x u1@6 Watch".into()], vec!["- a/x u1@6 inexact Relist".into()])
    );
}

// RF-05: given x in the store, a queued Deleted(x) and then Replace([]), when applied, then there is one
// Deleted x, exact: true and cause Watch.
#[test]
fn rf_05_a_deletion_before_an_empty_relist_is_one_exact_change() {
    let mut play = Play::listed(5, &[object("a/x", 5)]);
    let deleted = play.apply(vec![gone(object("a/x", 6))]);
    let nothing = play.replace(7, Cause::Relist, &[]);
    assert_eq!((texts(&deleted), texts(&nothing)), (vec!["- a/x u1@6 exact Watch".into()], vec![]));
}

// IDX-32: given any list, also one that changes nothing, when it is published, then it is delivered as two
// snapshots and its cause, not object by object.
#[test]
fn idx_32_the_changes_of_every_list_are_its_two_snapshots_also_if_nothing_changed() {
    let mut play = Play::new();
    let (one, two) = (SourceId::new("one"), SourceId::new("two"));
    for (source, number, cause) in [
        (&one, 3, Cause::InitialList),
        (&two, 3, Cause::InitialList),
        (&one, 4, Cause::Relist),
        (&one, 4, Cause::Rewind),
    ] {
        let applied = play.replace_from(source, number, cause, &[]);
        let Some(Changes::Listed { source: of, before, after, cause: why }) = &applied.changes else {
            panic!("{applied:?}")
        };
        assert_eq!((of, *why), (source, cause));
        assert!(before.ptr_eq(&applied.before) && after.ptr_eq(&applied.snapshot));
    }
    play.store.begin_remove_source(two, Successors::none());
    assert!(matches!(play.finish().changes, Some(Changes::Listed { cause: Cause::Relist, .. })));
    assert!(play.apply(vec![bookmark(9)]).changes.is_none());
}

#[test]
fn rf_06_an_empty_first_list_is_one_publish_of_an_empty_snapshot_at_its_version() {
    let mut play = Play::new();
    assert!(play.now().version(&SourceId::default()).is_none());
    let applied = play.replace(123, Cause::InitialList, &[]);
    assert_eq!((texts(&applied), play.holds(), at(&play)), (vec![], vec![], "123".into()));
    assert_eq!(play.published.len(), 2);
}

// RF-07: given Added(a), then Replace at 10, 20, 56 queued, when applied, then in that order, and each
// Replace is published once: versions 10, 20, 56.
// - a they are applied in that order
// - b each Replace is published once, at its version
#[test]
fn rf_07_each_of_several_replaces_is_published_once_and_in_order() {
    let mut play = Play::new();
    play.apply(vec![put(object("a/a", 3))]);
    for number in [10, 20, 56] {
        let replacement = Replacement::new(version(number), Cause::Relist, vec![], vec![]);
        play.store.begin_replace(SourceId::default(), replacement);
    }
    let delivered: Vec<Vec<String>> = (0..3).map(|_| texts(&play.finish())).collect();
    assert_eq!(delivered, [vec!["- a/a u1@3 inexact Relist".to_owned()], vec![], vec![]]);
    assert!(!is_busy(&play.store));
    let versions = |at: &Snapshot<String>| at.version(&SourceId::default()).map(ToString::to_string);
    let reached: Vec<String> = play.published.iter().filter_map(versions).collect();
    assert_eq!(reached, ["3", "10", "20", "56"]);
}

// RF-08: given a bookmark 5 queued before a Replace at 7, when applied, then the snapshot's version becomes
// 5, then 7, and the bookmark makes no change.
// - a the snapshot's version becomes 5, then 7
// - b the bookmark makes no change
#[test]
fn rf_08_a_bookmark_before_a_replace_moves_the_version_and_makes_no_change() {
    let mut play = Play::new();
    let marked = play.apply(vec![bookmark(5)]);
    assert_eq!((texts(&marked), at(&play)), (vec![], "5".into()));
    play.replace(7, Cause::Relist, &[]);
    assert_eq!(at(&play), "7");
}

#[test]
fn rf_18_the_changes_of_a_first_list_have_its_cause_and_are_one_publish() {
    let mut play = Play::new();
    let applied = play.replace(9, Cause::InitialList, &[object("a/y", 2), object("a/x", 1)]);
    assert_eq!(texts(&applied), ["+ a/x u1@1 InitialList", "+ a/y u1@2 InitialList"]);
}

// RF-20: given a key twice in one Replace, when applied, then the higher version is stored and delivered
// once, and the other is counted as a duplicate.
// - a the higher version is stored and delivered once
// - b the other is counted as a duplicate
#[test]
fn rf_20_a_key_twice_in_one_list_is_stored_and_delivered_once_in_its_higher_version() {
    let keep = [object("a/b", 2), object("a/c", 3)];
    let twice =
        |first, second| [object("a/a", first), object("a/a", second), keep[0].clone(), keep[1].clone()];
    let updated = ["a/a u1@1 -> a/a u1@8 Relist"];
    check(Cause::Relist, &twice(7, 8), &updated, &["duplicate a/a"]);
    check(Cause::Relist, &twice(8, 7), &updated, &["duplicate a/a"]);
    check(Cause::Relist, &twice(1, 8), &updated, &["duplicate a/a"]);
    check(Cause::Relist, &twice(8, 1), &updated, &["duplicate a/a"]);
    check(Cause::Relist, &twice(1, 1), &[], &["duplicate a/a"]);
    let mut first = Play::new();
    let applied = first.replace(9, Cause::InitialList, &twice(7, 8));
    assert_eq!(texts(&applied)[0], "+ a/a u1@8 InitialList");
    assert_eq!(reported(&applied), ["duplicate a/a"]);
}

#[test]
fn a_key_twice_that_ends_as_it_was_is_not_a_change_and_keeps_its_pointer() {
    let mut play = Play::listed(5, &[object("a/a", 4)]);
    let before = play.now().get(&key("a/a")).map(Object::address);
    let applied = play.replace(9, Cause::Relist, &[object("a/a", 3), object("a/a", 4)]);
    assert_eq!(texts(&applied), Vec::<String>::new());
    assert_eq!(reported(&applied), ["older_listed a/a", "duplicate a/a"]);
    assert_eq!(play.now().get(&key("a/a")).map(Object::address), before);
}

fn relisted_with_undecodable(play: &mut Play, objects: Vec<Object<String>>, names: &[&str]) -> Vec<String> {
    let undecodable = names.iter().map(|name| undecodable(name, 8)).collect();
    let replacement = Replacement::new(version(9), Cause::Relist, objects, undecodable);
    texts(&play.replace_whole(&SourceId::default(), replacement))
}

#[test]
fn rf_23_what_is_undecodable_in_a_list_keeps_its_last_good_version_and_is_not_deleted() {
    let mut play = Play::listed(5, &[object("a/a", 1), object("a/b", 2), object("a/c", 3)]);
    let changes = relisted_with_undecodable(&mut play, vec![object("a/d", 7)], &["a/a", "a/e"]);
    assert_eq!(changes, ["- a/b u1@2 inexact Relist", "- a/c u1@3 inexact Relist", "+ a/d u1@7 Relist"]);
    assert_eq!(play.holds(), ["a/a u1@1", "a/d u1@7"]);
    assert_eq!((play.now().undecodable_len(), at(&play)), (2, "9".into()));
}

#[test]
fn ref_42_what_a_list_lacks_is_deleted_only_if_a_good_version_was_delivered_and_either_mark_ends() {
    let mut play = Play::listed(5, &[object("a/a", 1)]);
    play.apply(vec![
        WatchPart::Undecodable(undecodable("a/a", 6)),
        WatchPart::Undecodable(undecodable("a/new", 7)),
    ]);
    assert_eq!(texts(&play.replace(9, Cause::Relist, &[])), ["- a/a u1@1 inexact Relist"]);
    assert_eq!((play.holds().len(), play.now().undecodable_len()), (0, 0));
}

#[test]
fn an_undecodable_entry_that_a_list_does_not_repeat_is_dropped() {
    let mut play = Play::listed(5, &[object("a/a", 1), object("a/b", 2)]);
    play.apply(vec![
        WatchPart::Undecodable(undecodable("a/a", 6)),
        WatchPart::Undecodable(undecodable("a/c", 7)),
    ]);
    let other = SourceId::new("other");
    play.apply_from(&other, vec![WatchPart::Undecodable(undecodable("b/a", 7))]);
    relisted_with_undecodable(&mut play, vec![object("a/a", 1)], &["a/b"]);
    let left: Vec<String> = play.now().undecodable().map(|undecodable| undecodable.key.to_string()).collect();
    assert_eq!(left, ["a/b", "b/a"]);
    play.replace(10, Cause::Relist, &[object("a/a", 1), object("a/b", 9)]);
    let left: Vec<String> = play.now().undecodable().map(|undecodable| undecodable.key.to_string()).collect();
    assert_eq!(left, ["b/a"]);
}

#[test]
fn a_new_uid_found_by_a_relist_is_deleted_then_added() {
    let objects = [life("a/a", "u2", 8), object("a/b", 2), object("a/c", 3)];
    check(Cause::Relist, &objects, &["- a/a u1@1 inexact Relist", "+ a/a u2@8 Relist"], &[]);
}

#[test]
fn an_unchanged_object_keeps_its_pointer_over_a_relist() {
    let mut play = Play::listed(5, &[object("a/a", 1), object("a/b", 2)]);
    let before = play.now().get(&key("a/a")).map(Object::address);
    let applied = play.replace(9, Cause::Relist, &[object("a/a", 1), object("a/b", 7)]);
    assert_eq!(play.now().get(&key("a/a")).map(Object::address), before);
    let replaced: Vec<String> = applied.replaced.iter().chain(&applied.lone).map(written).collect();
    assert_eq!(replaced, ["a/b u1@2"]);
}

#[test]
fn ref_36_a_rewind_stores_every_object_anew_and_delivers_it_and_the_version_goes_back() {
    let mut play = Play::listed(50, &[object("a/a", 1), object("a/b", 2), object("a/c", 30)]);
    let (again, older) = (worded("a/a", 1, "restored"), object("a/c", 3));
    let applied = play.replace(4, Cause::Rewind, &[again.clone(), older]);
    assert_eq!(
        texts(&applied),
        ["a/a u1@1 -> a/a u1@1 Rewind", "- a/b u1@2 inexact Rewind", "a/c u1@30 -> a/c u1@3 Rewind"]
    );
    assert!(play.now().get(&key("a/a")).is_some_and(|object| object.ptr_eq(&again)));
    assert_eq!((reported(&applied), at(&play)), (vec![], "4".into()));
}

#[test]
fn a_list_that_is_older_is_applied_and_reported() {
    let mut play = Play::listed(50, &[object("a/a", 30)]);
    let applied = play.replace(40, Cause::Relist, &[object("a/a", 20)]);
    assert_eq!(texts(&applied), ["a/a u1@30 -> a/a u1@20 Relist"]);
    assert_eq!(
        (reported(&applied), at(&play)),
        (vec!["older_replace".into(), "older_listed a/a".into()], "40".into())
    );
}

// RF-32: given sources a and b in one informer, when a Replace of a lacks a's key x, then only x is Deleted;
// b's objects stay, and so does x if b holds it too; version(a) moves while version(b) does not.
// - a only x is Deleted, b's objects stay
// - b version(a) moves while version(b) does not
#[test]
fn rf_32_a_replace_touches_only_its_own_sources_keys() {
    let (a, b) = (SourceId::new("a"), SourceId::new("b"));
    let of = |source: &SourceId, name: &str, number| brought_by(source, name, "u1", number, "");
    let mut play = Play::new();
    play.replace_from(&a, 5, Cause::InitialList, &[of(&a, "a/x", 1), of(&a, "a/y", 2)]);
    play.replace_from(&b, 6, Cause::InitialList, &[of(&b, "b/x", 3)]);
    let applied = play.replace_from(&a, 9, Cause::Relist, &[of(&a, "a/y", 2)]);
    assert_eq!(texts(&applied), ["- a/x u1@1 inexact Relist"]);
    assert_eq!(play.holds(), ["a/y u1@2", "b/x u1@3"]);
    assert!(play.now().versions().iter().eq([(&a, &version(9)), (&b, &version(6))]));
}

fn numbered(from: u64, count: u64) -> Vec<Object<String>> {
    (from..from + count).map(|number| object(&format!("ns{}/o{number:05}", number % 7), number + 1)).collect()
}

// IDX-21: given a store of many objects, when a Replace with as many others is applied, then in slices of at
// most 250 with other messages handled between (how late a 1 ms tick gets while a million are replaced is a
// benchmark's figure), readers see the old state until the one publish, and a stop in the middle ends within
// 100 ms.
// - a no turn handles more than 250 objects
// - b other messages are handled between the slices:
//   `idx_21_other_messages_are_handled_between_the_slices_of_a_replace`
// - c readers see the old state until the one publish
// - d a stop in the middle ends within 100 ms, after at most one more slice, and publishes nothing:
//   `idx_21_a_stop_in_the_middle_of_a_replace_ends_at_once_and_publishes_nothing`
#[test]
fn idx_21_a_replace_is_applied_in_slices_and_seen_only_as_a_whole() {
    let handled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&handled);
    let spec = Index::new("counted", move |_: &Object<String>| {
        count.fetch_add(1, Ordering::Relaxed);
        Vec::new()
    });
    let mut play = Play::with_indices(vec![spec]);
    play.replace(2_000, Cause::InitialList, &numbered(0, 2_000));
    let seen = play.now().clone();
    let objects = numbered(1_000, 2_000);
    let replacement = Replacement::new(version(9_000), Cause::Relist, objects, vec![]);
    play.store.begin_replace(SourceId::default(), replacement);
    handled.store(0, Ordering::Relaxed);
    let mut slices = 1;
    while let Progress::More = play.store.advance(250) {
        slices += 1;
        assert!(handled.swap(0, Ordering::Relaxed) <= 250);
        assert!(play.store.snapshot().ptr_eq(&seen) && play.store.is_replacing());
    }
    let walked = 2_000 + 3_000;
    assert!(slices >= walked / 250, "{slices} slices for {walked} objects");
    assert!(slices <= walked / 250 + 2, "{slices} slices for {walked} objects");
    assert_eq!((play.store.snapshot().len(), seen.len()), (2_000, 2_000));
    assert!(play.store.snapshot().iter().map(written).eq(play.sorted(&numbered(1_000, 2_000))));
}

impl Play {
    fn sorted(&self, objects: &[Object<String>]) -> Vec<String> {
        let mut objects = objects.to_vec();
        objects.sort_by(|left, right| left.key().cmp(right.key()));
        objects.iter().map(written).collect()
    }
}

#[test]
fn parts_that_come_while_a_replace_is_under_way_follow_it() {
    let mut play = Play::listed(5, &[object("a/a", 1), object("a/b", 2)]);
    let replacement = Replacement::new(version(9), Cause::Relist, vec![object("a/c", 8)], vec![]);
    play.store.begin_replace(SourceId::default(), replacement);
    assert!(matches!(play.store.advance(1), Progress::More));
    let applied = play.apply(vec![gone(object("a/c", 10))]);
    assert_eq!(texts(&applied), ["- a/a u1@1 inexact Relist", "- a/b u1@2 inexact Relist"]);
    assert!(!is_busy(&play.store) && play.holds().is_empty());
}

#[test]
fn idx_23_a_store_goes_on_from_the_published_frame_and_a_lost_replace_leaves_no_trace() {
    let mut play = Play::listed(5, &[object("a/a", 1), object("a/b", 2)]);
    let objects = vec![object("a/c", 8)];
    let undecodable = vec![undecodable("a/d", 8)];
    let lost = Replacement::new(version(9), Cause::Relist, objects, undecodable);
    play.store.begin_replace(SourceId::default(), lost);
    assert!(matches!(play.store.advance(2), Progress::More));
    play.store = Store::new(play.store.snapshot(), Vec::new());
    assert_eq!(texts(&play.replace(9, Cause::Relist, &[object("a/a", 1)])), ["- a/b u1@2 inexact Relist"]);
    assert_eq!((play.holds(), play.now().undecodable_len()), (vec!["a/a u1@1".into()], 0));
}

#[test]
fn a_store_with_nothing_to_do_says_so() {
    let mut play = Play::new();
    assert!(!is_busy(&play.store) && matches!(play.store.advance(250), Progress::Idle));
}

//! One batch of a watch: what is told, what is reported, which version is reached.

use std::time::Duration;

use super::{Play, at, bookmark, gone, put, reported, texts, undecodable};
use crate::delta::{Cause, Change, WatchPart};
use crate::indexer::{Incident, Reason, Reported, invariants};
use crate::meta::{Meta, Object, SourceId};
use crate::snapshot::fixture::{brought_by, key, life, object, version, written};

/// Applies parts to a store that listed `a/x u1@5` at version 5, as one publish.
fn check(parts: Vec<WatchPart<String>>, changes: &[&str], incidents: &[&str], left: &[&str], reached: &str) {
    let mut play = Play::listed(5, &[object("a/x", 5)]);
    let publishes = play.published.len();
    let applied = play.apply(parts);
    assert_eq!(texts(&applied), changes);
    assert_eq!(reported(&applied), incidents);
    assert_eq!(play.holds(), left);
    assert_eq!(at(&play), reached);
    assert_eq!(play.published.len(), publishes + 1);
}

// RF-01: given Added(a,1), Modified(a,2), Deleted(a) in one batch, when applied, then Changes holds Added,
// Updated, Deleted in that order and one snapshot without a is published.
// - a Changes holds Added, Updated, Deleted in that order
// - b one snapshot without a is published
#[test]
fn rf_01_added_modified_deleted_in_one_batch_are_three_changes_and_one_publish() {
    check(
        vec![put(object("a/a", 6)), put(object("a/a", 7)), gone(object("a/a", 8))],
        &["+ a/a u1@6 Watch", "a/a u1@6 -> a/a u1@7 Watch", "- a/a u1@8 exact Watch"],
        &[],
        &["a/x u1@5"],
        "8",
    );
}

#[test]
fn rf_02_deleting_an_unknown_key_is_counted_and_is_not_a_change_and_the_version_moves_on() {
    check(vec![gone(object("a/y", 6))], &[], &["deleted_unknown a/y"], &["a/x u1@5"], "6");
    let unread = WatchPart::DeletedUndecodable(undecodable("a/y", 7));
    check(vec![unread], &[], &["undecodable a/y", "deleted_unknown a/y"], &["a/x u1@5"], "7");
}

// RF-13: given Added a, Modified a, Modified a in one batch, when applied, then three changes in order and
// one publish.
#[test]
fn rf_13_three_updates_in_one_batch_are_three_changes_in_order_and_one_publish() {
    check(
        vec![put(object("a/a", 6)), put(object("a/a", 7)), put(object("a/a", 8))],
        &["+ a/a u1@6 Watch", "a/a u1@6 -> a/a u1@7 Watch", "a/a u1@7 -> a/a u1@8 Watch"],
        &[],
        &["a/a u1@8", "a/x u1@5"],
        "8",
    );
}

#[test]
fn a_deletion_carries_its_own_last_state_and_the_stored_one() {
    let mut play = Play::listed(5, &[object("a/x", 5)]);
    let applied = play.apply(vec![gone(object("a/x", 6))]);
    let changes = invariants::changes_of(&applied);
    let Change::Deleted { old, last, exact: true, cause: Cause::Watch } = &changes[0] else {
        panic!("{:?}", texts(&applied));
    };
    assert_eq!((written(old), written(last)), ("a/x u1@5".into(), "a/x u1@6".into()));
}

#[test]
fn a_new_uid_under_a_key_is_deleted_then_added() {
    let changes = ["- a/x u1@5 inexact Watch", "+ a/x u2@6 Watch"];
    check(vec![put(life("a/x", "u2", 6))], &changes, &[], &["a/x u2@6"], "6");
}

#[test]
fn ref_40_a_part_at_the_version_reached_is_judged_by_uid_and_version_alone() {
    check(vec![put(object("a/x", 5))], &[], &["unchanged a/x"], &["a/x u1@5"], "5");
    let other_life = ["- a/x u1@5 inexact Watch", "+ a/x u2@5 Watch"];
    check(vec![put(life("a/x", "u2", 5))], &other_life, &[], &["a/x u2@5"], "5");
    check(vec![put(object("a/y", 5))], &["+ a/y u1@5 Watch"], &[], &["a/x u1@5", "a/y u1@5"], "5");
}

#[test]
fn a_deletion_of_another_life_deletes_inexactly_unless_the_stored_one_is_newer() {
    check(vec![gone(life("a/x", "u2", 6))], &["- a/x u1@5 inexact Watch"], &[], &[], "6");
    check(vec![gone(life("a/x", "u0", 4))], &[], &["stale_version a/x"], &["a/x u1@5"], "5");
}

#[test]
fn a_deletion_that_could_not_be_read_deletes_inexactly() {
    let unread = |number| WatchPart::DeletedUndecodable(undecodable("a/x", number));
    check(vec![unread(6)], &["- a/x u1@5 inexact Watch"], &["undecodable a/x"], &[], "6");
    check(vec![unread(4)], &[], &["undecodable a/x", "stale_version a/x"], &["a/x u1@5"], "5");
}

// RF-28: given a part that cannot be applied (an impossible pair of states, a version that is refused), when
// it happens, then it is counted by reason, logged with its key, visible in the informer's counters, and the
// rest of the batch is applied.
// - a it is reported by reason, with its key, and the rest of the batch is applied
// - b it is counted by reason in the informer's counters:
//   `rf_35_every_reason_has_a_counter_of_its_own_under_its_name`
// - c it is logged with its key:
//   `rf_35_a_line_about_an_undecodable_object_names_informer_source_and_object_in_plain_words`
#[test]
fn rf_28_a_part_that_is_old_or_sent_again_is_reported_and_the_rest_of_the_batch_is_applied() {
    check(
        vec![put(object("a/x", 4)), put(object("a/x", 5)), gone(object("a/x", 3)), put(object("a/y", 6))],
        &["+ a/y u1@6 Watch"],
        &["stale_version a/x", "unchanged a/x", "stale_version a/x"],
        &["a/x u1@5", "a/y u1@6"],
        "6",
    );
    check(vec![put(life("a/x", "u0", 4))], &[], &["stale_version a/x"], &["a/x u1@5"], "5");
}

#[test]
fn a_state_that_is_sent_again_keeps_the_old_object() {
    let mut play = Play::listed(5, &[object("a/x", 5)]);
    let before = play.now().get(&key("a/x")).map(Object::address);
    play.apply(vec![put(object("a/x", 5))]);
    assert_eq!(play.now().get(&key("a/x")).map(Object::address), before);
}

#[test]
fn ref_32_an_undecodable_object_keeps_its_last_good_version_and_the_version_moves_on() {
    let mut play = Play::listed(5, &[object("a/x", 5)]);
    let applied = play.apply(vec![
        WatchPart::Undecodable(undecodable("a/x", 6)),
        WatchPart::Undecodable(undecodable("a/y", 7)),
    ]);
    assert_eq!(
        (texts(&applied), reported(&applied)),
        (vec![], vec!["undecodable a/x".into(), "undecodable a/y".into()])
    );
    assert_eq!((play.holds(), at(&play)), (vec!["a/x u1@5".into()], "7".into()));
    let listed: Vec<_> = play.now().undecodable().map(|undecodable| undecodable.key.to_string()).collect();
    assert_eq!((listed, play.now().undecodable_len()), (vec!["a/x".into(), "a/y".into()], 2));
    assert_eq!(
        play.now().undecodable_of(&key("a/x")).map(|undecodable| &undecodable.version),
        Some(&version(6))
    );
}

#[test]
fn an_undecodable_entry_ends_with_a_good_version_or_a_deletion_that_is_not_older() {
    let check = |part: WatchPart<String>, ends: bool| {
        let mut play = Play::listed(5, &[object("a/x", 5)]);
        play.apply(vec![WatchPart::Undecodable(undecodable("a/x", 7))]);
        play.apply(vec![part]);
        assert_eq!(play.now().undecodable_len() == 0, ends);
    };
    check(put(object("a/x", 8)), true);
    check(put(object("a/x", 7)), true);
    check(put(object("a/x", 6)), false);
    check(gone(object("a/x", 8)), true);
    check(WatchPart::DeletedUndecodable(undecodable("a/x", 8)), true);
    check(bookmark(9), false);
}

fn late(at: &str, number: u64) -> WatchPart<String> {
    WatchPart::LateUndecodable(undecodable(at, number))
}

#[test]
fn a_stored_body_that_turns_out_not_to_decode_is_set_aside_until_another_body_replaces_it() {
    let check = |part: Option<WatchPart<String>>, ends: bool| {
        let mut play = Play::listed(5, &[object("a/x", 5)]);
        let applied = play.apply(vec![late("a/x", 5), late("a/x", 5)]);
        assert_eq!((texts(&applied), reported(&applied)), (vec![], vec!["undecodable a/x".into()]));
        assert_eq!((at(&play), play.holds()), ("5".into(), vec!["a/x u1@5".into()]), "it is still there");
        match part {
            Some(part) => drop(play.apply(vec![part])),
            None => drop(play.replace(9, Cause::Relist, &[object("a/x", 5)])),
        }
        assert_eq!(play.now().undecodable_len() == 0, ends, "{:?}", play.holds());
    };
    check(Some(put(object("a/x", 6))), true);
    check(Some(gone(object("a/x", 6))), true);
    check(Some(put(life("a/x", "u2", 7))), true);
    check(Some(put(object("a/x", 5))), false);
    check(Some(bookmark(9)), false);
    check(None, false);
}

#[test]
fn a_late_finding_about_a_state_that_is_no_longer_stored_is_dropped() {
    for (at, number) in [("a/x", 4), ("a/x", 6), ("a/y", 5)] {
        check(vec![late(at, number)], &[], &[], &["a/x u1@5"], "5");
    }
}

#[test]
fn a_late_finding_leaves_with_the_object_that_a_list_does_not_name() {
    let mut play = Play::listed(5, &[object("a/x", 5), object("a/y", 5)]);
    play.apply(vec![late("a/x", 5)]);
    play.replace(9, Cause::Relist, &[object("a/y", 5)]);
    assert_eq!((play.holds(), play.now().undecodable_len()), (vec!["a/y u1@5".into()], 0));
}

fn fetched(object: Object<String>) -> WatchPart<String> {
    WatchPart::Fetched(object)
}

#[test]
fn ref_41_a_fetched_object_ends_the_mark_and_leaves_the_sources_version_where_the_watch_is() {
    let mut play = Play::listed(5, &[object("a/x", 5)]);
    play.apply(vec![
        WatchPart::Undecodable(undecodable("a/x", 7)),
        WatchPart::Undecodable(undecodable("a/y", 8)),
    ]);
    let applied = play.apply(vec![fetched(object("a/x", 20)), fetched(object("a/y", 21))]);
    assert_eq!(texts(&applied), ["a/x u1@5 -> a/x u1@20 Watch", "+ a/y u1@21 Watch"]);
    assert_eq!((at(&play), play.now().undecodable_len()), ("8".into(), 0));
    let older = vec![
        put(object("a/x", 9)),
        gone(object("a/x", 10)),
        WatchPart::Undecodable(undecodable("a/x", 11)),
        put(object("a/x", 20)),
    ];
    let applied = play.apply(older);
    assert!(
        texts(&applied).is_empty(),
        "older frames, and the very same, change nothing: {:?}",
        texts(&applied)
    );
    assert_eq!(
        (play.holds(), play.now().undecodable_len()),
        (vec!["a/x u1@20".into(), "a/y u1@21".into()], 0)
    );
}

#[test]
fn ref_41_a_fetched_object_is_dropped_when_the_watch_has_brought_a_newer_state_by_then() {
    let check = |by_then: WatchPart<String>, holds: &[&str], marks: usize| {
        let mut play = Play::listed(5, &[object("a/x", 5)]);
        play.apply(vec![WatchPart::Undecodable(undecodable("a/x", 7)), by_then]);
        let applied = play.apply(vec![fetched(object("a/x", 8))]);
        assert!(texts(&applied).is_empty());
        assert_eq!(play.holds(), holds);
        assert_eq!(play.now().undecodable_len(), marks);
    };
    check(put(object("a/x", 9)), &["a/x u1@9"], 0);
    check(gone(object("a/x", 9)), &[], 0);
    check(WatchPart::Undecodable(undecodable("a/x", 9)), &["a/x u1@5"], 1);
}

#[test]
fn ref_41_a_list_from_before_a_fetched_object_does_not_take_it_back() {
    let mut play = Play::listed(5, &[object("a/x", 5)]);
    play.apply(vec![WatchPart::Undecodable(undecodable("a/x", 7)), fetched(object("a/x", 20))]);
    let applied = play.replace(12, Cause::Relist, &[object("a/x", 12), object("a/y", 10)]);
    assert_eq!(texts(&applied), ["+ a/y u1@10 Relist"]);
    assert_eq!(play.holds(), ["a/x u1@20", "a/y u1@10"]);
}

#[test]
fn an_undecodable_version_that_the_store_has_read_already_is_stale() {
    let old = WatchPart::Undecodable(undecodable("a/x", 5));
    check(vec![old], &[], &["stale_version a/x"], &["a/x u1@5"], "5");
}

// RF-26: given a list, frames (Added, Modified, Deleted) and bookmarks with rising versions, when each is
// applied, then the snapshot's version of that source equals the newest applied one, never less than the one
// before (a rewind, REF-36, apart).
// - a the version equals the newest applied one, of list, frames and bookmarks
// - b it is never less than the one before
#[test]
fn rf_26_the_version_of_a_source_follows_every_kind_of_part_and_never_goes_back() {
    let mut play = Play::listed(5, &[object("a/x", 5)]);
    let parts = vec![
        (put(object("a/y", 6)), "6"),
        (put(object("a/y", 7)), "7"),
        (bookmark(9), "9"),
        (bookmark(8), "9"),
        (gone(object("a/y", 10)), "10"),
        (WatchPart::Undecodable(undecodable("a/z", 11)), "11"),
        (WatchPart::DeletedUndecodable(undecodable("a/z", 12)), "12"),
        (put(object("a/x", 4)), "12"),
    ];
    for (part, expected) in parts {
        play.apply(vec![part]);
        assert_eq!(at(&play), expected);
    }
}

// RF-27: given a body without metadata (a projection, a custom source), when applied, then key, uid and
// version still follow every event: they are kept beside the body.
#[test]
fn rf_27_bodies_without_metadata_are_followed_by_what_is_kept_beside_them() {
    let at = |number: u64| {
        let (key, uid) = (key("sensor"), None);
        let meta =
            Meta { key, uid, version: version(number), source: SourceId::default(), wire_bytes: 8, form: 0 };
        Object::new(meta, Duration::from_secs(number))
    };
    let mut store = crate::indexer::Store::<Duration>::new(Default::default(), Vec::new());
    let default = SourceId::default;
    let applied = store.apply_parts(vec![
        (default(), WatchPart::Applied(at(1))),
        (default(), WatchPart::Applied(at(2))),
        (default(), WatchPart::Deleted(at(3))),
        (default(), WatchPart::Applied(at(4))),
    ]);
    let kinds: Vec<bool> =
        invariants::changes_of(&applied).iter().map(|change| change.object().is_some()).collect();
    assert_eq!(kinds, [true, true, false, true]);
    assert_eq!(applied.snapshot.get(&key("sensor")).map(|object| object.as_secs()), Some(4));
    assert_eq!(applied.snapshot.version(&default()), Some(&version(4)));
}

#[test]
fn replaced_and_refused_objects_are_handed_out_to_be_dropped_elsewhere() {
    let mut play = Play::listed(5, &[object("a/x", 5), object("a/y", 5)]);
    let applied = play.apply(vec![put(object("a/x", 6)), put(object("a/x", 5)), gone(object("a/y", 7))]);
    let mut replaced: Vec<String> = applied.replaced.iter().chain(&applied.lone).map(written).collect();
    replaced.sort();
    assert_eq!(replaced, ["a/x u1@5", "a/x u1@5", "a/y u1@5"]);
}

#[test]
fn an_object_under_another_sources_name_is_stored_and_reported() {
    let mut play = Play::new();
    let stranger = brought_by(&SourceId::new("b"), "a/x", "u1", 6, "");
    let applied = play.apply(vec![put(stranger)]);
    assert_eq!(
        (play.holds(), reported(&applied)),
        (vec!["a/x u1@6".into()], vec!["foreign_source a/x".into()])
    );
}

#[test]
fn more_incidents_than_a_chunk_are_counted_by_reason() {
    let mut play = Play::new();
    let parts = (1..=600).map(|number| gone(object("a/x", number)));
    let applied = play.apply(parts.chain([WatchPart::Undecodable(undecodable("a/y", 601))]).collect());
    assert_eq!(applied.reported.len(), 252);
    assert_eq!(applied.reported.iter().map(|reported| reported.incident.count()).sum::<usize>(), 601);
    let omitted = Incident::Omitted { reason: Reason::DeletedUnknown, count: 350 };
    assert!(applied.reported.contains(&Reported { source: None, incident: omitted }));
}

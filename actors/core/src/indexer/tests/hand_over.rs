//! One source takes over from another, in each window. `model.rs` plays any history, `rewinds.rs` those of a restored server.

use super::{Play, bookmark, gone, is_busy, put, reported, texts, undecodable};
use crate::delta::{Cause, Replacement, WatchPart};
use crate::indexer::{Scope, Successors};
use crate::meta::{Object, SourceId};
use crate::snapshot::MOST_TOLD;
use crate::snapshot::fixture::{brought_by, version};

mod model;
mod rewinds;

const ALL: &str = "all";
const EACH: [&str; 2] = ["n0", "n1"];

fn scope_of(source: &str) -> Scope {
    let namespace = (source != ALL).then(|| source.into());
    Scope { cluster: None, namespace }
}

fn among<'a>(sources: impl IntoIterator<Item = &'a str>) -> Successors {
    let mut successors = Successors::none();
    sources.into_iter().for_each(|source| successors.add(scope_of(source), SourceId::new(source)));
    successors
}

/// A store in which `n0` has listed and hands over to `all`.
fn handing_over(number: u64, objects: &[(&str, &str, u64)]) -> Play {
    let mut play = Play::new();
    play.store.hand_over_among(vec![among(["n0", ALL])]);
    list(&mut play, "n0", number, objects);
    play
}

fn of(source: &str, name: &str, uid: &str, number: u64) -> Object<String> {
    brought_by(&SourceId::new(source), name, uid, number, "")
}

fn list(play: &mut Play, source: &str, number: u64, objects: &[(&str, &str, u64)]) -> Vec<String> {
    let objects: Vec<_> = objects.iter().map(|(name, uid, number)| of(source, name, uid, *number)).collect();
    let is_first = play.now().version(&SourceId::new(source)).is_none();
    let cause = if is_first { Cause::InitialList } else { Cause::Relist };
    texts(&play.replace_from(&SourceId::new(source), number, cause, &objects))
}

fn apply(play: &mut Play, source: &str, part: WatchPart<String>) -> Vec<String> {
    let applied = play.apply_from(&SourceId::new(source), vec![part]);
    assert_eq!(reported(&applied), Vec::<String>::new());
    let mut lines = texts(&applied);
    while play.store.is_replacing() {
        lines.extend(texts(&play.finish()));
    }
    lines
}

fn hand_over(play: &mut Play, source: &str, to: &str) -> Vec<String> {
    play.store.begin_remove_source(SourceId::new(source), among([to]));
    play.store.hand_over_among(Vec::new());
    texts(&play.finish())
}

fn nothing() -> Vec<String> {
    Vec::new()
}

#[test]
fn informer_1_what_was_deleted_after_the_list_of_the_successor_does_not_come_back() {
    let mut play = handing_over(5, &[("n0/one", "u1", 5)]);
    assert_eq!(apply(&mut play, "n0", gone(of("n0", "n0/one", "u1", 8))), ["- n0/one u1@8 exact Watch"]);
    assert_eq!(list(&mut play, ALL, 6, &[("n0/one", "u1", 5)]), nothing());
    assert_eq!(hand_over(&mut play, "n0", ALL), nothing());
    assert_eq!(apply(&mut play, ALL, gone(of(ALL, "n0/one", "u1", 8))), nothing());
    assert!(play.holds().is_empty() && play.now().frame().behind().is_empty());
    assert_eq!(apply(&mut play, ALL, put(of(ALL, "n0/one", "u2", 9))), ["+ n0/one u2@9 Watch"]);
}

#[test]
fn informer_1_what_was_made_after_the_list_of_the_successor_stays_and_so_does_what_was_made_again() {
    let mut play = handing_over(5, &[("n0/one", "u1", 5)]);
    assert_eq!(list(&mut play, ALL, 6, &[("n0/one", "u1", 5)]), nothing());
    apply(&mut play, "n0", gone(of("n0", "n0/one", "u1", 7)));
    apply(&mut play, "n0", put(of("n0", "n0/one", "u2", 8)));
    apply(&mut play, "n0", put(of("n0", "n0/new", "u3", 9)));
    assert_eq!(hand_over(&mut play, "n0", ALL), nothing());
    assert_eq!(play.holds(), ["n0/new u3@9", "n0/one u2@8"]);
    assert_eq!(apply(&mut play, ALL, gone(of(ALL, "n0/one", "u1", 7))), nothing(), "it was made again");
    assert_eq!(apply(&mut play, ALL, put(of(ALL, "n0/one", "u2", 8))), nothing());
    assert_eq!(apply(&mut play, ALL, put(of(ALL, "n0/new", "u3", 9))), nothing());
    assert!(play.now().frame().behind().is_empty(), "all of it is brought");
    assert_eq!(apply(&mut play, ALL, gone(of(ALL, "n0/one", "u2", 10))), ["- n0/one u2@10 exact Watch"]);
}

#[test]
fn informer_1_what_was_made_and_deleted_before_the_successor_has_seen_it_is_not_told_again() {
    let mut play = handing_over(5, &[]);
    assert_eq!(list(&mut play, ALL, 6, &[]), nothing());
    apply(&mut play, "n0", put(of("n0", "n0/short", "u1", 7)));
    apply(&mut play, "n0", gone(of("n0", "n0/short", "u1", 9)));
    assert_eq!(hand_over(&mut play, "n0", ALL), nothing());
    assert_eq!(apply(&mut play, ALL, put(of(ALL, "n0/short", "u1", 7))), nothing());
    assert_eq!(apply(&mut play, ALL, put(of(ALL, "n0/short", "u1", 8))), nothing());
    assert_eq!(apply(&mut play, ALL, gone(of(ALL, "n0/short", "u1", 9))), nothing());
    assert!(play.holds().is_empty() && play.now().frame().behind().is_empty());
}

#[test]
fn informer_1_an_object_that_the_successor_passes_without_bringing_it_is_deleted_then() {
    let mut play = handing_over(5, &[]);
    list(&mut play, ALL, 6, &[]);
    apply(&mut play, "n0", put(of("n0", "n0/own", "u1", 7)));
    assert_eq!(hand_over(&mut play, "n0", ALL), nothing(), "it may be brought");
    assert_eq!(apply(&mut play, ALL, bookmark(8)), ["- n0/own u1@7 inexact Relist"]);
    assert!(play.now().frame().behind().is_empty());
}

#[test]
fn informer_1_an_object_that_only_left_the_other_source_is_added_when_the_successor_is_as_far() {
    let mut play = handing_over(5, &[("n0/one", "u1", 3)]);
    apply(&mut play, "n0", gone(of("n0", "n0/one", "u1", 8)));
    assert_eq!(list(&mut play, ALL, 6, &[("n0/one", "u1", 3)]), nothing());
    assert_eq!(apply(&mut play, ALL, bookmark(7)), nothing());
    assert_eq!(apply(&mut play, ALL, bookmark(9)), ["+ n0/one u1@3 Relist"]);
    assert_eq!(hand_over(&mut play, "n0", ALL), nothing());
}

#[test]
fn informer_1_what_the_successor_cannot_decode_stays_in_the_last_state_that_decoded() {
    let mut play = handing_over(5, &[("n0/one", "u1", 5)]);
    let listed = Replacement::new(version(7), Cause::InitialList, vec![], vec![undecodable("n0/one", 6)]);
    play.replace_whole(&SourceId::new(ALL), listed);
    assert_eq!(hand_over(&mut play, "n0", ALL), nothing());
    assert_eq!(play.holds(), ["n0/one u1@5"]);
    assert_eq!(apply(&mut play, ALL, gone(of(ALL, "n0/one", "u1", 8))), ["- n0/one u1@8 exact Watch"]);
}

#[test]
fn informer_1_a_first_list_that_is_asked_for_again_forgets_what_was_told_before() {
    let mut play = Play::new();
    let mut successors = among(["n0", ALL]);
    play.store.hand_over_among(vec![successors.clone()]);
    list(&mut play, "n0", 5, &[("n0/one", "u1", 5), ("n0/two", "u2", 5)]);
    apply(&mut play, "n0", gone(of("n0", "n0/one", "u1", 6)));
    let told =
        |play: &Play| play.now().frame().behind().get(&SourceId::new(ALL)).map(|behind| behind.told.len());
    assert_eq!(told(&play), Some(1));
    successors.begin_round(&scope_of(ALL), &SourceId::new(ALL));
    play.store.hand_over_among(vec![successors]);
    apply(&mut play, "n0", gone(of("n0", "n0/two", "u2", 7)));
    assert_eq!(told(&play), Some(1), "of any number of requests the last one counts");
}

#[test]
fn informer_1_a_second_hand_over_that_begins_while_its_source_is_behind_forgets_nothing() {
    let mut play = Play::new();
    let mut first = among(["n0", ALL]);
    first.begin_round(&scope_of(ALL), &SourceId::new(ALL));
    play.store.hand_over_among(vec![first]);
    list(&mut play, "n0", 5, &[("n0/one", "u1", 5), ("n0/two", "u2", 5)]);
    list(&mut play, ALL, 5, &[]);
    apply(&mut play, "n0", gone(of("n0", "n0/one", "u1", 8)));
    play.store.hand_over_among(vec![among(["n0", ALL])]);
    apply(&mut play, "n0", gone(of("n0", "n0/two", "u2", 9)));
    assert_eq!(apply(&mut play, ALL, put(of(ALL, "n0/one", "u1", 7))), nothing());
    assert_eq!(apply(&mut play, ALL, gone(of(ALL, "n0/one", "u1", 8))), nothing());
}

#[test]
fn informer_1_what_a_source_that_takes_no_part_tells_is_kept_for_nobody() {
    let mut play = handing_over(5, &[("n0/one", "u1", 5)]);
    // Another server, whose versions are far above: its source says of no namespace that it is its own.
    list(&mut play, "other", 900, &[("n0/its", "u9", 900)]);
    apply(&mut play, "other", gone(of("other", "n0/its", "u9", 901)));
    assert!(play.now().frame().behind().is_empty());
    assert_eq!(
        list(&mut play, ALL, 6, &[("n0/one", "u1", 5), ("n0/its", "u2", 6)]),
        ["+ n0/its u2@6 InitialList"]
    );
}

/// A list after which the source knows that its server went back.
fn rewind(play: &mut Play, source: &str, number: u64, objects: &[(&str, &str, u64)]) -> Vec<String> {
    let objects: Vec<_> = objects.iter().map(|(name, uid, number)| of(source, name, uid, *number)).collect();
    texts(&play.replace_from(&SourceId::new(source), number, Cause::Rewind, &objects))
}

#[test]
fn informer_1_of_a_source_that_has_not_noticed_a_rewind_nothing_passes_to_its_successor() {
    let mut play = handing_over(5, &[("n0/one", "u1", 5), ("n0/two", "u2", 4)]);
    apply(&mut play, "n0", put(of("n0", "n0/lost", "u3", 8)));
    apply(&mut play, "n0", put(of("n0", "n0/one", "u1", 9)));
    let rewound = rewind(&mut play, ALL, 6, &[("n0/one", "u1", 5), ("n0/two", "u2", 4)]);
    assert_eq!(rewound, ["n0/one u1@9 -> n0/one u1@5 Rewind", "n0/two u2@4 -> n0/two u2@4 Rewind"]);
    // The key has another life in the new history, at a version that the old one had passed.
    let made = ["- n0/lost u3@8 inexact Watch", "+ n0/lost u4@7 Watch"];
    assert_eq!(apply(&mut play, ALL, put(of(ALL, "n0/lost", "u4", 7))), made);
    apply(&mut play, "n0", put(of("n0", "n0/late", "u5", 10)));
    assert_eq!(hand_over(&mut play, "n0", ALL), ["- n0/late u5@10 inexact Relist"]);
    assert_eq!(play.holds(), ["n0/lost u4@7", "n0/one u1@5", "n0/two u2@4"]);
    assert!(play.now().frame().behind().is_empty());
}

#[test]
fn informer_1_a_source_that_notices_a_rewind_after_another_one_takes_no_newer_state_for_outdated() {
    let mut play = handing_over(5, &[("n0/one", "u1", 5)]);
    list(&mut play, ALL, 9, &[("n0/one", "u1", 5)]);
    rewind(&mut play, "n0", 6, &[("n0/one", "u1", 5)]);
    apply(&mut play, "n0", put(of("n0", "n0/new", "u2", 8)));
    rewind(&mut play, ALL, 7, &[("n0/one", "u1", 5)]);
    assert_eq!(hand_over(&mut play, "n0", ALL), nothing(), "it passes: it is of the same history");
    assert_eq!(play.holds(), ["n0/new u2@8", "n0/one u1@5"]);
}

/// A store of a key that `n0` brought and left to `all`, which has yet to notice that the server went back to 6; `n1` has.
fn rewound_behind_all() -> Play {
    let mut play = Play::new();
    play.store.hand_over_among(vec![among(["n0", "n1", ALL])]);
    list(&mut play, "n0", 8, &[("n0/one", "u1", 8)]);
    list(&mut play, ALL, 9, &[("n0/one", "u1", 8)]);
    play.store.begin_remove_source(SourceId::new("n0"), among([ALL]));
    play.finish();
    rewind(&mut play, "n1", 6, &[]);
    play
}

#[test]
fn informer_1_what_a_source_that_left_had_brought_is_outdated_with_those_that_still_hold_it() {
    let mut play = rewound_behind_all();
    let listed = list(&mut play, "n0", 6, &[("n0/one", "u1", 5)]);
    assert_eq!(
        listed,
        ["n0/one u1@8 -> n0/one u1@5 InitialList"],
        "its name is the same, its history is not"
    );
    let mut play = rewound_behind_all();
    list(&mut play, "n0", 6, &[]);
    let brought = apply(&mut play, "n0", put(of("n0", "n0/one", "u1", 7)));
    assert_eq!(brought, ["n0/one u1@8 -> n0/one u1@7 Rewind"]);
}

#[test]
fn informer_1_a_state_of_a_new_history_is_told_as_another_one_also_at_the_version_of_the_former() {
    let mut play = rewound_behind_all();
    list(&mut play, "n0", 6, &[]);
    let before = play.now().clone();
    let brought = apply(&mut play, "n0", put(of("n0", "n0/one", "u1", 8)));
    assert_eq!(brought, ["n0/one u1@8 -> n0/one u1@8 Rewind"]);
    assert_eq!(before.diff(play.now()).count(), 1);
    let mut play = rewound_behind_all();
    let before = play.now().clone();
    list(&mut play, "n0", 8, &[("n0/one", "u1", 8)]);
    assert_eq!(before.diff(play.now()).count(), 1);
}

/// Parts in the order of their keys, all of which come at once.
fn by_key(play: &mut Play, parts: Vec<WatchPart<String>>, reached: Option<u64>) {
    let all = SourceId::new(ALL);
    let parts = parts.into_iter().map(|part| (all.clone(), part)).collect();
    play.store.begin_keyed(parts, reached.map(|number| (all, version(number))).into_iter().collect());
}

fn finish(play: &mut Play) -> Vec<String> {
    let mut lines = Vec::new();
    while is_busy(&play.store) {
        lines.extend(texts(&play.finish()));
    }
    lines
}

#[test]
fn informer_1_a_source_whose_selector_an_object_has_left_holds_it_no_more_when_it_has_caught_up() {
    let mut play = handing_over(5, &[("n0/one", "u1", 5)]);
    list(&mut play, ALL, 6, &[]);
    apply(&mut play, "n0", gone(of("n0", "n0/one", "u1", 30)));
    apply(&mut play, "n0", put(of("n0", "n0/one", "u1", 40)));
    assert_eq!(apply(&mut play, ALL, put(of(ALL, "n0/one", "u1", 10))), nothing());
    assert_eq!(apply(&mut play, ALL, gone(of(ALL, "n0/one", "u1", 20))), nothing(), "the other one has it");
    assert_eq!(apply(&mut play, ALL, bookmark(31)), nothing());
    assert_eq!(apply(&mut play, "n0", gone(of("n0", "n0/one", "u1", 50))), ["- n0/one u1@50 exact Watch"]);
}

#[test]
fn informer_1_a_list_without_an_object_that_has_left_the_selector_ends_its_hold_when_its_source_has_caught_up()
 {
    let mut play = handing_over(5, &[("n0/one", "u1", 5)]);
    list(&mut play, ALL, 6, &[("n0/one", "u1", 5)]);
    apply(&mut play, "n0", gone(of("n0", "n0/one", "u1", 30)));
    apply(&mut play, "n0", put(of("n0", "n0/one", "u1", 40)));
    assert_eq!(list(&mut play, ALL, 20, &[]), nothing());
    assert_eq!(apply(&mut play, ALL, bookmark(31)), nothing());
    assert_eq!(apply(&mut play, "n0", gone(of("n0", "n0/one", "u1", 50))), ["- n0/one u1@50 exact Watch"]);
}

#[test]
fn informer_1_what_a_later_list_of_the_successor_cannot_decode_stays_when_it_has_caught_up() {
    let mut play = handing_over(5, &[]);
    list(&mut play, ALL, 6, &[]);
    apply(&mut play, "n0", put(of("n0", "n0/one", "u1", 7)));
    apply(&mut play, "n0", put(of("n0", "n0/two", "u2", 9)));
    assert_eq!(hand_over(&mut play, "n0", ALL), nothing());
    let listed = Replacement::new(version(8), Cause::Relist, vec![], vec![undecodable("n0/one", 8)]);
    play.replace_whole(&SourceId::new(ALL), listed);
    assert_eq!(apply(&mut play, ALL, bookmark(10)), ["- n0/two u2@9 inexact Relist"]);
    assert_eq!(play.holds(), ["n0/one u1@7"], "it lives");
    assert_eq!(apply(&mut play, ALL, gone(of(ALL, "n0/one", "u1", 11))), ["- n0/one u1@11 exact Watch"]);
}

#[test]
fn informer_1_what_does_not_decode_and_the_successor_does_not_follow_is_deleted_when_it_has_caught_up() {
    let mut play = handing_over(5, &[("n0/one", "u1", 5)]);
    list(&mut play, ALL, 6, &[]);
    play.apply_from(&SourceId::new("n0"), vec![WatchPart::Undecodable(undecodable("n0/one", 7))]);
    assert_eq!(hand_over(&mut play, "n0", ALL), nothing(), "it may be brought");
    assert_eq!((play.holds().len(), play.now().undecodable_len()), (1, 1));
    assert_eq!(apply(&mut play, ALL, bookmark(8)), ["- n0/one u1@5 inexact Relist"]);
    assert!(play.now().undecodable_len() == 0 && play.now().frame().behind().is_empty());
}

#[test]
fn informer_1_an_object_passes_to_a_successor_that_has_brought_newer_objects_of_other_keys_alone() {
    let mut play = handing_over(5, &[]);
    list(&mut play, ALL, 30, &[]);
    apply(&mut play, "n0", put(of("n0", "n0/one", "u1", 40)));
    by_key(&mut play, vec![put(of(ALL, "n0/a", "u2", 50))], None);
    finish(&mut play);
    play.store = crate::indexer::Store::new(play.now().clone(), Vec::new());
    assert_eq!(hand_over(&mut play, "n0", ALL), nothing(), "the part of this key was lost with the queue");
    assert_eq!(list(&mut play, ALL, 55, &[("n0/a", "u2", 50), ("n0/one", "u1", 40)]), nothing());
}

#[test]
fn informer_1_what_a_source_brought_before_it_brought_a_deletion_is_not_put_back() {
    let mut play = handing_over(5, &[("n0/one", "u1", 5)]);
    list(&mut play, ALL, 6, &[]);
    apply(&mut play, "n0", gone(of("n0", "n0/one", "u1", 30)));
    assert_eq!(apply(&mut play, ALL, put(of(ALL, "n0/one", "u1", 10))), nothing());
    assert_eq!(list(&mut play, "third", 15, &[("n0/one", "u1", 15)]), ["+ n0/one u1@15 InitialList"]);
    assert_eq!(apply(&mut play, ALL, gone(of(ALL, "n0/one", "u1", 25))), nothing());
    assert_eq!(
        apply(&mut play, "third", gone(of("third", "n0/one", "u1", 25))),
        ["- n0/one u1@25 exact Watch"]
    );
    assert_eq!(apply(&mut play, ALL, bookmark(30)), nothing());
}

#[test]
fn informer_1_a_removal_that_waits_for_parts_by_key_lends_after_what_these_settle() {
    let mut play = handing_over(5, &[("n0/one", "u1", 5)]);
    list(&mut play, ALL, 6, &[]);
    apply(&mut play, "n0", gone(of("n0", "n0/one", "u1", 7)));
    apply(&mut play, "n0", put(of("n0", "n0/two", "u2", 9)));
    by_key(&mut play, vec![], Some(8));
    play.store.begin_remove_source(SourceId::new("n0"), among([ALL]));
    assert_eq!(finish(&mut play), nothing());
    assert_eq!(apply(&mut play, ALL, bookmark(10)), ["- n0/two u2@9 inexact Relist"]);
}

#[test]
fn informer_1_a_source_that_stands_still_costs_no_more_than_a_bound_and_still_loses_nothing() {
    let mut play = Play::new();
    play.store.hand_over_among(vec![among(["n0", ALL])]);
    list(&mut play, ALL, 4, &[]);
    let names: Vec<String> = (0..MOST_TOLD + 9).map(|at| format!("n0/o{at:05}")).collect();
    let objects: Vec<_> = names.iter().map(|name| (name.as_str(), "u1", 5)).collect();
    list(&mut play, "n0", 5, &objects);
    list(&mut play, "n0", 7, &[]);
    let told = play.now().frame().behind().get(&SourceId::new(ALL)).map(|behind| behind.told.len());
    assert_eq!(told, Some(MOST_TOLD));
    let last = &names[names.len() - 2..];
    for name in last {
        assert_eq!(apply(&mut play, ALL, put(of(ALL, name, "u1", 5))), nothing(), "{name} is gone");
    }
    for name in last {
        assert_eq!(apply(&mut play, ALL, gone(of(ALL, name, "u1", 6))), nothing(), "{name}");
    }
    assert_eq!(apply(&mut play, ALL, put(of(ALL, "n0/own", "u2", 6))), nothing(), "it may be gone as well");
    assert_eq!(apply(&mut play, ALL, bookmark(7)), ["+ n0/own u2@6 Relist"]);
    assert!(play.now().frame().behind().is_empty(), "it has caught up");
}

#[test]
fn informer_1_a_rewind_of_a_source_that_takes_no_part_brings_nothing_back() {
    let mut play = handing_over(5, &[("n0/one", "u1", 5)]);
    list(&mut play, "other", 900, &[]);
    apply(&mut play, "n0", gone(of("n0", "n0/one", "u1", 8)));
    assert_eq!(list(&mut play, ALL, 6, &[("n0/one", "u1", 5)]), nothing());
    assert_eq!(rewind(&mut play, "other", 800, &[]), nothing());
    assert_eq!(apply(&mut play, "other", bookmark(801)), nothing());
    assert!(play.holds().is_empty(), "its deletion is on the way");
    assert_eq!(apply(&mut play, ALL, gone(of(ALL, "n0/one", "u1", 8))), nothing());
}

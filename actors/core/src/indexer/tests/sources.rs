//! Several sources: who holds an object, and what goes when a source goes.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{Play, gone, put, reported, texts, undecodable};
use crate::delta::{Cause, Replacement, WatchPart};
use crate::indexer::{Progress, Store, Successors};
use crate::meta::{Object, SourceId};
use crate::snapshot::fixture::{brought_by, key, version, written};
use crate::snapshot::{Snapshot, looked_at};
use crate::tree::Sources;

fn of(source: &str, name: &str, number: u64) -> Object<String> {
    brought_by(&SourceId::new(source), name, "u1", number, "")
}

fn list(play: &mut Play, source: &str, number: u64, objects: &[(&str, u64)]) -> Vec<String> {
    let objects: Vec<_> = objects.iter().map(|(name, number)| of(source, name, *number)).collect();
    let is_first = play.now().version(&SourceId::new(source)).is_none();
    let cause = if is_first { Cause::InitialList } else { Cause::Relist };
    let applied = play.replace_from(&SourceId::new(source), number, cause, &objects);
    assert_eq!(reported(&applied), Vec::<String>::new());
    texts(&applied)
}

fn apply(play: &mut Play, source: &str, parts: Vec<WatchPart<String>>) -> (Vec<String>, Vec<String>) {
    let applied = play.apply_from(&SourceId::new(source), parts);
    (texts(&applied), reported(&applied))
}

fn remove(play: &mut Play, source: &str) -> Vec<String> {
    play.store.begin_remove_source(SourceId::new(source), Successors::none());
    texts(&play.finish())
}

fn nothing() -> (Vec<String>, Vec<String>) {
    (vec![], vec![])
}

#[test]
fn what_is_found_late_lasts_as_long_as_its_body_whichever_source_holds_it() {
    for joins_later in [false, true] {
        for is_removed in [false, true] {
            let mut play = Play::new();
            list(&mut play, "a", 9, &[("x/1", 5)]);
            if !joins_later {
                list(&mut play, "b", 9, &[("x/1", 5)]);
            }
            let late = WatchPart::LateUndecodable(undecodable("x/1", 5));
            assert_eq!(apply(&mut play, "a", vec![late]), (vec![], vec!["undecodable x/1".into()]));
            if joins_later {
                list(&mut play, "b", 9, &[("x/1", 5)]);
            }
            let left = if is_removed { remove(&mut play, "a") } else { list(&mut play, "a", 10, &[]) };
            assert_eq!((left, play.now().undecodable_len()), (vec![], 1), "b holds the body");
            apply(&mut play, "b", vec![gone(of("b", "x/1", 11))]);
            assert_eq!(
                (play.now().len(), play.now().undecodable_len()),
                (0, 0),
                "{joins_later} {is_removed}"
            );
        }
    }
}

#[test]
fn informer_6_an_event_looks_at_the_version_of_no_other_source_with_1_and_with_2000() {
    for count in [1, 2_000] {
        let mut store = Store::new(Snapshot::empty(), Vec::new());
        for n in 0..count {
            let listed = Replacement::new(version(9), Cause::InitialList, Vec::new(), Vec::new());
            store.begin_replace(SourceId::new(format!("s{n}")), listed);
            assert!(matches!(store.advance(250), Progress::Done(_)));
        }
        looked_at::take();
        for number in 10..110 {
            let applied = store.apply_parts([(SourceId::new("s0"), put(of("s0", "x/1", number)))]);
            assert_eq!(applied.snapshot.version(&SourceId::new("s0")), Some(&version(number)));
        }
        assert_eq!(looked_at::take(), 0, "of {count}");
    }
}

#[test]
fn idx_30_two_sources_hold_one_object_and_a_relist_of_the_first_without_it_deletes_nothing() {
    let mut play = Play::new();
    list(&mut play, "a", 9, &[("x/both", 5), ("x/own", 6)]);
    assert_eq!(list(&mut play, "b", 9, &[("x/both", 5)]), Vec::<String>::new());
    assert_eq!(list(&mut play, "a", 12, &[]), ["- x/own u1@6 inexact Relist"]);
    assert_eq!(list(&mut play, "b", 13, &[]), ["- x/both u1@5 inexact Relist"]);
}

#[test]
fn idx_30_an_object_is_deleted_when_the_last_source_that_holds_it_lets_go_of_it() {
    let mut play = Play::new();
    list(&mut play, "a", 9, &[("x/1", 5)]);
    list(&mut play, "b", 9, &[("x/1", 5)]);
    assert_eq!(apply(&mut play, "a", vec![gone(of("a", "x/1", 10))]), nothing());
    assert_eq!(apply(&mut play, "a", vec![gone(of("a", "x/1", 10))]).1, ["deleted_unknown x/1"]);
    assert_eq!(play.holds(), ["x/1 u1@5"]);
    assert_eq!(apply(&mut play, "b", vec![gone(of("b", "x/1", 10))]).0, ["- x/1 u1@10 exact Watch"]);
}

#[test]
fn idx_30_an_object_brought_by_two_sources_is_one_change_and_not_an_incident() {
    let mut play = Play::new();
    list(&mut play, "a", 9, &[("x/1", 5)]);
    list(&mut play, "b", 9, &[("x/1", 5)]);
    assert_eq!(apply(&mut play, "a", vec![put(of("a", "x/1", 10))]).0, ["x/1 u1@5 -> x/1 u1@10 Watch"]);
    assert_eq!(apply(&mut play, "b", vec![put(of("b", "x/1", 10))]), nothing());
    apply(&mut play, "b", vec![put(of("b", "x/1", 12))]);
    // The first lags behind: what it tells is old, and what it lists does not take the newer state back.
    assert_eq!(apply(&mut play, "a", vec![put(of("a", "x/1", 11))]), nothing());
    assert_eq!(list(&mut play, "a", 11, &[("x/1", 11)]), Vec::<String>::new());
    assert_eq!(play.holds(), ["x/1 u1@12"]);
}

#[test]
fn idx_31_a_removed_source_leaves_what_others_hold_and_its_versions_and_marks_are_gone_at_once() {
    let mut play = Play::new();
    list(&mut play, "a", 9, &[("x/both", 5), ("x/own", 6), ("y/own", 7)]);
    list(&mut play, "b", 9, &[("x/both", 5), ("z/other", 3)]);
    apply(
        &mut play,
        "a",
        vec![
            WatchPart::Undecodable(undecodable("x/own", 10)),
            WatchPart::Undecodable(undecodable("x/bad", 11)),
        ],
    );
    apply(&mut play, "b", vec![WatchPart::Undecodable(undecodable("z/bad", 11))]);
    let before = play.now().clone();
    assert_eq!(remove(&mut play, "a"), ["- x/own u1@6 inexact Relist", "- y/own u1@7 inexact Relist"]);
    let now = play.now();
    assert_eq!(now.iter().map(written).collect::<Vec<_>>(), ["x/both u1@5", "z/other u1@3"]);
    assert!(now.version(&SourceId::new("a")).is_none() && now.newest_version(&SourceId::new("a")).is_none());
    assert_eq!(
        now.undecodable().map(|undecodable| undecodable.key.to_string()).collect::<Vec<_>>(),
        ["z/bad"]
    );
    assert!(before.version(&SourceId::new("a")).is_some(), "a snapshot that is kept is as it was");
    // The name may come back, with other keys.
    assert_eq!(list(&mut play, "a", 4, &[("x/both", 5), ("n/new", 2)]), ["+ n/new u1@2 InitialList"]);
    assert_eq!(remove(&mut play, "b"), ["- z/other u1@3 inexact Relist"]);
    assert_eq!(play.holds(), ["n/new u1@2", "x/both u1@5"]);
    assert_eq!(remove(&mut play, "never/added"), Vec::<String>::new());
}

// IDX-30: given sources that hold the same objects, when one of them releases one (by a deletion, a list
// without it, or its own removal), then the object stays as long as another source holds it and is Deleted
// once when none does; an event that two of them bring is delivered once and is not an incident.
// - a a relist without it deletes nothing
// - b it is Deleted when the last source releases it:
//   `idx_30_an_object_is_deleted_when_the_last_source_that_holds_it_lets_go_of_it`
// - c delivered once, not an incident:
//   `idx_30_an_object_brought_by_two_sources_is_one_change_and_not_an_incident`
#[test]
fn idx_30_a_handed_over_object_that_its_first_source_brought_is_held_by_the_second_alone() {
    let mut play = Play::new();
    list(&mut play, "a", 9, &[("x/1", 5)]);
    list(&mut play, "b", 9, &[("x/1", 5)]);
    assert_eq!(remove(&mut play, "a"), Vec::<String>::new());
    assert_eq!(list(&mut play, "b", 12, &[("x/1", 5)]), Vec::<String>::new());
    // The list of the only holder is right, also about an older version.
    let older = Replacement::new(version(13), Cause::Relist, vec![of("b", "x/1", 4)], vec![]);
    let applied = play.replace_whole(&SourceId::new("b"), older);
    assert_eq!(
        (texts(&applied), reported(&applied)),
        (vec!["x/1 u1@5 -> x/1 u1@4 Relist".into()], vec!["older_listed x/1".into()])
    );
    assert_eq!(apply(&mut play, "b", vec![gone(of("b", "x/1", 14))]).0, ["- x/1 u1@14 exact Watch"]);
}

#[test]
fn a_rewind_of_one_source_takes_an_object_back_that_another_holds() {
    let mut play = Play::new();
    list(&mut play, "a", 9, &[("x/1", 5)]);
    list(&mut play, "b", 9, &[("x/1", 5), ("x/2", 6)]);
    let applied = play.replace_from(&SourceId::new("a"), 4, Cause::Rewind, &[of("a", "x/1", 3)]);
    assert_eq!(texts(&applied), ["x/1 u1@5 -> x/1 u1@3 Rewind"]);
    assert_eq!(remove(&mut play, "a"), Vec::<String>::new());
    assert_eq!(play.now().get(&key("x/1")).map(written), Some("x/1 u1@3".into()));
}

/// How many slices of `budget` objects a task takes.
fn slices(play: &mut Play, budget: usize) -> usize {
    let mut slices = 1;
    while let Progress::More = play.store.advance(budget) {
        slices += 1;
    }
    slices
}

// IDX-31: given a source that is removed, when the store has gone through what it held, then what no other
// source holds is Deleted{exact: false, cause: Relist}, its versions and set-aside entries are gone with that
// publish, and its name may come back; that and a relist cost what the source holds, not what the store
// holds.
// - a what is deleted and what stays:
//   `idx_31_a_removed_source_leaves_what_others_hold_and_its_versions_and_marks_are_gone_at_once`
// - b the cost
#[test]
fn idx_31_a_relist_and_a_removal_cost_what_their_own_source_holds() {
    let mut play = Play::new();
    let many: Vec<_> = (0..10_000).map(|at| of("large", &format!("ns-{}/o{at}", at % 50), 1 + at)).collect();
    play.replace_from(&SourceId::new("large"), 20_000, Cause::InitialList, &many);
    let small: Vec<_> = (0..10).map(|at| of("small", &format!("small/o{at}"), 1 + at)).collect();
    play.replace_from(&SourceId::new("small"), 20_000, Cause::InitialList, &small);
    let undecodables =
        (0..2_000).map(|at| WatchPart::Undecodable(undecodable(&format!("ns-1/bad{at}"), 30_000 + at)));
    play.apply_from(&SourceId::new("large"), undecodables.collect());
    let relist = Replacement::new(version(40_000), Cause::Relist, small[..5].to_vec(), vec![]);
    play.store.begin_replace(SourceId::new("small"), relist);
    assert!(slices(&mut play, 10) <= 10);
    play.published.push(play.store.snapshot());
    play.store.begin_remove_source(SourceId::new("small"), Successors::none());
    assert!(slices(&mut play, 10) <= 10);
    assert_eq!((play.store.snapshot().len(), play.store.snapshot().undecodable_len()), (10_000, 2_000));
    // What is large is done in slices, too.
    play.store.begin_remove_source(SourceId::new("large"), Successors::none());
    assert!(slices(&mut play, 250) >= (10_000 + 2_000) / 250);
    assert!(play.store.snapshot().is_empty() && play.store.snapshot().versions().is_empty());
}

/// What one source says, to the store and to the model.
#[derive(Debug, Clone)]
enum Deed {
    Put(usize, u64),
    Gone(usize),
    List(Vec<(usize, u64)>),
    Remove,
}

const SOURCES: [&str; 3] = ["a", "b", "c"];

fn deeds() -> impl Strategy<Value = Vec<(usize, Deed)>> {
    let name = 0..40_usize;
    let deed = prop_oneof![
        4 => (name.clone(), 0..3_u64).prop_map(|(name, ahead)| Deed::Put(name, ahead)),
        3 => name.clone().prop_map(Deed::Gone),
        2 => prop::collection::vec((name, 0..2_u64), 0..40).prop_map(Deed::List),
        1 => Just(Deed::Remove),
    ];
    prop::collection::vec((0..SOURCES.len(), deed), 1..40)
}

proptest! {
    #[test]
    fn idx_30_whatever_overlapping_sources_report_an_object_is_there_as_long_as_one_of_them_holds_it(deeds in deeds()) {
        let mut play = Play::new();
        let mut holders: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        let name = |at: usize| format!("ns{}/o{at:02}", at % 3);
        for (round, (source, deed)) in deeds.into_iter().enumerate() {
            // Versions rise from deed to deed, so that nothing is refused for being old.
            let number = |ahead: u64| 10 * (round as u64 + 1) + ahead;
            let id = SOURCES[source];
            match deed {
                Deed::Put(at, ahead) => {
                    apply(&mut play, id, vec![put(of(id, &name(at), number(ahead)))]);
                    holders.entry(name(at)).or_default().insert(source);
                }
                Deed::Gone(at) => {
                    apply(&mut play, id, vec![gone(of(id, &name(at), number(0)))]);
                    holders.entry(name(at)).or_default().remove(&source);
                }
                Deed::List(names) => {
                    let listed: BTreeMap<usize, u64> = names.into_iter().collect();
                    let objects: Vec<_> =
                        listed.iter().map(|(at, ahead)| of(id, &name(*at), number(*ahead))).collect();
                    play.replace_from(&SourceId::new(id), number(5), Cause::Relist, &objects);
                    holders.values_mut().for_each(|holders| holders.retain(|holder| *holder != source));
                    for at in listed.keys() {
                        holders.entry(name(*at)).or_default().insert(source);
                    }
                }
                Deed::Remove => {
                    remove(&mut play, id);
                    holders.values_mut().for_each(|holders| holders.retain(|holder| *holder != source));
                }
            }
            let held = play.now().frame().objects().after(None, Sources::ALL);
            let found: Vec<(String, BTreeSet<usize>)> = held
                .map(|held| {
                    let at = |holder: &SourceId| SOURCES.iter().position(|source| *source == holder.as_str());
                    (held.object().key().to_string(), held.holders().iter().filter_map(at).collect())
                })
                .collect();
            let expected = holders.iter().filter(|(_, holders)| !holders.is_empty());
            let expected: Vec<_> = expected.map(|(name, holders)| (name.clone(), holders.clone())).collect();
            prop_assert_eq!(found, expected);
        }
    }
}

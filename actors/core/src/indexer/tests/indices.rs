//! Secondary indices: true for each publish, touched only when values change, whole or not there.

use std::cmp::Ordering;

use super::{Play, gone, is_busy, put, reported, texts};
use crate::delta::Cause;
use crate::index::{Index, IndexError, IndexExists, Table, UnknownIndex};
use crate::indexer::{Progress, Store};
use crate::meta::{Object, SourceId};
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{object, version, worded, written};

/// Indexes by the words of the body; `!error` makes it fail, `!panic` panic.
pub(super) fn by_word() -> Index<String> {
    Index::fallible("word", |object: &Object<String>| {
        assert!(object.body() != "!panic", "cannot index this");
        if object.body() == "!error" {
            return Err(IndexError::new("no words"));
        }
        Ok(object.split_whitespace().map(str::to_owned).collect())
    })
}

fn found(snapshot: &Snapshot<String>, word: &str) -> Vec<String> {
    snapshot.by_index("word", word).expect("a known index").map(written).collect()
}

fn words(snapshot: &Snapshot<String>) -> Vec<String> {
    snapshot.index_values("word").expect("a known index").map(str::to_owned).collect()
}

fn listed(objects: &[Object<String>]) -> Play {
    let mut play = Play::with_indices(vec![by_word()]);
    play.replace(5, Cause::InitialList, objects);
    play
}

// IDX-01: given an index function returning two values for one object, when by_index is asked for either,
// then the object is returned once.
// - a it is found under either value
// - b once, also if the function gives one value twice
#[test]
fn idx_01_an_object_of_two_values_is_found_once_under_each() {
    let play = listed(&[worded("a/x", 1, "red blue red"), worded("a/y", 2, "red")]);
    assert_eq!(found(play.now(), "red"), ["a/x u1@1", "a/y u1@2"]);
    assert_eq!(found(play.now(), "blue"), ["a/x u1@1"]);
    assert_eq!(words(play.now()), ["blue", "red"]);
}

#[test]
fn idx_02_an_update_that_changes_the_value_moves_the_object_from_one_entry_to_the_other() {
    let mut play = listed(&[worded("a/x", 1, "red"), worded("a/y", 2, "red")]);
    play.apply(vec![put(worded("a/x", 6, "blue"))]);
    assert_eq!(
        (found(play.now(), "red"), found(play.now(), "blue")),
        (vec!["a/y u1@2".into()], vec!["a/x u1@6".into()])
    );
}

// IDX-04: given one of two objects of a bucket deleted, when queried, then the other remains.
#[test]
fn idx_04_when_one_of_two_objects_of_an_entry_is_deleted_the_other_stays() {
    let mut play = listed(&[worded("a/x", 1, "red"), worded("a/y", 2, "red")]);
    play.apply(vec![gone(worded("a/x", 6, "red"))]);
    assert_eq!(found(play.now(), "red"), ["a/y u1@2"]);
    play.apply(vec![gone(worded("a/y", 7, "red"))]);
    assert_eq!((found(play.now(), "red"), words(play.now())), (vec![], vec![]));
}

#[test]
fn idx_05_an_unknown_index_is_an_error_that_names_it() {
    let play = listed(&[]);
    assert_eq!(play.now().by_index("node", "n1").err(), Some(UnknownIndex("node".into())));
    assert_eq!(
        play.now().index_values("node").err().map(|error| error.to_string()),
        Some("no index is named \"node\"".into())
    );
}

#[test]
fn idx_06_an_added_index_appears_in_one_later_snapshot_with_all_objects() {
    let objects: Vec<_> = (1..=600).map(|at| worded(&format!("a/{at:03}"), at, "red")).collect();
    let mut play = Play::listed(600, &objects);
    play.specs.push(by_word());
    play.store.begin_index(by_word()).expect("a free name");
    let mut slices = 1;
    let applied = loop {
        match play.store.advance(250) {
            Progress::More => slices += 1,
            Progress::Done(applied) => break play.note(applied),
            Progress::Idle => panic!("the index is not built"),
        }
        assert!(play.store.snapshot().by_index("word", "red").is_err() && is_busy(&play.store));
    };
    assert_eq!((slices, found(play.now(), "red").len(), texts(&applied).len()), (3, 600, 0));
    assert!(!is_busy(&play.store));
}

#[test]
fn idx_06_a_name_already_taken_is_an_error_and_changes_nothing() {
    let mut play = Play::listed(5, &[worded("a/x", 1, "red")]);
    let other = || Index::new("word", |_: &Object<String>| vec!["other".to_owned()]);
    assert_eq!(play.store.begin_index(by_word()), Ok(()));
    assert_eq!(play.store.begin_index(other()), Err(IndexExists("word".into())));
    play.finish();
    assert_eq!(play.store.begin_index(other()), Err(IndexExists("word".into())));
    assert!(!is_busy(&play.store));
    assert_eq!(words(play.now()), ["red"]);
}

#[test]
fn parts_applied_while_an_index_is_built_are_in_it() {
    let objects: Vec<_> = (1..=9).map(|at| worded(&format!("a/{at}"), at, "red")).collect();
    let mut play = Play::listed(9, &objects);
    play.specs.push(by_word());
    play.store.begin_index(by_word()).expect("a free name");
    assert!(matches!(play.store.advance(4), Progress::More));
    play.apply(vec![
        put(worded("a/2", 10, "blue")),
        put(worded("a/7", 11, "blue")),
        put(worded("a/0", 12, "blue")),
    ]);
    play.apply(vec![gone(worded("a/1", 13, "")), gone(worded("a/4", 14, "")), gone(worded("a/5", 15, ""))]);
    play.finish();
    assert_eq!(found(play.now(), "blue"), ["a/0 u1@12", "a/2 u1@10", "a/7 u1@11"]);
    assert_eq!(found(play.now(), "red"), ["a/3 u1@3", "a/6 u1@6", "a/8 u1@8", "a/9 u1@9"]);
}

// IDX-18: given an index function that errors or panics for one object, when it is applied, then the object
// is stored and delivered, only that index entry is missing, and index name and key are counted and logged; a
// later version that succeeds is in the index.
// - a for an error and for a panic the object is stored and delivered
// - b only that index entry is missing
// - c index name and key are reported and counted
// - d and logged: `rf_35_a_line_about_an_index_that_fails_quotes_a_bounded_part_of_what_the_function_said`
// - e a later version that succeeds is in the index
// - f so it is where the values of one object cannot be compared:
//   `idx_18_an_object_whose_values_cannot_be_compared_costs_that_entry_alone`
#[test]
fn idx_18_a_failing_or_panicking_index_function_costs_that_entry_alone() {
    for failing in ["!error", "!panic"] {
        let mut play = listed(&[worded("a/x", 1, "red"), worded("a/y", 2, "red")]);
        let applied = play.apply(vec![put(worded("a/x", 6, failing)), put(worded("a/z", 7, "red"))]);
        assert_eq!(texts(&applied), ["a/x u1@1 -> a/x u1@6 Watch", "+ a/z u1@7 Watch"]);
        assert_eq!(reported(&applied), ["index_failed a/x"]);
        assert!(applied.reported[0].incident.to_string().starts_with("index word failed for a/x: "));
        assert_eq!(found(play.now(), "red"), ["a/y u1@2", "a/z u1@7"]);
        play.apply(vec![put(worded("a/x", 8, "red"))]);
        assert_eq!(found(play.now(), "red"), ["a/x u1@8", "a/y u1@2", "a/z u1@7"]);
    }
}

/// A number that may be none, and then cannot be compared.
#[derive(PartialEq)]
struct Weight(f64);

impl Eq for Weight {}

impl PartialOrd for Weight {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Weight {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.partial_cmp(&other.0).expect("a number")
    }
}

#[test]
fn idx_18_an_object_whose_values_cannot_be_compared_costs_that_entry_alone() {
    let by_weight = Index::<String, Weight>::new("weight", |object| {
        object.split_whitespace().map(|word| Weight(word.parse().unwrap_or(f64::NAN))).collect::<Vec<_>>()
    });
    let snapshot = Snapshot::<String>::empty_with_indices([(&by_weight).into()]);
    let mut store = Store::new(snapshot, vec![(&by_weight).into()]);
    store.apply_parts([(SourceId::default(), put(worded("a/x", 1, "7")))]);
    for (version, text, failures, found) in
        [(2, "none", 1, vec![7.0]), (3, "3 none", 1, vec![7.0]), (4, "2 1 2", 0, vec![1.0, 2.0, 7.0])]
    {
        let applied = store.apply_parts([(SourceId::default(), put(worded("a/y", version, text)))]);
        assert_eq!(applied.reported.len(), failures, "{text}");
        let values = by_weight.values(&applied.snapshot).expect("a known index");
        assert_eq!(values.map(|value| value.0).collect::<Vec<_>>(), found, "{text}");
    }
}

// IDX-25: given an update that keeps its index values, when applied, then no index entry is rebuilt and
// by_index returns the new object.
// - a no index entry is rebuilt
// - b by_index returns the new object
#[test]
fn idx_25_an_update_that_keeps_its_values_rebuilds_no_entry_and_is_found_as_it_is_now() {
    let mut play = listed(&[worded("a/x", 1, "red blue"), worded("a/y", 2, "red")]);
    let before = play.now().clone();
    play.apply(vec![put(worded("a/x", 6, "blue  red"))]);
    let index = |at: &Snapshot<String>| -> Table<String> {
        at.frame().index("word").expect("a known index").of::<String>().expect("its values are texts").clone()
    };
    assert!(index(play.now()).shares_all_with(&index(&before)));
    assert_eq!(found(play.now(), "blue"), ["a/x u1@6"]);
    play.apply(vec![put(worded("a/x", 7, "blue"))]);
    assert!(!index(play.now()).shares_all_with(&index(&before)));
}

// IDX-26: given one snapshot, when get, list, by_index and version are read from it at any time, then they
// agree with each other.
#[test]
fn idx_26_what_is_read_from_one_snapshot_agrees_whatever_is_published_meanwhile() {
    let mut play = listed(&[worded("a/x", 1, "red"), worded("a/y", 2, "red")]);
    let kept = play.now().clone();
    play.apply(vec![put(worded("a/x", 6, "blue")), gone(worded("a/y", 7, "")), put(worded("a/z", 8, "red"))]);
    assert_eq!(kept.iter().map(written).collect::<Vec<_>>(), ["a/x u1@1", "a/y u1@2"]);
    assert_eq!(found(&kept, "red"), ["a/x u1@1", "a/y u1@2"]);
    assert!(kept.iter().all(|object| kept.get(object.key()).is_some_and(|found| found.ptr_eq(object))));
    assert_eq!(*kept.versions().first().expect("one source"), version(5));
}

#[test]
fn a_store_started_again_keeps_builds_and_drops_indices_as_its_caller_decides() {
    let play = listed(&[worded("a/x", 1, "red")]);
    let length = Index::new("length", |object: &Object<String>| vec![object.len().to_string()]);
    let mut again = Store::new(play.store.snapshot(), vec![(&length).into(), by_word().into()]);
    assert!(is_busy(&again) && again.snapshot().ptr_eq(play.now()));
    let Progress::Done(applied) = again.advance(250) else { panic!("one object is one slice") };
    let names: Vec<&str> = applied.snapshot.index_names().collect();
    assert_eq!(names, ["word", "length"]);
    assert_eq!(found(&applied.snapshot, "red"), ["a/x u1@1"]);
    let mut without = Store::new(applied.snapshot, vec![length.into()]);
    assert!(!is_busy(&without));
    assert!(without.apply_parts(Vec::new()).snapshot.by_index("word", "red").is_err());
}

#[test]
fn a_store_that_starts_empty_has_its_indices_from_its_first_publish_on() {
    let mut play = Play::with_indices(vec![by_word(), by_word()]);
    assert!(!is_busy(&play.store));
    play.apply(vec![put(object("a/x", 1))]);
    assert_eq!(play.now().index_names().collect::<Vec<_>>(), ["word"]);
}

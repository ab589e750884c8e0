//! The replay checker: what it believes and what it complains about.

use super::super::invariants::Replay;
use super::{added, deleted, snapshot, updated};
use crate::delta::{Cause, Change};
use crate::meta::Object;
use crate::snapshot::fixture::{key, life, object};

/// Tells all but the last change, which must fit, and gives the verdict on the last.
#[track_caller]
fn verdict(changes: &[Change<String>]) -> Result<(), String> {
    let mut replay = Replay::default();
    let (last, before) = changes.split_last().expect("a change");
    for change in before {
        replay.apply(change).expect("a change that fits");
    }
    replay.apply(last)
}

fn with_cause(change: Change<String>, cause: Cause) -> Change<String> {
    match change {
        Change::Added { object, .. } => Change::Added { object, cause },
        Change::Updated { old, object, .. } => Change::Updated { old, object, cause },
        Change::Deleted { old, last, exact, .. } => Change::Deleted { old, last, exact, cause },
    }
}

fn versions() -> [Object<String>; 3] {
    [object("x", 1), object("x", 2), object("x", 3)]
}

#[test]
fn what_fits_is_believed_and_compared_with_a_snapshot() {
    let [one, two, three] = versions();
    let mut replay = Replay::default();
    for change in [added(&one), updated(&one, &two), with_cause(updated(&two, &two), Cause::Resync)] {
        replay.apply(&change).expect("a change that fits");
    }
    assert_eq!(replay.equals(&snapshot([&two])), Ok(()));
    assert_eq!((replay.len(), replay.is_empty(), replay.applied()), (1, false, 3));
    assert!(replay.get(&key("x")).is_some_and(|delivered| delivered.is_same_as(&two)));

    let complaint = |objects: &[&Object<String>]| replay.equals(&snapshot(objects.iter().copied()));
    assert_eq!(
        complaint(&[&three]),
        Err("Object(x @ 3) is in the snapshot, Object(x @ 2) was delivered".to_owned())
    );
    assert_eq!(complaint(&[]), Err("Object(x @ 2) was delivered and is not in the snapshot".to_owned()));
    let another = object("y", 1);
    let missing = complaint(&[&two, &another]);
    assert_eq!(missing, Err("Object(y @ 1) is in the snapshot and was not delivered".to_owned()));
}

#[test]
fn each_broken_rule_is_a_complaint_in_words() {
    let [one, two, three] = versions();
    let reborn = life("x", "u2", 3);
    let other_end =
        Change::Deleted { old: one.clone(), last: reborn.clone(), exact: true, cause: Cause::Watch };
    let table: [(&[Change<String>], &str); 9] = [
        (&[added(&one), added(&two)], "event 2: Added Object(x @ 2) while Object(x @ 1) is present"),
        (&[updated(&one, &two)], "event 1: Updated Object(x @ 2) of an absent key"),
        (&[deleted(&one)], "event 1: Deleted Object(x @ 1) of an absent key"),
        (
            &[added(&one), updated(&two, &three)],
            "event 2: old is Object(x @ 2), delivered last was Object(x @ 1)",
        ),
        (&[added(&one), deleted(&two)], "event 2: old is Object(x @ 2), delivered last was Object(x @ 1)"),
        (
            &[added(&one), updated(&one, &reborn)],
            "event 2: Updated Object(x @ 3) is another life than Object(x @ 1)",
        ),
        (
            &[added(&one), updated(&one, &one)],
            "event 2: Updated Object(x @ 1) of an unchanged object, cause Watch",
        ),
        (
            &[added(&one), with_cause(updated(&one, &two), Cause::Resync)],
            "event 2: Resync changed Object(x @ 1) to Object(x @ 2)",
        ),
        (
            &[added(&one), other_end],
            "event 2: Deleted Object(x @ 3) is the exact end of another life than Object(x @ 1)",
        ),
    ];
    for (changes, complaint) in table {
        assert_eq!(verdict(changes), Err(complaint.to_owned()));
    }
}

#[test]
fn a_rewind_may_deliver_an_equal_version_again() {
    let one = object("x", 1);
    assert_eq!(verdict(&[added(&one), with_cause(updated(&one, &one), Cause::Rewind)]), Ok(()));
}

#[test]
fn one_fault_is_one_complaint() {
    let [one, two, three] = versions();
    let mut replay = Replay::default();
    assert!(replay.apply(&updated(&one, &two)).is_err());
    assert_eq!(replay.apply(&updated(&two, &three)), Ok(()));
}

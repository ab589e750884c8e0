//! The coalescing table, row by row. Events of one key are written `+a1 Watch` (Added: life a, version 1),
//! `a1>a2 Watch` (Updated), `-a1=a2 Watch` (Deleted: told was a1, exactly a2 was the end) and `-a1~a2 Relist`
//! (Deleted, a2 was the last state known); `_1` is an object without uid.

use super::{Coalesced, Owed, coalesce};
use crate::delta::{Cause, Change};
use crate::meta::{Meta, Object, SourceId, Uid};
use crate::snapshot::Sameness;
use crate::snapshot::fixture::{key, version};

fn state(text: &str) -> Object<()> {
    let (life, number) = text.split_at(1);
    let meta = Meta {
        key: key("default/x"),
        uid: Uid::new(life.trim_start_matches('_')),
        version: version(number.parse().expect("a number")),
        source: SourceId::default(),
        wire_bytes: 0,
    };
    Object::new(meta, ())
}

fn cause(text: &str) -> Cause {
    let causes = [Cause::InitialList, Cause::Watch, Cause::Relist, Cause::Rewind, Cause::Resync];
    causes.into_iter().find(|cause| cause.as_str() == text).expect("a cause")
}

fn event(text: &str) -> Change<()> {
    let (what, why) = text.split_once(' ').expect("an event and its cause");
    let cause = cause(why);
    if let Some(object) = what.strip_prefix('+') {
        return Change::Added { object: state(object), cause };
    }
    if let Some(states) = what.strip_prefix('-') {
        let (old, last) = states.split_once(['=', '~']).expect("the state told and the last one");
        return Change::Deleted { old: state(old), last: state(last), exact: states.contains('='), cause };
    }
    let (old, object) = what.split_once('>').expect("two states");
    Change::Updated { old: state(old), object: state(object), cause }
}

fn write_state(object: &Object<()>) -> String {
    format!("{}{}", object.uid().map_or("_", Uid::as_str), object.version())
}

fn write(change: &Change<()>) -> String {
    let cause = change.cause();
    match change {
        Change::Added { object, .. } => format!("+{} {cause}", write_state(object)),
        Change::Updated { old, object, .. } => {
            format!("{}>{} {cause}", write_state(old), write_state(object))
        }
        Change::Deleted { old, last, exact, .. } => {
            let sign = if *exact { '=' } else { '~' };
            format!("-{}{sign}{} {cause}", write_state(old), write_state(last))
        }
    }
}

fn write_owed(owed: &Owed<()>) -> Vec<String> {
    match owed {
        Owed::One(change) => vec![write(change)],
        Owed::Reborn { deleted, added } => vec![write(deleted), write(added)],
    }
}

/// What the events come to if none of them is delivered, and whether they could follow each other.
fn fold(events: &[&str]) -> (Vec<String>, bool) {
    let mut owed = None;
    let mut was_possible = true;
    for event in events.iter().map(|text| event(text)) {
        owed = match owed {
            None => Some(Owed::One(event)),
            Some(before) => match coalesce(before, event, Sameness::State) {
                Coalesced::Nothing => None,
                Coalesced::Owed(owed) => Some(owed),
                Coalesced::Impossible(owed) => {
                    was_possible = false;
                    Some(owed)
                }
            },
        };
    }
    (owed.as_ref().map(write_owed).unwrap_or_default(), was_possible)
}

#[track_caller]
fn check(table: &[(&[&str], &[&str])]) {
    for (events, expected) in table {
        let (owed, was_possible) = fold(events);
        assert_eq!(owed, *expected, "after {events:?}");
        assert!(was_possible, "{events:?}");
    }
}

#[test]
fn lis_16_two_undelivered_events_of_one_key_become_what_a_late_reader_has_to_know() {
    check(&[
        (&["+a1 InitialList", "a1>a2 Watch"], &["+a2 InitialList"]),
        (&["+a1 Watch", "a1>a2 Watch", "a2>a3 Relist"], &["+a3 Watch"]),
        (&["+a1 Watch", "-a1=a2 Watch"], &[]),
        (&["+a1 Watch", "a1>a2 Watch", "-a2~a2 Relist"], &[]),
        (&["a1>a2 Watch", "a2>a3 Watch"], &["a1>a3 Watch"]),
        (&["a1>a2 Watch", "a2>a3 Relist"], &["a1>a3 Relist"]),
        (&["a1>a2 Watch", "-a2=a3 Watch"], &["-a1=a3 Watch"]),
        (&["a1>a2 Watch", "-a2~a2 Relist"], &["-a1~a2 Relist"]),
        (&["-a1=a2 Watch", "+a3 Watch"], &["a1>a3 Watch"]),
        (&["-a1~a1 Relist", "+a3 Watch", "a3>a4 Watch"], &["a1>a4 Watch"]),
        (&["-_1=_2 Watch", "+_3 Watch"], &["_1>_3 Watch"]),
    ]);
}

#[test]
fn lis_17_another_life_is_a_deletion_and_an_addition_and_its_end_leaves_the_deletion() {
    check(&[
        (&["-a1=a2 Watch", "+b3 Watch"], &["-a1=a2 Watch", "+b3 Watch"]),
        (&["-a1~a1 Relist", "+b3 Relist", "b3>b4 Watch"], &["-a1~a1 Relist", "+b4 Relist"]),
        (&["-a1=a2 Watch", "+b3 Watch", "-b3=b4 Watch"], &["-a1=a2 Watch"]),
        (&["a1>a2 Watch", "-a2=a3 Watch", "+b4 Watch"], &["-a1=a3 Watch", "+b4 Watch"]),
        (&["-a1=a2 Watch", "+b3 Watch", "-b3=b4 Watch", "+c5 Watch"], &["-a1=a2 Watch", "+c5 Watch"]),
        (&["-a1=a2 Watch", "+b3 Watch", "-b3=b4 Watch", "+a5 Watch"], &["a1>a5 Watch"]),
        (&["-a1=a2 Watch", "+_3 Watch"], &["-a1=a2 Watch", "+_3 Watch"]),
    ]);
}

#[test]
fn lis_18_a_change_and_a_resync_in_either_order_are_one_event_with_the_changes_cause() {
    check(&[
        (&["+a1 InitialList", "a1>a1 Resync"], &["+a1 InitialList"]),
        (&["a1>a2 Watch", "a2>a2 Resync"], &["a1>a2 Watch"]),
        (&["-a1=a2 Watch", "+b3 Watch", "b3>b3 Resync"], &["-a1=a2 Watch", "+b3 Watch"]),
        (&["a1>a1 Resync", "a1>a2 Watch"], &["a1>a2 Watch"]),
        (&["a1>a1 Resync", "-a1=a2 Watch"], &["-a1=a2 Watch"]),
        (&["a1>a1 Resync", "-a1=a2 Watch", "+b3 Watch"], &["-a1=a2 Watch", "+b3 Watch"]),
        (&["a1>a1 Resync", "a1>a1 Resync"], &["a1>a1 Resync"]),
    ]);
}

#[test]
fn a_way_back_to_the_state_told_last_is_nothing() {
    check(&[
        (&["a1>a2 Watch", "a2>a1 Relist"], &[]),
        (&["-a1=a2 Watch", "+a1 Watch"], &[]),
        (&["-a1=a2 Watch", "+b3 Watch", "-b3=b4 Watch", "+a1 Relist"], &[]),
    ]);
}

#[test]
fn after_a_rewind_equal_versions_prove_nothing_and_the_cause_stays() {
    check(&[
        (&["a1>a2 Watch", "a2>a1 Rewind"], &["a1>a1 Rewind"]),
        (&["a1>a1 Rewind", "a1>a2 Watch"], &["a1>a2 Rewind"]),
        (&["a1>a1 Rewind", "a1>a1 Resync"], &["a1>a1 Rewind"]),
        (&["a1>a1 Resync", "a1>a1 Rewind"], &["a1>a1 Rewind"]),
        (&["-a1~a1 Rewind", "+a1 Watch"], &["a1>a1 Rewind"]),
        (&["+a1 InitialList", "a1>a1 Rewind"], &["+a1 InitialList"]),
    ]);
}

#[test]
fn lis_16_what_a_restart_brings_back_in_an_equal_version_is_nothing_only_if_it_is_the_very_same_object() {
    let deleted = |old: &Object<()>| {
        Owed::One(Change::Deleted { old: old.clone(), last: old.clone(), exact: true, cause: Cause::Watch })
    };
    let brought_back = |object: &Object<()>, sameness| {
        let added = Change::Added { object: object.clone(), cause: Cause::Relist };
        coalesce(deleted(&state("a1")), added, sameness)
    };
    let told = state("a1");
    let same = coalesce(
        deleted(&told),
        Change::Added { object: told.clone(), cause: Cause::Relist },
        Sameness::Identity,
    );
    assert!(matches!(same, Coalesced::Nothing));
    assert!(matches!(brought_back(&state("a1"), Sameness::State), Coalesced::Nothing));
    let Coalesced::Owed(owed) = brought_back(&state("a1"), Sameness::Identity) else {
        panic!("another object of an equal version was taken for the state told last");
    };
    assert_eq!(write_owed(&owed), ["a1>a1 Rewind"]);
}

#[test]
fn impossible_pairs_are_noticed_and_lead_to_the_newest_state_all_the_same() {
    let table: [(&[&str], &[&str]); 6] = [
        (&["+a1 Watch", "+b2 Watch"], &["+b2 Watch"]),
        (&["a1>a2 Watch", "+a3 Relist"], &["a1>a3 Relist"]),
        (&["-a1=a2 Watch", "a2>a3 Watch"], &["-a1=a2 Watch", "+a3 Watch"]),
        (&["-a1=a2 Watch", "-a2=a3 Watch"], &["-a1=a2 Watch"]),
        (&["-a1=a2 Watch", "+b3 Watch", "+b4 Watch"], &["-a1=a2 Watch", "+b4 Watch"]),
        (&["a1>a2 Watch", "+a1 Watch"], &["a1>a1 Watch"]),
    ];
    for (events, expected) in table {
        let (owed, was_possible) = fold(events);
        assert_eq!(owed, expected, "after {events:?}");
        assert!(!was_possible, "{events:?} passed for possible");
    }
}

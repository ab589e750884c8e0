//! The coalescing table, row by row. Events of one key are written `+a1 Watch` (Added: life a, version 1),
//! `a1>a2 Watch` (Updated), `-a1=a2 Watch` (Deleted: told was a1, exactly a2 was the end) and `-a1~a2 Relist`
//! (Deleted, a2 was the last state known); `_1` is an object without uid.

use super::KeyEvents;
use crate::delta::{Cause, Change};
use crate::meta::{Meta, Object, SourceId, Uid};
use crate::snapshot::fixture::{key, version};

fn state(text: &str) -> Object<()> {
    let (life, number) = text.split_at(1);
    let meta = Meta {
        key: key("default/x"),
        uid: Uid::new(life.trim_start_matches('_')),
        version: version(number.parse().expect("a number")),
        source: SourceId::default(),
        wire_bytes: 0,
        form: 0,
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
        let (old, last) = states.split_once(['=', '~']).expect("the state delivered and the last one");
        return Change::Deleted { old: state(old), last: state(last), exact: states.contains('='), cause };
    }
    let (old, object) = what.split_once('>').expect("two states");
    Change::Updated { old: state(old), object: state(object), cause }
}

fn write_state(object: &Object<()>) -> String {
    format!("{}{}", object.object_uid().map_or_else(|| "_".to_owned(), Uid::to_string), object.version())
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

/// What the events come to if none of them is delivered, and whether they could follow each other.
fn fold(events: &[&str]) -> (Vec<String>, bool) {
    let mut pending = KeyEvents::nothing();
    let mut was_possible = true;
    for (arrival, text) in events.iter().enumerate() {
        was_possible &= pending.merge(event(text), arrival as u64);
    }
    let count = pending.len();
    let delivered: Vec<String> = pending.into_changes().map(|change| write(&change)).collect();
    assert_eq!(delivered.len(), count);
    (delivered, was_possible)
}

#[track_caller]
fn check(table: &[(&[&str], &[&str])]) {
    for (events, expected) in table {
        let (pending, was_possible) = fold(events);
        assert_eq!(pending, *expected, "after {events:?}");
        assert!(was_possible, "{events:?}");
    }
}

// LIS-16: given two undelivered events of one key, when coalesced, then Added+Updated is Added with the
// newest object and its first cause; Added+Deleted is a brief life: both stay, and of several brief lives the
// last one; Updated+Updated is first old, last new; Updated+Deleted is Deleted; Deleted+Added of the same uid
// is Updated from the object last delivered.
// - a each pair becomes what the sentence says
// - b what a list brings back in an equal version may hide a rewind, and is delivered:
//   `lis_16_what_a_list_brings_back_in_an_equal_version_is_delivered_since_it_may_hide_a_rewind`
#[test]
fn lis_16_two_undelivered_events_of_one_key_become_what_a_late_reader_has_to_know() {
    check(&[
        (&["+a1 InitialList", "a1>a2 Watch"], &["+a2 InitialList"]),
        (&["+a1 Watch", "a1>a2 Watch", "a2>a3 Relist"], &["+a3 Watch"]),
        (&["+a1 Watch", "-a1=a2 Watch"], &["+a1 Watch", "-a1=a2 Watch"]),
        (&["+a1 InitialList", "a1>a2 Watch", "-a2~a2 Relist"], &["+a2 InitialList", "-a2~a2 Relist"]),
        (&["+a1 Watch", "-a1=a2 Watch", "+b3 Watch", "-b3=b4 Watch"], &["+b3 Watch", "-b3=b4 Watch"]),
        (&["+a1 Watch", "-a1=a2 Watch", "+a3 Watch"], &["+a3 Watch"]),
        (&["a1>a2 Watch", "a2>a3 Watch"], &["a1>a3 Watch"]),
        (&["a1>a2 Watch", "a2>a3 Relist"], &["a1>a3 Relist"]),
        (&["a1>a2 Watch", "-a2=a3 Watch"], &["-a1=a3 Watch"]),
        (&["a1>a2 Watch", "-a2~a2 Relist"], &["-a1~a2 Relist"]),
        (&["-a1=a2 Watch", "+a3 Watch"], &["a1>a3 Watch"]),
        (&["-a1~a1 Relist", "+a3 Watch", "a3>a4 Watch"], &["a1>a4 Watch"]),
        (&["-_1=_2 Watch", "+_3 Watch"], &["_1>_3 Watch"]),
    ]);
}

// LIS-17: given an undelivered Deleted and then Added with a new uid, when coalesced, then both stay, in
// order; a further Deleted leaves all three.
// - a both stay, in order
// - b a further Deleted leaves all three
#[test]
fn lis_17_another_life_is_a_deletion_and_an_addition_and_its_end_leaves_both_and_a_deletion() {
    check(&[
        (&["-a1=a2 Watch", "+b3 Watch"], &["-a1=a2 Watch", "+b3 Watch"]),
        (&["-a1~a1 Relist", "+b3 Relist", "b3>b4 Watch"], &["-a1~a1 Relist", "+b4 Relist"]),
        (&["-a1=a2 Watch", "+b3 Watch", "-b3=b4 Watch"], &["-a1=a2 Watch", "+b3 Watch", "-b3=b4 Watch"]),
        (&["a1>a2 Watch", "-a2=a3 Watch", "+b4 Watch"], &["-a1=a3 Watch", "+b4 Watch"]),
        (
            &["-a1=a2 Watch", "+b3 Watch", "-b3=b4 Watch", "+c5 Watch"],
            &["-a1=a2 Watch", "+b3 Watch", "-b3=b4 Watch", "+c5 Watch"],
        ),
        (
            &["-a1=a2 Watch", "+b3 Watch", "-b3=b4 Watch", "+c5 Watch", "-c5=c6 Watch"],
            &["-a1=a2 Watch", "+c5 Watch", "-c5=c6 Watch"],
        ),
        (
            &["-a1=a2 Watch", "+b3 Watch", "-b3=b4 Watch", "+a5 Watch"],
            &["-a1=a2 Watch", "+b3 Watch", "-b3=b4 Watch", "+a5 Watch"],
        ),
        (&["-a1=a2 Watch", "+_3 Watch"], &["-a1=a2 Watch", "+_3 Watch"]),
    ]);
}

#[test]
fn a_way_back_to_the_state_delivered_last_is_nothing() {
    check(&[(&["a1>a2 Watch", "a2>a1 Relist"], &[]), (&["-a1=a2 Watch", "+a1 Watch"], &[])]);
}

#[test]
fn after_a_rewind_equal_versions_prove_nothing_and_the_cause_stays() {
    check(&[
        (&["a1>a2 Watch", "a2>a1 Rewind"], &["a1>a1 Rewind"]),
        (&["a1>a1 Rewind", "a1>a2 Watch"], &["a1>a2 Rewind"]),
        (&["-a1~a1 Rewind", "+a1 Watch"], &["a1>a1 Rewind"]),
        (&["+a1 InitialList", "a1>a1 Rewind"], &["+a1 InitialList"]),
    ]);
}

#[test]
fn lis_16_what_a_list_brings_back_in_an_equal_version_is_delivered_since_it_may_hide_a_rewind() {
    check(&[
        (&["-a1=a1 Watch", "+a1 Relist"], &["a1>a1 Rewind"]),
        (&["-a1~a1 Relist", "+a1 Watch"], &["a1>a1 Rewind"]),
    ]);
}

#[test]
fn impossible_pairs_are_noticed_and_lead_to_the_newest_state_all_the_same() {
    let table: [(&[&str], &[&str]); 6] = [
        (&["+a1 Watch", "+b2 Watch"], &["+b2 Watch"]),
        (&["a1>a2 Watch", "+a3 Relist"], &["a1>a3 Relist"]),
        (&["-a1=a2 Watch", "a2>a3 Watch"], &["-a1=a2 Watch", "+a3 Watch"]),
        (&["-a1=a2 Watch", "-a2=a3 Watch"], &["-a1=a2 Watch"]),
        (&["-a1=a2 Watch", "+b3 Watch", "+b4 Watch"], &["-a1=a2 Watch", "+b4 Watch"]),
        (&["a1>a2 Watch", "+a1 Watch"], &[]),
    ];
    for (events, expected) in table {
        let (pending, was_possible) = fold(events);
        assert_eq!(pending, expected, "after {events:?}");
        assert!(!was_possible, "{events:?} passed for possible");
    }
}

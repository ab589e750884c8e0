//! The schedule of GETs for undecodable objects: one test for each sentence of REF-41 and REF-42.

use std::time::Duration;

use super::{RepairSchedule, SPACING};
use crate::delta::{Cause, Replacement, Undecodable, WatchPart};
use crate::reflector::Moment;
use crate::snapshot::fixture::{key, object, version};

fn at(seconds: u64, chance: f64) -> Moment {
    Moment { now: Duration::from_secs(seconds), chance }
}

fn object_at(name: &str, number: u64) -> Undecodable {
    Undecodable { key: key(name), version: version(number), error: "no such field".into() }
}

fn undecodable(name: &str, number: u64) -> WatchPart<String> {
    WatchPart::Undecodable(object_at(name, number))
}

fn list(number: u64, undecodable: &[(&str, u64)]) -> Replacement<String> {
    let undecodable = undecodable.iter().map(|(name, number)| object_at(name, *number)).collect();
    Replacement::new(version(number), Cause::Relist, Vec::new(), undecodable)
}

/// A schedule in which `a/x` is undecodable at version 7 from the start.
fn broken() -> RepairSchedule {
    let mut schedule = RepairSchedule::new();
    schedule.observe_parts(&[undecodable("a/x", 7)], at(0, 0.0));
    schedule
}

/// When the next question comes, in seconds.
fn due(schedule: &RepairSchedule) -> Option<u64> {
    schedule.poll_timeout().map(|due| due.as_secs())
}

#[test]
fn ref_41_the_first_question_comes_after_1_to_2_min_and_the_gaps_double_up_to_5_to_10_min() {
    for (chance, expected) in [(0.0, [60, 120, 240, 300, 300]), (0.999, [119, 239, 479, 599, 599])] {
        let mut schedule = RepairSchedule::new();
        let mut now = Duration::ZERO;
        for (asked, seconds) in expected.into_iter().enumerate() {
            schedule.draws = 0;
            let moment = Moment { now, chance };
            if asked == 0 {
                schedule.observe_parts(&[undecodable("a/x", 7)], moment);
            } else {
                assert!(schedule.handle_answer::<String>(None, moment).is_none());
            }
            let next = schedule.poll_timeout().expect("it is still undecodable");
            assert_eq!((next - now).as_secs(), seconds, "gap {asked} at chance {chance}");
            let early = Moment { now: next - Duration::from_millis(1), chance };
            assert_eq!(schedule.handle_timeout(early), None, "not sooner");
            assert_eq!(schedule.handle_timeout(Moment { now: next, chance }), Some(key("a/x")));
            now = next;
        }
    }
}

#[test]
fn keys_that_break_in_one_moment_are_not_asked_for_in_one_moment() {
    let mut schedule = RepairSchedule::new();
    let parts: Vec<_> = (0..100).map(|n| undecodable(&format!("a/{n}"), n + 1)).collect();
    schedule.observe_parts(&parts, at(0, 0.3));
    let within = |from: u64, to: u64| {
        let turns = schedule.turns.iter().filter(|(due, _)| (from..to).contains(&due.as_secs()));
        turns.count()
    };
    assert_eq!(within(60, 120), 100);
    assert!((8..=12).contains(&within(60, 66)), "a tenth of them in a tenth of the time: {}", within(60, 66));
}

#[test]
fn one_question_is_open_at_a_time() {
    let mut schedule = broken();
    schedule.observe_parts(&[undecodable("a/y", 8)], at(0, 0.0));
    assert_eq!(schedule.handle_timeout(at(200, 0.0)), Some(key("a/x")));
    assert_eq!((due(&schedule), schedule.handle_timeout(at(200, 0.0))), (None, None));
    assert!(schedule.handle_answer::<String>(None, at(201, 0.0)).is_none());
    assert_eq!(schedule.handle_timeout(at(201, 0.0)), Some(key("a/y")));
}

#[test]
fn a_thousand_keys_that_are_due_are_asked_for_one_a_second() {
    let mut schedule = RepairSchedule::new();
    let parts: Vec<_> = (0..1_000).map(|n| undecodable(&format!("a/{n}"), n + 1)).collect();
    schedule.observe_parts(&parts, at(0, 0.3));
    let mut last: Option<Duration> = None;
    for _ in 0..3_000 {
        let now = schedule.poll_timeout().expect("none is ever repaired");
        assert!(last.is_none_or(|last| now >= last + SPACING), "{last:?}, {now:?}");
        let moment = Moment { now, chance: 0.3 };
        assert!(schedule.handle_timeout(moment).is_some());
        assert!(schedule.handle_answer::<String>(None, moment).is_none());
        last = Some(now);
    }
    assert!(
        last.is_some_and(|last| last < Duration::from_secs(3_300)),
        "hardly a second passes without a GET"
    );
}

#[test]
fn ref_41_an_answer_counts_unless_the_watch_has_brought_a_newer_version_by_then() {
    let answered = |by_then: Option<WatchPart<String>>, number: u64| {
        let mut schedule = broken();
        assert_eq!(schedule.handle_timeout(at(60, 0.0)), Some(key("a/x")));
        if let Some(part) = by_then {
            schedule.observe_parts(&[part], at(61, 0.0));
        }
        let counts = schedule.handle_answer(Some(object("a/x", number)), at(62, 0.0)).is_some();
        (counts, schedule.is_empty())
    };
    assert_eq!(answered(None, 7), (true, true));
    assert_eq!(answered(None, 9), (true, true));
    assert_eq!(answered(None, 6), (false, false), "older than what could not be read");
    assert_eq!(answered(Some(undecodable("a/x", 8)), 7), (false, false), "a newer one could not be read");
    assert_eq!(answered(Some(undecodable("a/x", 8)), 8), (true, true));
    assert_eq!(
        answered(Some(WatchPart::Applied(object("a/x", 8))), 7),
        (false, true),
        "the watch was faster"
    );
    assert_eq!(answered(Some(WatchPart::Deleted(object("a/x", 8))), 7), (false, true), "it is gone");
    assert_eq!(answered(Some(WatchPart::DeletedUndecodable(object_at("a/x", 8))), 9), (false, true));
}

#[test]
fn ref_42_an_answer_that_finds_nothing_settles_nothing_and_the_watch_does() {
    let mut schedule = broken();
    assert_eq!(schedule.handle_timeout(at(60, 0.0)), Some(key("a/x")));
    assert!(schedule.handle_answer::<String>(None, at(60, 0.0)).is_none());
    assert!(due(&schedule).is_some_and(|due| (180..300).contains(&due)), "after a gap of 2 to 4 min");
    schedule.observe_parts(&[WatchPart::Deleted(object("a/x", 9))], at(61, 0.0));
    assert_eq!((due(&schedule), schedule.len()), (None, 0));
}

#[test]
fn ever_newer_versions_that_cannot_be_read_neither_hasten_nor_delay_the_question() {
    let mut schedule = broken();
    for second in 1..60 {
        schedule.observe_parts(&[undecodable("a/x", 7 + second)], at(second, 0.9));
    }
    assert_eq!(due(&schedule), Some(60));
    schedule.observe_parts(&[WatchPart::Applied(object("a/x", 8))], at(60, 0.0));
    assert_eq!(schedule.len(), 1, "an older good version does not repair a newer bad one");
}

#[test]
fn a_list_keeps_the_due_times_of_keys_that_are_still_undecodable_forgets_the_others_and_cancels_the_open_get()
{
    let mut schedule = broken();
    schedule.observe_parts(&[undecodable("a/y", 8)], at(0, 0.0));
    assert_eq!(schedule.handle_timeout(at(60, 0.0)), Some(key("a/x")));
    take_in(&mut schedule, &list(20, &[("a/x", 7), ("a/z", 19)]), 250, at(61, 0.0));
    assert_eq!(schedule.len(), 2);
    assert_eq!(schedule.handle_answer(Some(object("a/x", 30)), at(62, 0.0)).map(|_| ()), None);
    let asked: Vec<_> = schedule.turns.iter().map(|(_, key)| key.to_string()).collect();
    assert_eq!(asked, ["a/z", "a/x"]);
    assert!(schedule.turns.iter().all(|(due, _)| due.as_secs() >= 121));
    take_in(&mut schedule, &list(21, &[]), 250, at(63, 0.0));
    assert!(schedule.is_empty() && schedule.poll_timeout().is_none());
}

/// Takes a list in, so many keys at a time; gives how many calls that took.
fn take_in(schedule: &mut RepairSchedule, list: &Replacement<String>, budget: usize, at: Moment) -> usize {
    let mut calls = 1;
    while !schedule.observe_replace(list, budget, at) {
        calls += 1;
    }
    calls
}

#[test]
fn a_list_of_which_nothing_can_be_decoded_is_processed_and_forgotten_in_slices() {
    let keys: Vec<String> = (0..1_000).map(|n| format!("a/{n:04}")).collect();
    let broken: Vec<(&str, u64)> = keys.iter().map(|key| (key.as_str(), 7)).collect();
    let (mut sliced, mut whole) = (RepairSchedule::new(), RepairSchedule::new());
    assert!(take_in(&mut sliced, &list(20, &broken), 250, at(0, 0.5)) >= 4, "no call takes more than 250");
    assert_eq!(take_in(&mut whole, &list(20, &broken), usize::MAX, at(0, 0.5)), 1);
    assert_eq!((sliced.len(), &sliced.turns), (1_000, &whole.turns), "slices change nothing");
    let later = list(21, &broken[990..]);
    assert!(take_in(&mut sliced, &later, 250, at(1, 0.5)) >= 8, "keys are forgotten in slices, too");
    assert_eq!(sliced.len(), 10);
}

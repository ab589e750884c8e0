//! The policy `Every`: contract scenarios, and any history against a log.

use std::time::Duration;

use proptest::prelude::*;

use super::super::invariants::Replay;
use super::super::{CURSORS, Ledger, Policy, WhenFull};
use super::props::{Deed, World, deed};
use super::{added, deleted, snapshot, tell, updated};
use crate::delta::{Cause, Change};
use crate::meta::Object;
use crate::snapshot::fixture::object;
use crate::snapshot::{Difference, Snapshot};

/// What one event of these tests weighs: their objects have no bytes.
const EVENT: usize = 64;

fn every(events: usize, when_full: WhenFull, now: Snapshot<String>) -> Ledger<String> {
    Ledger::starting_from(Policy::Every { bytes: events * EVENT, when_full }, now)
}

fn told(ledger: &mut Ledger<String>, max: usize) -> Vec<String> {
    ledger.take(max).iter().map(tell).collect()
}

fn drained(ledger: &mut Ledger<String>) -> Vec<String> {
    let mut lines = Vec::new();
    while !ledger.is_empty() {
        lines.extend(told(ledger, 3));
    }
    lines
}

/// Versions 1 to `count` of one key, as changes.
fn versions(name: &str, count: u64) -> Vec<Change<String>> {
    let updates = (1..count).map(|number| updated(&object(name, number), &object(name, number + 1)));
    std::iter::once(added(&object(name, 1))).chain(updates).collect()
}

#[test]
fn lis_19_every_event_is_told_one_by_one_in_order_and_none_is_coalesced() {
    let mut ledger = every(100, WhenFull::Disconnect, Snapshot::empty());
    let (a, b) = (versions("a", 3), versions("b", 2));
    let gone = [deleted(&object("a", 3)), added(&object("a", 9)), deleted(&object("a", 9))];
    for changes in [&a[..], &b[..], &gone[..]] {
        ledger.record(changes);
        ledger.recorded(&Snapshot::empty());
    }
    let expected: Vec<_> = a.iter().chain(&b).chain(&gone).map(tell).collect();
    assert_eq!(ledger.stats().depth, 8);
    assert_eq!(drained(&mut ledger), expected);
    assert_eq!((ledger.stats().coalesced, ledger.stats().dropped), (0, 0));
}

#[test]
fn lis_19_a_late_joiner_is_told_the_snapshot_as_it_was_and_then_every_event() {
    let (a, b) = (object("a", 1), object("b", 2));
    let mut ledger = every(100, WhenFull::Disconnect, snapshot([&a, &b]));
    assert_eq!((ledger.stats().depth, ledger.stats().bytes), (2, 0), "a cursor weighs nothing");
    ledger.record(&[deleted(&b), updated(&a, &object("a", 3))]);
    let expected =
        ["+ a u1@1 (InitialList)", "+ b u1@2 (InitialList)", "- b u1@2 (Watch)", "a u1@1 -> a u1@3 (Watch)"];
    assert!(!ledger.initial_delivered());
    assert_eq!(drained(&mut ledger), expected);
    assert!(!ledger.initial_delivered(), "taken and not handled");
    ledger.acknowledge();
    assert!(ledger.initial_delivered());
}

#[test]
fn lis_19_a_list_weighs_nothing_and_is_told_as_it_was_applied() {
    let objects: Vec<Object<String>> = (1..=9).map(|number| object(&format!("k-{number}"), number)).collect();
    let mut ledger = every(2, WhenFull::Disconnect, Snapshot::empty());
    let first =
        objects.iter().map(|object| Change::Added { object: object.clone(), cause: Cause::InitialList });
    let first: Vec<_> = first.collect();
    first.chunks(4).for_each(|chunk| ledger.record(chunk));
    assert!(ledger.take(64).is_empty(), "half a list is not told");
    let before = snapshot(&objects);
    ledger.recorded(&before);
    assert_eq!((ledger.stats().depth, ledger.stats().bytes, ledger.owed_at_most()), (9, 0, 9));

    let after = snapshot(&objects[3..]);
    let relist: Vec<_> = before.diff(&after).map(listed).collect();
    ledger.record(&relist);
    ledger.recorded(&after);
    ledger.record(&[deleted(&objects[8])]);
    ledger.recorded(&snapshot(&objects[3..8]));
    let expected: Vec<_> = first.iter().chain(&relist).chain([&deleted(&objects[8])]).map(tell).collect();
    assert_eq!(drained(&mut ledger), expected);
    assert_eq!((ledger.overflow(), ledger.stats().dropped), (None, 0));
}

#[test]
fn lis_21_a_difference_that_nobody_has_begun_to_tell_gives_way_to_the_newest() {
    let states: Vec<_> = (1..9).map(|number| snapshot([&object("a", number)])).collect();
    let mut ledger = every(1, WhenFull::Restate, Snapshot::empty());
    ledger.record(&versions("a", 1));
    ledger.recorded(&states[0]);
    for (at, state) in states.iter().enumerate().skip(1) {
        let number = at as u64;
        ledger.record(&[updated(&object("a", number), &object("a", number + 1))]);
        ledger.recorded(state);
    }
    assert!(ledger.stats().cursors <= 1);
    let lines = drained(&mut ledger);
    assert!(lines.len() <= 2, "{lines:?}");
    assert!(lines[0].starts_with("+ a u1@") && lines[0].ends_with("(Relist)"), "{lines:?}");
}

#[test]
fn lis_20_beyond_the_bound_a_disconnecting_journal_drops_all_and_says_how_much() {
    let mut ledger = every(3, WhenFull::Disconnect, Snapshot::empty());
    ledger.record(&versions("a", 3));
    assert_eq!(ledger.overflow(), None, "the bound itself is within it");
    assert_eq!(told(&mut ledger, 1).len(), 1);
    ledger.record(&versions("b", 4));
    ledger.record(&versions("c", 2));
    assert_eq!(ledger.overflow(), Some(8), "two of a, four of b, two of c");
    assert!(ledger.is_empty() && ledger.take(9).is_empty());
}

#[test]
fn lis_20_initial_events_that_were_dropped_are_not_delivered() {
    let mut ledger = every(1, WhenFull::Disconnect, snapshot([&object("a", 1), &object("b", 2)]));
    assert_eq!(told(&mut ledger, 1).len(), 1);
    ledger.record(&versions("c", 2));
    ledger.acknowledge();
    assert_eq!((ledger.overflow(), ledger.initial_delivered()), (Some(3), false));
}

#[test]
fn lis_21_beyond_the_bound_a_restating_journal_tells_what_leads_from_what_was_told_to_now() {
    let mut ledger = every(3, WhenFull::Restate, Snapshot::empty());
    let (newest_a, c) = (object("a", 4), object("c", 7));
    ledger.record(&versions("a", 2));
    ledger.record(&[added(&object("b", 5))]);
    assert_eq!(told(&mut ledger, 2), ["+ a u1@1 (Watch)", "a u1@1 -> a u1@2 (Watch)"]);
    ledger.record(&versions("a", 4)[2..]);
    ledger.record(&[deleted(&object("b", 5)), added(&c)]);
    assert!(!ledger.is_empty(), "it owes the difference, as soon as it is known");
    assert!(ledger.take(9).is_empty());
    ledger.recorded(&snapshot([&newest_a, &c]));
    assert_eq!((ledger.stats().dropped, ledger.overflow()), (5, None));
    let expected = ["a u1@2 -> a u1@4 (Relist)", "+ c u1@7 (Relist)"];
    assert_eq!(drained(&mut ledger), expected);
    ledger.record(&[deleted(&c)]);
    ledger.recorded(&snapshot([&newest_a]));
    assert_eq!(drained(&mut ledger), ["- c u1@7 (Watch)"], "and goes on");
}

#[test]
fn lis_21_an_initial_list_that_has_begun_is_told_to_its_end_before_the_difference() {
    let objects: Vec<Object<String>> = (1..=4).map(|number| object(&format!("k-{number}"), number)).collect();
    let mut ledger = every(1, WhenFull::Restate, snapshot(&objects));
    assert_eq!(told(&mut ledger, 1), ["+ k-1 u1@1 (InitialList)"]);
    ledger.record(&[deleted(&objects[0]), deleted(&objects[2])]);
    ledger.recorded(&snapshot([&objects[1], &objects[3]]));
    let expected = [
        "+ k-2 u1@2 (InitialList)",
        "+ k-3 u1@3 (InitialList)",
        "+ k-4 u1@4 (InitialList)",
        "- k-1 u1@1 (Relist)",
        "- k-3 u1@3 (Relist)",
    ];
    assert_eq!(drained(&mut ledger), expected);
}

#[test]
fn an_event_larger_than_the_bound_is_taken_if_none_other_waits() {
    let mut ledger = every(0, WhenFull::Disconnect, Snapshot::empty());
    ledger.record(&[added(&object("a", 1))]);
    assert_eq!(told(&mut ledger, 9), ["+ a u1@1 (Watch)"]);
    ledger.record(&versions("b", 2));
    assert_eq!(ledger.overflow(), Some(2));
}

#[test]
fn restarts_under_a_recipient_that_does_not_move_are_one_gap_or_few() {
    let states: Vec<_> = (1..40).map(|number| snapshot([&object("a", number)])).collect();
    let mut ledger = every(100, WhenFull::Restate, Snapshot::empty());
    ledger.record(&[added(&object("a", 1))]);
    ledger.recorded(&states[0]);
    for pair in states[..20].windows(2) {
        ledger.reattach(pair[0].clone(), pair[1].clone());
    }
    assert_eq!(ledger.stats().cursors, 1, "nothing was recorded between them");
    for pair in states[19..].windows(2) {
        ledger.reattach(pair[0].clone(), pair[1].clone());
        ledger.record(&[added(&object("b", 1))]);
        ledger.record(&[deleted(&object("b", 1))]);
        ledger.recorded(&pair[1]);
        assert!(ledger.stats().cursors <= CURSORS);
    }
    let last = drained(&mut ledger);
    assert!(last.last().is_some_and(|line| line.starts_with("- b")), "{last:?}");
}

#[test]
fn a_resync_comes_behind_the_events_and_not_twice() {
    let (a, newer) = (object("a", 1), object("a", 2));
    let mut ledger = every(100, WhenFull::Disconnect, Snapshot::empty());
    ledger.set_now(Duration::from_secs(5));
    ledger.record(&[added(&a), updated(&a, &newer)]);
    let now = snapshot([&newer]);
    ledger.recorded(&now);
    ledger.resync(now.clone());
    ledger.resync(now);
    assert_eq!(ledger.stats().oldest_since, Some(Duration::from_secs(5)));
    let expected = ["+ a u1@1 (Watch)", "a u1@1 -> a u1@2 (Watch)", "a u1@2 -> a u1@2 (Resync)"];
    assert_eq!(drained(&mut ledger), expected);
}

#[derive(Debug, Clone)]
enum Step {
    Happen(Vec<Deed>),
    /// Every object is told anew.
    Rewind,
    /// A list tells what happened in a gap.
    Relist(Vec<Deed>),
    Restart(Vec<Deed>),
    Resync,
    Take(usize),
    Acknowledge,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::collection::vec(deed(), 1..6).prop_map(Step::Happen),
        1 => Just(Step::Rewind),
        1 => prop::collection::vec(deed(), 1..6).prop_map(Step::Relist),
        1 => prop::collection::vec(deed(), 0..5).prop_map(Step::Restart),
        1 => Just(Step::Resync),
        6 => (0..6_usize).prop_map(Step::Take),
        2 => Just(Step::Acknowledge),
    ]
}

/// A difference, as the store tells it of a list.
fn listed(difference: Difference<String>) -> Change<String> {
    let cause = Cause::Relist;
    match difference {
        Difference::Added(object) => Change::Added { object, cause },
        Difference::Updated { old, new, .. } => Change::Updated { old, object: new, cause },
        Difference::Deleted(old) => Change::Deleted { last: old.clone(), old, exact: false, cause },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn lis_21_what_was_told_replays_to_the_newest_state_whatever_was_dropped(
        steps in prop::collection::vec(step(), 1..60),
        bound in 0..12_usize,
        bite in 1..5_usize,
    ) {
        let mut world = World::default();
        (0..4).for_each(|name| drop(world.apply(Deed::Write(name))));
        let mut ledger = every(bound, WhenFull::Restate, world.snapshot());
        let (mut replay, mut seen) = (Replay::default(), world.snapshot());
        let steps = steps.into_iter().chain(std::iter::repeat_n(Step::Take(bite), 200));
        for step in steps {
            match step {
                Step::Happen(deeds) => {
                    let changes: Vec<_> = deeds.into_iter().flat_map(|deed| world.apply(deed)).collect();
                    // Two chunks of one publish, with a bite in between.
                    let (first, second) = changes.split_at(changes.len() / 2);
                    ledger.record(first);
                    for change in ledger.take(bite) {
                        prop_assert_eq!(replay.tell(&change), Ok(()));
                    }
                    ledger.record(second);
                    seen = world.snapshot();
                    ledger.recorded(&seen);
                }
                Step::Rewind => {
                    ledger.record(&world.apply(Deed::Rewind));
                    seen = world.snapshot();
                    ledger.recorded(&seen);
                }
                Step::Relist(deeds) => {
                    deeds.into_iter().for_each(|deed| drop(world.apply(deed)));
                    let now = world.snapshot();
                    let changes: Vec<_> = seen.diff(&now).map(listed).collect();
                    ledger.record(&changes);
                    seen = now;
                    ledger.recorded(&seen);
                }
                Step::Restart(deeds) => {
                    deeds.into_iter().for_each(|deed| drop(world.apply(deed)));
                    ledger.reattach(seen, world.snapshot());
                    seen = world.snapshot();
                }
                Step::Resync => ledger.resync(seen.clone()),
                Step::Take(max) => {
                    let changes = ledger.take(max);
                    prop_assert!(changes.len() <= max);
                    for change in changes {
                        prop_assert_eq!(replay.tell(&change), Ok(()), "{:?}", ledger);
                    }
                }
                Step::Acknowledge => ledger.acknowledge(),
            }
            let stats = ledger.stats();
            prop_assert!(stats.bytes <= (bound * EVENT).max(EVENT) && stats.cursors <= CURSORS + 2);
        }
        prop_assert!(ledger.is_empty());
        prop_assert_eq!(replay.equals(&world.snapshot()), Ok(()));
        for (key, live) in &world.live {
            prop_assert_eq!(replay.get(key).map(|told| told.body()), Some(live.body()));
        }
        ledger.acknowledge();
        prop_assert!(ledger.initial_delivered());
    }

    #[test]
    fn lis_20_what_was_told_is_the_log_up_to_the_end_and_the_rest_is_counted(
        steps in prop::collection::vec((prop::collection::vec(deed(), 1..6), 0..6_usize), 1..40),
        bound in 1..12_usize,
    ) {
        let mut world = World::default();
        (0..4).for_each(|name| drop(world.apply(Deed::Write(name))));
        let mut ledger = every(bound, WhenFull::Disconnect, world.snapshot());
        let initial = world.live.values().map(|object| Change::Added { object: object.clone(), cause: Cause::InitialList });
        let (mut log, mut lines): (Vec<String>, Vec<String>) = (initial.map(|change| tell(&change)).collect(), Vec::new());
        for (deeds, bite) in steps {
            let changes: Vec<_> = deeds.into_iter().flat_map(|deed| world.apply(deed)).collect();
            log.extend(changes.iter().map(tell));
            ledger.record(&changes);
            ledger.recorded(&world.snapshot());
            if ledger.overflow().is_some() {
                break;
            }
            lines.extend(told(&mut ledger, bite));
        }
        lines.extend(drained(&mut ledger));
        let dropped = ledger.overflow().unwrap_or(0);
        prop_assert_eq!(&lines[..], &log[..lines.len()]);
        prop_assert_eq!(lines.len() as u64 + dropped, log.len() as u64);
    }
}

//! The policy `Every`: contract scenarios, and any history against a log.

use std::time::Duration;

use proptest::prelude::*;

use super::super::invariants::Replay;
use super::super::{CURSORS, Ledger, Policy, WhenFull};
use super::world::{Deed, Publish, World, deed, publish, sources};
use super::{added, deleted, list, record, snapshot, tell, updated};
use crate::delta::{Cause, Change};
use crate::meta::Object;
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{object, written};

/// What one event of these tests weighs: their objects have no bytes.
const EVENT: usize = 64;

fn every(events: usize, when_full: WhenFull, now: Snapshot<String>) -> Ledger<String> {
    Ledger::starting_from(Policy::Every { bytes: events * EVENT, when_full }, [], now)
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
        record(&mut ledger, changes);
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
    record(&mut ledger, &[deleted(&b), updated(&a, &object("a", 3))]);
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
    let (before, after) = (snapshot(&objects), snapshot(&objects[3..]));
    list(&mut ledger, &before, Cause::InitialList);
    assert_eq!((ledger.stats().depth, ledger.stats().bytes), (9, 0));
    list(&mut ledger, &after, Cause::Relist);
    record(&mut ledger, &[deleted(&objects[8])]);
    let first = objects.iter().map(|object| format!("+ {} (InitialList)", written(object)));
    let relist = objects[..3].iter().map(|object| format!("- {} (Relist)", written(object)));
    let expected: Vec<_> = first.chain(relist).chain([tell(&deleted(&objects[8]))]).collect();
    assert_eq!(drained(&mut ledger), expected);
    assert_eq!((ledger.overflow(), ledger.stats().dropped), (None, 0));
}

#[test]
fn lis_21_a_difference_that_nobody_has_begun_to_tell_gives_way_to_the_newest() {
    let mut ledger = every(1, WhenFull::Restate, Snapshot::empty());
    record(&mut ledger, &versions("a", 1));
    for number in 1..8 {
        record(&mut ledger, &[updated(&object("a", number), &object("a", number + 1))]);
    }
    assert!(ledger.stats().cursors <= 1);
    let lines = drained(&mut ledger);
    assert!(lines.len() <= 2, "{lines:?}");
    assert!(lines[0].starts_with("+ a u1@") && lines[0].ends_with("(Relist)"), "{lines:?}");
}

#[test]
fn lis_20_beyond_the_bound_a_disconnecting_subscription_drops_all_and_says_how_much() {
    let mut ledger = every(3, WhenFull::Disconnect, Snapshot::empty());
    record(&mut ledger, &versions("a", 3));
    assert_eq!(ledger.overflow(), None, "the bound itself is within it");
    assert_eq!(told(&mut ledger, 1).len(), 1);
    record(&mut ledger, &versions("b", 4));
    record(&mut ledger, &versions("c", 2));
    assert_eq!(ledger.overflow(), Some(8), "two of a, four of b, two of c");
    assert!(ledger.is_empty() && ledger.take(9).is_empty());
}

#[test]
fn lis_20_initial_events_that_were_dropped_are_not_delivered() {
    let mut ledger = every(1, WhenFull::Disconnect, snapshot([&object("a", 1), &object("b", 2)]));
    assert_eq!(told(&mut ledger, 1).len(), 1);
    record(&mut ledger, &versions("c", 2));
    ledger.acknowledge();
    assert_eq!((ledger.overflow(), ledger.initial_delivered()), (Some(3), false));
}

#[test]
fn lis_21_beyond_the_bound_a_restating_subscription_tells_what_leads_from_what_was_told_to_now() {
    let mut ledger = every(3, WhenFull::Restate, Snapshot::empty());
    let c = object("c", 7);
    record(&mut ledger, &versions("a", 2));
    record(&mut ledger, &[added(&object("b", 5))]);
    assert_eq!(told(&mut ledger, 2), ["+ a u1@1 (Watch)", "a u1@1 -> a u1@2 (Watch)"]);
    record(&mut ledger, &versions("a", 4)[2..]);
    record(&mut ledger, &[deleted(&object("b", 5)), added(&c)]);
    assert_eq!((ledger.stats().dropped, ledger.overflow()), (5, None));
    let expected = ["a u1@2 -> a u1@4 (Relist)", "+ c u1@7 (Relist)"];
    assert_eq!(drained(&mut ledger), expected);
    record(&mut ledger, &[deleted(&c)]);
    assert_eq!(drained(&mut ledger), ["- c u1@7 (Watch)"], "and goes on");
}

#[test]
fn lis_21_an_initial_list_that_has_begun_is_told_to_its_end_before_the_difference() {
    let objects: Vec<Object<String>> = (1..=4).map(|number| object(&format!("k-{number}"), number)).collect();
    let mut ledger = every(1, WhenFull::Restate, snapshot(&objects));
    assert_eq!(told(&mut ledger, 1), ["+ k-1 u1@1 (InitialList)"]);
    record(&mut ledger, &[deleted(&objects[0]), deleted(&objects[2])]);
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
    record(&mut ledger, &[added(&object("a", 1))]);
    assert_eq!(told(&mut ledger, 9), ["+ a u1@1 (Watch)"]);
    record(&mut ledger, &versions("b", 2));
    assert_eq!(ledger.overflow(), Some(2));
}

#[test]
fn restarts_under_a_recipient_that_does_not_move_are_one_gap_or_few() {
    let states: Vec<_> = (1..40).map(|number| snapshot([&object("a", number)])).collect();
    let mut ledger = every(100, WhenFull::Restate, Snapshot::empty());
    record(&mut ledger, &[added(&object("a", 1))]);
    for pair in states[..20].windows(2) {
        ledger.reattach(pair[1].clone());
    }
    assert_eq!(ledger.stats().cursors, 1, "nothing was recorded between them");
    for pair in states[19..].windows(2) {
        ledger.reattach(pair[1].clone());
        record(&mut ledger, &[added(&object("b", 1))]);
        record(&mut ledger, &[deleted(&object("b", 1))]);
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
    record(&mut ledger, &[added(&a), updated(&a, &newer)]);
    ledger.resync();
    ledger.resync();
    assert_eq!(ledger.stats().oldest_since, Some(Duration::from_secs(5)));
    let expected = ["+ a u1@1 (Watch)", "a u1@1 -> a u1@2 (Watch)", "a u1@2 -> a u1@2 (Resync)"];
    assert_eq!(drained(&mut ledger), expected);
}

#[derive(Debug, Clone)]
enum Step {
    Happen(Publish),
    Resync,
    Take(usize),
    Acknowledge,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        9 => publish().prop_map(Step::Happen),
        1 => Just(Step::Resync),
        6 => (0..6_usize).prop_map(Step::Take),
        2 => Just(Step::Acknowledge),
    ]
}

/// A world in which both sources are listed, and a subscription to every event of it.
fn listed(bound: usize, when_full: WhenFull) -> (World, Ledger<String>) {
    let mut world = World::default();
    for source in 0..2 {
        world.publish(Publish::List(source, vec![Deed::Write(source), Deed::Write(source + 2)]));
    }
    let policy = Policy::Every { bytes: bound * EVENT, when_full };
    let ledger = Ledger::starting_from(policy, sources(), world.snapshot());
    (world, ledger)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn lis_21_what_was_told_replays_to_the_newest_state_whatever_was_dropped(
        steps in prop::collection::vec(step(), 1..60),
        bound in 0..12_usize,
        bite in 1..5_usize,
    ) {
        let (mut world, mut ledger) = listed(bound, WhenFull::Restate);
        let mut replay = Replay::default();
        let steps = steps.into_iter().chain(std::iter::repeat_n(Step::Take(bite), 200));
        for step in steps {
            match step {
                Step::Happen(publish) => world.publish(publish).tell(&mut ledger),
                Step::Resync => ledger.resync(),
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
        let (mut world, mut ledger) = listed(bound, WhenFull::Disconnect);
        let initial = world.live.values().map(|object| Change::Added { object: object.clone(), cause: Cause::InitialList });
        let (mut log, mut lines): (Vec<String>, Vec<String>) = (initial.map(|change| tell(&change)).collect(), Vec::new());
        for (deeds, bite) in steps {
            let published = world.publish(Publish::Parts(deeds));
            log.extend(published.events.iter().map(tell));
            published.tell(&mut ledger);
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

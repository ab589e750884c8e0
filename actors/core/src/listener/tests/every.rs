//! The policy `Every`: contract scenarios, and any history against a log.

use std::time::Duration;

use proptest::prelude::*;

use super::super::invariants::Replay;
use super::super::{Backlog, CURSORS, Policy, WhenFull};
use super::world::{Deed, Publish, World, deed, publish, sources};
use super::{added, deleted, list, record, snapshot, text_of, updated};
use crate::delta::{Cause, Change};
use crate::meta::Object;
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{object, written};

/// What one event of these tests weighs: their objects have no bytes.
const EVENT: usize = 64;

fn every(events: usize, when_full: WhenFull, now: Snapshot<String>) -> Backlog<String> {
    Backlog::starting_from(Policy::Every { bytes: events * EVENT, when_full }, [], now)
}

fn told(backlog: &mut Backlog<String>, max: usize) -> Vec<String> {
    backlog.take(max).iter().map(text_of).collect()
}

fn drained(backlog: &mut Backlog<String>) -> Vec<String> {
    let mut lines = Vec::new();
    while !backlog.is_empty() {
        lines.extend(told(backlog, 3));
    }
    lines
}

/// Versions 1 to `count` of one key, as changes.
fn versions(name: &str, count: u64) -> Vec<Change<String>> {
    let updates = (1..count).map(|number| updated(&object(name, number), &object(name, number + 1)));
    std::iter::once(added(&object(name, 1))).chain(updates).collect()
}

#[test]
fn lis_19_every_event_is_delivered_one_by_one_in_order_and_none_is_coalesced() {
    let mut backlog = every(100, WhenFull::Disconnect, Snapshot::empty());
    let (a, b) = (versions("a", 3), versions("b", 2));
    let gone = [deleted(&object("a", 3)), added(&object("a", 9)), deleted(&object("a", 9))];
    for changes in [&a[..], &b[..], &gone[..]] {
        record(&mut backlog, changes);
    }
    let expected: Vec<_> = a.iter().chain(&b).chain(&gone).map(text_of).collect();
    assert_eq!(backlog.stats().depth, 8);
    assert_eq!(drained(&mut backlog), expected);
    assert_eq!((backlog.stats().coalesced, backlog.stats().dropped), (0, 0));
}

#[test]
fn lis_19_a_late_joiner_receives_the_snapshot_as_it_was_and_then_every_event() {
    let (a, b) = (object("a", 1), object("b", 2));
    let mut backlog = every(100, WhenFull::Disconnect, snapshot([&a, &b]));
    assert_eq!((backlog.stats().depth, backlog.stats().bytes), (2, 0), "a cursor weighs nothing");
    record(&mut backlog, &[deleted(&b), updated(&a, &object("a", 3))]);
    let expected =
        ["+ a u1@1 (InitialList)", "+ b u1@2 (InitialList)", "- b u1@2 (Watch)", "a u1@1 -> a u1@3 (Watch)"];
    assert!(!backlog.initial_delivered());
    assert_eq!(drained(&mut backlog), expected);
    assert!(!backlog.initial_delivered(), "taken and not handled");
    backlog.acknowledge();
    assert!(backlog.initial_delivered());
}

#[test]
fn lis_19_a_list_weighs_nothing_and_is_delivered_as_it_was_applied() {
    let objects: Vec<Object<String>> = (1..=9).map(|number| object(&format!("k-{number}"), number)).collect();
    let mut backlog = every(2, WhenFull::Disconnect, Snapshot::empty());
    let (before, after) = (snapshot(&objects), snapshot(&objects[3..]));
    list(&mut backlog, &before, Cause::InitialList);
    assert_eq!((backlog.stats().depth, backlog.stats().bytes), (9, 0));
    list(&mut backlog, &after, Cause::Relist);
    record(&mut backlog, &[deleted(&objects[8])]);
    let first = objects.iter().map(|object| format!("+ {} (InitialList)", written(object)));
    let relist = objects[..3].iter().map(|object| format!("- {} (Relist)", written(object)));
    let expected: Vec<_> = first.chain(relist).chain([text_of(&deleted(&objects[8]))]).collect();
    assert_eq!(drained(&mut backlog), expected);
    assert_eq!((backlog.overflow(), backlog.stats().dropped), (None, 0));
}

#[test]
fn lis_21_a_difference_whose_delivery_has_not_begun_gives_way_to_the_newest() {
    let mut backlog = every(1, WhenFull::Restate, Snapshot::empty());
    record(&mut backlog, &versions("a", 1));
    for number in 1..8 {
        record(&mut backlog, &[updated(&object("a", number), &object("a", number + 1))]);
    }
    assert!(backlog.stats().cursors <= 1);
    let lines = drained(&mut backlog);
    assert!(lines.len() <= 2, "{lines:?}");
    assert!(lines[0].starts_with("+ a u1@") && lines[0].ends_with("(Relist)"), "{lines:?}");
}

#[test]
fn lis_20_beyond_the_bound_a_disconnecting_subscription_drops_all_and_says_how_much() {
    let mut backlog = every(3, WhenFull::Disconnect, Snapshot::empty());
    record(&mut backlog, &versions("a", 3));
    assert_eq!(backlog.overflow(), None, "the bound itself is within it");
    assert_eq!(told(&mut backlog, 1).len(), 1);
    record(&mut backlog, &versions("b", 4));
    record(&mut backlog, &versions("c", 2));
    assert_eq!(backlog.overflow(), Some(8), "two of a, four of b, two of c");
    assert!(backlog.is_empty() && backlog.take(9).is_empty());
}

#[test]
fn lis_20_initial_events_that_were_dropped_are_not_delivered() {
    let mut backlog = every(1, WhenFull::Disconnect, snapshot([&object("a", 1), &object("b", 2)]));
    assert_eq!(told(&mut backlog, 1).len(), 1);
    record(&mut backlog, &versions("c", 2));
    backlog.acknowledge();
    assert_eq!((backlog.overflow(), backlog.initial_delivered()), (Some(3), false));
}

#[test]
fn lis_21_beyond_the_bound_a_restating_subscription_receives_what_leads_from_the_delivered_state_to_now() {
    let mut backlog = every(3, WhenFull::Restate, Snapshot::empty());
    let c = object("c", 7);
    record(&mut backlog, &versions("a", 2));
    record(&mut backlog, &[added(&object("b", 5))]);
    assert_eq!(told(&mut backlog, 2), ["+ a u1@1 (Watch)", "a u1@1 -> a u1@2 (Watch)"]);
    record(&mut backlog, &versions("a", 4)[2..]);
    record(&mut backlog, &[deleted(&object("b", 5)), added(&c)]);
    assert_eq!((backlog.stats().dropped, backlog.overflow()), (5, None));
    let expected = ["a u1@2 -> a u1@4 (Relist)", "+ c u1@7 (Relist)"];
    assert_eq!(drained(&mut backlog), expected);
    record(&mut backlog, &[deleted(&c)]);
    assert_eq!(drained(&mut backlog), ["- c u1@7 (Watch)"], "and goes on");
}

#[test]
fn lis_21_an_initial_list_that_has_begun_is_delivered_to_its_end_before_the_difference() {
    let objects: Vec<Object<String>> = (1..=4).map(|number| object(&format!("k-{number}"), number)).collect();
    let mut backlog = every(1, WhenFull::Restate, snapshot(&objects));
    assert_eq!(told(&mut backlog, 1), ["+ k-1 u1@1 (InitialList)"]);
    record(&mut backlog, &[deleted(&objects[0]), deleted(&objects[2])]);
    let expected = [
        "+ k-2 u1@2 (InitialList)",
        "+ k-3 u1@3 (InitialList)",
        "+ k-4 u1@4 (InitialList)",
        "- k-1 u1@1 (Relist)",
        "- k-3 u1@3 (Relist)",
    ];
    assert_eq!(drained(&mut backlog), expected);
}

#[test]
fn lis_21_after_a_rewind_of_an_empty_store_no_object_is_restated_that_was_delivered() {
    let mut backlog = every(3, WhenFull::Restate, Snapshot::empty());
    record(&mut backlog, &[added(&object("a", 1)), deleted(&object("a", 1))]);
    let rewound = super::rewound(&backlog.newest, []);
    list(&mut backlog, &rewound, Cause::Rewind);
    assert_eq!(told(&mut backlog, 1), ["+ a u1@1 (Watch)"]);
    record(&mut backlog, &[added(&object("b", 2)), added(&object("c", 1))]);
    assert_eq!(told(&mut backlog, 2), ["- a u1@1 (Watch)", "+ b u1@2 (Watch)"]);
    record(&mut backlog, &versions("c", 5)[1..]);
    assert_eq!(drained(&mut backlog), ["+ c u1@5 (Relist)"]);
}

#[test]
fn an_event_larger_than_the_bound_is_taken_if_none_other_waits() {
    let mut backlog = every(0, WhenFull::Disconnect, Snapshot::empty());
    record(&mut backlog, &[added(&object("a", 1))]);
    assert_eq!(told(&mut backlog, 9), ["+ a u1@1 (Watch)"]);
    record(&mut backlog, &versions("b", 2));
    assert_eq!(backlog.overflow(), Some(2));
}

#[test]
fn restarts_under_a_recipient_that_does_not_move_are_one_gap_or_few() {
    let states: Vec<_> = (1..40).map(|number| snapshot([&object("a", number)])).collect();
    let mut backlog = every(100, WhenFull::Restate, Snapshot::empty());
    record(&mut backlog, &[added(&object("a", 1))]);
    for pair in states[..20].windows(2) {
        backlog.reattach(pair[1].clone());
    }
    assert_eq!(backlog.stats().cursors, 1, "nothing was recorded between them");
    for pair in states[19..].windows(2) {
        backlog.reattach(pair[1].clone());
        record(&mut backlog, &[added(&object("b", 1))]);
        record(&mut backlog, &[deleted(&object("b", 1))]);
        assert!(backlog.stats().cursors <= CURSORS);
    }
    let last = drained(&mut backlog);
    assert!(last.last().is_some_and(|line| line.starts_with("- b")), "{last:?}");
}

/// The backlog of a recipient that takes nothing, while lists come of these states, with an event between two; and the
/// events.
fn stuck(states: &[Snapshot<String>]) -> (Backlog<String>, Vec<String>) {
    let mut backlog = every(100, WhenFull::Disconnect, states[0].clone());
    let mut events = told(&mut backlog, 1_000);
    for state in states {
        let brief = object("brief", 5_000);
        for change in [added(&brief), deleted(&brief)] {
            record(&mut backlog, std::slice::from_ref(&change));
            events.push(text_of(&change));
        }
        list(&mut backlog, state, Cause::Relist);
        while backlog.must_walk() {
            backlog.walk();
        }
    }
    (backlog, events)
}

#[test]
fn lis_20_lists_that_have_nothing_to_tell_end_no_subscription_however_many_wait() {
    let objects: Vec<_> = (1..=600).map(|number| object(&format!("k-{number}"), number)).collect();
    let states: Vec<_> = (0..20).map(|_| snapshot(&objects)).collect();
    let (mut backlog, events) = stuck(&states);
    assert_eq!((backlog.overflow(), backlog.stats().cursors), (None, CURSORS));
    let rest = drained(&mut backlog);
    assert_eq!((rest.len(), &rest[..]), (40, &events[events.len() - 40..]));
}

#[test]
fn lis_20_more_than_four_lists_that_have_something_to_tell_end_it_and_each_counts_as_an_event() {
    let objects: Vec<_> = (1..=600).map(|number| object(&format!("k-{number:03}"), number)).collect();
    let states: Vec<_> = (590..=600).map(|count| snapshot(&objects[..count])).collect();
    let (backlog, _) = stuck(&states[..5]);
    assert_eq!((backlog.overflow(), backlog.stats().cursors), (None, CURSORS));
    let (backlog, _) = stuck(&states[..6]);
    assert_eq!(backlog.overflow(), Some(12 + 5));
}

#[test]
fn a_resync_comes_behind_the_events_and_not_twice() {
    let (a, newer) = (object("a", 1), object("a", 2));
    let mut backlog = every(100, WhenFull::Disconnect, Snapshot::empty());
    backlog.set_now(Duration::from_secs(5));
    record(&mut backlog, &[added(&a), updated(&a, &newer)]);
    backlog.resync();
    backlog.resync();
    assert_eq!(backlog.stats().oldest_since, Some(Duration::from_secs(5)));
    let expected = ["+ a u1@1 (Watch)", "a u1@1 -> a u1@2 (Watch)", "a u1@2 -> a u1@2 (Resync)"];
    assert_eq!(drained(&mut backlog), expected);
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

/// Whether an event tells the state that was told before, though no rewind brought another one. (A life that went and
/// came back counts as rewound with whatever source was rewound before.)
fn is_told_twice(change: &Change<String>, world: &World) -> bool {
    let Change::Updated { old, object, cause } = change else { return false };
    let has_returned = object.object_uid().is_some_and(|uid| world.returned.contains(uid));
    *cause != Cause::Resync && !has_returned && old.is_same_as(object) && old.body() == object.body()
}

/// A world in which both sources are listed, and a subscription to every event of it.
fn listed(bound: usize, when_full: WhenFull) -> (World, Backlog<String>) {
    let mut world = World::default();
    for source in 0..2 {
        world.publish(Publish::List(source, vec![Deed::Write(source), Deed::Write(source + 2)]));
    }
    let policy = Policy::Every { bytes: bound * EVENT, when_full };
    let backlog = Backlog::starting_from(policy, sources(), world.snapshot());
    (world, backlog)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn lis_21_what_was_delivered_replays_to_the_newest_state_whatever_was_dropped(
        steps in prop::collection::vec(step(), 1..60),
        bound in 0..12_usize,
        bite in 1..5_usize,
    ) {
        let (mut world, mut backlog) = listed(bound, WhenFull::Restate);
        let mut replay = Replay::default();
        let steps = steps.into_iter().chain(std::iter::repeat_n(Step::Take(bite), 200));
        for step in steps {
            match step {
                Step::Happen(publish) => world.publish(publish).record(&mut backlog),
                Step::Resync => backlog.resync(),
                Step::Take(max) => {
                    let changes = backlog.take(max);
                    prop_assert!(changes.len() <= max);
                    for change in changes {
                        prop_assert_eq!(replay.apply(&change), Ok(()), "{:?}", backlog);
                        prop_assert!(!is_told_twice(&change, &world), "{} tells nothing new", text_of(&change));
                    }
                }
                Step::Acknowledge => backlog.acknowledge(),
            }
            let stats = backlog.stats();
            prop_assert!(stats.bytes <= (bound * EVENT).max(EVENT) && stats.cursors <= CURSORS + 2);
        }
        prop_assert!(backlog.is_empty());
        prop_assert_eq!(replay.equals(&world.snapshot()), Ok(()));
        for (key, live) in &world.live {
            prop_assert_eq!(replay.get(key).map(|delivered| delivered.body()), Some(live.body()));
        }
        backlog.acknowledge();
        prop_assert!(backlog.initial_delivered());
    }

    #[test]
    fn lis_20_what_was_delivered_is_the_log_up_to_the_end_and_the_rest_is_counted(
        steps in prop::collection::vec((prop::collection::vec(deed(), 1..6), 0..6_usize), 1..40),
        bound in 1..12_usize,
    ) {
        let (mut world, mut backlog) = listed(bound, WhenFull::Disconnect);
        let initial = world.live.values().map(|object| Change::Added { object: object.clone(), cause: Cause::InitialList });
        let mut log: Vec<String> = initial.map(|change| text_of(&change)).collect();
        let mut lines: Vec<String> = Vec::new();
        for (deeds, bite) in steps {
            let published = world.publish(Publish::Parts(deeds));
            log.extend(published.events.iter().map(text_of));
            published.record(&mut backlog);
            if backlog.overflow().is_some() {
                break;
            }
            lines.extend(told(&mut backlog, bite));
        }
        lines.extend(drained(&mut backlog));
        let dropped = backlog.overflow().unwrap_or(0);
        prop_assert_eq!(&lines[..], &log[..lines.len()]);
        prop_assert_eq!(lines.len() as u64 + dropped, log.len() as u64);
    }
}

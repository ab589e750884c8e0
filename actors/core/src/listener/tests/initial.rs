//! When a subscription has seen the beginning: the first list of every source, handled.

use super::super::{Backlog, Policy, WhenFull};
use super::{added, deleted, drain, record, snapshot, updated};
use crate::delta::{Cause, Change, Changes};
use crate::meta::{Object, SourceId};
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{object, version};

fn source(name: &str) -> SourceId {
    SourceId::new(name)
}

/// A publish of a source's list, which adds these objects.
fn list(backlog: &mut Backlog<String>, of: &str, number: u64, objects: &[Object<String>]) {
    let before = backlog.newest.clone();
    let mut frame = before.frame().clone();
    objects.iter().for_each(|object| drop(frame.insert(object.clone())));
    frame.set_version(&source(of), &version(number));
    let after = Snapshot::publish(frame);
    let (source, cause) = (source(of), Cause::InitialList);
    backlog.publish(&[Changes::Listed { source, before, after: after.clone(), cause }], &after);
}

fn policies() -> [Policy; 2] {
    [Policy::Coalesce, Policy::Every { bytes: 1 << 20, when_full: WhenFull::Restate }]
}

fn of_two(policy: Policy) -> Backlog<String> {
    Backlog::starting_from(policy, [source("a"), source("b")], Snapshot::empty())
}

/// Of two sources the first one has listed an object, which is handled.
fn of_two_one_handled(policy: Policy) -> Backlog<String> {
    let mut backlog = of_two(policy);
    list(&mut backlog, "a", 1, &[object("x", 1)]);
    handle(&mut backlog);
    backlog
}

/// Takes and handles all.
fn handle(backlog: &mut Backlog<String>) -> Vec<Change<String>> {
    let delivered = drain(backlog, 64);
    backlog.acknowledge();
    delivered
}

#[test]
fn inf_36_a_source_whose_first_list_is_empty_settles_like_any_other_in_either_order() {
    for policy in policies() {
        let mut backlog = of_two_one_handled(policy);
        assert!(!backlog.initial_delivered(), "b has not listed");
        list(&mut backlog, "b", 2, &[]);
        assert!(backlog.take(64).is_empty() && backlog.initial_delivered(), "b has, and owes nothing");

        let mut backlog = of_two(policy);
        list(&mut backlog, "b", 2, &[]);
        list(&mut backlog, "a", 3, &[object("x", 1)]);
        assert!(!backlog.initial_delivered(), "x is pending");
        backlog.take(64);
        assert!(!backlog.initial_delivered(), "x is not handled");
        backlog.acknowledge();
        assert!(backlog.initial_delivered());
    }
}

#[test]
fn inf_27_deletions_that_wait_and_are_undone_bring_no_subscription_to_its_end_too_early() {
    for policy in policies() {
        let mut backlog = of_two(policy);
        let of_a: Vec<_> = (0..65).map(|number| object(&format!("a-{number:02}"), 1)).collect();
        list(&mut backlog, "a", 1, &of_a);
        handle(&mut backlog);
        record(&mut backlog, &[added(&object("z", 2))]);
        backlog.take(64);
        record(&mut backlog, &of_a.iter().map(deleted).collect::<Vec<_>>());
        list(&mut backlog, "b", 3, &[object("b-1", 3), object("b-2", 3)]);
        let reborn =
            of_a.iter().map(|old| added(&crate::snapshot::fixture::life(&old.key().to_string(), "u2", 4)));
        record(&mut backlog, &reborn.collect::<Vec<_>>());
        let mut was_told = false;
        while !backlog.initial_delivered() {
            backlog.acknowledge();
            if backlog.initial_delivered() {
                break;
            }
            was_told |= backlog.take(64).iter().any(|change| change.key().name() == "b-2");
            assert!(!backlog.initial_delivered(), "taken and not handled");
        }
        assert!(was_told, "synced before b's objects were delivered, {policy:?}");
    }
}

#[test]
fn inf_27_what_comes_after_the_first_lists_keeps_nobody_waiting() {
    let mut backlog = of_two(Policy::Coalesce);
    list(&mut backlog, "a", 1, &[object("x", 1)]);
    list(&mut backlog, "b", 2, &[object("y", 1)]);
    backlog.take(64);
    record(&mut backlog, &[updated(&object("x", 1), &object("x", 5))]);
    backlog.acknowledge();
    assert!(backlog.initial_delivered() && !backlog.is_empty());
}

#[test]
fn inf_36_a_first_list_that_a_restart_of_the_group_hid_is_waited_for_and_settles() {
    for policy in policies() {
        let mut backlog = of_two_one_handled(policy);
        let mut frame = snapshot([&object("x", 1), &object("y", 1)]).frame().clone();
        frame.set_version(&source("a"), &version(1));
        frame.set_version(&source("b"), &version(2));
        backlog.reattach(Snapshot::publish(frame));
        assert!(!backlog.initial_delivered());
        assert_eq!(handle(&mut backlog).len(), 1);
        assert!(backlog.initial_delivered());
    }
}

#[test]
fn a_source_that_is_removed_is_not_waited_for() {
    let mut backlog = of_two(Policy::Coalesce);
    list(&mut backlog, "a", 1, &[]);
    backlog.follow_sources([source("a")]);
    assert!(backlog.initial_delivered());
}

#[test]
fn inf_80_a_source_that_is_added_before_the_initial_events_are_delivered_is_waited_for_and_a_later_one_is_not()
 {
    for policy in policies() {
        let mut backlog = of_two(policy);
        list(&mut backlog, "a", 1, &[object("x", 1)]);
        let three = || ["a", "b", "c"].map(source);
        backlog.follow_sources(three());
        list(&mut backlog, "b", 2, &[]);
        handle(&mut backlog);
        assert!(!backlog.initial_delivered(), "c has not listed");
        backlog.follow_sources(three());
        list(&mut backlog, "c", 3, &[object("y", 3)]);
        assert!(!backlog.initial_delivered(), "y is not handled");
        handle(&mut backlog);
        assert!(backlog.initial_delivered());
        backlog.follow_sources(["a", "b", "c", "d"].map(source));
        assert!(backlog.initial_delivered(), "latched");
    }
}

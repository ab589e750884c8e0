//! When a subscription has seen the beginning: the first list of every source, handled.

use super::super::{Ledger, Policy, WhenFull};
use super::{added, deleted, drain, record, snapshot, updated};
use crate::delta::{Cause, Change, Changes};
use crate::meta::{Object, SourceId};
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{object, version};

fn source(name: &str) -> SourceId {
    SourceId::new(name)
}

/// A publish of a source's list, which adds these objects.
fn list(ledger: &mut Ledger<String>, of: &str, number: u64, objects: &[Object<String>]) {
    let before = ledger.newest.clone();
    let mut frame = before.frame().clone();
    objects.iter().for_each(|object| drop(frame.insert(object.clone())));
    frame.set_version(source(of), version(number));
    let after = Snapshot::publish(frame);
    let (source, cause) = (source(of), Cause::InitialList);
    ledger.publish(&[Changes::Listed { source, before, after: after.clone(), cause }], &after);
}

fn policies() -> [Policy; 2] {
    [Policy::Coalesce, Policy::Every { bytes: 1 << 20, when_full: WhenFull::Restate }]
}

fn of_two(policy: Policy) -> Ledger<String> {
    Ledger::starting_from(policy, [source("a"), source("b")], Snapshot::empty())
}

/// Takes and handles all.
fn handle(ledger: &mut Ledger<String>) -> Vec<Change<String>> {
    let told = drain(ledger, 64);
    ledger.acknowledge();
    told
}

#[test]
fn inf_36_a_source_whose_first_list_is_empty_settles_like_any_other_in_either_order() {
    for policy in policies() {
        let mut ledger = of_two(policy);
        list(&mut ledger, "a", 1, &[object("x", 1)]);
        handle(&mut ledger);
        assert!(!ledger.initial_delivered(), "b has not listed");
        list(&mut ledger, "b", 2, &[]);
        assert!(ledger.take(64).is_empty() && ledger.initial_delivered(), "b has, and owes nothing");

        let mut ledger = of_two(policy);
        list(&mut ledger, "b", 2, &[]);
        list(&mut ledger, "a", 3, &[object("x", 1)]);
        assert!(!ledger.initial_delivered(), "x is owed");
        ledger.take(64);
        assert!(!ledger.initial_delivered(), "x is not handled");
        ledger.acknowledge();
        assert!(ledger.initial_delivered());
    }
}

#[test]
fn inf_27_deletions_that_wait_and_are_undone_bring_no_subscription_to_its_end_too_early() {
    for policy in policies() {
        let mut ledger = of_two(policy);
        let of_a: Vec<_> = (0..65).map(|number| object(&format!("a-{number:02}"), 1)).collect();
        list(&mut ledger, "a", 1, &of_a);
        handle(&mut ledger);
        record(&mut ledger, &[added(&object("z", 2))]);
        ledger.take(64);
        record(&mut ledger, &of_a.iter().map(deleted).collect::<Vec<_>>());
        list(&mut ledger, "b", 3, &[object("b-1", 3), object("b-2", 3)]);
        let reborn =
            of_a.iter().map(|old| added(&crate::snapshot::fixture::life(&old.key().to_string(), "u2", 4)));
        record(&mut ledger, &reborn.collect::<Vec<_>>());
        let mut was_told = false;
        while !ledger.initial_delivered() {
            ledger.acknowledge();
            if ledger.initial_delivered() {
                break;
            }
            was_told |= ledger.take(64).iter().any(|change| change.key().name() == "b-2");
            assert!(!ledger.initial_delivered(), "taken and not handled");
        }
        assert!(was_told, "synced before b's objects were told, {policy:?}");
    }
}

#[test]
fn inf_27_what_comes_after_the_first_lists_keeps_nobody_waiting() {
    let mut ledger = of_two(Policy::Coalesce);
    list(&mut ledger, "a", 1, &[object("x", 1)]);
    list(&mut ledger, "b", 2, &[object("y", 1)]);
    ledger.take(64);
    record(&mut ledger, &[updated(&object("x", 1), &object("x", 5))]);
    ledger.acknowledge();
    assert!(ledger.initial_delivered() && !ledger.is_empty());
}

#[test]
fn inf_36_a_first_list_that_a_restart_of_the_group_hid_is_waited_for_and_settles() {
    for policy in policies() {
        let mut ledger = of_two(policy);
        list(&mut ledger, "a", 1, &[object("x", 1)]);
        handle(&mut ledger);
        let mut frame = snapshot([&object("x", 1), &object("y", 1)]).frame().clone();
        frame.set_version(source("a"), version(1));
        frame.set_version(source("b"), version(2));
        ledger.reattach(Snapshot::publish(frame));
        assert!(!ledger.initial_delivered());
        assert_eq!(handle(&mut ledger).len(), 1);
        assert!(ledger.initial_delivered());
    }
}

#[test]
fn a_source_that_is_removed_is_not_waited_for() {
    let mut ledger = of_two(Policy::Coalesce);
    list(&mut ledger, "a", 1, &[]);
    ledger.forget_sources(|gone| *gone == source("b"));
    assert!(ledger.initial_delivered());
}

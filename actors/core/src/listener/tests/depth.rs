//! How deep a backlog is: each key that is owed something counts once.

use super::{added, deleted, drain, joined, record, snapshot, updated};
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::object;

#[test]
fn lis_08_a_key_that_was_ready_to_be_delivered_and_changes_again_counts_once() {
    let objects: Vec<_> = (0..101).map(|n| object(&format!("a/{n:03}"), n + 1)).collect();
    let mut backlog = joined(snapshot(&objects));
    assert_eq!((backlog.take(64).len(), backlog.stats().depth), (64, 37));
    for old in &objects {
        record(&mut backlog, &[updated(old, &object(&old.key().to_string(), 1_000))]);
    }
    assert_eq!(backlog.stats().depth, 101);
    assert_eq!(drain(&mut backlog, 64).len(), 101);
}

#[test]
fn lis_08_many_events_of_a_key_that_wait_to_be_delivered_as_they_came_count_once() {
    let (one, two) = (object("a", 1), object("a", 2));
    let mut backlog = joined(Snapshot::empty());
    record(&mut backlog, &[added(&one), updated(&one, &two), deleted(&two), added(&object("b", 3))]);
    assert_eq!((backlog.stats().depth, backlog.stats().events), (2, 4));
}

#[test]
fn lis_08_what_waits_to_be_delivered_as_it_came_merges_once_the_recipient_is_behind() {
    let mut backlog = joined(Snapshot::empty());
    let versions: Vec<_> = (1..=250).map(|version| object("a", version)).collect();
    let mut changes = vec![added(&versions[0])];
    changes.extend(versions.windows(2).map(|pair| updated(&pair[0], &pair[1])));
    record(&mut backlog, &changes);
    assert_eq!(backlog.take(64).len(), 64);
    record(&mut backlog, &[updated(&versions[249], &object("a", 251))]);
    assert_eq!((backlog.stats().events, backlog.stats().depth), (1, 1));
    assert_eq!(super::drained(&mut backlog), ["a u1@64 -> a u1@251 (Watch)"]);
}

#[test]
fn lis_08_keys_that_come_and_go_behind_a_first_list_count_once() {
    let objects: Vec<_> = (0..100).map(|n| object(&format!("b/{n:03}"), n + 1)).collect();
    let mut backlog = joined(snapshot(&objects));
    assert_eq!(backlog.take(50).len(), 50);
    record(
        &mut backlog,
        &[added(&object("a/new", 200)), added(&object("a/newer", 201)), deleted(&objects[0])],
    );
    // The list has 50 keys to go; two came behind it, and one went.
    assert_eq!(backlog.stats().depth, 53);
    record(&mut backlog, &[added(&object("c/new", 202)), deleted(&objects[99])]);
    assert_eq!(backlog.stats().depth, 53);
    drain(&mut backlog, 64);
    assert_eq!(backlog.stats().depth, 0);
}

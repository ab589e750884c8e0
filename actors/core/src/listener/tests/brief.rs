//! Lives that come and go before they are told.

use super::super::{Backlog, Policy};
use super::{added, busy, deleted, drain, drained, joined, list, record, snapshot, text_of, updated};
use crate::delta::{Cause, Change};
use crate::meta::SourceId;
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{life, object};

#[test]
fn lis_32_a_subscriber_with_nothing_under_way_receives_events_as_they_came() {
    let mut backlog = joined(Snapshot::empty());
    let (one, two) = (object("a", 1), object("a", 2));
    let events = [added(&one), updated(&one, &two), deleted(&two), added(&life("a", "u2", 5))];
    record(&mut backlog, &events);
    assert_eq!(drained(&mut backlog), events.iter().map(text_of).collect::<Vec<_>>());
}

#[test]
fn lis_32_a_child_made_and_deleted_in_one_publish_is_delivered_300_times_in_a_row() {
    let mut backlog = joined(Snapshot::empty());
    for number in 1..=300_u64 {
        let child = life("child", &format!("u{number}"), number);
        record(&mut backlog, &[added(&child), deleted(&child)]);
        assert_eq!(backlog.take(64).len(), 2);
        // Every third time the recipient is still busy when the next child comes.
        if number % 3 != 0 {
            backlog.acknowledge();
        }
    }
}

#[test]
fn lis_32_a_subscriber_that_is_behind_receives_the_last_life_that_began_and_ended() {
    let mut backlog = busy();
    for number in 1..=5_u64 {
        let child = life("child", &format!("u{number}"), number);
        record(&mut backlog, &[added(&child), deleted(&child)]);
    }
    record(&mut backlog, &[added(&life("child", "u6", 6))]);
    assert_eq!(
        drained(&mut backlog),
        ["+ child u5@5 (Watch)", "- child u5@5 (Watch)", "+ child u6@6 (Watch)"]
    );
}

#[test]
fn lis_32_a_brief_life_of_a_key_that_a_list_has_yet_to_deliver_is_delivered_in_its_place() {
    let (old, brief, now) = (object("b", 1), life("b", "u2", 6), life("b", "u3", 7));
    let mut backlog = joined(snapshot([&object("a", 1), &old]));
    drain(&mut backlog, 64);
    backlog.acknowledge();
    list(&mut backlog, &snapshot([&object("a", 5), &old]), Cause::Relist);
    record(&mut backlog, &[deleted(&old), added(&brief), deleted(&brief), added(&now)]);
    record(&mut backlog, &[added(&object("c", 7)), deleted(&object("c", 7))]);
    let expected = [
        "a u1@1 -> a u1@5 (Relist)",
        "- b u1@1 (Relist)",
        "+ b u2@6 (Watch)",
        "- b u2@6 (Watch)",
        "+ b u3@7 (Relist)",
        "+ c u1@7 (Watch)",
        "- c u1@7 (Watch)",
    ];
    assert_eq!(drained(&mut backlog), expected);
}

#[test]
fn lis_08_brief_lives_beyond_the_bound_are_dropped_oldest_first_and_counted() {
    let mut backlog = Backlog::starting_from(Policy::Coalesce, [], Snapshot::empty()).with_brief_lives(3);
    backlog.is_under_way = true;
    for number in 1..=5_u64 {
        let job = object(&format!("job-{number}"), number);
        record(&mut backlog, &[added(&job), deleted(&job)]);
    }
    assert_eq!((backlog.stats().dropped, backlog.stats().events), (4, 6));
    let delivered = drain(&mut backlog, 64);
    assert_eq!(delivered.first().map(text_of), Some("+ job-3 u1@3 (Watch)".to_owned()));
    assert_eq!(delivered.len(), 6);
}

#[test]
fn lis_08_keys_that_come_and_go_while_a_cursor_waits_cost_no_more_than_the_bound() {
    let objects: Vec<_> = (1..=10).map(|number| object(&format!("ns/pod-{number:02}"), number)).collect();
    let mut backlog = joined(snapshot(&objects)).with_brief_lives(100);
    for number in 1..=1_000 {
        let job = object(&format!("ns/job-{number:04}"), number + 10);
        record(&mut backlog, &[added(&job), deleted(&job)]);
    }
    let stats = backlog.stats();
    assert_eq!((stats.events, stats.cursors, stats.dropped), (200, 1, 1_800));
    let delivered = drain(&mut backlog, 64);
    assert_eq!(delivered.iter().filter(|change| matches!(change, Change::Deleted { .. })).count(), 100);
    assert_eq!(delivered.len(), 210);
}

#[test]
fn inf_38_what_was_in_the_first_list_and_is_gone_before_its_turn_is_no_brief_life() {
    let mut backlog = Backlog::starting_from(Policy::Coalesce, [SourceId::default()], Snapshot::empty());
    let listed = object("a", 3);
    list(&mut backlog, &snapshot([&listed]), Cause::InitialList);
    record(&mut backlog, &[deleted(&listed)]);
    assert!(drained(&mut backlog).is_empty(), "it was in the list and gone before its turn");
}

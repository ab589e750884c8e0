//! One test per scenario of the contract that a backlog alone can prove, and the sentences beyond it.

use std::time::Duration;

use super::super::invariants::Replay;
use super::super::{Backlog, CHUNK, CURSORS};
use super::{added, busy, deleted, drain, drained, joined, record, rewound, snapshot, text_of, updated};
use crate::meta::Object;
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{key, life, object};

fn many(count: u64) -> Vec<Object<String>> {
    (0..count).map(|number| object(&format!("ns-{}/pod-{number:04}", number % 7), number + 1)).collect()
}

fn told(backlog: &mut Backlog<String>, max: usize) -> Vec<String> {
    backlog.take(max).iter().map(text_of).collect()
}

#[test]
fn inf_02_a_late_joiner_receives_the_whole_snapshot_and_then_later_events() {
    let (a, b, c) = (object("a", 1), object("b", 2), object("c", 3));
    let mut backlog = joined(snapshot([&a, &b]));
    record(&mut backlog, &[added(&c)]);
    let expected = ["+ a u1@1 (InitialList)", "+ b u1@2 (InitialList)", "+ c u1@3 (InitialList)"];
    assert_eq!(drained(&mut backlog), expected);
}

// INF-17: given a `Coalesce` subscriber that is busy and create then update of an object, when drained, then
// it receives one Added with the updated object.
#[test]
fn inf_17_created_and_updated_before_it_is_delivered_is_one_added_with_the_update() {
    let (one, two) = (object("a", 1), object("a", 2));
    let mut backlog = busy();
    record(&mut backlog, &[added(&one), updated(&one, &two)]);
    assert_eq!(drained(&mut backlog), ["+ a u1@2 (Watch)"]);
}

#[test]
fn inf_27_initial_events_are_delivered_when_the_last_of_them_is_acknowledged() {
    let objects = many(100);
    let mut backlog = joined(snapshot(&objects));
    assert_eq!(backlog.take(99).len(), 99);
    backlog.acknowledge();
    assert!(!backlog.initial_delivered(), "one was not even taken");
    assert_eq!(backlog.take(64).len(), 1);
    assert!(!backlog.initial_delivered(), "the last one was taken and not handled");
    backlog.acknowledge();
    assert!(backlog.initial_delivered());
    record(&mut backlog, &[deleted(&objects[0])]);
    assert!(backlog.initial_delivered(), "latched");
}

#[test]
fn a_subscription_that_begins_empty_has_its_initial_events_at_once() {
    assert!(joined(Snapshot::empty()).initial_delivered());
}

#[test]
fn initial_events_that_were_annulled_keep_nobody_waiting() {
    let objects = many(3);
    let mut backlog = joined(snapshot(&objects));
    assert_eq!(backlog.take(1).len(), 1);
    record(&mut backlog, &[deleted(&objects[2])]);
    backlog.acknowledge();
    assert!(!backlog.initial_delivered());
    assert_eq!(backlog.take(64).len(), 1, "the last one is not owed any more");
    backlog.acknowledge();
    assert!(backlog.initial_delivered());
}

// INF-38: given 100,000 objects and 50 stalled subscribers that joined after the first list or before it,
// when the heap is measured, then the replay costs a cursor each, no queued events, also while every object
// changes twice; a key of the list deleted before the cursor reaches it is not delivered, and no Updated or
// Deleted comes before its Added.
// - a the replay costs a cursor each, no queued events
// - b with 100,000 objects and 50 stalled late joiners:
//   `lis_10_and_wl_20_and_inf_38_and_ref_31_and_lst_02_memory_stays_within_the_bounds_of_the_contract`
// - c a key of the list deleted before the cursor reaches it is not delivered
// - d no Updated or Deleted comes before its Added
#[test]
fn inf_38_a_late_joiner_costs_a_cursor_and_never_receives_what_was_gone_before_its_turn() {
    let objects = many(1_000);
    let now = snapshot(&objects);
    let mut joiners: Vec<Backlog<String>> = (0..50).map(|_| joined(now.clone())).collect();
    let costs = |joiner: &Backlog<String>| (joiner.stats().events, joiner.stats().cursors) == (0, 1);
    assert!(joiners.iter().all(costs), "no queued events");

    let (gone, newer) = (&objects[999], object("ns-0/pod-0994", 2_000));
    for joiner in &mut joiners {
        record(joiner, &[deleted(gone), updated(&objects[994], &newer)]);
        assert!(costs(joiner), "nor for what has changed since");
        let delivered = drain(joiner, 64);
        assert_eq!(delivered.len(), 999);
        assert!(delivered.iter().all(|change| change.key() != gone.key()));
        assert!(delivered.iter().any(|change| text_of(change) == "+ ns-0/pod-0994 u1@2000 (InitialList)"));
    }
}

// LIS-02: given a subscriber that keeps up, when events e1..en are delivered, then it sees them in that
// order, one at a time; one that lags sees each key's in order.
// - a one that keeps up sees e1..en in that order
// - b one at a time: `lis_13_an_async_closure_is_called_when_the_last_call_has_ended_and_in_order`
// - c one that lags sees each key's in order
#[test]
fn lis_02_who_keeps_up_sees_events_in_order_and_who_lags_sees_each_keys_in_order() {
    let (a, b, c) = (object("a", 1), object("b", 2), object("c", 3));
    let (newer_a, newest_b) = (object("a", 4), object("b", 6));
    let events =
        [added(&c), added(&a), updated(&a, &newer_a), added(&b), updated(&b, &newest_b), deleted(&c)];

    let mut prompt = busy();
    let mut seen = Vec::new();
    for event in &events {
        record(&mut prompt, std::slice::from_ref(event));
        seen.extend(told(&mut prompt, 64));
    }
    assert_eq!(seen, events.iter().map(text_of).collect::<Vec<_>>());

    let mut late = busy();
    record(&mut late, &events);
    let expected = ["+ c u1@3 (Watch)", "- c u1@3 (Watch)", "+ a u1@4 (Watch)", "+ b u1@6 (Watch)"];
    assert_eq!(drained(&mut late), expected);
}

#[test]
fn an_entry_keeps_the_place_of_its_first_event() {
    let (a, b, newer) = (object("b", 1), object("a", 2), object("b", 3));
    let mut backlog = busy();
    record(&mut backlog, &[added(&a), added(&b), updated(&a, &newer)]);
    assert_eq!(drained(&mut backlog), ["+ b u1@3 (Watch)", "+ a u1@2 (Watch)"]);
}

#[test]
fn lis_08_a_stalled_subscriber_is_behind_on_keys_and_not_on_events() {
    let mut backlog = busy();
    let mut live: Vec<Option<Object<String>>> = vec![None; 100];
    let mut changes = Vec::new();
    for number in 1..=100_000_u64 {
        let slot = (number.wrapping_mul(2_654_435_761) % 100) as usize;
        let key = format!("default/pod-{slot:02}");
        let next = (number % 3 != 0).then(|| life(&key, &format!("u{}", number % 11), number));
        changes.extend(match (live[slot].take(), &next) {
            (None, None) => vec![],
            (None, Some(new)) => vec![added(new)],
            (Some(old), None) => vec![deleted(&old)],
            (Some(old), Some(new)) if old.is_same_life_as(new) => vec![updated(&old, new)],
            (Some(old), Some(new)) => vec![deleted(&old), added(new)],
        });
        live[slot] = next;
        if changes.len() >= 249 {
            backlog.set_now(Duration::from_millis(number));
            record(&mut backlog, &std::mem::take(&mut changes));
            assert!(
                backlog.stats().events <= 300,
                "at most a brief life and an Added a key that was never delivered"
            );
        }
    }
    record(&mut backlog, &changes);
    let stats = backlog.stats();
    assert_eq!(stats.depth, 100);
    let delivered = drain(&mut backlog, 64);
    let mut replay = Replay::default();
    delivered.iter().for_each(|change| replay.apply(change).expect("a change that fits"));
    assert_eq!(replay.equals(&backlog.newest), Ok(()));
    assert!(stats.coalesced > 60_000 && stats.oldest.is_some() && stats.oldest_since.is_some(), "{stats:?}");
}

#[test]
fn lis_08_keys_that_are_not_live_wait_only_while_a_deleted_or_a_brief_life_waits() {
    let name = |slot: usize| format!("default/pod-{slot:02}");
    let delivered: Vec<_> = (0..50).map(|slot| object(&name(slot), 1)).collect();
    let mut live: Vec<Option<Object<String>>> = delivered.iter().cloned().map(Some).collect();
    live.resize(100, None);
    let mut backlog = joined(snapshot(&delivered));
    let mut replay = Replay::default();
    drain(&mut backlog, 64).iter().for_each(|change| replay.apply(change).expect("a change that fits"));
    let mut waiting = Vec::new();
    // Each key begins and ends some 600 lives.
    let last = 200_000_u64;
    for number in 2..=last {
        let slot = (number.wrapping_mul(2_654_435_761) >> 7) as usize % 100;
        let next = (number % 3 != 0).then(|| life(&name(slot), &format!("u{}", number % 3), number));
        waiting.extend(match (live[slot].take(), &next) {
            (None, None) => vec![],
            (None, Some(new)) => vec![added(new)],
            (Some(old), None) => vec![deleted(&old)],
            (Some(old), Some(new)) if old.is_same_life_as(new) => vec![updated(&old, new)],
            (Some(old), Some(new)) => vec![deleted(&old), added(new)],
        });
        live[slot] = next;
        if waiting.len() < 249 && number < last {
            continue;
        }
        record(&mut backlog, &std::mem::take(&mut waiting));
        let stats = backlog.stats();
        assert!(stats.depth <= 100 && stats.events <= 400, "{stats:?}");
    }
    let pending = drain(&mut backlog, 64);
    pending.iter().for_each(|change| replay.apply(change).expect("a change that fits"));
    assert_eq!(replay.equals(&backlog.newest), Ok(()), "each live key is owed its newest");
    for slot in 0..100 {
        let of_key = pending.iter().filter(|change| *change.key() == key(&name(slot)));
        let delivered: Vec<bool> = of_key.map(|change| change.object().is_some()).collect();
        assert!(delivered.len() <= 4, "a Deleted, a brief life, an Added");
    }
}

#[test]
fn an_idle_backlog_is_small() {
    assert!(size_of::<Backlog<String>>() < 512);
    let stats = busy().stats();
    assert_eq!((stats.depth, stats.cursors, stats.oldest, stats.oldest_since), (0, 0, None, None));
}

#[test]
fn every_change_is_delivered_or_coalesced_or_pending() {
    let (one, two, reborn) = (object("a", 1), object("a", 2), life("a", "u2", 3));
    let mut backlog = busy();
    let balance = |backlog: &Backlog<String>| {
        let stats = backlog.stats();
        (stats.delivered, stats.coalesced, stats.events)
    };
    record(&mut backlog, &[added(&one), updated(&one, &two)]);
    assert_eq!(balance(&backlog), (0, 1, 1));
    assert_eq!(backlog.take(1).len(), 1);
    record(&mut backlog, &[deleted(&two), added(&reborn)]);
    assert_eq!(balance(&backlog), (1, 1, 2));
    record(&mut backlog, &[deleted(&reborn)]);
    assert_eq!(balance(&backlog), (1, 1, 3), "the end of what was delivered, and a brief life");
}

#[test]
fn a_new_life_may_be_delivered_in_two_windows() {
    let (one, reborn) = (object("a", 1), life("a", "u2", 3));
    let mut backlog = joined(snapshot([&one]));
    backlog.take(1);
    record(&mut backlog, &[deleted(&one), added(&reborn)]);
    assert_eq!(told(&mut backlog, 1), ["- a u1@1 (Watch)"]);
    record(&mut backlog, &[deleted(&reborn)]);
    assert_eq!(drained(&mut backlog), ["+ a u2@3 (Watch)", "- a u2@3 (Watch)"]);
}

#[test]
fn rf_09_a_resync_delivers_every_object_again_unless_a_change_of_it_is_delivered() {
    let (a, b, c) = (object("a", 1), object("b", 2), object("c", 3));
    let newer = object("b", 4);
    let mut backlog = joined(snapshot([&a, &b]));
    drain(&mut backlog, 64);
    backlog.acknowledge();
    record(&mut backlog, &[added(&c)]);
    backlog.resync();
    record(&mut backlog, &[updated(&b, &newer)]);
    let expected = [
        "+ c u1@3 (Watch)",
        "a u1@1 -> a u1@1 (Resync)",
        "c u1@3 -> c u1@3 (Resync)",
        "b u1@2 -> b u1@4 (Watch)",
    ];
    assert_eq!(drained(&mut backlog), expected);
}

#[test]
fn what_is_deleted_before_the_resync_reaches_it_is_not_delivered_again() {
    let (a, b) = (object("a", 1), object("b", 2));
    let mut backlog = busy();
    record(&mut backlog, &[added(&a), added(&b)]);
    backlog.resync();
    record(&mut backlog, &[deleted(&b)]);
    let expected = ["+ a u1@1 (Watch)", "+ b u1@2 (Watch)", "- b u1@2 (Watch)", "a u1@1 -> a u1@1 (Resync)"];
    assert_eq!(drained(&mut backlog), expected);
}

#[test]
fn a_resync_is_not_started_twice_nor_beside_the_initial_list() {
    let mut backlog = joined(snapshot(&many(10)));
    backlog.take(5);
    backlog.resync();
    assert_eq!(drain(&mut backlog, 64).len(), 5, "everything is being delivered anyway");
    backlog.acknowledge();
    backlog.resync();
    backlog.take(5);
    backlog.resync();
    assert_eq!(drain(&mut backlog, 64).len(), 5);
}

// LIS-18: given a Resync and a change of a key that comes before the Resync gets there, when delivered, then
// one event with the change's cause; a change that waited before the Resync was asked for is delivered before
// it (no set of delivered keys is kept, and no change waits for a Resync).
// - a a change that comes before the Resync gets to its key is delivered alone
// - b one that waited before is delivered first:
//   `lis_18_a_change_that_waited_before_a_resync_was_asked_for_is_delivered_first`
#[test]
fn lis_18_a_change_that_comes_before_the_resync_gets_to_its_key_is_delivered_and_no_resync() {
    let (a, b, c) = (object("a", 1), object("b", 2), object("c", 3));
    let mut backlog = joined(snapshot([&a, &b, &c]));
    drain(&mut backlog, 64);
    backlog.acknowledge();
    backlog.resync();
    record(&mut backlog, &[updated(&a, &object("a", 4)), deleted(&b)]);
    let expected = ["c u1@3 -> c u1@3 (Resync)", "a u1@1 -> a u1@4 (Watch)", "- b u1@2 (Watch)"];
    assert_eq!(drained(&mut backlog), expected);
}

#[test]
fn lis_18_a_change_that_waited_before_a_resync_was_asked_for_is_delivered_first() {
    let (a, newer) = (object("a", 1), object("a", 3));
    let mut backlog = joined(snapshot([&a]));
    drain(&mut backlog, 64);
    backlog.acknowledge();
    backlog.is_under_way = true;
    record(&mut backlog, &[updated(&a, &newer)]);
    backlog.resync();
    assert_eq!(drained(&mut backlog), ["a u1@1 -> a u1@3 (Watch)", "a u1@3 -> a u1@3 (Resync)"]);
}

#[test]
fn a_change_that_was_delivered_while_a_resync_runs_is_not_delivered_again_by_it() {
    let objects = many(10);
    let mut backlog = joined(snapshot(&objects));
    drain(&mut backlog, 64);
    backlog.acknowledge();
    backlog.resync();
    assert_eq!(backlog.take(2).len(), 2);
    let (old, newer) = (&objects[9], object("ns-2/pod-0009", 20));
    record(&mut backlog, &[updated(old, &newer)]);
    let lines = drained(&mut backlog);
    assert_eq!(lines.iter().filter(|line| line.contains("pod-0009")).count(), 1, "{lines:?}");
    assert_eq!(lines.len(), 8);
}

#[test]
fn inf_43_after_a_restart_only_true_differences_are_delivered() {
    let (a, b, c) = (object("a", 1), object("b", 2), object("c", 3));
    let (newer, reborn) = (object("a", 5), life("b", "u2", 6));
    let seen = snapshot([&a, &b, &c]);
    let mut backlog = joined(seen);
    drain(&mut backlog, 64);
    backlog.reattach(snapshot([&newer, &reborn, &c]));
    let expected = ["a u1@1 -> a u1@5 (Relist)", "- b u1@2 (Relist)", "+ b u2@6 (Relist)"];
    assert_eq!(drained(&mut backlog), expected);
    backlog.reattach(backlog.newest.clone());
    assert!(backlog.is_empty(), "nothing happened, nothing is pending");
}

#[test]
fn a_restart_that_coincides_with_a_rewind_delivers_what_was_rewritten_under_equal_versions() {
    let (a, b) = (object("a", 1), object("b", 2));
    let rewritten = Object::new(a.cached_meta().clone(), "as it was in the backup".to_owned());
    let mut backlog = joined(snapshot([&a, &b]));
    drain(&mut backlog, 64);
    backlog.reattach(rewound(&snapshot([&a, &b]), [&rewritten]));
    let delivered = drain(&mut backlog, 64);
    assert_eq!(delivered.iter().map(text_of).collect::<Vec<_>>(), ["a u1@1 -> a u1@1 (Rewind)"]);
    assert_eq!(delivered[0].object().map(|object| object.body().as_str()), Some("as it was in the backup"));
}

#[test]
fn a_restart_that_hides_a_rewind_is_delivered_also_for_a_key_whose_deletion_waited() {
    let (a, b) = (object("a", 1), object("b", 2));
    let rewritten = Object::new(a.cached_meta().clone(), "as it was in the backup".to_owned());
    let mut backlog = joined(snapshot([&a, &b]));
    drain(&mut backlog, 64);
    record(&mut backlog, &[deleted(&a)]);
    backlog.reattach(rewound(&snapshot([&b]), [&rewritten]));
    let delivered = drain(&mut backlog, 64);
    assert_eq!(delivered.iter().map(text_of).collect::<Vec<_>>(), ["- a u1@1 (Watch)", "+ a u1@1 (Relist)"]);
    assert_eq!(delivered[1].object().map(|object| object.body().as_str()), Some("as it was in the backup"));
}

#[test]
fn a_restart_under_a_late_joiner_delivers_nothing_that_is_already_old() {
    let (a, b, newer) = (object("a", 1), object("b", 2), object("a", 5));
    let seen = snapshot([&a, &b]);
    let mut backlog = joined(seen);
    backlog.reattach(snapshot([&newer]));
    assert_eq!(drained(&mut backlog), ["+ a u1@5 (InitialList)"]);
}

#[test]
fn cursors_stay_few_however_often_the_group_restarts_under_a_slow_subscriber() {
    let mut backlog = joined(snapshot(&many(40)));
    let mut replay = Replay::default();
    for number in 0..100 {
        let newer = many(40).into_iter().map(|old| object(&old.key().to_string(), 1_000 + number));
        backlog.reattach(snapshot(&newer.collect::<Vec<_>>()));
        assert!(backlog.stats().cursors <= CURSORS && backlog.stats().events <= 2 * 40);
        let delivered = backlog.take(3);
        delivered.iter().for_each(|change| replay.apply(change).expect("a change that fits"));
    }
    drain(&mut backlog, CHUNK).iter().for_each(|change| replay.apply(change).expect("a change that fits"));
    assert_eq!(replay.equals(&backlog.newest), Ok(()));
}

#[test]
fn taking_nothing_changes_nothing() {
    let mut backlog = joined(snapshot(&many(3)));
    assert!(backlog.take(0).is_empty());
    assert_eq!(backlog.stats().depth, 3);
}

#[test]
fn the_age_of_a_backlog_is_that_of_its_oldest_debt() {
    let mut backlog = busy();
    backlog.set_now(Duration::from_secs(1));
    record(&mut backlog, &[added(&object("a", 1))]);
    backlog.set_now(Duration::from_secs(2));
    backlog.reattach(snapshot([&object("b", 2)]));
    assert_eq!(backlog.stats().oldest_since, Some(Duration::from_secs(1)));
    backlog.take(1);
    assert_eq!(backlog.stats().oldest_since, Some(Duration::from_secs(2)));
}

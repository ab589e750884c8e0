//! One test per scenario of the contract that a backlog alone can prove, and the sentences beyond it.

use std::time::Duration;

use super::super::invariants::Replay;
use super::super::{Backlog, CHUNK, CURSORS};
use super::{added, deleted, drain, drained, snapshot, tell, updated};
use crate::delta::Change;
use crate::meta::Object;
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{life, object};

fn many(count: u64) -> Vec<Object<String>> {
    (0..count).map(|number| object(&format!("ns-{}/pod-{number:04}", number % 7), number + 1)).collect()
}

fn told(backlog: &mut Backlog<String>, max: usize) -> Vec<String> {
    backlog.take(max).iter().map(tell).collect()
}

fn empty() -> Backlog<String> {
    Backlog::starting_from(Snapshot::empty())
}

#[test]
fn inf_02_a_late_joiner_is_told_the_whole_snapshot_and_then_later_events() {
    let (a, b, c) = (object("a", 1), object("b", 2), object("c", 3));
    let mut backlog = Backlog::starting_from(snapshot([&a, &b]));
    backlog.record(&[added(&c)]);
    let expected = ["+ a u1@1 (InitialList)", "+ b u1@2 (InitialList)", "+ c u1@3 (Watch)"];
    assert_eq!(drained(&mut backlog), expected);
}

#[test]
fn inf_17_created_and_updated_before_it_is_told_is_one_added_with_the_update() {
    let (one, two) = (object("a", 1), object("a", 2));
    let mut backlog = empty();
    backlog.record(&[added(&one), updated(&one, &two)]);
    assert_eq!(drained(&mut backlog), ["+ a u1@2 (Watch)"]);
}

#[test]
fn inf_27_initial_events_are_delivered_when_the_last_of_them_is_acknowledged() {
    let objects = many(100);
    let mut backlog = Backlog::starting_from(snapshot(&objects));
    assert_eq!(backlog.take(99).len(), 99);
    backlog.acknowledge();
    assert!(!backlog.initial_delivered(), "one was not even taken");
    assert_eq!(backlog.take(64).len(), 1);
    assert!(!backlog.initial_delivered(), "the last one was taken and not handled");
    backlog.acknowledge();
    assert!(backlog.initial_delivered());
    backlog.record(&[deleted(&objects[0])]);
    assert!(backlog.initial_delivered(), "latched");
}

#[test]
fn a_subscription_that_begins_empty_has_its_initial_events_at_once() {
    assert!(empty().initial_delivered());
}

#[test]
fn initial_events_that_were_annulled_keep_nobody_waiting() {
    let (a, b) = (object("a", 1), object("b", 2));
    let mut backlog = Backlog::starting_from(snapshot([&a, &b]));
    assert_eq!(told(&mut backlog, 1), ["+ a u1@1 (InitialList)"]);
    backlog.acknowledge();
    assert!(!backlog.initial_delivered());
    backlog.record(&[deleted(&b)]);
    assert!(backlog.initial_delivered(), "b is not owed any more");
}

#[test]
fn inf_38_a_late_joiner_costs_a_cursor_and_is_never_told_what_was_gone_before_its_turn() {
    let objects = many(1_000);
    let now = snapshot(&objects);
    let mut joiners: Vec<Backlog<String>> = (0..50).map(|_| Backlog::starting_from(now.clone())).collect();
    let costs = joiners.iter().map(Backlog::stats).all(|stats| (stats.events, stats.cursors) == (0, 1));
    assert!(costs, "no queued events");

    let (gone, newer) = (&objects[999], object("ns-0/pod-0994", 2_000));
    for joiner in &mut joiners {
        joiner.record(&[deleted(gone), updated(&objects[994], &newer)]);
        assert_eq!(joiner.stats().events, 1, "only what was updated is written out");
        let told = drain(joiner, 64);
        assert_eq!(told.len(), 999);
        assert!(told.iter().all(|change| change.key() != gone.key()));
        assert_eq!(tell(&told[0]), "+ ns-0/pod-0994 u1@2000 (InitialList)");
    }
}

#[test]
fn keys_that_come_and_go_while_a_cursor_waits_leave_no_trace() {
    let objects = many(10);
    let mut backlog = Backlog::starting_from(snapshot(&objects));
    for number in 1..=1_000 {
        let short_lived = object(&format!("job-{number}"), number);
        backlog.record(&[added(&short_lived), deleted(&short_lived)]);
    }
    let stats = backlog.stats();
    assert_eq!((stats.depth, stats.events, stats.coalesced), (10, 0, 2_000));
}

#[test]
fn lis_02_who_keeps_up_sees_events_in_order_and_who_lags_sees_each_keys_in_order() {
    let (a, b, c) = (object("a", 1), object("b", 2), object("c", 3));
    let (newer_a, newest_b) = (object("a", 4), object("b", 6));
    let events =
        [added(&c), added(&a), updated(&a, &newer_a), added(&b), updated(&b, &newest_b), deleted(&c)];

    let mut prompt = empty();
    let mut seen = Vec::new();
    for event in &events {
        prompt.record(std::slice::from_ref(event));
        seen.extend(told(&mut prompt, 64));
    }
    assert_eq!(seen, events.iter().map(tell).collect::<Vec<_>>());

    let mut late = empty();
    late.record(&events);
    assert_eq!(drained(&mut late), ["+ a u1@4 (Watch)", "+ b u1@6 (Watch)"]);
}

#[test]
fn an_entry_keeps_the_place_of_its_first_event() {
    let (a, b, newer) = (object("b", 1), object("a", 2), object("b", 3));
    let mut backlog = empty();
    backlog.record(&[added(&a), added(&b), updated(&a, &newer)]);
    assert_eq!(drained(&mut backlog), ["+ b u1@3 (Watch)", "+ a u1@2 (Watch)"]);
}

#[test]
fn lis_08_a_stalled_subscriber_is_behind_on_keys_and_not_on_events() {
    let mut backlog = empty();
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
            backlog.record(&std::mem::take(&mut changes));
            assert!(backlog.stats().events <= 200, "at most a Deleted and an Added a key");
        }
    }
    backlog.record(&changes);
    let stats = backlog.stats();
    let is_live = |key: &_| live.iter().flatten().any(|object: &Object<String>| object.key() == key);
    assert!(
        backlog.pending.iter().all(|(key, _)| is_live(key)),
        "nothing was ever told, so only live keys wait"
    );
    assert_eq!(stats.depth, live.iter().flatten().count());
    assert!(stats.coalesced > 60_000 && stats.oldest.is_some() && stats.oldest_since.is_some(), "{stats:?}");
}

#[test]
fn lis_08_keys_that_are_not_live_are_pending_only_while_a_deleted_is_owed() {
    let name = |slot: usize| format!("default/pod-{slot:02}");
    let told: Vec<_> = (0..50).map(|slot| object(&name(slot), 1)).collect();
    let mut live: Vec<Option<Object<String>>> = told.iter().cloned().map(Some).collect();
    live.resize(100, None);
    let mut backlog = Backlog::starting_from(snapshot(&told));
    assert_eq!(drain(&mut backlog, 64).len(), 50);
    for number in 2..=1_000_000_u64 {
        let slot = (number.wrapping_mul(2_654_435_761) >> 7) as usize % 100;
        let next = (number % 3 != 0).then(|| life(&name(slot), &format!("u{}", number % 3), number));
        let changes = match (live[slot].take(), &next) {
            (None, None) => vec![],
            (None, Some(new)) => vec![added(new)],
            (Some(old), None) => vec![deleted(&old)],
            (Some(old), Some(new)) if old.is_same_life_as(new) => vec![updated(&old, new)],
            (Some(old), Some(new)) => vec![deleted(&old), added(new)],
        };
        live[slot] = next;
        backlog.record(&changes);
        let stats = backlog.stats();
        assert!(stats.depth <= 100 && stats.events <= 200, "{stats:?}");
    }
    let expected = (0..100).filter(|slot| *slot < 50 || live[*slot].is_some()).count();
    assert_eq!(
        backlog.stats().depth,
        expected,
        "told ones, live or gone, and live ones that were never told"
    );
    let owed = drain(&mut backlog, 64);
    let deletions: Vec<_> = owed.iter().filter(|change| change.object().is_none()).collect();
    assert!(deletions.iter().all(|change| told.iter().any(|told| told.key() == change.key())));
    let gone = live[..50].iter().filter(|live| live.is_none()).count();
    assert!(gone > 5 && deletions.len() >= gone, "{} deletions, {gone} gone", deletions.len());
    let still =
        owed.iter().filter_map(Change::object).map(Object::key).collect::<std::collections::BTreeSet<_>>();
    assert!(live.iter().flatten().all(|live| still.contains(live.key())), "each live key is owed its newest");
}

#[test]
fn an_idle_backlog_is_small() {
    assert!(size_of::<Backlog<String>>() < 512);
    let stats = empty().stats();
    assert_eq!((stats.depth, stats.cursors, stats.oldest, stats.oldest_since), (0, 0, None, None));
}

#[test]
fn every_change_is_told_or_coalesced_or_pending() {
    let (one, two, reborn) = (object("a", 1), object("a", 2), life("a", "u2", 3));
    let mut backlog = empty();
    let balance = |backlog: &Backlog<String>| {
        let stats = backlog.stats();
        (stats.delivered, stats.coalesced, stats.events)
    };
    backlog.record(&[added(&one), updated(&one, &two)]);
    assert_eq!(balance(&backlog), (0, 1, 1));
    assert_eq!(backlog.take(1).len(), 1);
    backlog.record(&[deleted(&two), added(&reborn)]);
    assert_eq!(balance(&backlog), (1, 1, 2));
    backlog.record(&[deleted(&reborn)]);
    assert_eq!(balance(&backlog), (1, 3, 1));
}

#[test]
fn a_new_life_may_be_told_in_two_bites() {
    let (one, reborn) = (object("a", 1), life("a", "u2", 3));
    let mut backlog = Backlog::starting_from(snapshot([&one]));
    backlog.take(1);
    backlog.record(&[deleted(&one), added(&reborn)]);
    assert_eq!(told(&mut backlog, 1), ["- a u1@1 (Watch)"]);
    backlog.record(&[deleted(&reborn)]);
    assert!(backlog.is_empty(), "the new life was never told");
}

#[test]
fn rf_09_a_resync_tells_every_object_again_unless_a_change_of_it_is_told() {
    let (a, b, c) = (object("a", 1), object("b", 2), object("c", 3));
    let newer = object("b", 4);
    let mut backlog = Backlog::starting_from(snapshot([&a, &b]));
    drain(&mut backlog, 64);
    backlog.record(&[added(&c)]);
    backlog.resync(snapshot([&a, &b, &c]));
    backlog.record(&[updated(&b, &newer)]);
    let expected = ["+ c u1@3 (Watch)", "a u1@1 -> a u1@1 (Resync)", "b u1@2 -> b u1@4 (Watch)"];
    assert_eq!(drained(&mut backlog), expected);
}

#[test]
fn what_is_deleted_before_the_resync_reaches_it_is_not_told_again() {
    let (a, b) = (object("a", 1), object("b", 2));
    let mut backlog = empty();
    backlog.record(&[added(&a), added(&b)]);
    backlog.resync(snapshot([&a, &b]));
    backlog.record(&[deleted(&b)]);
    assert_eq!(drained(&mut backlog), ["+ a u1@1 (Watch)"]);
}

#[test]
fn a_resync_is_not_started_twice_nor_beside_the_initial_list() {
    let objects = many(10);
    let now = snapshot(&objects);
    let mut backlog = Backlog::starting_from(now.clone());
    backlog.take(5);
    backlog.resync(now.clone());
    assert_eq!(drain(&mut backlog, 64).len(), 5, "everything is being told anyway");
    backlog.resync(now.clone());
    backlog.take(5);
    backlog.resync(now);
    assert_eq!(drain(&mut backlog, 64).len(), 5);
}

#[test]
fn inf_43_after_a_restart_only_true_differences_are_told() {
    let (a, b, c) = (object("a", 1), object("b", 2), object("c", 3));
    let (newer, reborn) = (object("a", 5), life("b", "u2", 6));
    let seen = snapshot([&a, &b, &c]);
    let mut backlog = Backlog::starting_from(seen.clone());
    drain(&mut backlog, 64);
    backlog.reattach(seen.clone(), snapshot([&newer, &reborn, &c]));
    let expected = ["a u1@1 -> a u1@5 (Relist)", "- b u1@2 (Relist)", "+ b u2@6 (Relist)"];
    assert_eq!(drained(&mut backlog), expected);
    backlog.reattach(seen.clone(), seen);
    assert!(backlog.is_empty(), "nothing happened, nothing is owed");
}

#[test]
fn a_restart_that_coincides_with_a_rewind_tells_what_was_rewritten_under_equal_versions() {
    let (a, b) = (object("a", 1), object("b", 2));
    let rewritten = Object::new(a.meta().clone(), "as it was in the backup".to_owned());
    let mut backlog = Backlog::starting_from(snapshot([&a, &b]));
    drain(&mut backlog, 64);
    backlog.reattach(snapshot([&a, &b]), snapshot([&rewritten, &b]));
    let told = drain(&mut backlog, 64);
    assert_eq!(told.iter().map(tell).collect::<Vec<_>>(), ["a u1@1 -> a u1@1 (Rewind)"]);
    assert_eq!(told[0].object().map(|object| object.body().as_str()), Some("as it was in the backup"));
}

#[test]
fn a_restart_that_hides_a_rewind_is_told_also_of_a_key_whose_deletion_waited() {
    let (a, b) = (object("a", 1), object("b", 2));
    let rewritten = Object::new(a.meta().clone(), "as it was in the backup".to_owned());
    let mut backlog = Backlog::starting_from(snapshot([&a, &b]));
    drain(&mut backlog, 64);
    backlog.record(&[deleted(&a)]);
    backlog.reattach(snapshot([&b]), snapshot([&rewritten, &b]));
    let told = drain(&mut backlog, 64);
    assert_eq!(told.iter().map(tell).collect::<Vec<_>>(), ["a u1@1 -> a u1@1 (Rewind)"]);
    assert_eq!(told[0].object().map(|object| object.body().as_str()), Some("as it was in the backup"));
}

#[test]
fn a_restart_under_a_late_joiner_tells_nothing_that_is_already_old() {
    let (a, b, newer) = (object("a", 1), object("b", 2), object("a", 5));
    let seen = snapshot([&a, &b]);
    let mut backlog = Backlog::starting_from(seen.clone());
    backlog.reattach(seen, snapshot([&newer]));
    assert_eq!(drained(&mut backlog), ["+ a u1@5 (InitialList)"]);
}

#[test]
fn cursors_stay_few_however_often_the_group_restarts_under_a_stalled_subscriber() {
    let objects = many(40);
    let mut seen = snapshot(&objects);
    let mut backlog = Backlog::starting_from(seen.clone());
    for number in 0..100 {
        let newer = many(40).into_iter().map(|old| object(&old.key().to_string(), 1_000 + number));
        let now = snapshot(&newer.collect::<Vec<_>>());
        backlog.reattach(seen, now.clone());
        seen = now;
        assert!(backlog.stats().cursors <= CURSORS && backlog.stats().events <= 2 * 40);
    }
    let mut replay = Replay::default();
    for change in drain(&mut backlog, CHUNK) {
        replay.tell(&change).expect("a change that fits");
    }
    assert_eq!((replay.told(), replay.equals(&seen)), (40, Ok(())));
}

#[test]
fn taking_nothing_changes_nothing() {
    let mut backlog = Backlog::starting_from(snapshot(&many(3)));
    assert!(backlog.take(0).is_empty());
    assert_eq!(backlog.stats().depth, 3);
}

#[test]
fn the_age_of_a_backlog_is_that_of_its_oldest_debt() {
    let mut backlog = empty();
    backlog.set_now(Duration::from_secs(1));
    backlog.record(&[added(&object("a", 1))]);
    backlog.set_now(Duration::from_secs(2));
    backlog.reattach(Snapshot::empty(), snapshot([&object("b", 2)]));
    assert_eq!(backlog.stats().oldest_since, Some(Duration::from_secs(1)));
    backlog.take(1);
    assert_eq!(backlog.stats().oldest_since, Some(Duration::from_secs(2)));
}

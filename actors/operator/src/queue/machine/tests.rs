//! The work queue by the sentences of the contract. `tests/props.rs` compares any history with a naive model.

mod props;
mod retries;
mod shutdown;

use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use super::{Added, ExponentialPerKey, MOST_TURNS, Merge, Priority, QueueMachine, RateLimiter, Taken};
use informer_core::meta::ObjectKey;
use informer_core::reflector::Moment;

const NORMAL: Priority = Priority::Normal;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A queue to which these were added at 0 ms.
fn queue(keys: &[&'static str]) -> QueueMachine<&'static str> {
    let mut queue = QueueMachine::new();
    keys.iter().for_each(|key| {
        queue.add(*key, NORMAL, ms(0));
    });
    queue
}

/// Discards what is to be discarded after a shutdown, and says how many keys that were.
fn discard_all<K: Ord + Clone, P: Merge>(queue: &mut QueueMachine<K, P>) -> usize {
    std::iter::repeat_with(|| queue.discard_some()).take_while(|count| *count > 0).sum()
}

/// Takes until nothing is given, without bringing anything back.
fn take_all<K: Ord + Clone>(queue: &mut QueueMachine<K>, now: Duration) -> Vec<K> {
    let keys = std::iter::from_fn(|| queue.take(now)).map(|taken| taken.key).collect();
    assert_eq!(queue.check(), Ok(()));
    keys
}

// WQ-02: given an item being processed, when added again, then no second worker gets it until Done, then
// exactly one more delivery.
// - a no second worker gets it until Done
// - b then exactly one more delivery
#[test]
fn wq_02_a_key_that_is_added_while_it_is_processed_is_handed_out_exactly_once_more() {
    let mut queue = queue(&["foo"]);
    assert_eq!(take_all(&mut queue, ms(0)), ["foo"]);
    for _ in 0..3 {
        queue.add("foo", NORMAL, ms(1));
    }
    assert_eq!(take_all(&mut queue, ms(1)), [""; 0], "no second worker gets it");
    assert!(queue.done(&"foo", ms(2)));
    assert_eq!(take_all(&mut queue, ms(2)), ["foo"]);
    assert!(queue.done(&"foo", ms(3)) && !queue.done(&"foo", ms(3)));
    assert_eq!(take_all(&mut queue, ms(9_999)), [""; 0]);
}

// WQ-03: given "foo","bar","foo", when Len is read, then 2.
#[test]
fn wq_03_the_length_counts_each_key_once() {
    assert_eq!(queue(&["foo", "bar", "foo"]).len(), 2);
}

// WQ-04: given an item queued twice, when counted, then delivered once, and the second add says that it was
// merged; while processing, the first re-add is accepted and all others are merged (changed: a queue of keys
// has no object to touch).
#[test]
fn wq_04_a_key_that_is_added_twice_is_delivered_once_and_the_second_add_is_said_to_be_merged() {
    let mut queue = QueueMachine::new();
    let added: Vec<_> = (0..2).map(|_| queue.add("foo", NORMAL, ms(0))).collect();
    assert_eq!(added, [Added::Accepted, Added::Merged]);
    assert_eq!(take_all(&mut queue, ms(0)), ["foo"]);
    let added: Vec<_> = (0..2).map(|_| queue.add("foo", NORMAL, ms(0))).collect();
    assert_eq!(added, [Added::Accepted, Added::Merged], "one add for the delivery after this one");
    assert_eq!(queue.figures(ms(0)).adds, 2);
}

// WQ-09: given an item added, got and done, when GC/refcount is checked, then the queue holds no reference.
#[test]
fn wq_09_nothing_refers_to_a_key_that_is_done() {
    let (key, mut queue) = (Rc::new(7), QueueMachine::new());
    queue.add(Rc::clone(&key), NORMAL, ms(0));
    queue.add_after(Rc::clone(&key), ms(5), NORMAL, ms(0));
    drop(queue.take(ms(0)));
    assert!(Rc::strong_count(&key) > 1);
    queue.done(&key, ms(1));
    assert_eq!(Rc::strong_count(&key), 2, "the delayed add");
    drop(queue.take(ms(5)));
    queue.done(&key, ms(6));
    assert_eq!((Rc::strong_count(&key), queue.slots.len()), (1, 0));
}

// WQ-10: given AddAfter 50 ms, when 60 ms pass, then delivered once and not again after the next 10 s
// heartbeat.
// - a delivered once and not again
#[test]
fn wq_10_a_delayed_add_is_delivered_once_when_it_is_due() {
    let mut queue = QueueMachine::new();
    queue.add_after("foo", ms(50), NORMAL, ms(0));
    assert_eq!((queue.len(), queue.next_due()), (0, Some(ms(50))));
    assert_eq!(take_all(&mut queue, ms(49)), [""; 0]);
    assert_eq!(take_all(&mut queue, ms(60)), ["foo"]);
    queue.done(&"foo", ms(60));
    assert_eq!((take_all(&mut queue, ms(10_060)), queue.next_due()), (vec![], None));
}

// WQ-12: given AddAfter(first,1 s), AddAfter(second,50 ms), when 60 ms pass, then second only; third(2 s)
// later arrives last.
// - a second only, third arrives last
// - b the earliest delayed add of a key counts
#[test]
fn wq_12_delayed_adds_are_delivered_in_the_order_of_their_times_and_the_earliest_of_a_key_counts() {
    let mut queue = QueueMachine::new();
    queue.add_after("first", ms(1_000), NORMAL, ms(0));
    queue.add_after("second", ms(50), NORMAL, ms(0));
    assert_eq!(take_all(&mut queue, ms(60)), ["second"]);
    queue.add_after("third", ms(2_000), NORMAL, ms(60));
    assert_eq!(take_all(&mut queue, ms(5_000)), ["first", "third"]);
    assert_eq!(queue.add_after("fourth", ms(100), NORMAL, ms(5_000)), Added::Accepted);
    assert_eq!(queue.add_after("fourth", ms(200), NORMAL, ms(5_000)), Added::Merged);
    assert_eq!(queue.add_after("fourth", ms(50), NORMAL, ms(5_000)), Added::Accepted);
    assert_eq!(queue.next_due(), Some(ms(5_050)));
    assert_eq!(take_all(&mut queue, ms(5_050)), ["fourth"]);
    queue.done(&"fourth", ms(5_050));
    assert_eq!(take_all(&mut queue, ms(9_999)), [""; 0]);
}

#[test]
fn a_plain_add_does_not_take_a_delayed_one_away_and_a_delay_of_for_ever_does_no_harm() {
    let mut queue = QueueMachine::new();
    queue.add_after("foo", ms(50), NORMAL, ms(0));
    queue.add("foo", NORMAL, ms(0));
    queue.add_after("never", Duration::MAX, NORMAL, ms(0));
    assert_eq!(take_all(&mut queue, ms(0)), ["foo"]);
    assert_eq!(take_all(&mut queue, ms(50)), [""; 0], "it is being processed");
    queue.done(&"foo", ms(51));
    let taken = queue.take(ms(52)).expect("what was due meanwhile");
    assert_eq!(taken, Taken { key: "foo", priority: NORMAL, waited: ms(2), note: () });
}

// LIS-42: given a controller that is debounced, or a queue whose keys are postponed, when an object changes,
// then its key is handed out once nothing has come for it in that time, and after ten times as long at most,
// once, and no other key waits for it; a first list, a relist and a trigger are not put off; what is put off
// is discarded, and counted, by a shutdown.
// - a when it has been quiet, others at their time:
//   `lis_42_an_object_that_changes_all_the_time_is_reconciled_when_it_is_quiet_and_others_at_their_time`
// - b at most ten times as long
// - c whatever happens, nothing earlier, and in the end everything:
//   `any_history_is_that_of_the_naive_queue_and_no_key_is_lost_doubled_or_late`
// - d a first list and a trigger are not put off:
//   `lis_42_an_object_that_changes_all_the_time_is_reconciled_when_it_is_quiet_and_others_at_their_time`
// - e a shutdown discards what is put off
#[test]
fn lis_42_a_key_that_is_never_quiet_is_put_off_for_ten_times_as_long_at_most() {
    let mut queue = queue(&[]);
    let quiet = ms(10);
    for millis in 0..150 {
        queue.postpone("foo", quiet, Priority::Normal, ms(millis));
        let handed_out = queue.take(ms(millis)).map(|taken| taken.key);
        assert_eq!(handed_out, (millis == 100).then_some("foo"), "at {millis} ms");
        if handed_out.is_some() {
            queue.done(&"foo", ms(millis));
        }
    }
    queue.add_after("bar", ms(500), Priority::Normal, ms(150));
    queue.postpone("bar", ms(400), Priority::Normal, ms(150));
    assert_eq!(queue.take(ms(549)).map(|taken| taken.key), Some("foo"), "nothing more came for 400 ms");
    queue.postpone("bar", ms(400), Priority::Normal, ms(549));
    assert_eq!(queue.next_due(), Some(ms(650)), "not beyond what was asked for");
    queue.shut_down();
    assert_eq!((discard_all(&mut queue), queue.figures(ms(550)).discarded, queue.next_due()), (1, 1, None));
}

#[test]
fn informer_8_of_200000_keys_that_are_due_at_once_one_call_makes_250_wait() {
    let mut queue = QueueMachine::<u32>::new();
    for key in 0..200_000 {
        queue.postpone(key, ms(10), Priority::Normal, ms(0));
    }
    let mut turns = 0;
    while queue.next_due().is_some() {
        let before = queue.len();
        queue.release_due(ms(10));
        assert!(queue.len() - before <= 250, "a turn of {} keys", queue.len() - before);
        turns += 1;
    }
    assert_eq!((turns, queue.len()), (800, 200_000));
}

// WQ-14: given AddRateLimited twice for x, when inspected, then delays 1 ms then 2 ms, requeues 2; Forget
// resets to 0.
// - a delays 1 ms then 2 ms, requeues 2
// - b Forget resets to 0
// - c a key that is in order before its retry is due is not tried again; what else was asked for stays:
//   `a_key_that_is_in_order_before_its_retry_is_due_is_not_tried_again`
#[test]
fn wq_14_failures_of_a_key_are_counted_delayed_longer_and_longer_and_forgotten() {
    let (mut queue, mut limiter) = (QueueMachine::new(), ExponentialPerKey::new(ms(1), ms(1_000)));
    let moment = Moment { now: ms(0), chance: 0.0 };
    assert_eq!(queue.add_rate_limited("x", NORMAL, &mut limiter, moment), Some(ms(1)));
    assert_eq!(queue.add_rate_limited("x", NORMAL, &mut limiter, moment), Some(ms(2)));
    assert_eq!(limiter.failures(&"x"), 2);
    assert_eq!(queue.retry(&"x", &mut limiter, moment), None, "it is not being processed");
    assert_eq!(take_all(&mut queue, ms(1)), ["x"]);
    let moment = Moment { now: ms(1), chance: 0.0 };
    assert_eq!(queue.retry(&"x", &mut limiter, moment), Some(ms(4)));
    assert_eq!((queue.next_due(), queue.figures(ms(1)).retries), (Some(ms(5)), 3));
    limiter.forget(&"x");
    assert_eq!(limiter.failures(&"x"), 0);
}

#[test]
fn a_key_that_has_failed_counts_as_retried_until_it_is_due_or_was_worked_on_for_another_reason() {
    let (mut queue, mut limiter) = (QueueMachine::new(), ExponentialPerKey::new(ms(100), ms(100)));
    let moment = |now| Moment { now: ms(now), chance: 0.0 };
    let retrying = |queue: &QueueMachine<&str>| queue.figures(ms(0)).retrying;
    queue.add_after("asked", ms(500), NORMAL, ms(0));
    for key in ["due", "changed"] {
        queue.add(key, NORMAL, ms(0));
    }
    for key in take_all(&mut queue, ms(0)) {
        queue.retry(&key, &mut limiter, moment(0));
    }
    assert_eq!((retrying(&queue), queue.figures(ms(0)).delayed), (2, 3));
    queue.add("changed", NORMAL, ms(1));
    assert_eq!((take_all(&mut queue, ms(1)), retrying(&queue)), (vec!["changed"], 2));
    queue.done(&"changed", ms(1));
    assert_eq!((retrying(&queue), queue.figures(ms(1)).delayed), (1, 2));
    assert_eq!((take_all(&mut queue, ms(100)), retrying(&queue)), (vec!["due"], 0));
    queue.retry(&"due", &mut limiter, moment(100));
    queue.shut_down();
    assert_eq!((discard_all(&mut queue), retrying(&queue), queue.check()), (2, 0, Ok(())));
}

// WQ-15: given a named queue, when add, get after 50 us, done after 25 us, then adds=1, depth follows,
// latency 50 us, work 25 us; re-adds while processing count once.
// - a adds, depth, latency 50 us, work 25 us
// - b re-adds while processing count once
// - c the runtime's report lists the queue with its name and its figures:
//   `wq_15_a_runtime_lists_its_queues_with_their_figures_until_they_end`
#[test]
fn wq_15_adds_depth_waits_and_work_are_measured() {
    let us = Duration::from_micros;
    let mut queue = queue(&["foo"]);
    assert_eq!((queue.figures(us(0)).adds, queue.figures(us(0)).depth), (1, [0, 1, 0]));
    queue.take(us(50)).expect("it waits");
    assert_eq!(queue.figures(us(50)).depth, [0, 0, 0]);
    for _ in 0..3 {
        queue.add("foo", NORMAL, us(60));
    }
    queue.done(&"foo", us(75));
    let figures = queue.figures(us(75));
    assert_eq!((figures.adds, figures.depth), (2, [0, 1, 0]), "adds while it is processed count once");
    assert_eq!((figures.waited.count, figures.waited.total, figures.waited.max), (1, us(50), us(50)));
    assert_eq!((figures.worked.count, figures.worked.total), (1, us(25)));
    let first = figures.waited.cumulative().find(|(_, count)| *count == 1).expect("it is in one");
    assert_eq!(first.0, Some(us(50)), "a bucket holds its upper end, too");
    assert_eq!(queue.take(us(100)).map(|taken| taken.waited), Some(us(40)), "from its first add on");
    queue.done(&"foo", us(100));
    queue.add("foo", NORMAL, us(100));
    queue.take(us(200)).expect("it waits");
    let waited = queue.figures(us(200)).waited;
    assert_eq!((waited.count, waited.total, waited.max), (3, us(190), us(100)));
    let at_most_100 = waited.cumulative().find(|(end, _)| *end == Some(us(100)));
    assert_eq!(at_most_100, Some((Some(us(100)), 3)));
    queue.done(&"foo", us(200));
    queue.add("foo", NORMAL, us(200));
    queue.take(us(201)).expect("it waits");
    assert_eq!(queue.figures(us(201)).waited.max, us(100));
}

// WQ-16: given work running 1 ms at metric refresh, when observed, then unfinished seconds and longest
// running are 0.001.
#[test]
fn wq_16_work_that_has_not_ended_is_measured() {
    let mut queue = queue(&["foo", "bar"]);
    queue.take(ms(0)).expect("it waits");
    let figures = queue.figures(ms(1));
    assert_eq!((figures.unfinished, figures.longest_running, figures.processing), (ms(1), ms(1), 1));
    queue.take(ms(3)).expect("it waits");
    let figures = queue.figures(ms(4));
    assert_eq!((figures.unfinished, figures.longest_running), (ms(5), ms(4)));
    queue.done(&"foo", ms(4));
    assert_eq!(queue.figures(ms(4)).longest_running, ms(1));
}

// WQ-20: given low-priority initial items and a steady stream of normal and high ones, when served, then low
// ones have a bounded wait, counted in items handed out, and however old they are they do not go before new
// normal ones together (changed: by age alone a first list of a million keys would go before every later
// change).
// - a bounded in keys that are handed out
// - b a long list of low priority does not hold up new normal keys:
//   `wq_20_old_keys_of_low_priority_do_not_go_before_new_normal_ones`
#[test]
fn wq_20_a_key_of_low_priority_waits_for_at_most_nine_turns_while_others_never_end() {
    let mut queue = QueueMachine::new();
    (0..20_u32).for_each(|key| {
        queue.add(key, Priority::Low, ms(0));
    });
    let mut waited = 0;
    for key in 1_000..1_500_u32 {
        queue.add(key, Priority::Normal, ms(1));
        queue.add(key + 10_000, Priority::High, ms(1));
        let taken = queue.take(ms(2)).expect("keys wait");
        waited = if taken.priority == Priority::Low { 0 } else { waited + 1 };
        assert!(waited < MOST_TURNS || queue.figures(ms(2)).depth[2] == 0);
    }
    assert_eq!(queue.figures(ms(2)).depth[2], 0, "all of them were served");
}

#[test]
fn wq_20_old_keys_of_low_priority_do_not_go_before_new_normal_ones() {
    let mut queue = QueueMachine::new();
    (0..1_000_u32).for_each(|key| {
        queue.add(key, Priority::Low, ms(0));
    });
    let hour = Duration::from_secs(3_600);
    for _ in 0..100 {
        queue.take(hour).expect("keys wait");
    }
    queue.add(7_777, NORMAL, hour);
    assert_eq!(queue.take(hour).map(|taken| taken.key), Some(7_777));
}

#[test]
fn a_waiting_key_moves_to_a_higher_priority_and_never_to_a_lower_one() {
    let mut queue = queue(&["a", "b", "c"]);
    assert_eq!(queue.add("c", Priority::High, ms(0)), Added::Merged);
    assert_eq!(queue.add("a", Priority::Low, ms(0)), Added::Merged);
    queue.check().expect("the lines are in order");
    assert_eq!(take_all(&mut queue, ms(0)), ["c", "a", "b"]);
    queue.add("a", Priority::Low, ms(0));
    queue.add("a", Priority::High, ms(0));
    queue.done(&"a", ms(0));
    assert_eq!(queue.take(ms(0)).map(|taken| taken.priority), Some(Priority::High));
}

#[test]
fn namespaces_take_turns() {
    let mut queue = QueueMachine::by_namespace();
    let keys = ["a/1", "a/2", "a/3", "b/1", "c/1", "b/2"];
    keys.iter().for_each(|key| {
        queue.add(key.parse::<ObjectKey>().expect("a key"), NORMAL, ms(0));
    });
    let taken: Vec<String> = take_all(&mut queue, ms(0)).iter().map(ToString::to_string).collect();
    assert_eq!(taken, ["a/1", "b/1", "c/1", "a/2", "b/2", "a/3"]);
}

/// A key whose order panics when it is told to.
#[derive(Clone, Debug)]
struct Fragile<'a>(u32, &'a AtomicU32);

impl Ord for Fragile<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let left = self.1.load(Relaxed);
        self.1.store(left.saturating_sub(1), Relaxed);
        assert!(left != 1, "an order that panics");
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Fragile<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Fragile<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Fragile<'_> {}

#[test]
fn a_key_for_which_the_lane_order_panics_gets_no_slot_and_a_panic_between_two_keys_changes_nothing() {
    let mut queue = QueueMachine::with_lanes(|one: &u32, other| {
        assert!(*one != 13 && *other != 13 && (*one, *other) != (0, 7), "an order that panics");
        (one % 3).cmp(&(other % 3))
    });
    for key in [13, 0, 1, 13, 2, 7, 3] {
        for delay in [0, 5] {
            let call = std::panic::AssertUnwindSafe(|| queue.add_after(key, ms(delay), NORMAL, ms(0)));
            let panicked = std::panic::catch_unwind(call).is_err();
            assert_eq!(panicked, key == 13 || (key, delay) == (7, 0));
        }
    }
    assert_eq!((queue.check(), queue.slots.len(), queue.len()), (Ok(()), 5, 4));
    assert_eq!([0; 3].map(|_| queue.take(ms(1)).expect("keys wait").key), [0, 1, 2]);
    assert_eq!((queue.check(), take_all(&mut queue, ms(1))), (Ok(()), vec![3]));
    assert_eq!(take_all(&mut queue, ms(5)), [7], "the first key of its lane has gone");
}

#[test]
fn a_panic_in_the_order_of_keys_leaves_a_sound_queue_that_loses_no_key_and_hands_none_out_twice() {
    for call in 0..4 {
        for fuse in 1..12 {
            let left = AtomicU32::new(0);
            let key = |number| Fragile(number, &left);
            let mut queue =
                QueueMachine::with_lanes(|one: &Fragile<'_>, other| (one.0 % 3).cmp(&(other.0 % 3)));
            (0..8).for_each(|number| {
                queue.add(key(number), NORMAL, ms(0));
            });
            queue.add_after(key(8), ms(50), NORMAL, ms(0));
            let taken = [0; 2].map(|_| queue.take(ms(1)).expect("keys wait").key.0);
            queue.add(key(taken[0]), NORMAL, ms(1));
            left.store(fuse, Relaxed);
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match call {
                0 => queue.add(key(9), NORMAL, ms(2)) == Added::Accepted,
                1 => queue.add_after(key(9), ms(5), NORMAL, ms(2)) == Added::Accepted,
                2 => queue.done(&key(taken[1]), ms(2)),
                _ => queue.add(key(7), Priority::High, ms(2)) == Added::Accepted,
            }));
            left.store(0, Relaxed);
            assert_eq!(queue.check(), Ok(()), "call {call}, comparison {fuse}");
            let is_back = call == 2 && (panicked.is_ok() || !queue.is_processing(&key(taken[1])));
            let mut keys: Vec<u32> = take_all(&mut queue, ms(60)).iter().map(|key| key.0).collect();
            assert!(!keys.contains(&taken[0]) && (is_back || !keys.contains(&taken[1])), "single flight");
            queue.done(&key(taken[0]), ms(60));
            keys.extend(take_all(&mut queue, ms(60)).iter().map(|key| key.0));
            keys.sort_unstable();
            let must = (0..9).filter(|number| *number != taken[1]);
            assert!(must.clone().all(|number| keys.contains(&number)), "{keys:?}");
        }
    }
}

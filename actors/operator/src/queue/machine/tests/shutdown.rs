//! How a queue ends: what is still handed out, what is refused, and when it is over.

use super::{NORMAL, discard_all, ms, queue, take_all};
use crate::queue::machine::{Added, ExponentialPerKey, Priority, QueueMachine, RateLimiter};
use informer_core::reflector::Moment;

// WQ-01: given 50 producers x 50 adds and 10 consumers, when shut down, then every item is processed, none
// after shutdown, Len 0.
// - a every item is processed
// - b none after shutdown, Len 0
#[test]
fn wq_01_after_a_shutdown_everything_that_waits_is_handed_out_and_nothing_is_added() {
    let mut queue = QueueMachine::new();
    for (producer, number) in
        (0..50_u32).flat_map(|producer| (0..50_u32).map(move |number| (producer, number)))
    {
        queue.add((producer, number), NORMAL, ms(0));
    }
    queue.shut_down();
    assert_eq!(queue.add((99, 99), NORMAL, ms(0)), Added::Refused);
    assert_eq!(queue.add_after((99, 99), ms(1), NORMAL, ms(0)), Added::Refused);
    assert!(!queue.is_over());
    let keys = take_all(&mut queue, ms(0));
    assert_eq!((keys.len(), queue.len(), queue.figures(ms(0)).refused), (2_500, 0, 2));
    keys.iter().for_each(|key| assert!(queue.done(key, ms(0))));
    assert!(queue.is_over() && queue.check().is_ok());
    assert!(!keys.contains(&(99, 99)));
}

// WQ-05: given two items processing, when ShutDownWithDrain, then it blocks until both are Done.
// - a over when both are done and nothing waits, not before
#[test]
fn wq_05_a_drain_is_over_when_everything_is_done() {
    let mut queue = queue(&["foo", "bar", "waits"]);
    let keys = ["foo", "bar"].map(|_| queue.take(ms(0)).expect("it waits").key);
    queue.add("foo", NORMAL, ms(0));
    queue.drain();
    queue.drain();
    assert!(!queue.is_drain_over());
    keys.iter().for_each(|key| {
        queue.done(key, ms(1));
    });
    assert!(
        !queue.is_drain_over() && !queue.is_over(),
        "one waits, and one was added while it was processed"
    );
    let keys = take_all(&mut queue, ms(1));
    assert_eq!(keys, ["waits", "foo"]);
    assert!(queue.is_over() && !queue.is_drain_over());
    keys.iter().for_each(|key| {
        queue.done(key, ms(1));
    });
    assert!(queue.is_drain_over());
}

// WQ-06: given processing items, when ShutDown, then it returns at once.
// - a it is over at once
// WQ-07: given a blocked drain, when ShutDown is called, then the drain returns.
// - a the drain is over
#[test]
fn wq_06_and_wq_07_a_shutdown_waits_for_nothing_and_ends_a_drain() {
    let mut queue = queue(&["foo"]);
    queue.take(ms(0)).expect("it waits");
    queue.drain();
    assert!(!queue.is_drain_over());
    queue.shut_down();
    assert!(queue.is_drain_over());
}

#[test]
fn a_drain_after_a_shutdown_waits_for_what_is_processed() {
    let mut queue = queue(&["foo"]);
    queue.take(ms(0)).expect("it waits");
    queue.shut_down();
    queue.drain();
    assert!(queue.is_shut_down() && !queue.is_drain_over());
    queue.done(&"foo", ms(1));
    assert!(queue.is_drain_over());
}

#[test]
fn after_a_shutdown_a_failure_gets_no_delay_is_counted_as_refused_and_forgotten() {
    let (mut queue, mut limiter) = (queue(&["foo"]), ExponentialPerKey::new(ms(1), ms(1_000)));
    let moment = Moment { now: ms(1), chance: 0.0 };
    limiter.when(&"foo", moment);
    limiter.when(&"bar", moment);
    queue.take(ms(0)).expect("it waits");
    queue.shut_down();
    assert_eq!(queue.add_rate_limited("bar", NORMAL, &mut limiter, moment), None);
    assert_eq!(queue.retry(&"foo", &mut limiter, moment), None);
    assert_eq!((limiter.failures(&"foo"), limiter.failures(&"bar"), queue.slots.len()), (0, 0, 0));
    let figures = queue.figures(ms(1));
    assert_eq!((figures.refused, figures.retries, figures.processing), (2, 0, 0));
}

#[test]
fn a_forced_end_discards_and_counts_what_waits_and_leaves_what_is_processed() {
    let mut queue = queue(&["foo", "bar", "baz"]);
    queue.add("low", Priority::Low, ms(0));
    queue.add_after("later", ms(10), NORMAL, ms(0));
    queue.take(ms(0)).expect("it waits");
    queue.add("foo", NORMAL, ms(0));
    queue.force();
    assert_eq!(queue.take(ms(0)), None, "nothing is handed out any more");
    assert_eq!(discard_all(&mut queue), 5, "three that wait, one that is delayed, and one more run of foo");
    assert!(queue.is_over() && queue.is_processing(&"foo"));
    assert_eq!((queue.check(), queue.figures(ms(0)).discarded), (Ok(()), 5));
    assert!(queue.retry_after(&"foo", ms(1), ms(1)), "it comes back, and is not added again");
    assert_eq!((queue.slots.len(), queue.figures(ms(1)).refused), (0, 1));
}

#[test]
fn of_200000_keys_a_call_discards_250_and_none_is_handed_out_or_made_to_wait_meanwhile() {
    let mut queue = QueueMachine::<u32>::new();
    for key in 0..100_000 {
        queue.add(key, NORMAL, ms(0));
        queue.add_after(100_000 + key, ms(10), NORMAL, ms(0));
    }
    queue.shut_down();
    assert_eq!((queue.discard_some(), queue.next_due()), (250, None));
    queue.release_due(ms(10));
    assert_eq!((queue.len(), queue.check()), (100_000, Ok(())));
    for _ in 0..600 {
        queue.take(ms(10)).expect("it waits");
        queue.again(&(queue.processing.len() as u32 - 1), (NORMAL, ()), ms(10));
    }
    queue.force();
    let mut calls = vec![250];
    while let count @ 1.. = queue.discard_some() {
        assert_eq!(queue.take(ms(10)), None);
        calls.push(count);
    }
    assert!(calls.iter().all(|count| *count <= 250), "{calls:?}");
    assert_eq!((calls.len(), calls.iter().sum::<usize>()), (800, 200_000));
    assert_eq!((queue.check(), queue.slots.len(), queue.figures(ms(10)).discarded), (Ok(()), 600, 200_000));
}

#[test]
fn a_key_that_nobody_worked_on_waits_again_also_after_a_shutdown() {
    let mut queue = queue(&["foo"]);
    queue.take(ms(2)).expect("it waits");
    queue.shut_down();
    assert!(queue.put_back(&"foo", (), ms(3)) && !queue.put_back(&"foo", (), ms(3)));
    assert!(!queue.is_over() && queue.check().is_ok());
    let taken = queue.take(ms(5)).expect("it waits again");
    assert_eq!((taken.key, taken.waited), ("foo", ms(3)), "since it was handed out to nobody");
}

#[test]
fn while_a_key_is_offered_a_queue_that_was_shut_down_is_not_over() {
    for is_accepted in [true, false] {
        let mut queue = queue(&["foo"]);
        assert!(queue.offer(ms(2)).is_some() && queue.offer(ms(2)).is_none());
        queue.shut_down();
        assert!(!queue.is_over(), "it may wait again");
        if is_accepted {
            queue.accept();
            assert!(queue.is_over() && queue.is_processing(&"foo"));
        } else {
            assert!(queue.take_back(&"foo", (), ms(3)) && !queue.is_over());
            assert!(queue.take(ms(4)).is_some() && queue.is_over());
        }
    }
}

#[test]
fn what_happened_to_a_key_before_a_shutdown_is_worked_on_after_it_and_not_after_a_forced_one() {
    for is_forced in [true, false] {
        let mut queue = queue(&["foo", "bar"]);
        queue.take(ms(2)).expect("it waits");
        queue.offer(ms(2)).expect("it waits");
        if is_forced {
            queue.force();
        }
        let discarded = discard_all(&mut queue);
        queue.drain();
        queue.shut_down();
        assert!(
            queue.again(&"foo", (Priority::Normal, ()), ms(3))
                && !queue.again(&"baz", (Priority::Normal, ()), ms(3))
        );
        assert!(queue.done(&"foo", ms(4)) && queue.take_back(&"bar", (), ms(4)));
        let left: Vec<_> = std::iter::from_fn(|| queue.take(ms(5))).map(|taken| taken.key).collect();
        assert_eq!(left, if is_forced { vec![] } else { vec!["foo", "bar"] });
        assert!(queue.is_over() && queue.is_drain_over() && queue.check().is_ok());
        assert_eq!((discarded, queue.figures(ms(5)).discarded), (0, if is_forced { 2 } else { 0 }));
    }
}

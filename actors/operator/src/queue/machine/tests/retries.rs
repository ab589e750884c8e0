//! What becomes of the retry of a key that has failed.

use super::{NORMAL, ms, queue, take_all};
use crate::queue::machine::{ExponentialPerKey, QueueMachine};
use informer_core::reflector::Moment;

/// A queue with a key that has failed at 0 ms, is to be tried again at 400 ms, and was handed out at 1 ms for something else.
fn failed(before: impl FnOnce(&mut QueueMachine<&'static str>)) -> QueueMachine<&'static str> {
    let (mut queue, mut limiter) = (queue(&["foo"]), ExponentialPerKey::new(ms(400), ms(400)));
    take_all(&mut queue, ms(0));
    before(&mut queue);
    queue.retry(&"foo", &mut limiter, Moment { now: ms(0), chance: 0.0 });
    queue.add("foo", NORMAL, ms(1));
    assert_eq!(take_all(&mut queue, ms(1)), ["foo"]);
    queue
}

#[test]
fn a_key_that_is_in_order_before_its_retry_is_due_is_not_tried_again() {
    let mut queue = failed(|_| {});
    queue.done(&"foo", ms(2));
    assert_eq!((queue.check(), queue.slots.len(), queue.next_due()), (Ok(()), 0, None));
    let mut queue = failed(|_| {});
    queue.retry_after(&"foo", ms(900), ms(2));
    assert_eq!((queue.next_due(), queue.figures(ms(2)).retrying), (Some(ms(902)), 0));
}

#[test]
fn a_key_on_which_nobody_has_worked_or_that_fails_again_keeps_its_retry() {
    let mut queue = failed(|_| {});
    queue.put_back(&"foo", (), ms(2));
    assert_eq!((queue.next_due(), take_all(&mut queue, ms(3))), (Some(ms(400)), vec!["foo"]));
    let moment = Moment { now: ms(4), chance: 0.0 };
    queue.retry(&"foo", &mut ExponentialPerKey::new(ms(900), ms(900)), moment);
    assert_eq!(queue.next_due(), Some(ms(400)), "the earliest counts");
    queue.add("foo", NORMAL, ms(5));
    assert_eq!(take_all(&mut queue, ms(5)), ["foo"]);
    queue.done(&"foo", ms(6));
    assert_eq!(queue.next_due(), None, "nothing but failures has asked for it");
}

#[test]
fn a_delayed_add_that_something_else_has_asked_for_stays_when_the_key_is_in_order() {
    let asked = |queue: &mut QueueMachine<&'static str>| {
        queue.add_after("foo", ms(700), NORMAL, ms(0));
    };
    let postponed = |queue: &mut QueueMachine<&'static str>| {
        queue.postpone("foo", ms(700), NORMAL, ms(0));
    };
    let mut before_the_failure = [failed(asked), failed(postponed)];
    let mut after_it = [failed(|_| {}), failed(|_| {})];
    asked(&mut after_it[0]);
    postponed(&mut after_it[1]);
    for queue in before_the_failure.iter_mut().chain(&mut after_it) {
        queue.done(&"foo", ms(2));
        assert!(queue.next_due().is_some() && queue.check().is_ok());
        assert_eq!(take_all(queue, ms(700)), ["foo"]);
    }
}

#[test]
fn a_failure_that_is_noted_of_a_key_in_hand_is_tried_again() {
    let mut queue = queue(&["foo"]);
    take_all(&mut queue, ms(0));
    let moment = Moment { now: ms(0), chance: 0.0 };
    queue.add_rate_limited("foo", NORMAL, &mut ExponentialPerKey::new(ms(400), ms(400)), moment);
    queue.done(&"foo", ms(1));
    assert_eq!(take_all(&mut queue, ms(400)), ["foo"]);
}

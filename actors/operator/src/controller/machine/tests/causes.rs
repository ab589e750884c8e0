//! Why keys are reconciled: notes in the queue, each of which is given to one reconcile.

use super::*;
use crate::queue::machine::{Added, ExponentialPerKey, Priority, QueueMachine, namespace_order};
use informer_core::reflector::Moment;

type Queue = QueueMachine<ObjectKey, Why>;

fn queue() -> Queue {
    Queue::noting(namespace_order, MOST_WITH_CAUSES)
}

const NOW: Duration = Duration::ZERO;

fn add(queue: &mut Queue, name: impl ToString, reason: Reason) -> Added {
    queue.add_with(key(name), (Priority::Normal, reason.into()), NOW)
}

/// Takes the next key, and begins to work on it.
fn begin(queue: &mut Queue) -> Option<(ObjectKey, Causes)> {
    let taken = queue.take(NOW)?;
    let mut why = taken.note;
    crate::queue::machine::Merge::merge(&mut why, queue.begin(&taken.key));
    Some((taken.key, why.into_causes()))
}

#[test]
fn operator_a10_an_event_between_the_hand_out_and_the_begin_of_a_reconcile_is_given_to_it_and_leads_to_no_other()
 {
    let mut queue = queue();
    for comes_after_the_begin in [false, true] {
        add(&mut queue, "one", event(1));
        let taken = queue.take(NOW).expect("it waits");
        add(&mut queue, "one", event(2));
        let mut why = taken.note;
        crate::queue::machine::Merge::merge(&mut why, queue.begin(&taken.key));
        assert_eq!(why.into_causes()[..], [event(1), event(2)]);
        if comes_after_the_begin {
            add(&mut queue, "one", event(3));
            assert!(queue.done(&taken.key, NOW));
            let (_, causes) = begin(&mut queue).expect("one more, for what came after its begin");
            assert_eq!(causes[..], [event(3)]);
        }
        assert!(queue.done(&taken.key, NOW) && queue.take(NOW).is_none(), "and no other");
    }
}

#[test]
fn ctl_01_a_key_that_was_requeued_or_has_failed_says_so_and_each_reason_is_given_to_one_reconcile() {
    let mut queue = queue();
    let second = Duration::from_secs(1);
    add(&mut queue, "one", event(1));
    let (key, causes) = begin(&mut queue).expect("it waits");
    assert_eq!(causes[..], [event(1)]);
    queue.retry_after_with(&key, second, Reason::Requeued.into(), NOW);
    add(&mut queue, "one", event(2));
    assert_eq!(begin(&mut queue).expect("it waits").1[..], [event(2)], "the requeue is not due");
    let mut limiter = ExponentialPerKey::new(second, second);
    queue.retry_with(&key, Reason::Failed.into(), &mut limiter, Moment { now: NOW, chance: 0.0 });
    let taken = queue.take(second).expect("it is due");
    assert_eq!(taken.note.into_causes().to_string(), "failed before", "the newest of both");
    assert!(queue.done(&key, second) && queue.take(2 * second).is_none());
}

#[test]
fn ctl_18_of_a_key_four_causes_are_kept_and_the_others_counted_and_of_4096_keys_at_most() {
    let mut queue = queue();
    for number in 0..7 {
        add(&mut queue, "one", event(number));
        assert_eq!(add(&mut queue, "one", event(0)), Added::Merged, "the same reason is kept once");
    }
    for number in 1..5_000 {
        assert_eq!(add(&mut queue, number, event(number)), Added::Accepted, "it is added in any case");
    }
    assert_eq!(queue.check(), Ok(()));
    let (_, causes) = begin(&mut queue).expect("it waits");
    assert_eq!((causes.len(), causes.more()), (MOST_CAUSES, 3));
    let text = "Updated pods a/0 (Watch), Updated pods a/1 (Watch), Updated pods a/2 (Watch), Updated pods a/3 (Watch) and 3 more";
    assert_eq!(causes.to_string(), text);
    let with_causes = std::iter::from_fn(|| begin(&mut queue)).filter(|(_, causes)| !causes.is_empty());
    assert_eq!(with_causes.count(), MOST_WITH_CAUSES - 1);
}

// CTL-18: given any number of events, when nothing is reconciled, then what is kept is bounded: 4 causes of a
// key, causes of 4,096 keys, 4,096 last states; and 1,024 writes of one reconcile; the rest is counted.
// - a causes: `ctl_18_of_a_key_four_causes_are_kept_and_the_others_counted_and_of_4096_keys_at_most`
// - b last states: `ctl_18_of_deleted_objects_the_newest_4096_states_are_kept_and_the_others_counted`
// - c writes: `ctl_18_of_one_reconcile_1024_writes_are_waited_for_and_the_others_counted`
// - d keys that wait to be tried again are counted on their own
#[test]
fn ctl_18_keys_that_wait_to_be_tried_again_take_no_place_of_the_cause_of_an_event() {
    let mut queue = queue();
    let second = Duration::from_secs(1);
    for number in 0..2 * MOST_WITH_CAUSES {
        queue.add_after_with(key(number), second, (Priority::Normal, Reason::Requeued.into()), NOW);
    }
    add(&mut queue, "one", event(8));
    assert_eq!(begin(&mut queue).expect("it waits").1[..], [event(8)]);
    add(&mut queue, 0, event(7));
    (0..40).for_each(|_| queue.release_due(second));
    let (key, causes) = begin(&mut queue).expect("it waits");
    assert_eq!((key.name(), &causes[..]), ("0", &[Reason::Requeued, event(7)][..]));
    assert_eq!(begin(&mut queue).expect("it waits").1[..], [Reason::Requeued]);
}

//! What leads to a reconcile, and with what it begins.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use informer_core::listener::ChangeFilter;
use tokio::time::sleep;

use super::*;
use crate::controller::ControllerState;
use crate::queue::Added;
use informer_actors::subscription::SubscribeOptions;

#[test]
fn ctl_01_each_object_is_reconciled_at_first_when_it_changes_and_when_it_is_gone() {
    run(|world| async move {
        world.apply("a/one", "1");
        world.apply("a/two", "2");
        let controller = world.explaining(world.builder());
        let initial = |name, body| format!("a/{name}={body} [Added texts a/{name} (InitialList)]");
        assert_eq!(world.lines().await, [initial("one", 1), initial("two", 2)]);
        world.apply("a/one", "3");
        assert_eq!(world.lines().await, ["a/one=3 [Updated texts a/one (Watch)]"]);
        world.texts.delete("a/one");
        assert_eq!(world.lines().await, ["a/one gone, was 3 [Deleted texts a/one (Watch)]"]);
        assert_eq!(controller.status().kept.deleted, 0, "its end is reconciled");
        world.apply("a/one", "4");
        assert_eq!(world.lines().await, ["a/one=4 [Added texts a/one (Watch)]"]);
        assert_eq!(controller.status().counts.succeeded, 5);
    });
}

#[test]
fn ctl_01_the_last_state_is_shown_until_a_reconcile_that_was_given_it_is_done() {
    run(|world| async move {
        world.apply("a/one", "1");
        let log = world.log.clone();
        let fails_twice = move |request: Request<String>| {
            log.line(shown(&request));
            let is_in_order = request.object().is_some() || request.attempt() == 2;
            async move { if is_in_order { DONE } else { Err("not yet")? } }
        };
        let controller = world.builder().reconcile(fails_twice).start().expect("it starts");
        assert_eq!(world.lines().await, ["a/one=1"]);
        world.texts.delete("a/one");
        sleep(secs(1)).await;
        assert_eq!(world.lines().await, ["a/one gone, was 1"; 3]);
        controller.trigger(key("a/one"));
        assert_eq!(world.lines().await, ["a/one gone"; 3]);
    });
}

// CTL-02: given several workers, when a key changes three times while it is reconciled, then it is reconciled
// once more after that, and other keys at the same time.
#[test]
fn ctl_02_a_key_is_reconciled_once_at_a_time_and_once_more_for_all_that_happens_meanwhile() {
    run(|world| async move {
        world.apply("a/one", "1");
        world.apply("a/two", "1");
        let log = world.log.clone();
        let slow = move |request: Request<String>| {
            let under_way = log.enter(request.key());
            log.line(shown(&request));
            async move {
                sleep(secs(1)).await;
                drop(under_way);
                DONE
            }
        };
        let controller = world.builder().workers(8).reconcile(slow).start().expect("it starts");
        assert_eq!(world.lines().await, ["a/one=1", "a/two=1"], "several keys at the same time");
        for body in ["2", "3", "4"] {
            world.apply("a/one", body);
            assert_eq!(world.lines().await, [""; 0]);
        }
        sleep(secs(5)).await;
        assert_eq!(world.lines().await, ["a/one=4"]);
        assert_eq!(controller.status().counts.reconciles, 3);
    });
}

#[test]
fn ctl_08_an_object_leads_to_the_keys_of_its_state_before_and_after() {
    run(|world| async move {
        let by_body = |number: &Object<u32>| [ObjectKey::namespaced("a", format!("n{}", number.body()))];
        let _controller = world.explaining(world.builder().maps(&world.children, by_body));
        world.lines().await;
        world.numbers.apply("x/y", 1);
        assert_eq!(world.lines().await, ["a/n1 gone [Added numbers x/y (Watch)]"]);
        world.numbers.apply("x/y", 2);
        let lines = world.lines().await;
        assert_eq!(lines, [1, 2].map(|n| format!("a/n{n} gone [Updated numbers x/y (Watch)]")));
        world.numbers.delete("x/y");
        assert_eq!(world.lines().await, ["a/n2 gone [Deleted numbers x/y (Watch)]"]);
    });
}

// CTL-08: given a function that maps objects to keys, when an object changes, then the keys of the state
// before and after are reconciled; a panic of it is counted and costs that state alone.
// - a before and after: `ctl_08_an_object_leads_to_the_keys_of_its_state_before_and_after`
// - b a panic
#[test]
fn ctl_08_a_panic_of_the_function_that_maps_is_counted_and_costs_that_state_alone() {
    run(|world| async move {
        let map = |number: &Object<u32>| {
            assert_ne!(*number.body(), 13, "on purpose");
            text_of(number)
        };
        let controller = world.logging(world.builder().maps(&world.children, map));
        world.numbers.apply("a/one-x", 13);
        world.numbers.apply("a/two-x", 1);
        assert_eq!(world.lines().await, ["a/two gone"]);
        assert_eq!(controller.status().counts.map_panics, 1);
        world.numbers.apply("a/one-x", 2);
        assert_eq!(world.lines().await, ["a/one gone"], "the state after is asked about, too");
    });
}

#[test]
fn ctl_09_updates_that_do_not_pass_the_filters_lead_to_no_reconcile_and_deletions_always_do() {
    run(|world| async move {
        let length = ChangeFilter::<String>::of(|text| text.len());
        let even = SubscribeOptions::new().filter(|number: &Object<u32>| number.body().is_multiple_of(2));
        let builder = world.builder().filter(length).maps_with(&world.children, even, text_of);
        let _controller = world.logging(builder);
        world.apply("a/one", "1");
        assert_eq!(world.lines().await, ["a/one=1"]);
        world.apply("a/one", "2");
        assert_eq!(world.lines().await, [""; 0]);
        world.apply("a/one", "33");
        assert_eq!(world.lines().await, ["a/one=33"]);
        world.numbers.apply("a/one-x", 1);
        assert_eq!(world.lines().await, [""; 0]);
        world.numbers.apply("a/one-x", 2);
        assert_eq!(world.lines().await, ["a/one=33"]);
        world.texts.delete("a/one");
        assert_eq!(world.lines().await, ["a/one gone, was 33"]);
    });
}

#[test]
fn ctl_09_an_object_that_ceases_to_pass_is_reconciled_and_is_not_taken_for_deleted() {
    run(|world| async move {
        let _controller = world.logging(world.builder().only(|text| text.len() < 3));
        world.apply("a/one", "11");
        world.apply("a/two", "1234");
        assert_eq!(world.lines().await, ["a/one=11"]);
        world.apply("a/one", "1234");
        assert_eq!(world.lines().await, ["a/one=1234"]);
    });
}

// CTL-09: given filters, when an update does not pass, then no key waits; additions and deletions always lead
// to a reconcile, and an object that leaves a filter is not taken for deleted.
// - a updates that do not pass, and deletions:
//   `ctl_09_updates_that_do_not_pass_the_filters_lead_to_no_reconcile_and_deletions_always_do`
// - b an object that leaves the filter:
//   `ctl_09_an_object_that_ceases_to_pass_is_reconciled_and_is_not_taken_for_deleted`
// - c a filter that panics lets the event pass
#[test]
fn ctl_09_a_filter_that_panics_lets_the_event_pass() {
    run(|world| async move {
        let never = ChangeFilter::<String>::between(|_, new| panic!("over {}", new.body()));
        let builder = world.builder().filter(never).only(|text| panic!("over {}", text.body()));
        let controller = world.logging(builder);
        world.apply("a/one", "1");
        assert_eq!(world.lines().await, ["a/one=1"]);
        world.apply("a/one", "2");
        assert_eq!(world.lines().await, ["a/one=2"]);
        assert_eq!(controller.status().not_followed, [""; 0]);
        assert!(world.informer.subscriptions()[0].filter_panics > 0);
    });
}

#[test]
fn ctl_10_triggers_and_streams_lead_to_reconciles_however_many_come() {
    run(|world| async move {
        world.apply("a/one", "1");
        let many = stream::iter(0..10_000).map(|n| key(if n % 2 == 0 { "a/one" } else { "a/two" }));
        let controller = world.explaining(world.builder().stream(many));
        let lines = world.lines().await;
        assert!(lines.len() < 100, "a key waits once: {} reconciles", lines.len());
        assert!(lines.iter().any(|line| line.starts_with("a/two gone [triggered")), "{lines:?}");
        assert_eq!(controller.status().counts.streams_ended, 1);
        let trigger = controller.triggers();
        assert_eq!(trigger.trigger(key("a/two")), Added::Accepted);
        assert_eq!(world.lines().await, ["a/two gone [triggered]"]);
        drop(controller);
        assert_eq!(trigger.trigger(key("a/two")), Added::Refused);
    });
}

// CTL-10: given triggers, streams and a period, when they name keys, however many, then each such key is
// reconciled, once for all that named it meanwhile; a stream that ends or panics is counted.
// - a triggers and streams: `ctl_10_triggers_and_streams_lead_to_reconciles_however_many_come`
// - b a stream that panics
// - c the period, whatever the filters say:
//   `ctl_10_each_object_is_reconciled_again_in_each_period_whatever_the_filters_say`
#[test]
fn ctl_10_a_stream_that_panics_is_counted_and_the_controller_goes_on() {
    run(|world| async move {
        let panics = stream::iter(0..2).map(|n| {
            assert_eq!(n, 0, "on purpose");
            key("a/one")
        });
        let controller = world.logging(world.builder().stream(panics));
        world.lines().await;
        assert_eq!(controller.status().counts.streams_ended, 1);
        world.apply("a/one", "1");
        assert_eq!(world.lines().await, ["a/one=1"]);
    });
}

#[test]
fn ctl_10_each_object_is_reconciled_again_in_each_period_whatever_the_filters_say() {
    run(|world| async move {
        world.apply("a/one", "1");
        let builder = world.builder().every(secs(600)).filter(ChangeFilter::of(|_| ()));
        let _controller = world.explaining(builder);
        world.lines().await;
        sleep(secs(599)).await;
        assert_eq!(world.lines().await, [""; 0]);
        sleep(secs(600)).await;
        assert_eq!(world.lines().await, ["a/one=1 [timer]"]);
    });
    run(|world| async move {
        world.apply("a/one", "1");
        let _controller = world.logging(world.builder().every(Duration::ZERO));
        sleep(secs(10)).await;
        assert!((10..=11).contains(&world.lines().await.len()), "a period is a second at least");
    });
}

// CTL-12: given an informer of a child that is not synced, when the controller has started, then nothing is
// reconciled, and the status says which informer is not synced and why.
#[test]
fn ctl_12_nothing_is_reconciled_before_every_informer_is_synced_and_the_status_says_which_is_not() {
    run(|world| async move {
        world.apply("a/one", "1");
        world.numbers.hold_lists(true);
        let controller = world.logging(world.builder().maps(&world.children, text_of));
        sleep(secs(20)).await;
        assert_eq!(world.lines().await, [""; 0]);
        let status = controller.status();
        let shown = status.not_synced.iter().map(|sync| format!("{}: {}", sync.name, sync.state));
        assert_eq!(shown.collect::<Vec<_>>(), ["numbers: listing, 0 objects received"]);
        assert_eq!(status.state, ControllerState::Syncing);
        assert_eq!(
            status.to_string(),
            "controller texts: waits until its informers are synced; 1 keys wait, 0 reconciles, 0 failed; \
             informer \"numbers\" is not synced: listing, 0 objects received"
        );
        world.numbers.hold_lists(false);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(world.lines().await, ["a/one=1"]);
        assert_eq!(controller.status().state, ControllerState::Running);
    });
}

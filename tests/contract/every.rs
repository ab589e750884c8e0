//! LIS-19 to LIS-21 on the running pipeline: subscribers to every event, and what happens to one that does not take
//! them.

use actix::Actor;
use futures_util::StreamExt;
use informer_actors::subscription::EndReason;
use informer_actors::subscription::{SubscribeOptions, WhenFull};
use informer_actors::testing::Site;
use informer_actors::testing::kill_at;

use crate::delivery::Slow;
use crate::world::{run, run_with, settle, three, until};

/// The weight of an event of the scripted server: its object, and the event itself.
const EVENT: usize = 100 + 64;

fn every(events: usize, when_full: WhenFull) -> SubscribeOptions<String> {
    SubscribeOptions::new().every(events * EVENT, when_full)
}

#[test]
fn lis_19_a_slow_subscriber_to_every_event_receives_each_one_in_order() {
    run(three, |world| async move {
        let (slow, received, gate, _) = Slow::new();
        let options = every(100, WhenFull::Disconnect);
        let subscription = world.informer.subscribe_with(options, slow.start()).expect("it runs");
        world.synced().await;
        settle().await;
        for n in 0..100 {
            world.apply("a/one", &n.to_string()).await;
        }
        let status = subscription.status();
        assert_eq!((status.depth, status.coalesced, status.dropped), (100, 0, 0));
        gate.add_permits(1_000);
        until(|| received.len() == 103).await;
        let expected: Vec<_> = (5..105).map(|version| format!("Updated(Watch) a/one@{version}")).collect();
        assert_eq!(received.lines()[3..], expected);
        assert!(subscription.status().synced && subscription.ended().is_none());
    });
}

// LIS-19: given `Every`, when a subscriber is slow, then it receives every event, one by one in order, none
// coalesced, up to its byte bound.
// - a every event is delivered, one by one, in order, none coalesced:
//   `lis_19_every_event_is_delivered_one_by_one_in_order_and_none_is_coalesced`
// - b the events of a late joiner begin with the snapshot
// - c up to its byte bound, in which lists do not count:
//   `lis_20_beyond_the_bound_a_disconnecting_subscription_drops_all_and_says_how_much`
#[test]
fn lis_19_a_late_joiner_to_every_event_starts_from_the_snapshot() {
    run(three, |world| async move {
        world.synced().await;
        world.apply("a/one", "before").await;
        let (slow, received, gate, _) = Slow::new();
        let options = every(10, WhenFull::Disconnect);
        let subscription = world.informer.subscribe_with(options, slow.start()).expect("it runs");
        settle().await;
        world.delete("a/two").await;
        world.apply("a/two", "deleted and created again").await;
        gate.add_permits(1_000);
        until(|| received.len() == 5).await;
        let expected = [
            "Added(InitialList) a/one@5",
            "Added(InitialList) a/two@3",
            "Added(InitialList) b/one@4",
            "Deleted(Watch) a/two@6",
            "Added(Watch) a/two@7",
        ];
        assert_eq!(received.lines(), expected);
        assert!(subscription.status().synced);
    });
}

// LIS-20: given `Every` with `Disconnect`, when the bound is passed, then the subscription ends with that
// reason and the count of what was dropped; no other subscription is affected; lists end it only if more than
// four wait that have something to tell.
// - a the subscription ends with that reason and the count of what was dropped
// - b what it received before is the log up to there:
//   `lis_20_what_was_delivered_is_the_log_up_to_the_end_and_the_rest_is_counted`
// - c no other subscription is affected
// - d lists end it only if more than four wait that have something to tell:
//   `lis_20_lists_that_have_nothing_to_tell_end_no_subscription_however_many_wait`
#[test]
fn lis_20_beyond_its_bound_a_subscription_that_disconnects_ends_with_the_count_and_no_other_subscription_ends()
 {
    run(three, |world| async move {
        let (slow, received, _gate, _) = Slow::new();
        let options = every(10, WhenFull::Disconnect);
        let stuck = world.informer.subscribe_with(options, slow.start()).expect("it runs");
        let quick = world.watched_with(every(10, WhenFull::Disconnect));
        quick.synced().await;
        settle().await;
        for n in 0..10 {
            world.apply("a/one", &n.to_string()).await;
        }
        assert_eq!(stuck.ended(), None, "the bound itself is within it");
        world.apply("a/one", "one too many").await;
        assert_eq!(stuck.end().await, EndReason::Overflow { dropped: 11 });
        assert_eq!(stuck.status().dropped, 11);
        for n in 0..20 {
            world.apply("a/one", &n.to_string()).await;
        }
        quick.agrees(&world).await;
        assert_eq!((quick.subscription.ended(), quick.received.len(), received.len()), (None, 34, 0));
    });
}

#[test]
fn lis_20_a_stream_ends_after_the_events_that_it_had_taken() {
    run(three, |world| async move {
        let mut events = world.informer.events_with(every(2, WhenFull::Disconnect)).expect("it runs");
        world.synced().await;
        assert!(events.next().await.is_some());
        for n in 0..5 {
            world.apply("a/one", &n.to_string()).await;
        }
        let rest: Vec<_> = events.by_ref().collect().await;
        assert_eq!(rest.len(), 2, "the other events of its window of three");
        assert_eq!(events.subscription().ended(), Some(EndReason::Overflow { dropped: 3 }));
    });
}

// LIS-21: given `Every` with `Restate`, when the bound is passed, then the backlog is dropped and counted,
// and the difference between what was delivered and the current snapshot is delivered (cause Relist):
// replayed, the events give exactly the snapshot.
// - a the backlog is dropped and counted
// - b the difference between what was delivered and the current snapshot is delivered, cause Relist
// - c replayed, the events give exactly the snapshot
#[test]
fn lis_21_beyond_its_bound_a_subscription_that_restates_receives_the_difference() {
    run(three, |world| async move {
        let (slow, received, gate, _) = Slow::new();
        let options = every(10, WhenFull::Restate);
        let subscription = world.informer.subscribe_with(options, slow.start()).expect("it runs");
        world.synced().await;
        settle().await;
        world.delete("a/two").await;
        for n in 0..40 {
            world.apply(&format!("a/{}", n % 3), &n.to_string()).await;
        }
        assert!(subscription.status().dropped > 30);
        gate.add_permits(1_000);
        until(|| received.agrees_with(&world.informer.snapshot()).is_ok()).await;
        assert!(
            received.lines().iter().any(|line| line == "Missed(Relist) a/two@3"),
            "{:?}",
            received.lines()
        );
        assert!(subscription.status().synced && subscription.ended().is_none());
        let newest = world.apply("a/one", "and it goes on").await;
        until(|| received.agrees_with(&world.informer.snapshot()).is_ok()).await;
        assert_eq!(received.lines().last(), Some(&format!("Updated(Watch) a/one@{newest}")));
    });
}

#[test]
fn lis_19_lists_larger_than_the_bound_are_delivered_to_subscribers_that_join_before_them() {
    run(
        |server| (0..2_000).for_each(|n| drop(server.apply(&format!("a/{n:04}"), "old".to_owned()))),
        |world| async move {
            let watched = world.watched_with(every(3, WhenFull::Disconnect));
            watched.synced().await;
            assert_eq!(watched.received.len(), 2_000);
            world.streaming().await;
            world.server.freeze_watches(true);
            (0..2_000).step_by(3).for_each(|n| drop(world.server.delete(&format!("a/{n:04}"))));
            (1..2_000)
                .step_by(3)
                .for_each(|n| drop(world.server.apply(&format!("a/{n:04}"), "new".to_owned())));
            world.server.compact();
            world.server.end_watches(None);
            world.server.freeze_watches(false);
            world.agrees().await;
            watched.agrees(&world).await;
            assert_eq!((watched.received.len(), watched.subscription.ended()), (2_000 + 667 + 667, None));
        },
    );
}

#[test]
fn inf_43_a_subscriber_to_every_event_receives_what_a_group_restart_left_out() {
    for when_full in [WhenFull::Disconnect, WhenFull::Restate] {
        for site in [Site::IndexerPublished, Site::ProcessorChanges, Site::ProcessorFannedOut] {
            for nth in [1, 3, 6] {
                run_with(kill_at(site, nth), three, |world| async move {
                    let watched = world.watched_with(every(100, when_full));
                    let (slow, received, gate, _) = Slow::new();
                    let lagging = world.informer.subscribe_with(every(4, WhenFull::Restate), slow.start());
                    let _lagging = lagging.expect("it runs");
                    watched.synced().await;
                    for n in 0..10 {
                        world.apply(&format!("a/{}", n % 4), &n.to_string()).await;
                    }
                    world.delete("a/one").await;
                    watched.agrees(&world).await;
                    gate.add_permits(1_000);
                    until(|| received.agrees_with(&world.informer.snapshot()).is_ok()).await;
                    assert_eq!(world.informer.status().restarts, 1, "{site:?} {nth}");
                    let last = world.informer.status().last_restart.expect("it was restarted");
                    assert!(last.why.starts_with("has panicked"), "{site:?} {nth}: {last:?}");
                    assert_eq!(watched.subscription.ended(), None);
                });
            }
        }
    }
}

//! LIS on the running pipeline: subscribers that are slow, panic or stop; closures and streams.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, AtomicResponse, Context, Handler, WrapFuture};
use futures_util::StreamExt;
use informer_actors::subscription::EndReason;
use informer_actors::subscription::Notify;
use informer_actors::subscription::SubscribeOptions;
use informer_actors::testing::{Recorder, RecorderHandle};
use tokio::sync::Semaphore;

use crate::world::{LONG, pass, run, settle, three, until};

/// An actor that handles one event for each permit.
pub(crate) struct Slow {
    received: RecorderHandle<String>,
    gate: Arc<Semaphore>,
    entered: Arc<AtomicUsize>,
}

impl Slow {
    pub(crate) fn new() -> (Self, RecorderHandle<String>, Arc<Semaphore>, Arc<AtomicUsize>) {
        let received = Recorder::new().1;
        let (gate, entered) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        (
            Self { received: received.clone(), gate: Arc::clone(&gate), entered: Arc::clone(&entered) },
            received,
            gate,
            entered,
        )
    }
}

impl Actor for Slow {
    type Context = Context<Self>;
}

impl Handler<Notify<String>> for Slow {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, notify: Notify<String>, _ctx: &mut Context<Self>) -> Self::Result {
        self.entered.fetch_add(1, Ordering::Relaxed);
        let (gate, received) = (Arc::clone(&self.gate), self.received.clone());
        let work = async move {
            gate.acquire().await.expect("the gate stays open").forget();
            received.record(&notify);
        };
        AtomicResponse::new(Box::pin(work.into_actor(self)))
    }
}

#[test]
fn lis_01_a_stuck_subscriber_delays_neither_the_store_nor_other_subscribers() {
    run(three, |world| async move {
        let (slow, received, gate, _) = Slow::new();
        let stuck = world.informer.subscribe(slow.start()).expect("it runs");
        let quick = world.watched();
        quick.synced().await;
        for n in 0..10_000 {
            world.server.apply(&format!("a/{}", n % 100), n.to_string());
        }
        world.agrees().await;
        quick.agrees(&world).await;
        assert!(received.is_empty() && !stuck.status().synced);
        gate.add_permits(1_000_000);
        until(|| received.agrees_with(&world.informer.snapshot()).is_ok()).await;
        assert!(received.len() < 500, "what it missed was coalesced: {}", received.len());
        assert!(stuck.status().coalesced > 9_000);
    });
}

#[test]
fn lis_02_a_subscriber_that_keeps_up_receives_every_event_in_order() {
    run(three, |world| async move {
        let watched = world.watched();
        watched.synced().await;
        watched.received.clear_lines();
        let mut expected = Vec::new();
        for n in 0..20 {
            let version = world.apply("a/one", &n.to_string()).await;
            watched.lines(n + 1).await;
            expected.push(format!("Updated(Watch) a/one@{version}"));
        }
        assert_eq!(watched.received.lines(), expected);
    });
}

// LIS-11: given a subscribed actor and 1,000 events, when delivered, then in order, as 63 do_send and one
// awaited send, never more than 64 unhandled in its mailbox, whatever its capacity.
// - a in order
// - b never more than 64 are unhandled, whatever the mailbox's capacity: 63 and the one awaited:
//   `lis_11_no_more_than_64_are_sent_before_the_last_of_them_is_handled_whatever_the_mailboxs_capacity`
#[test]
fn lis_11_never_more_than_a_window_of_64_is_unhandled_in_a_subscribers_mailbox() {
    run(
        |server| (0..1000).for_each(|n| drop(server.apply(&format!("a/{n:04}"), String::new()))),
        |world| async move {
            let (slow, received, gate, entered) = Slow::new();
            let address = slow.start();
            let subscription = world.informer.subscribe(address.clone()).expect("it runs");
            world.synced().await;
            settle().await;
            assert_eq!(entered.load(Ordering::Relaxed), 1, "one event at a time");
            gate.add_permits(63);
            settle().await;
            assert_eq!(received.len(), 63);
            settle().await;
            assert_eq!(
                entered.load(Ordering::Relaxed),
                64,
                "the fence is the 64th; nothing is sent after it"
            );
            gate.add_permits(1_000_000);
            subscription.synced_within(LONG).await.expect("it syncs");
            let mut sorted = received.lines();
            sorted.sort();
            assert_eq!(received.lines(), sorted, "in key order");
            assert_eq!(received.len(), 1000);
        },
    );
}

// LIS-12: given a fence that is not answered, when further changes arrive, then the backlog goes on
// coalescing, statistics stay readable, and delivery resumes with the newest state once it is.
// - a the backlog goes on coalescing
// - b statistics stay readable
// - c delivery resumes with the newest state
#[test]
fn lis_12_while_a_fence_is_unanswered_the_backlog_coalesces_and_delivery_resumes_with_the_newest() {
    run(three, |world| async move {
        let (slow, received, gate, _) = Slow::new();
        let subscription = world.informer.subscribe(slow.start()).expect("it runs");
        world.synced().await;
        settle().await;
        for n in 0..50 {
            world.apply("a/one", &n.to_string()).await;
        }
        let status = subscription.status();
        assert_eq!((status.depth, status.coalesced), (1, 49));
        gate.add_permits(100);
        until(|| received.len() == 4).await;
        assert_eq!(received.lines()[3], format!("Updated(Watch) a/one@{}", world.server.version()));
    });
}

// LIS-13: given an async closure, when events arrive, then each call starts after the last one's future has
// ended, in order.
#[test]
fn lis_13_an_async_closure_is_called_when_the_last_call_has_ended_and_in_order() {
    run(three, |world| async move {
        let log = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&log);
        let subscription = world
            .informer
            .for_each(move |notify| {
                let log = Arc::clone(&written);
                async move {
                    log.lock().expect("no panic").push(format!("begin {}", notify.key()));
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    log.lock().expect("no panic").push(format!("end {}", notify.key()));
                }
            })
            .expect("it runs");
        subscription.synced_within(LONG).await.expect("it syncs");
        let expected: Vec<_> = ["a/one", "a/two", "b/one"]
            .iter()
            .flat_map(|key| [format!("begin {key}"), format!("end {key}")])
            .collect();
        assert_eq!(*log.lock().expect("no panic"), expected);
    });
}

// INF-24: given a callback that panics on an initial event, when the rest is processed, then the subscription
// still becomes synced and the panic is counted.
// - a the subscription still becomes synced
// - b the panic is counted
#[test]
fn inf_23_and_24_a_panic_in_a_closure_skips_that_event_is_counted_and_the_subscription_still_syncs() {
    run(three, |world| async move {
        let received = Recorder::new().1;
        let recorded: RecorderHandle<String> = received.clone();
        let subscription = world
            .informer
            .for_each(move |notify| {
                assert!(notify.key().name() != "two", "before the future");
                let received = recorded.clone();
                async move {
                    tokio::task::yield_now().await;
                    assert!(notify.key().namespace() != Some("b"), "inside the future");
                    received.record(&notify);
                }
            })
            .expect("it runs");
        let other = world.watched();
        subscription.synced_within(LONG).await.expect("it still syncs");
        other.synced().await;
        assert_eq!(subscription.status().panics, 2);
        world.apply("a/one", "next").await;
        other.lines(4).await;
        until(|| received.len() == 2).await;
        assert_eq!(received.lines(), ["Added(InitialList) a/one@2", "Updated(Watch) a/one@5"]);
    });
}

/// An actor that stops at its second event.
struct Mortal(usize);

impl Actor for Mortal {
    type Context = Context<Self>;
}

impl Handler<Notify<String>> for Mortal {
    type Result = ();

    fn handle(&mut self, _notify: Notify<String>, ctx: &mut Context<Self>) {
        self.0 += 1;
        if self.0 == 2 {
            ctx.stop();
        }
        ctx.run_later(Duration::ZERO, |_, _| ());
    }
}

#[test]
fn inf_46_a_subscribed_actor_that_stops_ends_its_subscription_with_a_reason_and_nothing_else() {
    run(three, |world| async move {
        let subscription = world.informer.subscribe(Mortal(0).start()).expect("it runs");
        let other = world.watched();
        assert_eq!(subscription.end().await, EndReason::SubscriberGone);
        other.synced().await;
        world.apply("a/one", "x").await;
        other.lines(4).await;
        other.agrees(&world).await;
    });
}

// LIS-15: given a subscription as a `Stream`, when polled, then the same events in the same order with the
// same backlog; it is synced once the item after the last initial one is asked for, ends when the informer
// stops, and dropping it detaches.
// - a it gives the same events
// - b in the order in which an actor receives them, and with the same backlog:
//   `lis_15_a_stream_gives_what_an_actor_receives_in_the_same_order_and_coalesces_while_it_is_not_polled`
// - c it is synced once the item after the last initial one is asked for
// - d it ends when the informer stops
// - e dropping it detaches: `lis_15_for_a_stream_that_is_dropped_no_events_wait_any_more`
#[test]
fn lis_15_a_stream_gives_the_same_events_and_is_synced_when_asked_beyond_the_last_initial_one() {
    run(three, |world| async move {
        world.synced().await;
        let mut events = world.informer.events().expect("it runs");
        let received: RecorderHandle<String> = Recorder::new().1;
        for _ in 0..3 {
            received.record(&events.next().await.expect("three initial events"));
        }
        settle().await;
        assert!(!events.subscription().status().synced);
        world.apply("a/one", "x").await;
        received.record(&events.next().await.expect("the update"));
        assert!(events.subscription().status().synced);
        received.agrees_with(&world.informer.snapshot()).expect("the events replay to the store");
        world.informer.shutdown(Duration::from_secs(1)).await;
        assert!(events.next().await.is_none(), "it ends with the informer");
    });
}

#[test]
fn lis_09_a_shutdown_delivers_what_waits_until_its_deadline_and_names_subscribers_that_did_not_finish() {
    run(three, |world| async move {
        let (slow, received, gate, _) = Slow::new();
        let _stuck = world.informer.subscribe(slow.start()).expect("it runs");
        let quick = world.watched();
        quick.synced().await;
        world.server.apply("a/one", "the last event".to_owned());
        settle().await;
        gate.add_permits(1);
        let report = world.informer.shutdown(Duration::from_secs(10)).await;
        assert_eq!(report.unfinished.len(), 1, "{report:?}");
        assert_eq!(&*report.unfinished[0].name, "Slow-0");
        assert_eq!(received.len(), 1);
        assert_eq!(quick.received.len(), 4, "what was queued before the shutdown was delivered");
    });
}

#[test]
fn inf_11_a_subscriptions_shutdown_returns_after_the_last_callback_has_returned() {
    run(three, |world| async move {
        let running = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&running);
        let subscription = world
            .informer
            .for_each(move |_| {
                let running = Arc::clone(&counted);
                async move {
                    running.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_secs(2)).await;
                    running.fetch_sub(1, Ordering::Relaxed);
                }
            })
            .expect("it runs");
        world.synced().await;
        pass(Duration::from_secs(1)).await;
        assert_eq!(running.load(Ordering::Relaxed), 1);
        assert_eq!(subscription.shutdown(LONG).await, Ok(()));
        assert_eq!(running.load(Ordering::Relaxed), 0);
    });
}

// INF-29: given a subscribed actor and 100 initial objects, when its handler has returned from 99, then
// subscription.synced() is pending; when the fence behind the 100th is answered, Ok.
// - a after 99 it is pending
// - b when the fence behind the 100th is answered, Ok
// - c for an actor whose handler returns a future, if it receives events one at a time (else LIS-23):
//   `lis_23_with_one_event_at_a_time_a_handler_that_returns_a_future_has_ended_when_synced`
#[test]
fn inf_29_a_subscribed_actor_is_synced_when_the_fence_behind_its_last_initial_event_is_answered() {
    run(
        |server| (0..100).for_each(|n| drop(server.apply(&format!("a/{n:03}"), String::new()))),
        |world| async move {
            let (slow, received, gate, _) = Slow::new();
            let subscription = world.informer.subscribe(slow.start()).expect("it runs");
            gate.add_permits(99);
            until(|| received.len() == 99).await;
            settle().await;
            assert!(!subscription.status().synced, "the hundredth is not handled");
            gate.add_permits(1);
            subscription.synced_within(LONG).await.expect("now it is");
        },
    );
}

// LIS-07: given a subscription with a name, or none (then the recipient's type), when logs and statistics are
// read, then they carry it and it stays the same over restarts.
// - a statistics carry the name, or else the recipient's type
// - b so do logs: `inf_23_a_callback_that_panics_is_logged_with_the_informer_the_subscription_and_the_key`
// - c it stays the same over restarts: `lis_07_names_stay_the_same_over_restarts`
#[test]
fn lis_07_a_subscription_carries_the_name_it_was_given_or_that_of_its_recipient() {
    run(three, |world| async move {
        let named = world.watched_with(SubscribeOptions::new().name("audit"));
        let unnamed = world.informer.subscribe(Mortal(9).start()).expect("it runs");
        assert_eq!(&*named.subscription.status().name, "audit");
        assert_eq!(&*unnamed.status().name, "Mortal-1");
        world.synced().await;
        assert_eq!(&*unnamed.status().name, "Mortal-1");
    });
}

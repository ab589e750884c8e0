//! What a shutdown's report and a subscription's status contain: LIS-24, LIS-25, LIS-28.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::Actor;
use futures_util::StreamExt;
use informer_actors::informer::{Informer, ShutdownReport};
use informer_actors::subscription::{SubscribeOptions, Subscriber};
use informer_actors::testing::Server;
use tokio::sync::watch;

use crate::blocking::{Gate, on_threads, stuck};
use crate::delivery::Slow;
use crate::threads::{LIMIT, block_on, informer, start};
use crate::world::{LONG, run, settle, three, until};

/// Each unfinished subscription: its name, the events dropped, and those in flight.
pub(crate) fn unfinished(report: &ShutdownReport) -> Vec<(&str, usize, usize)> {
    report.unfinished.iter().map(|one| (&*one.name, one.dropped, one.in_flight)).collect()
}

// LIS-24: given a subscriber that has not handled its last window (a closure, a blocking closure, an actor,
// an actor with events one at a time, a stream), when a shutdown's limit passes, then its status shows the
// window in flight, the report names it with what is dropped and in flight, and is not clean; with everything
// handled it is clean; while it is shut down no further resync begins.
// - a the status of each shows the window in flight
// - b the report names each with what is dropped and in flight, and is not clean
// - c on threads too, with a blocking closure, which it reports as still running:
//   `lis_24_a_report_names_each_subscriber_that_has_not_handled_its_first_window_on_threads_too`
// - d with everything handled it is clean:
//   `lis_24_a_report_is_clean_when_every_subscriber_has_handled_everything`
// - e while it is shut down no further resync begins, so that the shutdown ends:
//   `lis_24_a_subscriber_that_is_shut_down_receives_no_further_resync_so_that_the_shutdown_ends`
#[test]
fn lis_24_a_report_names_each_subscriber_that_has_not_handled_its_first_window_and_is_not_clean() {
    run(three, |world| async move {
        let closure = world.informer.for_each(|_| pending()).expect("it runs");
        let actor = world.informer.subscribe(Slow::new().0.start()).expect("it runs");
        let one = SubscribeOptions::new().one_at_a_time();
        let one = world.informer.subscribe_with(one, Slow::new().0.start()).expect("it runs");
        let mut events = world.informer.events().expect("it runs");
        events.next().await.expect("the first of three");
        settle().await;
        for subscription in [&closure, &actor, &one, events.subscription()] {
            let status = subscription.status();
            assert!(status.in_flight && !status.synced && status.delivered == 0, "{status:?}");
        }
        let report = world.informer.shutdown(Duration::from_secs(3)).await;
        let expected = [("closure-0", 0, 3), ("Slow-1", 0, 3), ("Slow-2", 2, 1), ("stream-3", 0, 3)];
        assert_eq!(unfinished(&report), expected);
        assert!(!report.is_clean() && !report.still_running, "{report:?}");
    });
}

#[test]
fn lis_24_a_report_names_each_subscriber_that_has_not_handled_its_first_window_on_threads_too() {
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        three(&server);
        let informer = informer(&runtime, &server);
        informer.synced_within(LIMIT).await.expect("it syncs");
        let (gate, held) = Gate::new();
        let _blocking = stuck(&informer, &held).await;
        let (begun, mut begins) = watch::channel(false);
        let _closure = informer.for_each(move |_| {
            begun.send_replace(true);
            pending()
        });
        begins.wait_for(|begun| *begun).await.expect("it is called");
        let (begun, mut begins) = watch::channel(false);
        let one = informer.subscribe_with(
            SubscribeOptions::new().one_at_a_time(),
            Subscriber::each(move |_| {
                begun.send_replace(true);
                pending()
            }),
        );
        begins.wait_for(|begun| *begun).await.expect("it is called");
        let mut events = informer.events().expect("it runs");
        events.next().await.expect("the first of three");
        let report = informer.shutdown(Duration::from_millis(50)).await;
        let expected = [("blocking-0", 0, 3), ("closure-1", 0, 3), ("closure-2", 2, 1), ("stream-3", 0, 3)];
        assert_eq!(unfinished(&report), expected);
        drop(one);
        assert!(report.unfinished[0].still_running, "a blocked thread cannot be ended: {report:?}");
        assert!(!report.unfinished[1].still_running, "an async call is cancelled: {report:?}");
        assert!(report.still_running && !report.is_clean());
        drop(gate);
    });
}

#[test]
fn lis_24_a_report_is_clean_when_every_subscriber_has_handled_everything() {
    run(three, |world| async move {
        world.synced().await;
        let watched = world.watched();
        let one = world.watched_with(SubscribeOptions::new().one_at_a_time());
        let closure = world.informer.for_each(|_| settle()).expect("it runs");
        let report = world.informer.shutdown(LONG).await;
        assert!(report.is_clean(), "{report:?}");
        for subscription in [&watched.subscription, &one.subscription, &closure] {
            let status = subscription.status();
            assert_eq!((status.delivered, status.depth, status.in_flight), (3, 0, false), "{status:?}");
        }
    });
}

// LIS-25: given a subscription that becomes synced, when its status is read at any moment, then synced comes
// together with the initial events delivered and none in flight.
#[test]
fn lis_25_a_status_that_is_synced_shows_the_initial_events_as_delivered() {
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        three(&server);
        let informer = informer(&runtime, &server);
        informer.synced_within(LIMIT).await.expect("it syncs");
        for round in 0..300 {
            let subscription = match round % 2 {
                0 => informer.for_each(|_| std::future::ready(())),
                _ => informer.subscribe(Subscriber::blocking(|_| ())),
            };
            let subscription = subscription.expect("it runs");
            let status = loop {
                let status = subscription.status();
                if status.synced {
                    break status;
                }
                std::thread::yield_now();
            };
            assert_eq!((status.delivered, status.depth, status.in_flight), (3, 0, false), "{status:?}");
        }
    });
}

/// The report of a shutdown inside a callback.
type Reported = watch::Receiver<Option<ShutdownReport>>;

/// An async closure that shuts its own informer down at its first event, and records the report.
fn shuts_down(informer: &Informer<String>, limit: Duration) -> Reported {
    let (result, reported) = watch::channel(None);
    let own = Arc::new(Mutex::new(Some(informer.clone())));
    let subscription = informer.for_each(move |_| {
        let own = own.lock().expect("no panic").take();
        let result = result.clone();
        async move {
            if let Some(own) = own {
                result.send_replace(Some(own.shutdown(limit).await));
            }
        }
    });
    // Its informer ends it.
    std::mem::forget(subscription);
    reported
}

// LIS-28: given `Informer::shutdown` awaited inside one of its own closures, async or blocking, when it runs,
// then it drains all others, does not wait for that one, and says so; inside another informer's closure it
// works as usual.
// - a it drains all others
// - b it does not wait for that one, and says so
// - c inside a blocking closure, too:
//   `lis_28_an_informers_shutdown_inside_its_own_blocking_closure_does_not_wait_for_itself`
// - d inside another informer's closure it works as usual:
//   `lis_28_an_informers_shutdown_inside_another_informers_callback_waits_as_usual`
#[test]
fn lis_28_an_informers_shutdown_inside_its_own_async_closure_waits_for_the_others_and_not_for_that_one() {
    run(three, |world| async move {
        world.synced().await;
        let (slow, received, gate, _) = Slow::new();
        let _other = world.informer.subscribe(slow.start()).expect("it runs");
        let before = world.runtime.now();
        let mut reported = shuts_down(&world.informer, LONG);
        settle().await;
        assert!(reported.borrow().is_none(), "the other one has not come back");
        gate.add_permits(3);
        reported.wait_for(Option::is_some).await.expect("it has the report");
        assert!(world.runtime.now() - before < Duration::from_secs(1), "it did not wait for itself");
        let report = reported.borrow().clone().expect("it is there");
        assert_eq!(received.len(), 3, "what the others were owed was delivered");
        assert_eq!(unfinished(&report), [("closure-1", 0, 3)]);
        assert!(report.own_callback && report.still_running && !report.is_clean(), "{report:?}");
        until(|| world.informer.status().stopped).await;
        assert!(
            world.informer.shutdown(LONG).await.is_clean(),
            "outside it ends, and the callback has ended"
        );
    });
}

#[test]
fn lis_28_an_informers_shutdown_inside_its_own_blocking_closure_does_not_wait_for_itself() {
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        three(&server);
        let informer = informer(&runtime, &server);
        let (result, mut reported) = watch::channel(None);
        let mut own = Some(informer.clone());
        let _subscription = informer.subscribe(Subscriber::blocking(move |_| {
            let Some(own) = own.take() else { return };
            let shutdown = own.shutdown(LIMIT);
            let report = block_on(&mut tokio::runtime::Builder::new_current_thread(), shutdown);
            result.send_replace(Some(report));
        }));
        let in_time = tokio::time::timeout(LIMIT / 2, reported.wait_for(Option::is_some)).await;
        in_time.expect("long before the limit").expect("it has the report");
        let report = reported.borrow().clone().expect("it is there");
        assert!(report.own_callback && !report.is_clean(), "{report:?}");
        assert!(informer.shutdown(LIMIT).await.is_clean());
    });
}

#[test]
fn lis_28_an_informers_shutdown_inside_another_informers_callback_waits_as_usual() {
    run(three, |world| async move {
        world.synced().await;
        let server: Server<String> = Server::new();
        let connected = server.clone();
        let other = Informer::builder(&world.runtime, "others").source(move || connected.clone()).start();
        let other = other.expect("the spec is valid");
        let (result, mut reported) = watch::channel(None);
        let _caller = world.informer.for_each(move |_| {
            let (other, result) = (other.clone(), result.clone());
            async move {
                result.send_replace(Some(other.shutdown(LONG).await));
            }
        });
        reported.wait_for(Option::is_some).await.expect("it has the report");
        assert_eq!(*reported.borrow(), Some(ShutdownReport::default()));
    });
}

#[test]
fn lis_24_a_subscriber_that_is_shut_down_receives_no_further_resync_so_that_the_shutdown_ends() {
    run(three, |world| async move {
        // A round of three events takes three seconds, and a resync is due every two seconds.
        let options = SubscribeOptions::new().resync_every(Duration::from_secs(2));
        let slow = |_| tokio::time::sleep(Duration::from_secs(1));
        let subscription = world.informer.subscribe_with(options, Subscriber::each(slow)).expect("it runs");
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(subscription.status().delivered > 3, "it is resynced: {:?}", subscription.status());
        let ended = tokio::time::timeout(Duration::from_secs(60), subscription.shutdown(Duration::MAX));
        assert_eq!(ended.await.expect("it ends"), Ok(()));
    });
}

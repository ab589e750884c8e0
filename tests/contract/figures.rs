//! The figures that a dashboard shows, and the report of a runtime with all of them. INF-67, INF-68.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use informer_actors::informer::Informer;
use informer_actors::list_watch::SourceSpec;
use informer_actors::runtime::Runtime;
use informer_actors::status::InformerReport;
use informer_actors::status::QueueStatus;
use informer_actors::subscription::{SubscribeOptions, Subscriber, Subscription};
use informer_actors::testing::Server;
use informer_actors::testing::{Faults, Site};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::SourceId;
use informer_core::reflector::{ReflectorConfig, SourceState};
use informer_operator::report::{Reporting, RuntimeReport};

use crate::world::{LONG, World, pass, run, run_with, settle, three, until, until_now};

const SECOND: Duration = Duration::from_secs(1);

/// Subscribes a closure that takes this long for each event.
fn slow(world: &World, took: Duration) -> Subscription<String> {
    let options = SubscribeOptions::new().name("slow");
    let subscription =
        world.informer.subscribe_with(options, Subscriber::each(move |_| tokio::time::sleep(took)));
    subscription.expect("the informer runs")
}

// INF-67: given a runtime with informers, several sources and subscriptions, when `Runtime::report` is
// called, on whatever thread, then it lists arbiters, informers, sources, queues and subscriptions with their
// figures, without a hook and without asking an actor; what has ended is not listed any more.
#[test]
fn inf_67_a_runtime_lists_its_threads_informers_sources_queues_and_subscriptions_with_their_figures() {
    Runtime::simulated(7).run(|runtime| async move {
        assert!(runtime.report().informers.is_empty());
        let [east, west] = ["east", "west"].map(|name| Server::<String>::named(SourceId::new(name)));
        east.apply("a/one", "1".to_owned());
        let source = |name: &str, server: &Server<String>| {
            SourceSpec::new(SourceId::new(name), server.connect(), ReflectorConfig::new("pods"))
        };
        let pods = Informer::builder(&runtime, "pods").source_with(source("east", &east));
        let pods = pods.source_with(source("west", &west)).start().expect("the spec is valid");
        let numbers = Server::<u32>::new();
        let numbers = Informer::builder(&runtime, "numbers").source(move || numbers.clone()).start();
        let numbers = numbers.expect("the spec is valid");
        let of = |name: &str| SubscribeOptions::new().name(name.to_owned());
        let first =
            pods.subscribe_with(of("first"), Subscriber::each(|_| std::future::ready(()))).expect("it runs");
        let second =
            pods.subscribe_with(of("second"), Subscriber::each(|_| std::future::ready(()))).expect("it runs");
        first.synced_within(LONG).await.expect("it has received everything");
        second.synced_within(LONG).await.expect("it has received everything");
        numbers.synced_within(LONG).await.expect("it lists");
        let report = runtime.report();
        assert_eq!(report.at, runtime.now());
        assert_eq!(report.arbiters.len(), 2);
        let names = |report: &RuntimeReport| -> Vec<String> {
            let path = |report: &InformerReport| {
                let sources = report.status.sources.iter().map(|source| source.source.to_string());
                let subscriptions = report.subscriptions.iter().map(|status| status.name.to_string());
                let parts: Vec<_> = sources.chain(subscriptions).collect();
                format!("{}: {}", report.status.name, parts.join(" "))
            };
            report.informers.iter().map(path).collect()
        };
        assert_eq!(names(&report), ["pods: east west first second", "numbers: default"]);
        assert_eq!(report.informers[0].status.objects, 1);
        assert_eq!(report.informers[0].subscriptions[1].delivered, 1);
        assert_eq!(pods.subscriptions().len(), 2);
        drop(first);
        settle().await;
        assert!(numbers.shutdown(LONG).await.is_clean());
        assert_eq!(names(&runtime.report()), ["pods: east west second"]);
        drop((pods, second));
        settle().await;
        assert!(runtime.report().informers.is_empty());
    });
}

#[test]
fn inf_68_how_long_lists_and_syncs_took_is_known() {
    run(three, |world| async move {
        world.server.hold_lists(true);
        let slow = slow(&world, SECOND);
        pass(5 * SECOND).await;
        let status = world.informer.status();
        assert_eq!((status.sync_took, status.sources[0].last_list_took), (None, None));
        world.server.hold_lists(false);
        world.synced().await;
        slow.synced_within(LONG).await.expect("it has received everything");
        let status = world.informer.status();
        assert_eq!(status.sync_took, Some(5 * SECOND));
        assert_eq!(status.sources[0].last_list_took, Some(5 * SECOND));
        assert_eq!(slow.status().sync_took, Some(8 * SECOND), "three events, a second each");
        // A relist takes two seconds.
        world.server.hold_lists(true);
        world.server.compact();
        world.server.end_watches(Some(ListWatchError::Expired("compacted".into())));
        settle().await;
        let relisting = world.informer.status().sources[0].last_list_took;
        assert_eq!(relisting, Some(5 * SECOND), "until the next one is delivered");
        pass(2 * SECOND).await;
        world.server.hold_lists(false);
        world.streaming().await;
        let status = world.informer.status();
        let took = status.sources[0].last_list_took.expect("one was delivered");
        assert!(took >= 2 * SECOND && took < 3 * SECOND, "{took:?}");
        assert_eq!(status.sync_took, Some(5 * SECOND), "once for ever");
    });
}

#[test]
fn inf_68_delivery_latency_counts_from_the_reading_to_the_end_of_the_handling() {
    run(three, |world| async move {
        world.synced().await;
        let (slow, quick) = (slow(&world, SECOND), world.watched());
        slow.synced_within(LONG).await.expect("it has received everything");
        quick.synced().await;
        let (none, calls) = (slow.status().latency, slow.status().calls);
        assert_eq!((none.count, calls.count), (0, 0), "events delivered before do not count");
        // The second event waits until the first one is handled, and then takes as long itself.
        world.apply("a/one", "first").await;
        settle().await;
        world.apply("a/two", "second").await;
        until(|| slow.status().latency.count == 2).await;
        let (latency, calls) = (slow.status().latency, slow.status().calls);
        assert_eq!((calls.count, calls.last, calls.max, calls.total), (2, SECOND, SECOND, 2 * SECOND));
        let about = |time: Duration| time..time + SECOND / 10;
        assert!(about(2 * SECOND - SECOND / 100).contains(&latency.last), "{latency:?}");
        let within =
            |bound| latency.cumulative().find(|(end, _)| *end == Some(bound * SECOND)).map(|(_, n)| n);
        assert_eq!((latency.last, within(1), within(5)), (latency.max, Some(1), Some(2)));
        assert!(about(3 * SECOND - SECOND / 100).contains(&latency.total), "{latency:?}");
        let latency = quick.subscription.status().latency;
        assert_eq!((latency.count, latency.max), (2, Duration::ZERO), "no time passes in the pipeline");
    });
}

#[test]
fn inf_68_what_waits_in_the_queue_is_shown_and_counts_into_the_latency() {
    let stalled = Arc::new(AtomicBool::new(false));
    run_with(Faults::stalling(Site::IndexerReplace, Arc::clone(&stalled)), three, |world| async move {
        let watched = world.watched();
        world.synced().await;
        watched.synced().await;
        let queue = || world.informer.status().queue;
        assert_eq!(queue(), QueueStatus::default());
        // The Indexer gets a list and stops making progress.
        world.server.hold_lists(true);
        world.server.compact();
        world.server.end_watches(Some(ListWatchError::Expired("compacted".into())));
        pass(5 * SECOND).await;
        stalled.store(true, Ordering::Relaxed);
        world.server.hold_lists(false);
        let lists = || world.informer.status().sources[0].counters.relists;
        let streaming = || matches!(world.informer.state(), SourceState::Streaming);
        until_now(|| lists() == 1 && streaming()).await;
        let began = world.runtime.now();
        let version = world.server.apply("a/one", "after the list".to_owned());
        until_now(|| queue().parts == 1).await;
        assert_eq!((queue().bytes, queue().oldest_since), (100, Some(began)));
        tokio::time::advance(5 * SECOND).await;
        stalled.store(false, Ordering::Relaxed);
        world.reaches(&version).await;
        watched.agrees(&world).await;
        assert_eq!(queue(), QueueStatus::default());
        let latency = watched.subscription.status().latency;
        assert_eq!((latency.count, latency.last), (1, 5 * SECOND), "{latency:?}");
    });
}

// INF-68: given lists, events, watches that end and subscribers that take their time, when the status is
// read, then it shows how long syncs and lists took, how many bytes came, how watches ended by reason, what
// waits in the queue and since when, the delivery latency of each subscription from the reflector's reading
// to the end of the handling, and how long closures took; figures that change with each event wake no wait.
// - a how long lists and syncs took: `inf_68_how_long_lists_and_syncs_took_is_known`
// - b delivery latency, and the time of closures:
//   `inf_68_delivery_latency_counts_from_the_reading_to_the_end_of_the_handling`
// - c what waits in the queue, and that the latency counts it:
//   `inf_68_what_waits_in_the_queue_is_shown_and_counts_into_the_latency`
// - d bytes and ends of watches
// - e no wait is woken by what changes with each event:
//   `inf_68_figures_that_change_with_each_event_do_not_wake_a_wait_for_the_status`
#[test]
fn inf_68_bytes_from_the_wire_and_ends_of_watches_are_counted_by_reason() {
    run(three, |world| async move {
        world.synced().await;
        world.streaming().await;
        let source = || world.informer.status().sources[0].clone();
        assert_eq!(source().wire_bytes, 300, "each object of the server weighs 100 bytes");
        world.apply("a/one", "changed").await;
        world.delete("a/two").await;
        assert_eq!(source().wire_bytes, 500);
        let before = source().watch_ends;
        for (error, reason) in [
            (None, "finished"),
            (Some(ListWatchError::Overloaded { message: "wait".into(), retry_after: None }), "overloaded"),
            (Some(ListWatchError::Denied("no".into())), "refused"),
            (Some(ListWatchError::Timeout("silence".into())), "broken"),
            (Some(ListWatchError::Expired("old".into())), "expired"),
        ] {
            let counted = || source().watch_ends.by_reason().into_iter().find(|(name, _)| *name == reason);
            let (_, then) = counted().expect("each reason is listed");
            world.apply("a/one", reason).await;
            world.server.end_watches(error);
            until(|| counted() == Some((reason, then + 1))).await;
            pass(120 * SECOND).await;
            world.streaming().await;
        }
        assert!(source().watch_ends.total() >= before.total() + 5, "{:?}", source().watch_ends);
        // A watch that is silent for 90 s is replaced by another one, and closed.
        let closed = source().watch_ends.closed;
        pass(200 * SECOND).await;
        assert!(source().watch_ends.closed > closed, "{:?}", source().watch_ends);
    });
}

#[test]
fn inf_68_figures_that_change_with_each_event_do_not_wake_a_wait_for_the_status() {
    run(three, |world| async move {
        let watched = world.watched();
        world.synced().await;
        watched.synced().await;
        world.streaming().await;
        let looks = AtomicUsize::new(0);
        let waiting = world.informer.wait_until(|status| {
            looks.fetch_add(1, Ordering::Relaxed);
            status.objects == 4
        });
        let events = async {
            settle().await;
            let before = looks.load(Ordering::Relaxed);
            for number in 0..100 {
                world.apply("a/one", &format!("change {number}")).await;
            }
            settle().await;
            assert_eq!(looks.load(Ordering::Relaxed), before);
            assert_eq!(watched.subscription.status().latency.count, 100);
            world.apply("d/four", "new").await;
        };
        let (found, ()) = futures_util::future::join(waiting, events).await;
        assert_eq!(found.expect("it runs").objects, 4);
    });
}

//! Subscribers at work: what each kind of them receives, how many events at once, and when they leave or panic.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Context, Handler, ResponseFuture};
use futures_util::StreamExt;
use futures_util::future::poll_immediate;
use informer_actors::subscription::SubscribeOptions;
use informer_actors::subscription::{Notify, Subscriber};
use informer_actors::testing::Site;
use informer_actors::testing::{Recorder, RecorderHandle, Server, kill_at};
use tokio::sync::{Semaphore, oneshot};

use crate::blocking::{Gate, on_threads};
use crate::delivery::Slow;
use crate::threads::{LIMIT, informer, start};
use crate::world::{LONG, nothing, pass, run, run_with, settle, three, until};

/// A thousand objects.
fn thousand(server: &Server<String>) {
    (0..1_000).for_each(|n| drop(server.apply(&format!("a/{n:04}"), String::new())));
}

#[test]
fn inf_05_no_further_call_of_an_async_closure_starts_after_its_subscription_is_dropped() {
    run(three, |world| async move {
        let (gate, calls) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        let (held, counted) = (Arc::clone(&gate), Arc::clone(&calls));
        let subscription = world.informer.for_each(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            let held = Arc::clone(&held);
            async move { held.acquire().await.expect("the gate stays open").forget() }
        });
        until(|| calls.load(Ordering::Relaxed) == 1).await;
        drop(subscription);
        gate.add_permits(100);
        world.apply("a/one", "after").await;
        pass(Duration::from_secs(60)).await;
        assert_eq!(calls.load(Ordering::Relaxed), 1, "two more were in its window");
    });
}

#[test]
fn inf_05_a_subscribed_actor_receives_nothing_after_the_window_in_its_mailbox_once_its_subscription_is_dropped()
 {
    run(thousand, |world| async move {
        let (slow, received, gate, _) = Slow::new();
        let subscription = world.informer.subscribe(slow.start()).expect("it runs");
        world.synced().await;
        gate.add_permits(10);
        until(|| received.len() == 10).await;
        drop(subscription);
        settle().await;
        gate.add_permits(1_000_000);
        world.apply("a/0000", "after").await;
        pass(Duration::from_secs(60)).await;
        assert!(
            (11..=64).contains(&received.len()),
            "{} of its window, and nothing after it",
            received.len()
        );
    });
}

#[test]
fn inf_23_an_async_closure_that_panics_in_added_updated_or_deleted_loses_only_that_event() {
    for awaits_first in [false, true] {
        run(nothing, |world| async move {
            world.synced().await;
            let received: RecorderHandle<String> = Recorder::new().1;
            let recorded = received.clone();
            let subscription = world.informer.for_each(move |notify| {
                let is_lethal = notify.subject().body().contains("lethal");
                assert!(awaits_first || !is_lethal, "before its first await");
                let received = recorded.clone();
                async move {
                    tokio::task::yield_now().await;
                    assert!(!is_lethal, "after its first await");
                    received.record(&notify);
                }
            });
            let subscription = subscription.expect("it runs");
            let other = world.watched();
            for (key, body) in
                [("a/one", "lethal"), ("a/one", "good"), ("a/one", "lethal"), ("a/two", "lethal")]
            {
                world.apply(key, body).await;
                settle().await;
            }
            world.delete("a/two").await;
            settle().await;
            world.apply("a/three", "the next one").await;
            until(|| received.len() == 2).await;
            assert_eq!(received.lines(), ["Updated(Watch) a/one@3", "Added(Watch) a/three@7"]);
            assert_eq!(subscription.status().panics, 4, "awaits first: {awaits_first}");
            other.agrees(&world).await;
            assert_eq!(other.received.len(), 6);
        });
    }
}

#[test]
fn inf_27_an_async_closure_is_synced_when_its_last_initial_call_has_ended_early_or_late() {
    for joins_late in [false, true] {
        run(three, |world| async move {
            if joins_late {
                world.synced().await;
            }
            let gate = Arc::new(Semaphore::new(2));
            let held = Arc::clone(&gate);
            let subscription = world.informer.for_each(move |_| {
                let held = Arc::clone(&held);
                async move { held.acquire().await.expect("the gate stays open").forget() }
            });
            let subscription = subscription.expect("it runs");
            world.synced().await;
            let early = subscription.synced_within(Duration::from_secs(60)).await;
            assert!(early.is_err(), "the third call has not ended");
            gate.add_permits(1);
            subscription.synced_within(LONG).await.expect("now it has");
        });
    }
}

// INF-27: given a subscription still working through its initial events, when the informer is synced, then
// subscription.synced() is pending until its last initial callback has returned.
// - a the decision: not before the last initial event is handled:
//   `inf_27_initial_events_are_delivered_when_the_last_of_them_is_acknowledged`
// - b an async closure, joined before the list or late: pending until its last initial call has ended:
//   `inf_27_an_async_closure_is_synced_when_its_last_initial_call_has_ended_early_or_late`
// - c a blocking closure, too
// - d a stream: until the item after the last initial one is asked for:
//   `lis_15_a_stream_gives_the_same_events_and_is_synced_when_asked_beyond_the_last_initial_one`
// - e the last initial event is that of the source that lists last, whatever else waits:
//   `inf_27_deletions_that_wait_and_are_undone_bring_no_subscription_to_its_end_too_early`
#[test]
fn inf_27_a_blocking_closure_is_synced_when_its_last_initial_call_has_returned_early_or_late() {
    for joins_late in [false, true] {
        on_threads(async {
            let (runtime, server) = (start(), Server::new());
            three(&server);
            let informer = informer(&runtime, &server);
            if joins_late {
                informer.synced_within(LIMIT).await.expect("it syncs");
            }
            let (gate, held) = Gate::new();
            let (begun, begins) = oneshot::channel();
            let mut begun = Some(begun);
            let subscription = informer.subscribe(Subscriber::blocking(move |notify| {
                if notify.key().namespace() == Some("b") {
                    begun.take().map(|begun| begun.send(()));
                    held.wait();
                }
            }));
            let subscription = subscription.expect("it runs");
            begins.await.expect("the last one is called");
            informer.synced_within(LIMIT).await.expect("it syncs");
            assert!(poll_immediate(subscription.synced()).await.is_none(), "it has not returned");
            drop(gate);
            subscription.synced_within(LIMIT).await.expect("now it has");
        });
    }
}

#[test]
fn lis_07_names_stay_the_same_over_restarts() {
    run_with(kill_at(Site::IndexerApply, 3), three, |world| async move {
        let named = world.watched_with(SubscribeOptions::new().name("audit"));
        let unnamed = world.watched();
        world.synced().await;
        let names = || [&named, &unnamed].map(|watched| watched.subscription.status().name.to_string());
        let before = names();
        for n in 0..4 {
            world.apply("a/one", &n.to_string()).await;
        }
        assert_eq!(world.informer.status().restarts, 1);
        named.agrees(&world).await;
        assert_eq!(names(), before);
        assert_eq!(before, ["audit", "Recorder-1"]);
    });
}

// LIS-08: given a stalled `Coalesce` subscriber and 1,000,000 events on 100 keys, when its backlog is read,
// then it holds at most a Deleted, the last brief life and an Added a key, only keys that are live or owed a
// Deleted or a brief life, at most 4,096 brief lives, the oldest beyond that dropped and counted, and depth,
// oldest age and coalesced count are visible.
// - a it holds at most a Deleted, a brief life and an Added a key:
//   `lis_08_a_stalled_subscriber_is_behind_on_keys_and_not_on_events`
// - b only keys that are live or owed a Deleted or a brief life:
//   `lis_08_keys_that_are_not_live_wait_only_while_a_deleted_or_a_brief_life_waits`
// - c depth, oldest age and coalesced count are visible
// - d brief lives beyond the bound are dropped, oldest first, and counted, also those of keys that a cursor
//   has yet to pass: `lis_08_brief_lives_beyond_the_bound_are_dropped_oldest_first_and_counted`
// - e depth counts each key once, also one that was ready to be told and changes again:
//   `lis_08_a_key_that_was_ready_to_be_delivered_and_changes_again_counts_once`
#[test]
fn lis_08_depth_oldest_age_and_coalesced_count_of_a_stalled_subscriber_are_visible() {
    run(three, |world| async move {
        let (slow, _received, _gate, _) = Slow::new();
        let subscription = world.informer.subscribe(slow.start()).expect("it runs");
        world.synced().await;
        pass(Duration::from_secs(10)).await;
        assert_eq!(subscription.status().oldest_since, None, "what is in flight is not owed");
        let since = world.runtime.now();
        world.apply("a/one", "x").await;
        pass(Duration::from_secs(5)).await;
        world.apply("a/two", "y").await;
        world.apply("a/one", "z").await;
        settle().await;
        let status = subscription.status();
        assert_eq!((status.depth, status.coalesced, status.oldest_since), (2, 1, Some(since)));
    });
}

// LIS-09: given stop with a backlog, when shutdown has a deadline, then what is owed is delivered until the
// deadline; the rest is dropped, and the report names each subscription that did not finish, with its dropped
// count.
// - a what is owed is delivered until the deadline
// - b the rest is dropped, and the report names each subscription that did not finish, with its dropped count
#[test]
fn lis_09_until_the_deadline_what_waits_is_delivered_and_then_the_rest_is_dropped_and_reported() {
    run(
        |server| (0..200).for_each(|n| drop(server.apply(&format!("a/{n:03}"), String::new()))),
        |world| async move {
            let calls = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&calls);
            let takes_its_time = world.informer.for_each(move |_| {
                let calls = Arc::clone(&counted);
                async move {
                    pass(Duration::from_millis(10)).await;
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
            let mut stuck = Vec::new();
            for name in ["stuck", "stuck, too"] {
                let (slow, ..) = Slow::new();
                let options = SubscribeOptions::new().name(name);
                stuck.push(world.informer.subscribe_with(options, slow.start()).expect("it runs"));
            }
            world.synced().await;
            let before = world.runtime.now();
            let report = world.informer.shutdown(Duration::from_secs(10)).await;
            assert_eq!((world.runtime.now() - before).as_secs(), 10);
            assert_eq!(calls.load(Ordering::Relaxed), 200, "two seconds of work, and time for ten");
            let unfinished: Vec<_> = report.unfinished.iter().map(|one| (&*one.name, one.dropped)).collect();
            assert_eq!(
                unfinished,
                [("stuck", 136), ("stuck, too", 136)],
                "all of it after their windows: {report:?}"
            );
            drop((takes_its_time, stuck));
        },
    );
}

/// An actor whose handlers run at once, each until it gets a permit.
struct Crowd {
    capacity: usize,
    gate: Arc<Semaphore>,
    entered: Arc<AtomicUsize>,
}

impl Actor for Crowd {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(self.capacity);
    }
}

impl Handler<Notify<String>> for Crowd {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _notify: Notify<String>, _ctx: &mut Context<Self>) -> Self::Result {
        self.entered.fetch_add(1, Ordering::Relaxed);
        let gate = Arc::clone(&self.gate);
        Box::pin(async move { gate.acquire().await.expect("the gate stays open").forget() })
    }
}

#[test]
fn lis_11_no_more_than_64_are_sent_before_the_last_of_them_is_handled_whatever_the_mailboxs_capacity() {
    for capacity in [1, 16, 1_000] {
        run(thousand, |world| async move {
            let (gate, entered) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
            let crowd = Crowd { capacity, gate: Arc::clone(&gate), entered: Arc::clone(&entered) };
            let address = crowd.start();
            settle().await;
            let subscription = world.informer.subscribe(address).expect("it runs");
            world.synced().await;
            for windows in 1..=3 {
                pass(Duration::from_secs(1)).await;
                assert_eq!(entered.load(Ordering::Relaxed), 64 * windows, "capacity {capacity}");
                gate.add_permits(63);
                pass(Duration::from_secs(1)).await;
                assert_eq!(entered.load(Ordering::Relaxed), 64 * windows, "the awaited one is not handled");
                gate.add_permits(1);
            }
            gate.add_permits(1_000);
            subscription.synced_within(LONG).await.expect("it syncs");
            assert_eq!(entered.load(Ordering::Relaxed), 1_000);
        });
    }
}

// LIS-14: given a blocking closure that sleeps 1 s, when events arrive, then it runs on the callback pool,
// one batch at a time, in order, the pipeline goes on meanwhile, and as many of them as there are cores,
// never returning, delay no further one.
// - a it runs on the callback pool:
//   `lis_14_a_blocking_closure_runs_on_the_callback_pool_and_holds_no_thread_while_it_is_idle`
// - b one call at a time, in order
// - c the pipeline goes on meanwhile:
//   `lis_01_an_actor_a_blocking_or_an_async_closure_that_never_returns_delays_nobody_else`
// - d as many as there are cores, never returning, delay no further one:
//   `lis_14_as_many_blocking_closures_as_there_are_cores_that_never_return_delay_no_further_one`
#[test]
fn lis_14_a_blocking_closure_is_called_for_one_event_at_a_time_and_in_order() {
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        (0..300).for_each(|n| drop(server.apply(&format!("a/{n:03}"), String::new())));
        let informer = informer(&runtime, &server);
        informer.synced_within(LIMIT).await.expect("it syncs");
        let (running, received) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (inside, keys) = (Arc::clone(&running), Arc::clone(&received));
        let subscription = informer.subscribe(Subscriber::blocking(move |notify| {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
            keys.lock().expect("no panic").push(notify.key().name().to_owned());
            std::thread::yield_now();
            inside.fetch_sub(1, Ordering::SeqCst);
        }));
        let subscription = subscription.expect("it runs");
        subscription.synced_within(LIMIT).await.expect("it syncs");
        let expected: Vec<_> = (0..300).map(|n| format!("{n:03}")).collect();
        assert_eq!(*received.lock().expect("no panic"), expected);
        assert_eq!(subscription.status().panics, 0);
    });
}

#[test]
fn lis_15_a_stream_gives_what_an_actor_receives_in_the_same_order_and_coalesces_while_it_is_not_polled() {
    run(three, |world| async move {
        world.synced().await;
        let watched = world.watched();
        let mut events = world.informer.events().expect("it runs");
        let received: RecorderHandle<String> = Recorder::new().1;
        watched.synced().await;
        for _ in 0..3 {
            received.record(&events.next().await.expect("the initial ones"));
        }
        for n in 0..20 {
            match n % 5 {
                0 => world.delete("a/two").await,
                1 => world.apply("a/two", "again").await,
                _ => world.apply(&format!("a/{}", n % 3), &n.to_string()).await,
            };
            watched.lines(4 + n).await;
            received.record(&events.next().await.expect("the same one"));
        }
        assert_eq!(received.lines(), watched.received.lines());
        for n in 0..50 {
            world.apply("b/one", &n.to_string()).await;
        }
        let status = events.subscription().status();
        assert_eq!((status.depth, status.coalesced), (1, 49));
        received.record(&events.next().await.expect("one for all of them"));
        received.agrees_with(&world.informer.snapshot()).expect("the events replay to the store");
        assert!(poll_immediate(events.next()).await.is_none(), "and nothing more");
    });
}

#[test]
fn lis_02_a_closure_that_lags_receives_each_keys_events_in_order_and_one_at_a_time() {
    run(nothing, |world| async move {
        let received: RecorderHandle<String> = Recorder::new().1;
        let (recorded, running) = (received.clone(), Arc::new(AtomicUsize::new(0)));
        let subscription = world.informer.for_each(move |notify| {
            let (received, running) = (recorded.clone(), Arc::clone(&running));
            async move {
                assert_eq!(running.fetch_add(1, Ordering::Relaxed), 0, "one at a time");
                pass(Duration::from_millis(3)).await;
                received.record(&notify);
                running.fetch_sub(1, Ordering::Relaxed);
            }
        });
        let subscription = subscription.expect("it runs");
        for n in 0..500 {
            world.server.apply(&format!("a/{}", n % 7), n.to_string());
            if n % 11 == 0 {
                drop(world.server.delete(&format!("a/{}", n % 5)));
            }
            settle().await;
        }
        world.agrees().await;
        until(|| received.agrees_with(&world.informer.snapshot()).is_ok()).await;
        let status = subscription.status();
        assert!(status.coalesced > 50 && status.panics == 0, "{status:?}");
    });
}

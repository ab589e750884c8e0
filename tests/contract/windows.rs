//! What a subscriber has at a time and for how long: batches, windows, limits of calls, keys that are quiet, and the mark
//! behind the initial events.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Context, Handler, ResponseFuture};
use futures_util::StreamExt;
use informer_actors::subscription::{Batch, Marked, Notify, SubscribeOptions, Subscriber, Touched};
use informer_actors::testing::{Recorder, RecorderHandle, Server, Site, kill_at};
use informer_core::delta::Cause;
use informer_core::meta::ObjectKey;
use informer_operator::queue::WorkQueue;

use crate::blocking::{Gate, on_threads};
use crate::log::recorded;
use crate::threads::{LIMIT, informer, start};
use crate::world::{LONG, World, nothing, pass, run, run_with, three, until};

/// A hundred objects.
fn hundred(server: &Server<String>) {
    (0..100).for_each(|n| drop(server.apply(&format!("a/{n:03}"), String::new())));
}

/// Records the events of a batch, and its size.
#[derive(Clone)]
struct Sizes {
    sizes: Arc<Mutex<Vec<usize>>>,
    received: RecorderHandle<String>,
}

impl Sizes {
    fn new() -> Self {
        Self { sizes: Arc::default(), received: Recorder::new().1 }
    }

    fn note(&self, events: &[Notify<String>]) {
        self.sizes.lock().expect("no panic").push(events.len());
        events.iter().for_each(|notify| self.received.record(notify));
    }

    async fn agree(&self, world: &World) {
        until(|| self.received.agrees_with(&world.informer.snapshot()).is_ok()).await;
        let sizes = self.sizes.lock().expect("no panic");
        assert!(sizes.iter().all(|size| (1..=30).contains(size)) && sizes.contains(&30), "{sizes:?}");
    }
}

/// Takes a second for each batch.
struct Pages(Sizes);

impl Actor for Pages {
    type Context = Context<Self>;
}

impl Handler<Batch<String>> for Pages {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, Batch(events): Batch<String>, _ctx: &mut Context<Self>) -> ResponseFuture<()> {
        self.0.note(&events);
        Box::pin(tokio::time::sleep(Duration::from_secs(1)))
    }
}

// LIS-38: given a subscriber of batches (a closure or an actor), when events wait, then it receives all that
// wait at once, in order, at most its window and never none, one batch at a time; a panic costs its batch
// alone.
// - a all that waits, in order, at most its window, never none, to a closure and to an actor
// - b a panic costs its batch alone: `lis_38_a_panic_costs_its_batch_alone`
// - c the same for a closure that blocks:
//   `lis_38_a_closure_that_blocks_receives_all_that_waits_at_once_and_a_panic_costs_its_batch_alone`
#[test]
fn lis_38_a_closure_and_an_actor_receive_all_that_waits_at_once_up_to_their_window() {
    run(hundred, |world| async move {
        let (of_closure, of_actor) = (Sizes::new(), Sizes::new());
        let options = || SubscribeOptions::new().window(30);
        let noted = of_closure.clone();
        let closure = world.informer.subscribe_with(
            options(),
            Subscriber::each_batch(move |events| {
                noted.note(&events);
                tokio::time::sleep(Duration::from_secs(1))
            }),
        );
        let actor =
            world.informer.subscribe_with(options(), Subscriber::batches(Pages(of_actor.clone()).start()));
        let both = [closure.expect("it runs"), actor.expect("it runs")];
        world.synced().await;
        assert!(!both[0].status().synced, "the first batches are under way");
        for subscription in &both {
            subscription.synced_within(LONG).await.expect("every batch was handled");
        }
        world.changes_of(50).await;
        of_closure.agree(&world).await;
        of_actor.agree(&world).await;
    });
}

#[test]
fn lis_38_a_closure_that_blocks_receives_all_that_waits_at_once_and_a_panic_costs_its_batch_alone() {
    run(hundred, |world| async move {
        let sizes = Sizes::new();
        let noted = sizes.clone();
        let options = SubscribeOptions::new().window(30).callback_limit(LONG);
        let closure = world
            .informer
            .subscribe_with(options, Subscriber::blocking_batch(move |events| noted.note(&events)));
        let closure = closure.expect("it runs");
        closure.synced_within(LONG).await.expect("every batch was handled");
        world.changes_of(50).await;
        sizes.agree(&world).await;
        assert_eq!(closure.status().overran, 0);
        let panics = world.informer.subscribe(Subscriber::blocking_batch(|events: Vec<Notify<String>>| {
            assert!(events[0].cause() != Cause::InitialList, "on purpose");
        }));
        let panics = panics.expect("it runs");
        panics.synced_within(LONG).await.expect("it syncs");
        let (before, batches) = (panics.status().delivered, panics.status().panics);
        assert!(batches >= 2, "more objects than one batch of 64");
        world.apply("a/one", "after").await;
        until(|| panics.status().delivered == before + 1).await;
        assert_eq!(panics.status().panics, batches);
    });
}

#[test]
fn lis_38_a_panic_costs_its_batch_alone() {
    run(three, |world| async move {
        let subscription =
            world.informer.subscribe(Subscriber::each_batch(|events: Vec<Notify<String>>| async move {
                assert!(events[0].cause() != Cause::InitialList, "on purpose");
            }));
        let subscription = subscription.expect("it runs");
        subscription.synced_within(LONG).await.expect("it syncs");
        world.apply("a/one", "after").await;
        until(|| subscription.status().delivered == 4).await;
        assert_eq!(subscription.status().panics, 1);
    });
}

/// Gives all that a stream gives now; `--` is the mark.
async fn given(events: &mut informer_actors::subscription::MarkedEvents<String>) -> Vec<String> {
    let mut given = Vec::new();
    loop {
        match tokio::time::timeout(Duration::from_millis(5), events.next()).await {
            Ok(Some(Marked::Event(notify))) => given.push(notify.key().to_string()),
            Ok(Some(Marked::InitDone)) => given.push("--".to_owned()),
            _ => return given,
        }
    }
}

// LIS-39: given a stream with a mark, when it is read, then the mark comes once, behind the last initial
// event and before every later one, together with synced: after the first list of every source, first if
// there is nothing, and not again after a relist or a restart of the group.
// - a once, behind the initial events and before later ones, with synced, and not again
// - b first if there is nothing, and not before the first list:
//   `lis_39_with_nothing_to_begin_with_the_mark_comes_first_and_not_before_the_first_list`
// - c in every order of what can happen, and never before an event of a first list:
//   `whatever_happens_in_whatever_order_one_window_at_a_time_is_given_and_all_is_delivered`
#[test]
fn lis_39_the_mark_comes_once_behind_the_initial_events_and_before_all_others() {
    run_with(kill_at(Site::ProcessorChanges, 9), three, |world| async move {
        world.synced().await;
        let mut events = world.informer.events().expect("it runs").marked();
        assert!(matches!(events.next().await, Some(Marked::Event(_))), "its window is taken");
        world.apply("a/zero", "while the initial events are under way").await;
        let first = given(&mut events).await;
        assert_eq!(first, ["a/two", "b/one", "--", "a/zero"]);
        assert!(events.subscription().status().synced);
        world.changes().await;
        world.gap().await;
        pass(Duration::from_secs(600)).await;
        let later = given(&mut events).await;
        assert!(!later.is_empty() && !later.contains(&"--".to_owned()), "a relist and a restart: {later:?}");
    });
}

#[test]
fn lis_39_with_nothing_to_begin_with_the_mark_comes_first_and_not_before_the_first_list() {
    run(nothing, |world| async move {
        world.server.hold_lists(true);
        let mut events = world.informer.events().expect("it runs").marked();
        assert_eq!(given(&mut events).await, Vec::<String>::new());
        world.server.hold_lists(false);
        world.synced().await;
        assert_eq!(given(&mut events).await, ["--"]);
        assert!(events.subscription().status().synced);
    });
}

// LIS-40: given a subscription with a window of n, when events wait, then at most n of them are out of the
// backlog.
#[test]
fn lis_40_no_more_than_a_window_is_out_of_the_backlog() {
    run(hundred, |world| async move {
        world.synced().await;
        let options = SubscribeOptions::new().window(7);
        let stuck =
            world.informer.subscribe_with(options, Subscriber::each(|_| std::future::pending::<()>()));
        let stuck = stuck.expect("it runs");
        until(|| stuck.status().in_flight).await;
        assert_eq!(stuck.status().depth, 93);
        let mut large = world.informer.events_with(SubscribeOptions::new().window(90)).expect("it runs");
        assert!(large.next().await.is_some());
        assert_eq!(large.subscription().status().depth, 10);
    });
}

#[test]
fn lis_41_a_call_that_takes_longer_than_its_limit_is_cancelled_counted_and_logged_and_the_next_begins() {
    recorded(|log| {
        run(three, |world| async move {
            let limit = SubscribeOptions::new().name("slow").callback_limit(Duration::from_secs(5));
            let (ended, dropped) = (Arc::new(Mutex::new(Vec::new())), Arc::new(()));
            let (noted, held) = (Arc::clone(&ended), Arc::clone(&dropped));
            let slow = world.informer.subscribe_with(
                limit,
                Subscriber::each(move |notify: Notify<String>| {
                    let (noted, held) = (Arc::clone(&noted), Arc::clone(&held));
                    async move {
                        let is_stuck = notify.key().name() == "two";
                        let takes = if is_stuck { Duration::MAX } else { Duration::from_secs(4) };
                        tokio::time::sleep(takes).await;
                        noted.lock().expect("no panic").push(notify.key().to_string());
                        drop(held);
                    }
                }),
            );
            let slow = slow.expect("it runs");
            let began = world.runtime.now();
            slow.synced_within(LONG).await.expect("it syncs");
            assert_eq!((world.runtime.now() - began).as_secs(), 13, "4, 5 and 4 seconds");
            assert_eq!(*ended.lock().expect("no panic"), ["a/one", "b/one"]);
            assert_eq!(Arc::strong_count(&dropped), 2, "the future is dropped: here and in the closure");
            let status = slow.status();
            assert_eq!((status.overran, status.panics, status.delivered), (1, 0, 3));
            let lines = log.with("has not ended within its limit of 5s");
            assert_eq!(lines.iter().map(|line| line.field("key")).collect::<Vec<_>>(), [Some("a/two")]);
        });
    });
}

// LIS-41: given a subscription with a limit for its calls, when a call takes longer, then that of an async
// closure is cancelled, its future dropped, and the next begins; that of a blocking closure is shown as stuck
// until it returns; both are counted, and logged with the key.
// - a an async one is cancelled, counted and logged, and the next begins:
//   `lis_41_a_call_that_takes_longer_than_its_limit_is_cancelled_counted_and_logged_and_the_next_begins`
// - b a blocking one is counted, and shown as stuck until it returns
#[test]
fn lis_41_a_blocking_call_that_takes_longer_is_reported_as_stuck_until_it_returns() {
    on_threads(async {
        let (server, runtime) = (Server::new(), start());
        three(&server);
        let informer = informer(&runtime, &server);
        let (gate, held) = Gate::new();
        let options = SubscribeOptions::new().callback_limit(Duration::from_millis(20));
        let mut is_first = true;
        let subscription = informer.subscribe_with(
            options,
            Subscriber::blocking(move |_| {
                if std::mem::take(&mut is_first) {
                    held.wait();
                }
            }),
        );
        let subscription = subscription.expect("it runs");
        let is_stuck = async {
            while subscription.status().stuck_on.is_none() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(LIMIT, is_stuck).await.expect("it is reported");
        let status = subscription.status();
        assert_eq!((status.overran, status.delivered), (1, 0));
        assert_eq!(status.stuck_on.expect("a key").to_string(), "a/one");
        drop(gate);
        subscription.synced_within(LIMIT).await.expect("it goes on");
        let status = subscription.status();
        assert_eq!((status.overran, status.stuck_on), (1, None));
    });
}

/// Adds keys to a queue when nothing more has come for them in five seconds.
struct Postpones(WorkQueue<ObjectKey>);

impl Actor for Postpones {
    type Context = Context<Self>;
}

impl Handler<Touched> for Postpones {
    type Result = ();

    fn handle(&mut self, touched: Touched, _ctx: &mut Context<Self>) {
        self.0.postpone(touched.key, Duration::from_secs(5));
    }
}

#[test]
fn lis_42_a_work_queue_hands_a_key_out_once_it_is_quiet_and_others_at_their_time() {
    run(nothing, |world| async move {
        let queue = WorkQueue::of_objects(&world.runtime, "quiet").start();
        let fed =
            world.informer.subscribe(Subscriber::keys(Postpones(queue.clone()).start())).expect("it runs");
        fed.synced_within(LONG).await.expect("it syncs");
        let began = world.runtime.now();
        for n in 0..4 {
            world.apply("a/one", &format!("{n}")).await;
            if n == 0 {
                world.apply("a/two", "once").await;
            }
            pass(Duration::from_secs(3)).await;
        }
        let next = async || {
            let item = queue.next().await.expect("it is not shut down");
            let handed_out = (item.key().to_string(), (world.runtime.now() - began).as_secs());
            item.done();
            handed_out
        };
        assert_eq!(next().await, ("a/two".to_owned(), 12), "it was due at 5 s");
        assert_eq!(next().await, ("a/one".to_owned(), 14));
        assert!(queue.is_empty() && queue.figures().delayed == 0, "four changes are one");
    });
}

//! Subscribed actors: weak subscriptions, handlers that return a future, and a shutdown or a panic in a handler.
//! LIS-22, LIS-23, LIS-30, LIS-31.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt, AsyncContext, Context, Handler, ResponseActFuture, ResponseFuture, WrapFuture,
};
use informer_actors::informer::Informer;
use informer_actors::subscription::EndReason;
use informer_actors::subscription::Notify;
use informer_actors::subscription::{ShutdownError, SubscribeOptions, Subscription, WhenFull};
use informer_actors::testing::{Recorder, RecorderHandle, Server};
use tokio::sync::{oneshot, watch};

use crate::blocking::on_threads;
use crate::threads::{LIMIT, informer, start};
use crate::world::{LONG, World, pass, run, settle, three, until};

/// Subscribes itself when it starts, and keeps the informer and its subscription.
struct Own {
    informer: Informer<String>,
    weak: bool,
    subscription: Option<Subscription<String>>,
    received: RecorderHandle<String>,
    dropped: Option<oneshot::Sender<()>>,
}

impl Own {
    fn new(informer: &Informer<String>, weak: bool) -> (Self, RecorderHandle<String>, oneshot::Receiver<()>) {
        let received: RecorderHandle<String> = Recorder::new().1;
        let (dropped, is_dropped) = oneshot::channel();
        let (informer, kept) = (informer.clone(), received.clone());
        (
            Self { informer, weak, subscription: None, received: kept, dropped: Some(dropped) },
            received,
            is_dropped,
        )
    }
}

impl Actor for Own {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let own = ctx.address();
        let subscription = match self.weak {
            true => self.informer.subscribe(own.downgrade()),
            false => self.informer.subscribe(own),
        };
        self.subscription = Some(subscription.expect("it runs"));
    }
}

impl Handler<Notify<String>> for Own {
    type Result = ();

    fn handle(&mut self, notify: Notify<String>, _ctx: &mut Context<Self>) {
        self.received.record(&notify);
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.dropped.take().map(|dropped| dropped.send(()));
    }
}

// LIS-22: given an actor that subscribes itself weakly when it starts and keeps its `Subscription`, when its
// last address and the informer's other handles are dropped, then it is dropped and the informer stops;
// subscribed strongly it is kept until its subscription ends; a weak subscription of an actor that is gone
// ends with SubscriberGone when the next event is owed.
// - a subscribed weakly it receives what it is owed as long as an address keeps it
// - b then it is dropped
// - c and the informer stops
// - d subscribed strongly it is kept until its subscription ends:
//   `lis_22_an_actor_that_subscribes_itself_strongly_is_kept_by_its_own_subscription`
// - e a weak subscription of an actor that is gone ends with SubscriberGone when the next event is owed:
//   `lis_22_a_weak_subscription_of_an_actor_that_is_gone_ends_when_the_next_event_waits_for_it`
#[test]
fn lis_22_an_actor_that_subscribes_itself_weakly_is_dropped_with_its_last_address_and_the_informer_stops() {
    run(three, |world| async move {
        let World { server, informer, runtime: _runtime } = world;
        let (actor, received, mut dropped) = Own::new(&informer, true);
        let address = actor.start();
        until(|| received.len() == 3).await;
        drop(informer);
        server.apply("a/one", "kept by the actor".to_owned());
        until(|| received.len() == 4).await;
        assert!(dropped.try_recv().is_err(), "its address keeps it");
        drop(address);
        tokio::time::timeout(LONG, dropped).await.expect("within the hour").expect("it is dropped");
        settle().await;
        let requests = server.requests().len();
        pass(LONG).await;
        assert_eq!(server.requests().len(), requests, "nothing keeps the informer");
    });
}

#[test]
fn lis_22_an_actor_that_subscribes_itself_strongly_is_kept_by_its_own_subscription() {
    run(three, |world| async move {
        let (actor, received, mut dropped) = Own::new(&world.informer, false);
        drop(actor.start());
        until(|| received.len() == 3).await;
        world.apply("a/one", "still notified").await;
        until(|| received.len() == 4).await;
        assert!(dropped.try_recv().is_err());
        world.informer.shutdown(LONG).await;
        dropped.await.expect("the end of its subscription frees it");
    });
}

#[test]
fn lis_22_a_weak_subscription_of_an_actor_that_is_gone_ends_when_the_next_event_waits_for_it() {
    run(three, |world| async move {
        let (recorder, received) = Recorder::new();
        let address = recorder.start();
        let subscription = world.informer.subscribe(address.downgrade()).expect("it runs");
        assert_eq!(&*subscription.status().name, "Recorder-0");
        subscription.synced_within(LONG).await.expect("it receives events as any other does");
        let other = world.watched();
        other.synced().await;
        drop(address);
        settle().await;
        assert_eq!(subscription.ended(), None, "nothing has checked the address yet");
        world.apply("a/one", "next").await;
        let end = tokio::time::timeout(LONG, subscription.end()).await;
        assert_eq!(end, Ok(EndReason::SubscriberGone));
        other.lines(4).await;
        assert_eq!(received.len(), 3);
    });
}

/// Returns a future; the earlier it began, the longer it takes.
struct Later<const OWN: bool>(Arc<Work>);

struct Work {
    received: RecorderHandle<String>,
    begun: AtomicUsize,
    running: AtomicUsize,
    most: AtomicUsize,
}

impl Work {
    fn new() -> Arc<Self> {
        let [begun, running, most] = [(); 3].map(|()| AtomicUsize::new(0));
        Arc::new(Self { received: Recorder::new().1, begun, running, most })
    }

    async fn handle(self: Arc<Self>, notify: Notify<String>) {
        let before = self.begun.fetch_add(1, Ordering::Relaxed) as u64;
        let running = self.running.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(running, Ordering::Relaxed);
        pass(Duration::from_secs(3_u64.saturating_sub(before).max(1))).await;
        self.running.fetch_sub(1, Ordering::Relaxed);
        self.received.record(&notify);
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

impl<const OWN: bool> Actor for Later<OWN> {
    type Context = Context<Self>;
}

impl Handler<Notify<String>> for Later<false> {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, notify: Notify<String>, _ctx: &mut Context<Self>) -> ResponseFuture<()> {
        Box::pin(Arc::clone(&self.0).handle(notify))
    }
}

impl Handler<Notify<String>> for Later<true> {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, notify: Notify<String>, _ctx: &mut Context<Self>) -> ResponseActFuture<Self, ()> {
        Box::pin(Arc::clone(&self.0).handle(notify).into_actor(self).map(|(), _, _| ()))
    }
}

/// Subscribes such an actor, of one kind of future or the other.
fn later(world: &World, own: bool, options: SubscribeOptions<String>) -> (Subscription<String>, Arc<Work>) {
    let work = Work::new();
    let subscription = match own {
        true => world.informer.subscribe_with(options, Later::<true>(Arc::clone(&work)).start()),
        false => world.informer.subscribe_with(options, Later::<false>(Arc::clone(&work)).start()),
    };
    (subscription.expect("it runs"), work)
}

// LIS-23: given a subscribed actor whose handler returns a `ResponseFuture` or `ResponseActFuture`, when it
// receives events one at a time, then each event is sent when the future of the one before has ended, in
// order, and synced and shutdown wait for the last; without that option the futures of a window run at once
// and only its last one is waited for.
// - a with events one at a time at most one future runs
// - b they end in the order of the events
// - c synced waits for that of the last initial event
// - d shutdown waits for the last
// - e without the option the futures of a window run at once:
//   `lis_23_without_the_option_the_futures_of_a_window_run_at_once_and_only_its_last_one_is_waited_for`
// - f and synced and shutdown wait for its last one only:
//   `lis_23_without_the_option_the_futures_of_a_window_run_at_once_and_only_its_last_one_is_waited_for`
// - g what waits behind the event that is being handled coalesces, or waits event by event, according to the
//   policy: `lis_23_with_one_event_at_a_time_waiting_events_follow_the_policy`
#[test]
fn lis_23_with_one_event_at_a_time_a_handler_that_returns_a_future_has_ended_when_synced() {
    for own in [false, true] {
        run(three, |world| async move {
            world.synced().await;
            let (subscription, work) = later(&world, own, SubscribeOptions::new().one_at_a_time());
            pass(Duration::from_millis(5_500)).await;
            let status = subscription.status();
            assert_eq!((status.synced, status.delivered, work.received.len()), (false, 2, 2), "{status:?}");
            subscription.synced_within(LONG).await.expect("it syncs");
            let expected =
                ["a/one@2", "a/two@3", "b/one@4"].map(|object| format!("Added(InitialList) {object}"));
            assert_eq!((work.received.lines(), work.most()), (expected.to_vec(), 1));
            world.server.apply("a/one", "1 s of work".to_owned());
            world.server.apply("a/two", "1 s of work".to_owned());
            world.agrees().await;
            assert_eq!(subscription.shutdown(LONG).await, Ok(()));
            assert_eq!((work.received.len(), work.most()), (5, 1), "the last one has ended");
        });
    }
}

#[test]
fn lis_23_without_the_option_the_futures_of_a_window_run_at_once_and_only_its_last_one_is_waited_for() {
    for own in [false, true] {
        run(three, |world| async move {
            world.synced().await;
            let (subscription, work) = later(&world, own, SubscribeOptions::new());
            subscription.synced_within(LONG).await.expect("it syncs");
            assert_eq!(
                (work.received.lines(), work.most()),
                (vec!["Added(InitialList) b/one@4".to_owned()], 3)
            );
            assert_eq!(subscription.shutdown(LONG).await, Ok(()));
            assert_eq!(work.received.len(), 1, "two are still running");
        });
    }
}

#[test]
fn lis_23_with_one_event_at_a_time_waiting_events_follow_the_policy() {
    run(three, |world| async move {
        let one = world.watched_with(SubscribeOptions::new().one_at_a_time());
        let every = SubscribeOptions::new().one_at_a_time().every(1 << 20, WhenFull::Disconnect);
        let every = world.watched_with(every);
        one.synced().await;
        every.synced().await;
        for n in 0..1_000 {
            world.server.apply(&format!("c/{}", n % 10), n.to_string());
        }
        world.agrees().await;
        one.agrees(&world).await;
        every.agrees(&world).await;
        assert_eq!(every.received.len(), 3 + 1_000);
        let (received, coalesced) = (one.received.len(), one.subscription.status().coalesced);
        assert!(received < 1_003 && coalesced > 0, "received {received}, coalesced {coalesced}");
        assert!(world.informer.shutdown(LONG).await.is_clean());
    });
}

/// Shuts down its own subscription in its first handler, either waiting for it or beside its other work.
struct Ends {
    wait: bool,
    subscription: Option<Subscription<String>>,
    result: watch::Sender<Option<Result<(), ShutdownError>>>,
}

/// Which handles to keep.
struct Keep(Subscription<String>);

impl actix::Message for Keep {
    type Result = ();
}

impl Actor for Ends {
    type Context = Context<Self>;
}

impl Handler<Keep> for Ends {
    type Result = ();

    fn handle(&mut self, Keep(subscription): Keep, _ctx: &mut Context<Self>) {
        self.subscription = Some(subscription);
    }
}

impl Handler<Notify<String>> for Ends {
    type Result = ();

    fn handle(&mut self, _notify: Notify<String>, ctx: &mut Context<Self>) {
        let Some(subscription) = self.subscription.take() else { return };
        let shutdown = subscription.shutdown(Duration::from_secs(5)).into_actor(self);
        let shutdown = shutdown.map(|result, this, _| drop(this.result.send_replace(Some(result))));
        if self.wait {
            ctx.wait(shutdown);
        } else {
            ctx.spawn(shutdown);
        }
    }
}

/// The result of a shutdown in an actor's own handler, and how long it took.
async fn ended_inside(world: &World, wait: bool) -> (Result<(), ShutdownError>, Duration) {
    let (result, mut received) = watch::channel(None);
    let actor = Ends { wait, subscription: None, result }.start();
    let subscription = world.informer.subscribe(actor.clone()).expect("it runs");
    // This runs before the arbiter has a turn: the first event comes after it.
    actor.try_send(Keep(subscription)).expect("there is room");
    let before = world.runtime.now();
    received.wait_for(Option::is_some).await.expect("the event arrives");
    let result = received.borrow().clone().expect("it is there");
    (result, world.runtime.now() - before)
}

// LIS-30: given `Subscription::shutdown` in a handler of the subscribed actor itself, when awaited with
// ctx.wait, then it takes its limit and is unfinished; when spawned, it is clean.
// - a awaited with ctx.wait it takes its limit and is unfinished
// - b spawned it is clean: `lis_30_a_shutdown_that_the_actor_spawns_is_clean`
#[test]
fn lis_30_a_shutdown_awaited_with_ctx_wait_in_the_actors_own_handler_takes_its_limit_and_is_unfinished() {
    run(three, |world| async move {
        world.synced().await;
        let (result, took) = ended_inside(&world, true).await;
        let Err(ShutdownError::Unfinished(unfinished)) = result else { panic!("{result:?}") };
        assert_eq!((unfinished.in_flight, unfinished.dropped), (3, 0));
        assert!(took >= Duration::from_secs(5), "{took:?}");
    });
}

#[test]
fn lis_30_a_shutdown_that_the_actor_spawns_is_clean() {
    run(three, |world| async move {
        world.synced().await;
        let (result, took) = ended_inside(&world, false).await;
        assert_eq!(result, Ok(()));
        assert!(took < Duration::from_secs(1), "{took:?}");
    });
}

/// Panics at its first event.
struct Panicking;

impl Actor for Panicking {
    type Context = Context<Self>;
}

impl Handler<Notify<String>> for Panicking {
    type Result = ();

    fn handle(&mut self, _notify: Notify<String>, _ctx: &mut Context<Self>) {
        panic!("on purpose, in a handler");
    }
}

// LIS-31: given a panic in a subscribed actor's handler, when it happens, then that actor and its
// subscription end, and nothing else on its thread or of the informer.
// - a its subscription ends with SubscriberGone
// - b another actor on its thread runs on, and still receives events
// - c the informer runs on
#[test]
fn lis_31_a_panic_in_a_subscribed_actors_handler_ends_that_actor_and_its_subscription_alone() {
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        three(&server);
        let informer = informer(&runtime, &server);
        let (addresses, started) = oneshot::channel();
        let (received, heard) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            actix_rt::System::new().block_on(async move {
                let panicking = Panicking.start();
                let (recorder, handle) = Recorder::<String>::new();
                drop(addresses.send((panicking.recipient(), recorder.start().recipient(), handle)));
                heard.await.expect("the test ends the system");
            });
        });
        let (panicking, beside, handle) = started.await.expect("they start");
        let beside = informer.subscribe(beside).expect("it runs");
        beside.synced_within(LIMIT).await.expect("it syncs");
        let subscription = informer.subscribe(panicking).expect("it runs");
        let end = tokio::time::timeout(LIMIT, subscription.end()).await;
        assert_eq!(end, Ok(EndReason::SubscriberGone));
        let version = server.apply("a/one", "next".to_owned());
        informer.lister().wait_for(&version, LIMIT).await.expect("the informer runs on");
        let received_next = async {
            while handle.len() < 4 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LIMIT, received_next)
            .await
            .expect("an actor on the same thread receives the next event");
        assert_eq!(beside.ended(), None);
        received.send(()).expect("the thread runs on");
        thread.join().expect("and its System has not ended before");
    });
}

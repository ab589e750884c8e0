//! Closures that block their thread, and what must not wait for them: LIS-01 and LIS-14 on real threads, INF-11,
//! INF-23, INF-25.
//!
//! Each blocking call waits for a gate that the test opens. Nothing sleeps, and every wait has a limit that a healthy
//! run never comes near.

use std::future::Future;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use actix::{Actor, Context, Handler};
use futures_util::future::poll_immediate;
use informer_actors::informer::Informer;
use informer_actors::runtime::Runtime;
use informer_actors::subscription::Notify;
use informer_actors::subscription::{ShutdownError, Subscriber, Subscription};
use informer_actors::testing::{Recorder, RecorderHandle, Server};
use informer_core::meta::ResourceVersion;
use tokio::sync::{oneshot, watch};

use crate::threads::{LIMIT, block_on, informer, start};
use crate::world::{LONG, nothing, run, three, until};

/// Blocks each caller until the gate is dropped.
pub(crate) struct Gate(#[expect(dead_code, reason = "dropping it opens the gate")] mpsc::Sender<()>);

#[derive(Clone)]
pub(crate) struct Held(Arc<Mutex<mpsc::Receiver<()>>>);

impl Gate {
    pub(crate) fn new() -> (Self, Held) {
        let (open, held) = mpsc::channel();
        (Self(open), Held(Arc::new(Mutex::new(held))))
    }
}

impl Held {
    /// Blocks the thread until the gate is open.
    pub(crate) fn wait(&self) {
        let held = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        assert!(held.recv().is_err(), "only the gate's end ends it");
    }
}

/// The newest version that a subscriber has seen. A test can wait for it: coalesced events do not come in the
/// order of their versions.
fn seen() -> (watch::Sender<Option<ResourceVersion>>, watch::Receiver<Option<ResourceVersion>>) {
    watch::channel(None)
}

fn note(seen: &watch::Sender<Option<ResourceVersion>>, notify: &Notify<String>) {
    let version = Some(notify.subject().version().clone());
    seen.send_if_modified(|seen| {
        let newer = *seen < version;
        if newer {
            seen.clone_from(&version);
        }
        newer
    });
}

async fn sees(seen: &mut watch::Receiver<Option<ResourceVersion>>, version: &ResourceVersion) {
    let arrives = seen.wait_for(|seen| seen.as_ref() >= Some(version));
    tokio::time::timeout(LIMIT, arrives).await.expect("it arrives in time").expect("the subscriber lives");
}

/// Runs a scenario on real threads.
pub(crate) fn on_threads(scenario: impl Future<Output = ()>) {
    block_on(tokio::runtime::Builder::new_multi_thread().worker_threads(2), scenario);
}

/// A blocking subscriber that blocks in its first event until the gate opens, and reports when it does.
pub(crate) async fn stuck(informer: &Informer<String>, held: &Held) -> Subscription<String> {
    let (begun, begins) = oneshot::channel();
    let (held, mut begun) = (held.clone(), Some(begun));
    let subscription = informer.subscribe(Subscriber::blocking(move |_| {
        if let Some(begun) = begun.take() {
            let _received = begun.send(());
        }
        held.wait();
    }));
    begins.await.expect("it is called");
    subscription.expect("it runs")
}

/// An actor that blocks in its first event until the gate opens.
struct StuckActor(Held, Option<oneshot::Sender<()>>);

impl Actor for StuckActor {
    type Context = Context<Self>;
}

impl Handler<Notify<String>> for StuckActor {
    type Result = ();

    fn handle(&mut self, _notify: Notify<String>, _ctx: &mut Context<Self>) {
        if let Some(begun) = self.1.take() {
            let _received = begun.send(());
        }
        self.0.wait();
    }
}

// LIS-01: given a subscribed actor or blocking closure that sleeps or never returns, or an async closure that
// awaits for ever, when 10,000 events arrive, then other subscribers, publishes and readers are not delayed
// by it.
// - a an actor that does not return delays no subscriber, publish or reader
// - b nor does a blocking closure, or an async one that awaits for ever
#[test]
fn lis_01_an_actor_a_blocking_or_an_async_closure_that_never_returns_delays_nobody_else() {
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        server.apply("a/first", String::new());
        let informer = informer(&runtime, &server);
        informer.synced_within(LIMIT).await.expect("it syncs");
        let (gate, held) = Gate::new();
        let (begun, begins) = oneshot::channel();
        let (address, started) = oneshot::channel();
        let held_actor = held.clone();
        let foreign = std::thread::spawn(move || {
            actix_rt::System::new().block_on(async move {
                let actor = StuckActor(held_actor, Some(begun)).start();
                address.send(actor.recipient()).expect("the test waits");
                std::future::pending::<()>().await;
            });
        });
        let actor = informer.subscribe(started.await.expect("it starts")).expect("it runs");
        begins.await.expect("the actor is called");
        let blocking = stuck(&informer, &held).await;
        let awaiting = informer.for_each(|_| std::future::pending()).expect("it runs");
        let (received, mut heard) = seen();
        let live = informer
            .for_each(move |notify| {
                note(&received, &notify);
                std::future::ready(())
            })
            .expect("it runs");
        let mut newest = server.version();
        for n in 0..10_000_u32 {
            newest = server.apply(&format!("a/{}", n % 100), n.to_string());
        }
        informer.lister().wait_for(&newest, LIMIT).await.expect("the store goes on");
        sees(&mut heard, &newest).await;
        assert_eq!(informer.lister().list().len(), 101);
        for owing in [&actor, &blocking, &awaiting] {
            assert!(owing.ended().is_none() && owing.status().depth <= 101, "{:?}", owing.status());
        }
        live.shutdown(LIMIT).await.expect("it comes back");
        drop(gate);
        drop((actor, blocking, awaiting, informer));
        drop(foreign);
    });
}

#[test]
fn lis_14_as_many_blocking_closures_as_there_are_cores_that_never_return_delay_no_further_one() {
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        server.apply("a/first", String::new());
        let informer = informer(&runtime, &server);
        let (gate, held) = Gate::new();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut kept = Vec::new();
        for _ in 0..=cores {
            kept.push(stuck(&informer, &held).await);
        }
        let received: RecorderHandle<String> = Recorder::new().1;
        let (saw, mut seen) = seen();
        let recorded = received.clone();
        let further = informer
            .subscribe(Subscriber::blocking(move |notify| {
                recorded.record(&notify);
                note(&saw, &notify);
            }))
            .expect("it runs");
        further.synced_within(LIMIT).await.expect("it syncs");
        let mut newest = server.version();
        for n in 0..1_000_u32 {
            newest = server.apply(&format!("a/{}", n % 10), n.to_string());
        }
        sees(&mut seen, &newest).await;
        drop(gate);
        assert!(informer.shutdown(LIMIT).await.is_clean());
        received.agrees_with(&informer.snapshot()).expect("the events replay to the store, in order");
    });
}

#[test]
fn lis_14_a_blocking_closure_runs_on_the_callback_pool_and_holds_no_thread_while_it_is_idle() {
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        let informer = informer(&runtime, &server);
        let (saw, mut seen) = watch::channel(Vec::new());
        let threads = informer
            .subscribe(Subscriber::blocking(move |_| {
                let name = std::thread::current().name().unwrap_or_default().to_owned();
                saw.send_modify(|names| names.push(name));
            }))
            .expect("it runs");
        for n in 1..=20_usize {
            server.apply("a/one", n.to_string());
            let handled = seen.wait_for(|names| names.len() == n);
            tokio::time::timeout(LIMIT, handled).await.expect("in time").expect("it lives");
        }
        let names = seen.borrow().clone();
        assert!(names.iter().all(|name| name.starts_with("informer-callback-")), "{names:?}");
        threads.shutdown(LIMIT).await.expect("it comes back");
    });
}

// INF-23: given a callback that panics in Added, Updated or Deleted, as a closure, an async closure before
// and after its first await, and a blocking closure, when events go on, then that event is counted and
// skipped with its key logged, the next is delivered, and no other subscription notices.
// - a a blocking closure, in Added, Updated and Deleted: that event is counted and skipped, the next is
//   delivered
// - b an async closure before and after its first await, in Added: in the same way:
//   `inf_23_and_24_a_panic_in_a_closure_skips_that_event_is_counted_and_the_subscription_still_syncs`
// - c in Updated and Deleted, too:
//   `inf_23_an_async_closure_that_panics_in_added_updated_or_deleted_loses_only_that_event`
// - d its key is logged:
//   `inf_23_a_callback_that_panics_is_logged_with_the_informer_the_subscription_and_the_key`
// - e no other subscription notices
#[test]
fn inf_23_a_blocking_closure_that_panics_in_added_updated_or_deleted_loses_only_that_event() {
    run(nothing, |world| async move {
        world.synced().await;
        let received: RecorderHandle<String> = Recorder::new().1;
        let recorded = received.clone();
        let subscription = world
            .informer
            .subscribe(Subscriber::blocking(move |notify: Notify<String>| {
                assert!(!notify.subject().body().contains("panics"), "panics on purpose");
                recorded.record(&notify);
            }))
            .expect("it runs");
        let other = world.watched();
        world.apply("a/one", "panics when added").await;
        world.apply("a/one", "good").await;
        world.apply("a/one", "panics when updated").await;
        world.apply("a/two", "panics when added").await;
        world.delete("a/two").await;
        world.apply("a/three", "the next one").await;
        until(|| received.lines().iter().any(|line| line.contains("a/three"))).await;
        assert_eq!(subscription.status().panics, 4);
        assert_eq!(received.len(), 2, "{:?}", received.lines());
        subscription.synced().await.expect("panics count as handled");
        other.agrees(&world).await;
    });
}

/// Reports on which thread, and when, it is dropped.
struct Owned(Option<oneshot::Sender<()>>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.take().map(|dropped| dropped.send(()));
    }
}

// INF-25: given a callback blocked in mid-event, when its subscription is dropped, then drop returns at once
// and what the callback owns is freed only after it has returned.
// - a drop returns at once
// - b what the callback owns is freed after it has returned, and not before
#[test]
fn inf_25_dropping_a_subscription_whose_callback_is_blocked_returns_at_once_and_frees_it_after_its_return() {
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        server.apply("a/one", String::new());
        server.apply("a/two", String::new());
        let informer = informer(&runtime, &server);
        let (gate, held) = Gate::new();
        let (begun, begins) = oneshot::channel();
        let (dropped, mut freed) = oneshot::channel();
        let (owned, calls) = (Owned(Some(dropped)), watch::Sender::new(0));
        let (mut begun, counted) = (Some(begun), calls.subscribe());
        let subscription = informer.subscribe(Subscriber::blocking(move |_| {
            let _kept = &owned;
            begun.take().map(|begun| begun.send(()));
            held.wait();
            calls.send_modify(|calls| *calls += 1);
        }));
        begins.await.expect("it is called");
        drop(subscription);
        let newest = server.apply("a/three", String::new());
        informer.lister().wait_for(&newest, LIMIT).await.expect("the pipeline goes on");
        assert_eq!((poll_immediate(&mut freed).await, *counted.borrow()), (None, 0), "it is in use");
        drop(gate);
        tokio::time::timeout(LIMIT, freed).await.expect("in time").expect("freed");
        assert_eq!(*counted.borrow(), 1, "no further call starts");
    });
}

// INF-11: given `Subscription::shutdown().await`, when the callback is running, then it returns only after
// the last callback returned (safe to free its state) or at its deadline; called from inside that callback it
// is an error at once, no deadlock.
// - a it returns after the last callback has returned, async or blocking
// - b what the callback owns is freed by then
// - c or it returns at its deadline
// - d inside that callback it is an error at once:
//   `inf_11_a_shutdown_inside_its_own_async_callback_is_an_error_at_once`
#[test]
fn inf_11_shutdown_returns_after_a_blocking_callback_has_returned_or_reports_at_its_limit_that_it_still_runs()
{
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        server.apply("a/one", String::new());
        let informer = informer(&runtime, &server);
        let (gate, held) = Gate::new();
        let kept = stuck(&informer, &held).await;
        let unfinished = kept.shutdown(std::time::Duration::from_millis(20)).await;
        assert!(matches!(unfinished, Err(ShutdownError::Unfinished(_))), "{unfinished:?}");
        let again = stuck(&informer, &held);
        drop(again);
        drop(gate);
        let (dropped, mut freed) = oneshot::channel();
        let owned = Owned(Some(dropped));
        let subscription =
            informer.subscribe(Subscriber::blocking(move |_| assert!(owned.0.is_some()))).expect("it runs");
        subscription.synced_within(LIMIT).await.expect("it syncs");
        subscription.shutdown(LIMIT).await.expect("it comes back");
        assert_eq!(poll_immediate(&mut freed).await, Some(Ok(())), "what it owns is freed by then");
    });
}

#[test]
fn blocking_closures_run_in_place_in_simulation_so_that_a_seed_still_gives_one_trace() {
    let trace = || {
        Runtime::simulated(7).run(|runtime| async move {
            let server: Server<String> = Server::new();
            three(&server);
            let connected = server.clone();
            let informer = Informer::builder(&runtime, "texts").source(move || connected.clone()).start();
            let informer = informer.expect("the spec is valid");
            let received: RecorderHandle<String> = Recorder::new().1;
            let recorded = received.clone();
            let here = std::thread::current().id();
            let subscription = informer.subscribe(Subscriber::blocking(move |notify| {
                assert_eq!(std::thread::current().id(), here);
                recorded.record(&notify);
            }));
            subscription.expect("it runs").shutdown(LONG).await.expect("it comes back");
            received.lines()
        })
    };
    assert_eq!(trace(), trace());
}

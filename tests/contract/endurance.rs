//! INF-44 and INF-45: panics in starts, rebuilds, spawned futures, drops and users' code; crash loops that exhaust
//! their restarts; and shutdowns while any of these happen.
//!
//! Fault sites panic inside our actors; `Faulty` is a user's source that panics where the test says.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix::{Actor, AsyncContext, Context, Handler, WrapFuture};
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt};
use informer_actors::informer::Informer;
use informer_actors::list_watch::{KnownObjects, ListStream, ListWatch, WatchStream};
use informer_actors::runtime::Runtime;
use informer_actors::subscription::Notify;
use informer_actors::subscription::{EndReason, Subscriber};
use informer_actors::testing::{Faults, Site};
use informer_actors::testing::{Server, kill_at, kill_every};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey};
use informer_core::reflector::SourceState;
use informer_core::request::{ListRequest, WatchRequest};

use crate::supervision::{killed_at_every_visit, live};
use crate::world::{LONG, World, pass, run, run_with, settle, three};

/// Panics at the `nth` visit of a site.
fn at(wanted: Site, nth: u32) -> impl Fn(Site) + Send + Sync {
    let visits = AtomicU32::new(0);
    move |site| {
        let now = site == wanted && visits.fetch_add(1, Ordering::Relaxed) + 1 == nth;
        assert!(!now, "killed at {site:?}");
    }
}

/// Panics at the third batch, and then at the `nth` visit of another site.
fn panics_twice(site: Site, nth: u32) -> Faults {
    let (first, then) = (at(Site::IndexerApply, 3), at(site, nth));
    Faults::new(move |here| {
        first(here);
        then(here);
    })
}

#[test]
fn inf_44_a_delta_fifo_or_processor_killed_in_its_start_is_restarted_with_its_group() {
    killed_at_every_visit(Site::DeltaFifoStarted, 1);
    killed_at_every_visit(Site::ProcessorStarted, 1);
}

#[test]
fn inf_44_a_listener_killed_in_its_start_ends_its_subscription_and_nothing_else() {
    run_with(kill_at(Site::ListenerStarted, 2), three, |world| async move {
        let (first, second) = (world.watched(), world.watched());
        let ended = second.subscription.end().await;
        assert!(matches!(&ended, EndReason::ListenerFailed(why) if why.contains("killed")), "{ended:?}");
        first.synced().await;
        first.agrees(&world).await;
        assert_eq!(world.informer.status().restarts, 0);
    });
}

#[test]
fn inf_44_a_panic_in_the_rebuild_itself_is_one_more_counted_exit_that_waits_out_its_backoff() {
    for nth in 1..=4 {
        run_with(panics_twice(Site::Rebuild, nth), three, |world| async move {
            let before = world.runtime.now();
            live(&world).await;
            let status = world.informer.status();
            assert_eq!((status.restarts, status.failed.is_some()), (2, false), "rebuild {nth}");
            assert!(world.runtime.now() - before >= Duration::from_millis(1600), "rebuild {nth}: two waits");
        });
    }
}

#[test]
fn inf_44_a_drop_that_panics_at_the_end_ends_nothing_else() {
    for nth in 1..=6 {
        run_with(kill_at(Site::Dropped, nth), three, |world| async move {
            let watched = world.watched();
            live(&world).await;
            assert!(world.informer.shutdown(LONG).await.is_clean(), "drop {nth}");
            assert!(watched.subscription.ended().is_some());
        });
    }
}

#[test]
fn inf_44_drops_that_panic_at_giving_up_leave_the_other_informers_alone() {
    let faults = Faults::new({
        let armed = Arc::new(AtomicU32::new(0));
        move |site| {
            if site == Site::IndexerApply {
                // The first batch is the other informer's only one; the rest are this informer's.
                assert!(armed.fetch_add(1, Ordering::Relaxed) == 0, "killed at {site:?}");
            }
            assert!(site != Site::Dropped, "killed at {site:?}");
        }
    });
    Runtime::simulation(7).faults(faults).build().run(|runtime| async move {
        let start = |name: &str| {
            let server = Server::new();
            three(&server);
            let connected = server.clone();
            let informer = Informer::builder(&runtime, name).source(move || connected.clone()).start();
            (server, informer.expect("the spec is valid"))
        };
        let (_quiet_server, quiet) = start("quiet");
        quiet.synced_within(LONG).await.expect("it syncs");
        let (_server, doomed) = start("doomed");
        let failed = doomed.wait_until(|status| status.stopped).await.expect("it is given up");
        assert_eq!(failed.restarts, 5);
        assert!(failed.failed.is_some_and(|why| why.contains("after 5 restarts")));
        let status = quiet.status();
        assert!(!status.stopped && status.failed.is_none() && status.restarts == 0, "{status:?}");
        let received = quiet.for_each(|_| std::future::ready(())).expect("it runs");
        received.synced_within(LONG).await.expect("it is served");
    });
}

/// Where a faulty source panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    Connect,
    List,
    Watch,
    Stream,
    Get,
    Drop,
}

/// A user's source that panics once at each place for which it is armed.
struct Faulty(Server<String>, Arc<Mutex<BTreeSet<At>>>);

impl Faulty {
    fn strike(&self, at: At) {
        strike(&self.1, at);
    }
}

fn strike(armed: &Mutex<BTreeSet<At>>, at: At) {
    let now = armed.lock().unwrap_or_else(PoisonError::into_inner).remove(&at);
    assert!(!now, "faulty at {at:?}");
}

impl Drop for Faulty {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.strike(At::Drop);
        }
    }
}

impl ListWatch<String> for Faulty {
    fn list(&self, request: ListRequest, known: KnownObjects<String>) -> ListStream<String> {
        self.strike(At::List);
        self.0.list(request, known)
    }

    fn watch(&self, request: WatchRequest, known: KnownObjects<String>) -> WatchStream<String> {
        self.strike(At::Watch);
        let armed = Arc::clone(&self.1);
        // A transform that runs in the stream, on every batch.
        self.0.watch(request, known).inspect(move |_| strike(&armed, At::Stream)).boxed_local()
    }

    fn get(&self, key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<String>>, ListWatchError>> {
        let (answer, armed) = (self.0.get(key), Arc::clone(&self.1));
        async move {
            strike(&armed, At::Get);
            answer.await
        }
        .boxed_local()
    }
}

/// Runs a scenario over a faulty source, which is armed by adding to the set.
fn faulty<F: Future<Output = ()>>(scenario: impl FnOnce(World, Arc<Mutex<BTreeSet<At>>>) -> F) {
    Runtime::simulated(7).run(|runtime| async move {
        let (server, armed) = (Server::new(), Arc::new(Mutex::new(BTreeSet::new())));
        three(&server);
        let (connected, arming) = (server.clone(), Arc::clone(&armed));
        let informer = Informer::builder(&runtime, "texts").source(move || {
            strike(&arming, At::Connect);
            Faulty(connected.clone(), Arc::clone(&arming))
        });
        let informer = informer.start().expect("the spec is valid");
        scenario(World { server, informer, runtime: runtime.clone() }, armed).await;
    });
}

fn arm(armed: &Mutex<BTreeSet<At>>, at: At) {
    armed.lock().unwrap_or_else(PoisonError::into_inner).insert(at);
}

#[test]
fn inf_44_a_users_source_that_panics_anywhere_costs_a_restart_of_its_reflector_and_no_event() {
    for place in [At::Watch, At::Stream, At::List, At::Connect, At::Drop, At::Get] {
        faulty(|world, armed| async move {
            world.synced().await;
            let watched = world.watched();
            watched.synced().await;
            world.server.poison("b/one");
            world.apply("b/one", "unreadable").await;
            arm(&armed, place);
            if place == At::List {
                world.server.serve_watch_list(false);
            }
            if matches!(place, At::Connect | At::Drop) {
                // These two happen together with another panic.
                arm(&armed, At::Stream);
            }
            if place == At::Get {
                pass(Duration::from_secs(120)).await;
            }
            world.server.end_watches(Some(ListWatchError::Expired("too old resource version".into())));
            world.server.apply("a/one", "after".to_owned());
            world.informer.wait_until(|status| status.restarts > 0).await.expect("it runs");
            world.server.heal("b/one");
            world.server.apply("b/one", "readable".to_owned());
            world.agrees().await;
            watched.agrees(&world).await;
            let status = world.informer.status();
            let deaths = if place == At::Connect { 2 } else { 1 };
            assert_eq!((status.restarts, status.sources[0].restarts), (deaths, deaths), "{place:?}");
            assert!(world.informer.shutdown(LONG).await.is_clean(), "{place:?}");
        });
    }
}

/// A user's actor whose spawned future panics at the first event.
struct Spawns;

impl Actor for Spawns {
    type Context = Context<Self>;
}

impl Handler<Notify<String>> for Spawns {
    type Result = ();

    fn handle(&mut self, notify: Notify<String>, ctx: &mut Context<Self>) {
        let faulty = async move { panic!("faulty with {}", notify.key()) };
        ctx.spawn(faulty.into_actor(self));
    }
}

// INF-46: given a subscribed actor that stops, when the next event is owed, then its subscription ends with a
// reason, which a wait for its sync names, and the informer and other subscriptions sync and go on.
// - a its subscription ends with a reason
// - b the informer and other subscriptions sync and go on
// - c a wait for its sync says so and why:
//   `inf_46_waiting_for_a_subscription_that_has_ended_reports_why_while_its_informer_runs_on`
#[test]
fn inf_46_a_panic_in_a_future_that_a_users_actor_spawned_ends_its_subscription_and_nothing_else() {
    run(three, |world| async move {
        let other = world.watched();
        let subscription = world.informer.subscribe(Spawns.start()).expect("it runs");
        settle().await;
        world.apply("a/one", "goes on, and finds that its actor has stopped").await;
        assert_eq!(subscription.end().await, EndReason::SubscriberGone);
        other.agrees(&world).await;
        assert_eq!(world.informer.status().restarts, 0);
    });
}

/// Panics when it is dropped, unless the thread is already panicking.
struct PanicsAtDrop;

impl Drop for PanicsAtDrop {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "faulty in drop");
    }
}

#[test]
fn inf_44_a_closure_whose_drop_panics_ends_only_its_own_subscription_and_its_shutdown_returns() {
    run(three, |world| async move {
        let other = world.watched();
        let (a, b) = (PanicsAtDrop, PanicsAtDrop);
        let asynchronous = world.informer.for_each(move |_| {
            let _kept = &a;
            std::future::ready(())
        });
        let blocking = world.informer.subscribe(Subscriber::blocking(move |_| {
            let _kept = &b;
        }));
        for subscription in [asynchronous, blocking] {
            let subscription = subscription.expect("it runs");
            subscription.synced().await.expect("it syncs");
            assert_eq!(subscription.shutdown(LONG).await, Ok(()));
        }
        world.apply("a/one", "goes on").await;
        other.agrees(&world).await;
        assert!(world.informer.shutdown(LONG).await.is_clean());
        assert_eq!(world.informer.status().restarts, 0);
    });
}

// INF-45: given more than N restarts in T, when the limit is passed, then nothing restarts again, the failure
// reaches the owner, state and readiness show it, other informers run on, and a wait for a source that is
// given up before its first list ends with the reason.
// - a when the limit is passed nothing restarts again
// - b the failure reaches the owner, and state shows it
// - c readiness shows it:
//   `inf_45_an_informer_that_is_not_restarted_any_more_is_neither_ready_nor_healthy_and_the_probes_say_why`
// - d other informers run on: `inf_44_drops_that_panic_at_giving_up_leave_the_other_informers_alone`
// - e a shutdown meanwhile keeps its deadline:
//   `inf_45_a_shutdown_during_a_crash_loop_keeps_its_deadline_and_is_clean_only_if_everything_was_delivered`
// - f a wait for a source that is given up before its first list ends with the reason:
//   `inf_45_waiting_for_a_source_that_is_given_up_before_its_first_list_ends_with_the_reason`
#[test]
fn inf_45_a_reflector_that_panics_again_and_again_is_given_up_its_state_shows_it_and_the_store_is_served() {
    run_with(panics_when_armed(Site::ReflectorStarted), three, |world| async move {
        world.synced().await;
        let watched = world.watched();
        watched.synced().await;
        let reached = world.server.apply("a/one", "lethal".to_owned());
        let failed = world.informer.wait_until(|status| status.failed.is_some()).await.expect("it runs on");
        assert_eq!((failed.restarts, failed.sources[0].restarts, failed.stopped), (5, 5, false));
        assert!(failed.failed.as_ref().is_some_and(|why| why.starts_with("reflector/")), "{failed:?}");
        assert!(matches!(failed.state(), SourceState::GivenUp { .. }), "{:?}", failed.state());
        assert_eq!(world.informer.lister().list().len(), 3, "the store is served");
        world.watched().synced().await;
        let requests = world.server.requests().len();
        pass(Duration::from_secs(24 * 3600)).await;
        assert_eq!(world.server.requests().len(), requests, "nothing restarts again");
        assert!(world.informer.lister().wait_for(&reached, Duration::from_secs(1)).await.is_err());
        assert!(world.informer.shutdown(Duration::from_secs(5)).await.is_clean());
    });
}

/// Lets the first run of the reflector read its first list; then panics in it, and in each start after it.
fn panics_when_armed(start: Site) -> Faults {
    let (starts, kill) = (AtomicU32::new(0), kill_after(Site::ReflectorReceived, 4));
    Faults::new(move |site| {
        kill(site);
        let again = site == start && starts.fetch_add(1, Ordering::Relaxed) > 0;
        assert!(!again, "killed at {site:?}");
    })
}

fn kill_after(wanted: Site, visits: u32) -> impl Fn(Site) + Send + Sync {
    let seen = AtomicU32::new(0);
    move |site| {
        let late = site == wanted && seen.fetch_add(1, Ordering::Relaxed) >= visits;
        assert!(!late, "killed at {site:?}");
    }
}

/// The places where an actor can panic, and the message loops on the way to a shutdown.
const SITES: [Site; 10] = [
    Site::ReflectorReceived,
    Site::DeltaFifoPush,
    Site::DeltaFifoPop,
    Site::IndexerApply,
    Site::IndexerReplace,
    Site::IndexerPublished,
    Site::ProcessorChanges,
    Site::ProcessorFannedOut,
    Site::ListenerChanges,
    Site::SupervisorExited,
];

const LIMIT: Duration = Duration::from_secs(8);

/// Shuts down in at most its limit and an actor's last turn; returns whether that was clean.
async fn shut_down(world: &World) -> bool {
    let before = world.runtime.now();
    let report = world.informer.shutdown(LIMIT).await;
    let took = world.runtime.now() - before;
    assert!(took <= LIMIT + Duration::from_millis(101), "{took:?}");
    assert!(!report.still_running, "{report:?}");
    assert!(world.informer.status().stopped);
    report.is_clean()
}

#[test]
fn inf_44_a_shutdown_during_any_panic_keeps_its_deadline_and_is_clean_only_if_everything_was_delivered() {
    for site in SITES {
        for nth in 1..=8 {
            run_with(kill_at(site, nth), three, |world| async move {
                let watched = world.watched();
                world.server.apply("a/one", "before".to_owned());
                if nth % 2 == 0 {
                    world.informer.synced_within(Duration::from_secs(1)).await.unwrap_or_default();
                }
                for n in 0..4 {
                    world.server.apply("a/one", n.to_string());
                    settle().await;
                }
                let clean = shut_down(&world).await;
                let lost = matches!(watched.subscription.ended(), Some(EndReason::ListenerFailed(_)));
                if clean && !lost {
                    let agrees = watched.received.agrees_with(&world.informer.snapshot());
                    assert_eq!(agrees, Ok(()), "{site:?} at visit {nth}");
                }
            });
        }
    }
}

#[test]
fn inf_45_a_shutdown_during_a_crash_loop_keeps_its_deadline_and_is_clean_only_if_everything_was_delivered() {
    for site in SITES {
        run_with(kill_every(site, 1, u32::MAX), three, |world| async move {
            let watched = world.watched();
            pass(Duration::from_secs(3)).await;
            let clean = shut_down(&world).await;
            let lost = matches!(watched.subscription.ended(), Some(EndReason::ListenerFailed(_)));
            if clean && !lost {
                assert_eq!(watched.received.agrees_with(&world.informer.snapshot()), Ok(()), "{site:?}");
            }
        });
    }
}

//! INF-54: every wait ends, whichever ends first: runtime, informer or simulation; on threads and in simulation.
//!
//! Each test begins one wait of every kind on an informer that never syncs (its list is held back), ends something,
//! and checks how each wait ended. The end of an arbiter's thread is tested in `actors/src/informer/tests.rs`.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use actix::{Actor, ActorContext, Context, Handler};
use futures_util::future::{BoxFuture, join, join_all};
use futures_util::{FutureExt, StreamExt};
use informer_actors::informer::WaitForError;
use informer_actors::informer::{AddIndexError, Informer, WaitError};
use informer_actors::runtime::Runtime;
use informer_actors::subscription::EndReason;
use informer_actors::subscription::Notify;
use informer_actors::subscription::{SubscribeError, SubscribeOptions, Subscriber, Subscription};
use informer_actors::testing::Site;
use informer_actors::testing::{Server, kill_every};
use informer_core::index::Index;
use informer_core::meta::Object;
use informer_core::reflector::SourceState;

use crate::blocking::{Gate, on_threads};
use crate::threads::{LIMIT, block_on, informer, start};
use crate::world::{LONG, run, run_with, settle, three};

/// A wait of one kind; an error says in which unexpected way it ended.
type Wait = (&'static str, BoxFuture<'static, Result<(), String>>);

fn wait<T: Debug>(
    name: &'static str,
    wait: impl Future<Output = T> + Send + 'static,
    expected: impl FnOnce(&T) -> bool + Send + 'static,
) -> Wait {
    let checked = wait.map(|outcome| expected(&outcome).then_some(()).ok_or_else(|| format!("{outcome:?}")));
    (name, checked.boxed())
}

fn silent(informer: &Informer<String>) -> Subscription<String> {
    informer.for_each(|_| std::future::ready(())).expect("it runs")
}

fn index() -> Index<String> {
    Index::new("body", |object: &Object<String>| vec![object.body().clone()])
}

/// One wait of each kind for something that never happens.
fn waits(informer: &Informer<String>) -> Vec<Wait> {
    let (synced, until, lister) = (informer.clone(), informer.clone(), informer.lister());
    let (syncs, ends) = (silent(informer), silent(informer));
    let mut events = informer.events().expect("it runs");
    let version = "999".parse().expect("a version");
    let stopped = |outcome: &Result<(), WaitError>| matches!(outcome, Err(WaitError::Stopped { .. }));
    vec![
        wait("Informer::synced", async move { synced.synced().await.map(drop) }, stopped),
        wait("Informer::wait_until", async move { until.wait_until(|_| false).await.map(drop) }, stopped),
        wait("Lister::wait_for", async move { lister.wait_for(&version, LONG).await }, |outcome| {
            matches!(outcome, Err(WaitForError::Stopped { .. }))
        }),
        wait("Subscription::synced", async move { syncs.synced().await }, stopped),
        wait("Subscription::end", async move { ends.end().await }, |why| *why == EndReason::InformerStopped),
        wait("Events::next", async move { events.next().await.is_none() }, |over| *over),
    ]
}

/// Calls on an informer that has ended.
fn asked_afterwards(informer: &Informer<String>, kept: Subscription<String>) -> Vec<Wait> {
    let (adding, stopping) = (informer.clone(), informer.clone());
    let refused = |outcome: Result<(), SubscribeError>| {
        wait(
            "subscribing",
            async move { outcome },
            |outcome| matches!(outcome, Err(why) if why.to_string().contains("has stopped")),
        )
    };
    vec![
        refused(informer.for_each(|_| std::future::ready(())).map(drop)),
        refused(informer.subscribe(Subscriber::blocking(|_| ())).map(drop)),
        refused(informer.events().map(drop)),
        wait("Informer::add_index", async move { adding.add_index(index()).await }, |outcome| {
            matches!(outcome, Err(AddIndexError::Stopped { .. }))
        }),
        wait("Informer::shutdown", async move { stopping.shutdown(LONG).await }, |report| {
            report.unfinished.is_empty() && !report.still_running
        }),
        wait("Subscription::shutdown", async move { kept.shutdown(LONG).await }, Result::is_ok),
    ]
}

/// Begins these waits, then `end`s something, and checks that each wait has ended as it should.
async fn all_end(limit: Duration, waits: Vec<Wait>, end: impl Future<Output = ()>) {
    let waits = waits.into_iter().map(|(name, wait)| async move {
        match tokio::time::timeout(limit, wait).await {
            Ok(outcome) => outcome.map_err(|how| format!("{name}: {how}")),
            Err(_) => Err(format!("{name} is still waiting")),
        }
    });
    let (outcomes, ()) = join(join_all(waits), end).await;
    let wrong: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Begins every kind of wait, ends something, and asks for everything again afterwards.
async fn everything_ends(limit: Duration, informer: &Informer<String>, end: impl Future<Output = ()>) {
    let kept = silent(informer);
    all_end(limit, waits(informer), end).await;
    assert_eq!(kept.ended(), Some(EndReason::InformerStopped));
    all_end(limit, waits_of_the_ended(informer), std::future::ready(())).await;
    all_end(limit, asked_afterwards(informer, kept), std::future::ready(())).await;
    assert!(informer.status().stopped);
}

/// The waits that need no new subscription.
fn waits_of_the_ended(informer: &Informer<String>) -> Vec<Wait> {
    let (synced, until, lister) = (informer.clone(), informer.clone(), informer.lister());
    let version = "999".parse().expect("a version");
    let stopped = |outcome: &Result<(), WaitError>| matches!(outcome, Err(WaitError::Stopped { .. }));
    vec![
        wait("Informer::synced", async move { synced.synced().await.map(drop) }, stopped),
        wait("Informer::wait_until", async move { until.wait_until(|_| false).await.map(drop) }, stopped),
        wait("Lister::wait_for", async move { lister.wait_for(&version, LONG).await }, |outcome| {
            matches!(outcome, Err(WaitForError::Stopped { .. }))
        }),
    ]
}

/// A server whose first list never ends.
fn held() -> Server<String> {
    let server = Server::new();
    server.apply("a/one", "1".to_owned());
    server.hold_lists(true);
    server
}

#[test]
fn inf_54_every_wait_ends_when_the_runtime_is_shut_down_first() {
    on_threads(async {
        let runtime = start();
        let informer = informer(&runtime, &held());
        let end = async { runtime.shutdown(LIMIT).await.expect("nothing blocks it") };
        everything_ends(LIMIT, &informer, end).await;
    });
}

#[test]
fn inf_54_every_wait_ends_when_the_informer_is_shut_down_first_and_the_runtime_afterwards() {
    on_threads(async {
        let runtime = start();
        let informer = informer(&runtime, &held());
        let end = async { drop(informer.shutdown(Duration::ZERO).await) };
        everything_ends(LIMIT, &informer, end).await;
        runtime.shutdown(LIMIT).await.expect("nothing blocks it");
        all_end(LIMIT, waits_of_the_ended(&informer), std::future::ready(())).await;
    });
}

#[test]
fn inf_54_an_informer_outlives_the_programs_last_handle_of_its_runtime_and_its_waits_end_with_it() {
    on_threads(async {
        let (runtime, server) = (start(), held());
        let informer = informer(&runtime, &server);
        drop(runtime);
        server.hold_lists(false);
        informer.synced_within(LIMIT).await.expect("it runs on");
        let version = server.apply("a/two", "2".to_owned());
        informer.lister().wait_for(&version, LIMIT).await.expect("it runs on");
        let ends = silent(&informer);
        let stopping = informer.clone();
        let waits = vec![wait("Subscription::end", async move { ends.end().await }, |why| {
            *why == EndReason::InformerStopped
        })];
        all_end(LIMIT, waits, async move { drop(stopping.shutdown(LIMIT).await) }).await;
        let synced = informer.synced().await;
        assert!(synced.is_ok(), "latched: {synced:?}");
    });
}

#[test]
fn inf_54_every_wait_ends_when_the_runtime_is_shut_down_while_something_blocks_its_thread() {
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        server.apply("a/one", "blocks".to_owned());
        let (gate, blocked) = Gate::new();
        let connected = server.clone();
        let (entered, inside) = tokio::sync::oneshot::channel::<()>();
        let entered = std::sync::Mutex::new(Some(entered));
        let blocks = move |object: &Object<String>| {
            drop(entered.lock().map(|mut entered| entered.take()));
            blocked.wait();
            [object.body().clone()]
        };
        let informer =
            Informer::builder(&runtime, "texts").source(move || connected.clone()).index("held", blocks);
        let informer = informer.start().expect("the spec is valid");
        drop(inside.await);
        let mut waits = waits(&informer);
        // A stream's question waits in the mailbox of an actor on the blocked thread, and ends with that
        // thread.
        waits.retain(|(name, _)| *name != "Events::next");
        let end =
            async { drop(runtime.shutdown(Duration::from_millis(20)).await.expect_err("it is blocked")) };
        all_end(LIMIT, waits, end).await;
        all_end(LIMIT, waits_of_the_ended(&informer), std::future::ready(())).await;
        drop(gate);
    });
}

#[test]
fn inf_54_every_wait_ends_when_a_simulated_runtime_is_shut_down_first() {
    Runtime::simulated(1).run(|runtime| async move {
        let informer = informer(&runtime, &held());
        settle().await;
        let end = async { runtime.shutdown(LONG).await.expect("nothing blocks it") };
        everything_ends(LONG, &informer, end).await;
    });
}

#[test]
fn inf_54_every_wait_ends_when_the_simulation_is_over() {
    let (informer, waits, kept) = Runtime::simulated(1).run(|runtime| async move {
        let informer = informer(&runtime, &held());
        let (waits, kept) = (waits(&informer), silent(&informer));
        settle().await;
        (informer, waits, kept)
    });
    block_on(&mut tokio::runtime::Builder::new_current_thread(), async {
        all_end(LIMIT, waits, std::future::ready(())).await;
        assert_eq!(kept.ended(), Some(EndReason::InformerStopped));
        all_end(LIMIT, waits_of_the_ended(&informer), std::future::ready(())).await;
        all_end(LIMIT, asked_afterwards(&informer, kept), std::future::ready(())).await;
        assert!(informer.status().stopped);
    });
}

// INF-54: given a wait of every kind (synced, wait_until, wait_for, a subscription's synced and end, a
// stream's next), when the runtime, the informer, the arbiter's thread or the simulation ends first, then
// each ends with its Stopped, each subscription with InformerStopped, each stream with None; afterwards
// subscribing, adding an index and starting an informer are refused, and shutdowns return at once.
// - a the runtime first, on threads: `inf_54_every_wait_ends_when_the_runtime_is_shut_down_first`
// - b in simulation: `inf_54_every_wait_ends_when_a_simulated_runtime_is_shut_down_first`
// - c the informer first, the runtime afterwards:
//   `inf_54_every_wait_ends_when_the_informer_is_shut_down_first_and_the_runtime_afterwards`
// - d the program's last handle of the runtime first: the informer runs on:
//   `inf_54_an_informer_outlives_the_programs_last_handle_of_its_runtime_and_its_waits_end_with_it`
// - e the arbiter's thread first: `inf_54_every_wait_ends_when_the_arbiters_thread_has_ended`
// - f the simulation first: `inf_54_every_wait_ends_when_the_simulation_is_over`
// - g the runtime, while something blocks a thread (but for streams, which end with that thread):
//   `inf_54_every_wait_ends_when_the_runtime_is_shut_down_while_something_blocks_its_thread`
// - h an informer is not started on a runtime that has ended
#[test]
fn inf_54_an_informer_is_not_started_on_a_runtime_that_has_ended() {
    on_threads(async {
        let runtime = start();
        runtime.clone().shutdown(LIMIT).await.expect("nothing blocks it");
        let refused = Informer::builder(&runtime, "late").source(held).start().expect_err("it has ended");
        assert_eq!(refused.to_string(), "the runtime was shut down: informer \"late\" cannot start on it");
    });
    let over = Runtime::simulated(1).run(|runtime| async move { runtime });
    assert!(Informer::builder(&over, "late").source(held).start().is_err());
    Runtime::simulated(1).run(|runtime| async move {
        runtime.clone().shutdown(LONG).await.expect("nothing blocks it");
        assert!(Informer::builder(&runtime, "late").source(held).start().is_err());
    });
}

/// An actor that stops at its first event.
struct Leaves;

impl Actor for Leaves {
    type Context = Context<Self>;
}

impl Handler<Notify<String>> for Leaves {
    type Result = ();

    fn handle(&mut self, _notify: Notify<String>, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

#[test]
fn inf_46_waiting_for_a_subscription_that_has_ended_reports_why_while_its_informer_runs_on() {
    run(three, |world| async move {
        let options = SubscribeOptions::new().name("audit");
        let subscription = world.informer.subscribe_with(options, Leaves.start()).expect("it runs");
        let why = subscription.synced().await.expect_err("its actor has stopped");
        let left = EndReason::SubscriberGone;
        assert!(matches!(&why, WaitError::Ended { reason, .. } if *reason == left), "{why:?}");
        let words = "subscription \"audit\" of informer \"texts\" has ended: the subscribed actor is gone";
        assert_eq!(why.to_string(), words);
        world.agrees().await;
    });
}

#[test]
fn inf_45_waiting_for_a_source_that_is_given_up_before_its_first_list_ends_with_the_reason() {
    run_with(kill_every(Site::ReflectorStarted, 1, u32::MAX), three, |world| async move {
        let subscription = silent(&world.informer);
        let (informer, subscribed) = join(world.informer.synced(), subscription.synced()).await;
        for outcome in [informer.map(drop), subscribed] {
            let why = outcome.expect_err("the source is not listed any more").to_string();
            let begins =
                "informer \"texts\" cannot sync: its source \"default\" is given up: panicked: killed at";
            assert!(why.starts_with(begins), "{why}");
        }
        assert!(!world.informer.status().stopped, "it runs on");
        assert!(matches!(world.informer.state(), SourceState::GivenUp { .. }));
        assert!(world.informer.shutdown(LONG).await.is_clean());
        let after = world.informer.synced().await.expect_err("it has stopped");
        assert!(matches!(after, WaitError::Stopped { .. }), "{after}");
    });
}

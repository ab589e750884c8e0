//! INF-47: an actor or closure that blocks a thread of ours is named in the status while it blocks. On real threads,
//! without a sleep.

use std::time::Duration;

use informer_actors::informer::Informer;
use informer_actors::status::InformerStatus;
use informer_actors::subscription::{SubscribeOptions, Subscriber};
use informer_actors::testing::Server;

use crate::blocking::{Gate, on_threads};
use crate::log::everywhere;
use crate::threads::{LIMIT, informer, start};

/// The limit of a shutdown that cannot succeed: enough for every thread that is not blocked, on a loaded
/// machine.
const SHORT: Duration = Duration::from_secs(3);

/// Waits until this actor blocks a thread of the informer, and returns the arbiter. On a loaded machine
/// others may be late.
async fn stuck_by(informer: &Informer<String>, actor: &str) -> String {
    let named = |status: &InformerStatus| {
        status.stuck.as_ref().filter(|stuck| stuck.actor.as_deref() == Some(actor)).cloned()
    };
    let stuck = informer.wait_until(move |status| named(status).is_some());
    let status = tokio::time::timeout(LIMIT, stuck).await.expect("in time").expect("it runs");
    status.stuck.expect("it is stuck").arbiter.to_string()
}

async fn turns_again(informer: &Informer<String>) {
    let turns = informer.wait_until(|status| status.stuck.is_none());
    tokio::time::timeout(LIMIT, turns).await.expect("in time").expect("it runs");
}

#[test]
fn inf_47_an_arbiter_blocked_by_an_index_function_shows_with_its_actor_in_the_status_while_readers_are_served()
 {
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        server.apply("a/one", "good".to_owned());
        let (gate, held) = Gate::new();
        let connected = server.clone();
        let blocks = move |object: &informer_core::meta::Object<String>| {
            if object.body() == "blocks" {
                held.wait();
            }
            [object.body().clone()]
        };
        let informer =
            Informer::builder(&runtime, "texts").source(move || connected.clone()).index("body", blocks);
        let informer = informer.start().expect("the spec is valid");
        informer.synced_within(LIMIT).await.expect("it syncs");
        turns_again(&informer).await;
        let newest = server.apply("a/one", "blocks".to_owned());
        let arbiter = stuck_by(&informer, "texts/indexer").await;
        assert_eq!(arbiter, "informer-0");
        let health =
            runtime.arbiters().into_iter().find(|health| health.name == arbiter).expect("it is listed");
        assert_eq!(health.running.as_deref(), Some("texts/indexer"));
        assert_eq!(
            informer.lister().by_index("body", "good").expect("it exists").len(),
            1,
            "readers are served"
        );
        drop(gate);
        informer.lister().wait_for(&newest, LIMIT).await.expect("it goes on");
        turns_again(&informer).await;
        assert!(informer.shutdown(LIMIT).await.is_clean());
    });
}

#[test]
fn inf_47_an_async_closure_that_blocks_its_thread_is_named_in_the_status() {
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        server.apply("a/one", String::new());
        let informer = informer(&runtime, &server);
        let (gate, held) = Gate::new();
        let named = SubscribeOptions::new().name("careless");
        let subscription = informer.subscribe_with(
            named,
            Subscriber::each(move |_| {
                held.wait();
                std::future::ready(())
            }),
        );
        let quick = informer.subscribe_with(
            SubscribeOptions::new().name("quick"),
            Subscriber::each(|_| std::future::ready(())),
        );
        let quick = quick.expect("it runs");
        assert_eq!(stuck_by(&informer, "texts/careless").await, "informer-calls");
        let why = quick.synced_within(Duration::ZERO).await.expect_err("its closure cannot run");
        assert_eq!(
            why.to_string(),
            "subscription \"quick\" of informer \"texts\" is not synced after 0ns: the informer is synced, its \
             subscriber has not handled all initial events; texts/careless blocks the thread informer-calls"
        );
        let version = "999".parse().expect("a version");
        let why = informer.lister().wait_for(&version, Duration::ZERO).await.expect_err("it is not there");
        assert!(why.to_string().ends_with("; texts/careless blocks the thread informer-calls"), "{why}");
        let newest = server.apply("a/two", String::new());
        informer.lister().wait_for(&newest, LIMIT).await.expect("the pipeline goes on");
        drop(gate);
        turns_again(&informer).await;
        drop(subscription);
    });
}

#[test]
fn inf_47_a_stuck_arbiter_and_its_actor_are_named_in_the_log() {
    let log = everywhere();
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        server.apply("a/one", String::new());
        let informer = informer(&runtime, &server);
        let (gate, held) = Gate::new();
        let named = SubscribeOptions::new().name("stuck-and-logged");
        let subscription = informer.subscribe_with(
            named,
            Subscriber::each(move |_| {
                held.wait();
                std::future::ready(())
            }),
        );
        // It is logged before it is shown.
        stuck_by(&informer, "texts/stuck-and-logged").await;
        let actor = Some("texts/stuck-and-logged");
        let lines: Vec<_> = log.lines().into_iter().filter(|line| line.field("actor") == actor).collect();
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!(line.field("arbiter"), Some("informer-calls"));
        drop(gate);
        turns_again(&informer).await;
        subscription.expect("it runs").shutdown(LIMIT).await.expect("it comes back");
    });
}

#[test]
fn newcomer_11_the_log_of_a_blocked_arbiter_says_what_to_call_instead() {
    let log = everywhere();
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        server.apply("a/one", String::new());
        let informer = informer(&runtime, &server);
        let (gate, held) = Gate::new();
        let named = SubscribeOptions::new().name("blocks-and-is-advised");
        let subscription = informer.subscribe_with(
            named,
            Subscriber::each(move |_| {
                held.wait();
                std::future::ready(())
            }),
        );
        stuck_by(&informer, "texts/blocks-and-is-advised").await;
        let lines = log.with("texts/blocks-and-is-advised");
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert!(line.message.contains("belongs in Subscriber::blocking"), "{}", line.message);
        drop(gate);
        turns_again(&informer).await;
        subscription.expect("it runs").shutdown(LIMIT).await.expect("it comes back");
    });
}

// INF-47: given an actor stuck in a handler, when the watchdog looks, then the arbiter and actor are named in
// state and log.
// - a arbiter and actor are named in the state:
//   `inf_47_an_arbiter_blocked_by_an_index_function_shows_with_its_actor_in_the_status_while_readers_are_served`
// - b at a shutdown, too
// - c and in the log: `inf_47_a_stuck_arbiter_and_its_actor_are_named_in_the_log`
// - d at most once in ten minutes:
//   `inf_47_a_stuck_arbiter_is_logged_at_once_and_then_at_most_every_ten_minutes`
#[test]
fn inf_47_a_shutdown_of_the_runtime_ends_at_its_limit_and_names_what_blocks_which_thread() {
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        server.apply("a/one", String::new());
        let informer = informer(&runtime, &server);
        let (gate, held) = Gate::new();
        let (entered, inside) = tokio::sync::oneshot::channel::<()>();
        let mut entered = Some(entered);
        let named = SubscribeOptions::new().name("careless");
        let subscription = informer.subscribe_with(
            named,
            Subscriber::each(move |_| {
                drop(entered.take());
                held.wait();
                std::future::ready(())
            }),
        );
        drop(inside.await);
        let error = runtime.clone().shutdown(SHORT).await.expect_err("a callback blocks");
        let stuck: Vec<_> = error.stuck.iter().map(|one| (&*one.arbiter, one.actor.as_deref())).collect();
        assert_eq!(stuck, [("informer-calls", Some("texts/careless"))]);
        assert!(error.to_string().contains("texts/careless blocks the thread informer-calls"), "{error}");
        drop(gate);
        assert_eq!(runtime.shutdown(LIMIT).await, Ok(()), "now it ends");
        drop((subscription, informer));
    });
}

#[test]
fn a_shutdown_of_the_runtime_ends_at_its_limit_while_an_object_is_being_decoded() {
    on_threads(async {
        let runtime = start();
        let (gate, held) = Gate::new();
        let (entered, inside) = tokio::sync::oneshot::channel::<()>();
        let pool = runtime.decode_pool();
        let decoding = tokio::spawn(async move {
            let job = move || {
                drop(entered);
                held.wait();
            };
            pool.run(job).await
        });
        drop(inside.await);
        let error = runtime.clone().shutdown(SHORT).await.expect_err("a decode blocks");
        assert!(error.decoding && error.stuck.is_empty(), "{error:?}");
        drop(gate);
        decoding.await.expect("it ends").expect("it has been decoded");
        assert_eq!(runtime.shutdown(LIMIT).await, Ok(()));
    });
}

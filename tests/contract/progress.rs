//! INF-61: an informer that has work and makes no progress shows it, and a healthy one never does.
//!
//! A hook leaves the faults in place on purpose. The watchdog checks on the simulated clock; only the test of an actor
//! that spins uses real threads, because simulated time stands still beside it.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use informer_actors::informer::Informer;
use informer_actors::runtime::{Runtime, Stuck, StuckKind};
use informer_actors::testing::{Faults, Site};
use informer_actors::testing::{Server, kill_at};
use informer_core::backoff::BackoffPolicy;
use informer_core::reflector::SourceState;
use informer_core::restart::RestartPolicy;

use crate::blocking::on_threads;
use crate::log::recorded;
use crate::threads::LIMIT;
use crate::world::{LONG, pass};

/// Longer than any stall needs to be noticed.
const SEEN_WITHIN: Duration = Duration::from_secs(15);

fn informer(runtime: &Runtime, server: &Server<String>) -> Informer<String> {
    let connected = server.clone();
    Informer::builder(runtime, "texts").source(move || connected.clone()).start().expect("the spec is valid")
}

fn filled(count: usize) -> Server<String> {
    let server = Server::new();
    (0..count).for_each(|n| drop(server.apply(&format!("a/{n}"), String::new())));
    server
}

fn who(stuck: &Stuck) -> (StuckKind, &str, Option<&str>) {
    (stuck.kind, &*stuck.arbiter, stuck.actor.as_deref())
}

/// Fails as soon as the watchdog shows anything during a simulated time.
async fn stays_well(informer: &Informer<String>, time: Duration) {
    for _ in 0..time.as_secs() {
        pass(Duration::from_secs(1)).await;
        assert_eq!(informer.status().stuck, None);
    }
}

#[test]
fn inf_61_an_indexer_that_loses_its_step_shows_in_status_and_log_while_the_state_is_streaming() {
    recorded(|log| {
        let stalled = Arc::new(AtomicBool::new(false));
        let faults = Faults::stalling(Site::IndexerApply, Arc::clone(&stalled));
        Runtime::simulation(7).faults(faults).watched().build().run(|runtime| async move {
            let server = filled(3);
            let informer = informer(&runtime, &server);
            informer.synced_within(LONG).await.expect("it syncs");
            stays_well(&informer, Duration::from_secs(60)).await;
            stalled.store(true, Ordering::Relaxed);
            server.apply("a/lost", String::new());
            pass(SEEN_WITHIN).await;
            let status = informer.status();
            assert!(matches!(status.state(), SourceState::Streaming), "the state says that all is well");
            let stuck = status.stuck.expect("the status says that it is not");
            assert_eq!(who(&stuck), (StuckKind::NoProgress, "simulated", Some("texts/indexer")));
            pass(Duration::from_secs(580)).await;
            assert_eq!(
                informer.status().stuck.map(|now| now.since),
                Some(stuck.since),
                "since the same moment"
            );
            assert_eq!(log.with("makes no progress").len(), 1, "one line within ten minutes");
            pass(Duration::from_secs(60)).await;
            let lines = log.with("makes no progress");
            assert_eq!(lines.len(), 2);
            let fields = ["informer", "actor", "arbiter"].map(|name| lines[0].field(name));
            assert_eq!(fields, [Some("texts"), Some("texts/indexer"), Some("simulated")]);
        });
    });
}

#[test]
fn inf_61_an_indexer_that_takes_turns_without_effect_shows_in_the_status_until_it_gets_on() {
    on_threads(async {
        let stalled = Arc::new(AtomicBool::new(true));
        let faults = Faults::stalling(Site::IndexerReplace, Arc::clone(&stalled));
        let runtime = Runtime::threads().faults(faults).start().expect("threads can be started");
        let informer = informer(&runtime, &filled(3));
        let stuck = informer.wait_until(|status| status.stuck.is_some());
        let status = tokio::time::timeout(LIMIT, stuck).await.expect("in time").expect("it runs");
        let stuck = status.stuck.expect("it is stuck");
        assert_eq!(who(&stuck), (StuckKind::NoProgress, "informer-0", Some("texts/indexer")));
        stalled.store(false, Ordering::Relaxed);
        let well = informer.wait_until(|status| status.stuck.is_none() && status.synced);
        tokio::time::timeout(LIMIT, well).await.expect("in time").expect("it runs");
    });
}

#[test]
fn inf_61_a_silent_source_slow_subscribers_and_a_failing_source_are_not_a_stall() {
    Runtime::simulation(7).watched().build().run(|runtime| async move {
        let server = filled(1_000);
        let informer = informer(&runtime, &server);
        let never_ends = informer.for_each(|_| pending()).expect("it runs");
        let takes_long = informer.for_each(|_| tokio::time::sleep(LONG)).expect("it runs");
        let unread = informer.events().expect("it runs");
        informer.synced_within(LONG).await.expect("it syncs");
        stays_well(&informer, Duration::from_secs(120)).await;
        for n in 0..1_000 {
            server.apply(&format!("a/{n}"), "again".to_owned());
        }
        stays_well(&informer, Duration::from_secs(120)).await;
        server.hold_lists(true);
        server.compact();
        server.end_watches(None);
        stays_well(&informer, LONG).await;
        drop((never_ends, takes_long, unread));
    });
}

#[test]
fn inf_61_a_long_list_that_advances_in_slices_is_not_a_stall() {
    const OBJECTS: usize = 100_000;
    on_threads(async {
        let runtime = Runtime::threads().start().expect("threads can be started");
        let informer = informer(&runtime, &filled(OBJECTS));
        let _received = informer.for_each(|_| std::future::ready(())).expect("it runs");
        let listed = async {
            while !informer.status().synced {
                let kind = informer.status().stuck.map(|stuck| stuck.kind);
                assert_ne!(kind, Some(StuckKind::NoProgress));
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LIMIT, listed).await.expect("in time");
        assert_eq!(informer.status().objects, OBJECTS);
    });
}

// INF-61: given an Indexer that takes turns and makes no progress although there is work, or that spins, when
// ten turns have passed, then the status names it, until it gets on, and a log line does at most once in ten
// minutes; a silent or failing source, slow subscribers, a long list in slices and a group that waits to be
// restarted are not a stall.
// - a the status and a line in ten minutes name one that lost its step:
//   `inf_61_an_indexer_that_loses_its_step_shows_in_status_and_log_while_the_state_is_streaming`
// - b one that spins is named until it gets on:
//   `inf_61_an_indexer_that_takes_turns_without_effect_shows_in_the_status_until_it_gets_on`
// - c a silent or failing source and slow subscribers are not a stall:
//   `inf_61_a_silent_source_slow_subscribers_and_a_failing_source_are_not_a_stall`
// - d a long list in slices is not a stall: `inf_61_a_long_list_that_advances_in_slices_is_not_a_stall`
// - e a group that waits to be restarted is not a stall
#[test]
fn inf_61_a_group_that_waits_to_be_restarted_with_work_in_its_queue_is_not_a_stall() {
    let faults = kill_at(Site::IndexerApply, 2);
    Runtime::simulation(7).faults(faults).watched().build().run(|runtime| async move {
        let server = filled(3);
        let connected = server.clone();
        let a_minute = BackoffPolicy { base: Duration::from_secs(60), cap: Duration::from_secs(60) };
        let restarts = RestartPolicy { backoff: a_minute, ..RestartPolicy::default() };
        let informer = Informer::builder(&runtime, "texts")
            .source(move || connected.clone())
            .restarts(restarts)
            .start()
            .expect("the spec is valid");
        informer.synced_within(LONG).await.expect("it syncs");
        let version = server.apply("a/kills", String::new());
        stays_well(&informer, Duration::from_secs(50)).await;
        assert_eq!(informer.status().restarts, 1, "it waits out its backoff");
        informer.lister().wait_for(&version, LONG).await.expect("it goes on");
        stays_well(&informer, Duration::from_secs(60)).await;
    });
}

//! INF-56: what a caller's predicate does while it waits for a status affects only that caller.
//!
//! On real threads. A predicate that deadlocks with an actor would block this test for ever, so each scenario runs on
//! its own thread, and the test waits for that thread with a limit.

use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

use informer_actors::runtime::Runtime;
use informer_actors::testing::Server;

use crate::blocking::{Gate, on_threads};
use crate::threads::{LIMIT, informer, start};

/// Runs a scenario on its own thread and fails if it does not end.
fn ends(scenario: impl Future<Output = ()> + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        on_threads(scenario);
        let _heard = done.send(());
    });
    match ended.recv_timeout(LIMIT) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("something waits for ever"),
        _ => thread.join().expect("no panic"),
    }
}

// INF-56: given `wait_until` with a predicate that sleeps, asks the informer for its status or formats it,
// when actors report meanwhile, then no actor waits for the predicate.
// - a one that asks and formats
// - b one that sleeps: `inf_56_a_predicate_that_takes_its_time_delays_no_actor`
#[test]
fn inf_56_a_predicate_that_asks_the_informer_for_its_status_blocks_nobody() {
    ends(async {
        let (runtime, server) = (start(), Server::new());
        let informer = informer(&runtime, &server);
        informer.synced_within(LIMIT).await.expect("it syncs");
        let asked = informer.clone();
        let waiting = tokio::spawn(async move {
            let seen = asked.wait_until(|status| {
                // Polls until an actor has something to report: the actor must be able to, while the
                // predicate runs.
                let before = asked.snapshot().len();
                while before < 500 && asked.snapshot().len() == before {
                    assert!(format!("{asked:?}").contains("texts"));
                    assert_eq!(asked.status().name, status.name);
                }
                status.objects >= 500
            });
            seen.await.expect("it runs").objects
        });
        for n in 0..500 {
            let version = server.apply(&format!("a/{n}"), String::new());
            informer.lister().wait_for(&version, LIMIT).await.expect("the informer follows");
        }
        assert_eq!(waiting.await.expect("no panic"), 500);
    });
}

#[test]
fn inf_56_a_predicate_that_takes_its_time_delays_no_actor() {
    ends(async {
        let runtime = Runtime::threads().arbiters(1).start().expect("threads can be started");
        let (server, other) = (Server::new(), Server::new());
        let slow = informer(&runtime, &server);
        let quick = informer(&runtime, &other);
        let (gate, held) = Gate::new();
        let (entered, inside) = tokio::sync::oneshot::channel::<()>();
        let mut entered = Some(entered);
        let waited = slow.clone();
        let waiting = std::thread::spawn(move || {
            on_threads(async {
                let seen = waited.wait_until(|_| {
                    drop(entered.take());
                    held.wait();
                    true
                });
                drop(seen.await);
            });
        });
        drop(inside.await);
        // Both informers run on one arbiter: each change of theirs is reported while the predicate sleeps.
        for (informer, server) in [(&slow, &server), (&quick, &other)] {
            let version = server.apply("a/one", String::new());
            let reached = informer.lister().wait_for(&version, LIMIT / 2).await;
            reached.expect("nobody waits for the predicate");
        }
        assert!(slow.status().stuck.is_none());
        drop(gate);
        waiting.join().expect("no panic");
        runtime.shutdown(Duration::from_secs(30)).await.expect("nothing blocks it");
    });
}

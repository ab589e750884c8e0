//! What a part of an operator holds, leaves behind, waits for and says of its health. LE-13, OP-03, OP-08, OP-09.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use informer_actors::informer::Informer;
use informer_actors::runtime::Runtime;
use informer_actors::testing::Server;
use informer_core::list_watch_error::ListWatchError;
use informer_operator::controller::{Controller, Outcome, Request};
use informer_operator::lifecycle::{Operator, Part, PartContext, PartError, PartState, controller, task};

use crate::operator_parts::{Log, election};
use crate::world::{LONG, pass, settle, three, until};

const SECOND: Duration = Duration::from_secs(1);

fn declared(runtime: &Runtime, server: &Server<String>) -> Informer<String> {
    let source = server.clone();
    Informer::builder(runtime, "texts").source(move || source.clone()).declare().expect("the spec is valid")
}

/// A part that holds something from its making on, and notes how that ends.
struct Holds(Log);

impl Part for Holds {
    fn name(&self) -> Arc<str> {
        "holds".into()
    }

    fn run(&self, context: PartContext) -> BoxFuture<'static, Result<(), PartError>> {
        let log = self.0.clone();
        async move {
            log.note(if context.is_stopping() { "close" } else { "start" }, "holds");
            context.stopping().await;
            log.note("release", "holds");
            Ok(())
        }
        .boxed()
    }

    fn unhealthy(&self) -> Option<String> {
        Some("it is a test".to_owned())
    }

    fn holds(&self) -> bool {
        true
    }

    fn end(&self) {
        self.0.note("end", "holds");
    }
}

// OP-08: given a part that holds something while it does not run, when the operator is drained, then it is
// told to end that in the turn of its phase; when the operator has ended, however, then it holds nothing.
// - a told to end in its turn, with the time of its phase
// - b whatever the history, nothing that is held is left:
//   `op_01_any_history_keeps_the_order_the_lease_and_one_life_for_each_part`
// - c it is ended with the operator, once
// - d the address of probes is free when the drain returns:
//   `op_03_probes_and_factories_are_parts_and_the_probes_say_what_is_missing_until_the_last_part_has_ended`
#[test]
fn op_08_what_a_part_holds_while_it_does_not_run_is_released_in_a_drain_and_ended_with_the_operator() {
    for is_drained in [true, false] {
        Runtime::simulated(7).run(|runtime| async move {
            let (server, log) = (Server::<String>::new(), Log::default());
            server.hold_lists(true);
            let builder = Operator::builder(&runtime).cache(declared(&runtime, &server));
            let operator = builder.work(Holds(log.clone())).start().expect("the runtime runs");
            pass(SECOND).await;
            assert_eq!(log.take(), [] as [&str; 0], "it waits for the caches");
            assert_eq!(operator.view().unhealthy(), ["holds is unhealthy: it is a test"]);
            if is_drained {
                assert!(operator.drain().await.is_clean());
                assert_eq!(log.take(), ["close holds", "release holds", "end holds"]);
                assert!(operator.view().unhealthy().is_empty(), "what ends needs no restart");
            }
            drop(operator);
            settle().await;
            let expected: &[&str] = if is_drained { &[] } else { &["end holds"] };
            assert_eq!(log.take(), expected, "once");
        });
    }
}

// OP-09: given a part of which something outlives its future, when it ends or is dropped, then it starts
// again, and its phase is over, only when that has ended.
// - a it starts again only then
// - b two lives of a controller never reconcile at once:
//   `op_09_two_lives_of_a_leaders_controller_never_reconcile_at_once`
#[test]
fn op_09_a_part_starts_again_only_when_what_outlives_its_future_has_ended() {
    Runtime::simulated(7).run(|runtime| async move {
        let log = Log::default();
        let (leads, election) = election(&log);
        let noted = log.clone();
        let leader = task("leader", move |context: PartContext| {
            let log = noted.clone();
            async move {
                log.note("start", "leader");
                context.outlives(async move {
                    pass(3 * SECOND).await;
                    log.note("end", "rest");
                });
                context.ready();
                std::future::pending().await
            }
        });
        let builder = Operator::builder(&runtime).election(election).leader_work(leader);
        let operator = builder.start().expect("the runtime runs");
        leads.send_replace(true);
        until(|| log.len() == 2).await;
        leads.send_replace(false);
        settle().await;
        leads.send_replace(true);
        pass(SECOND).await;
        assert_eq!(operator.status().part("leader").expect("a part").state, PartState::Ending);
        until(|| log.len() == 4).await;
        assert_eq!(log.take(), ["start election", "start leader", "end rest", "start leader"]);
    });
}

#[test]
fn op_09_two_lives_of_a_leaders_controller_never_reconcile_at_once() {
    Runtime::simulated(7).run(|runtime| async move {
        let (server, log) = (Server::<String>::new(), Log::default());
        three(&server);
        let texts = declared(&runtime, &server);
        let (leads, election) = election(&log);
        let (source, at_work, begun): (_, Arc<AtomicUsize>, Arc<AtomicUsize>) =
            (texts.clone(), Arc::default(), Arc::default());
        let (works, begins) = (Arc::clone(&at_work), Arc::clone(&begun));
        let leader = controller("leader", move || {
            let (works, begins) = (Arc::clone(&works), Arc::clone(&begins));
            let reconcile = move |_: Request<String>| {
                let (works, begins) = (Arc::clone(&works), Arc::clone(&begins));
                async move {
                    begins.fetch_add(1, Ordering::Relaxed);
                    let others = works.fetch_add(1, Ordering::Relaxed);
                    let _working = Working(works);
                    assert_eq!(others, 0, "one of another life works");
                    pass(60 * SECOND).await; // longer than the grace: it is dropped at its end
                    Ok(Outcome::Done)
                }
            };
            Controller::builder(&source).reconcile(reconcile).start()
        });
        let builder = Operator::builder(&runtime).cache(texts).election(election).leader_work(leader);
        let operator = builder.start().expect("the runtime runs");
        for life in 1..=3 {
            leads.send_replace(true);
            until(|| begun.load(Ordering::Relaxed) == life).await;
            leads.send_replace(false);
            settle().await;
        }
        assert_eq!(at_work.load(Ordering::Relaxed), 1, "it has its grace");
        drop(operator);
        until(|| at_work.load(Ordering::Relaxed) == 0).await;
    });
}

/// Counts down when a reconcile has ended or was dropped.
struct Working(Arc<AtomicUsize>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn op_03_a_controller_that_waits_names_the_informer_that_is_not_synced() {
    Runtime::simulated(7).run(|runtime| async move {
        let server = Server::<String>::new();
        server.hold_lists(true);
        let texts = declared(&runtime, &server);
        texts.begin();
        let source = texts.clone();
        let counts = controller("counts", move || {
            Controller::builder(&source).reconcile(|_: Request<String>| async { Ok(Outcome::Done) }).start()
        });
        let operator = Operator::builder(&runtime).work(counts).start().expect("the runtime runs");
        pass(SECOND).await;
        let missing = "counts is not ready: informer texts is not synced: listing, 0 objects received";
        assert_eq!(operator.unready(), [missing]);
        server.hold_lists(false);
        operator.ready_within(LONG).await.expect("it is ready");
    });
}

#[test]
fn operator_a9_a_cache_that_is_refused_after_its_first_list_shows_since_when_and_why_and_a_limit_makes_it_unready()
 {
    Runtime::simulated(7).run(|runtime| async move {
        let server = Server::<String>::new();
        three(&server);
        let texts = declared(&runtime, &server);
        let tolerant = Operator::builder(&runtime).cache(texts.clone()).start().expect("the runtime runs");
        let limited = texts.clone().unready_when_stale_for(300 * SECOND);
        let strict = Operator::builder(&runtime).cache(limited).start().expect("the runtime runs");
        for operator in [&tolerant, &strict] {
            operator.ready_within(LONG).await.expect("it is ready");
            assert_eq!(operator.status().parts[0].stale, None);
        }
        server.refuse((0..1_500).map(|_| ListWatchError::Denied("texts is forbidden".into())));
        server.end_watches(Some(ListWatchError::Denied("texts is forbidden".into())));
        pass(200 * SECOND).await;
        assert!(strict.unready().is_empty(), "{:?}", strict.unready());
        pass(36_000 * SECOND).await;
        assert!(tolerant.unready().is_empty(), "the cache can still be read");
        let stale = tolerant.status().parts[0].stale.clone().expect("that is shown");
        assert!(stale.lasts >= 36_000 * SECOND, "{stale}");
        assert!(stale.why.contains("texts is forbidden"), "{stale}");
        let [why] = strict.unready().try_into().expect("one reason");
        assert!(why.starts_with("texts is stale for 10h3m: denied: texts is forbidden"), "{why}");
        for operator in [&tolerant, &strict] {
            assert_eq!(operator.view().unhealthy(), [] as [&str; 0], "a restart would not help");
        }
        pass(100_000 * SECOND).await;
        strict.ready_within(LONG).await.expect("it is followed again");
        assert_eq!(tolerant.status().parts[0].stale, None);
        assert_eq!(texts.status().stale(runtime.now()), None);
    });
}

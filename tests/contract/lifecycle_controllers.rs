//! Controllers as parts of an operator: their order, their failures, and what they cost while nothing changes. LE-13,
//! OP-01, OP-07.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use informer_actors::informer::Informer;
use informer_actors::runtime::Runtime;
use informer_actors::testing::{Faults, Server, Site};
use informer_operator::controller::{Controller, Outcome, Request};
use informer_operator::lifecycle::{ControllerPart, Operator, Part, controller};
use informer_operator::report::Reporting;

use crate::operator_parts::{Log, election};
use crate::world::{LONG, pass, settle, three, until};

const SECOND: Duration = Duration::from_secs(1);

fn declared(runtime: &Runtime, server: &Server<String>) -> Informer<String> {
    let source = server.clone();
    Informer::builder(runtime, "texts").source(move || source.clone()).declare().expect("the spec is valid")
}

/// A controller that takes this long for each key, and notes its end.
fn noting(log: &Log, name: &'static str, texts: &Informer<String>, takes: Duration) -> impl Part + use<> {
    let (log, texts) = (log.clone(), texts.clone());
    controller(name, move || {
        let log = log.clone();
        let reconcile = move |request: Request<String>| {
            let log = log.clone();
            async move {
                pass(takes).await;
                log.note(name, &request.key().to_string());
                Ok(Outcome::Done)
            }
        };
        Controller::builder(&texts).name(name).reconcile(reconcile).start()
    })
}

#[test]
fn le_13_controllers_start_behind_their_caches_and_those_of_the_leader_come_and_go_with_the_lease() {
    Runtime::simulated(7).run(|runtime| async move {
        let (server, log) = (Server::<String>::new(), Log::default());
        three(&server);
        let texts = declared(&runtime, &server);
        let (leads, election) = election(&log);
        let operator = Operator::builder(&runtime)
            .work(noting(&log, "every", &texts, Duration::ZERO))
            .leader_work(noting(&log, "leader", &texts, SECOND))
            .election(election)
            .cache(texts)
            .start()
            .expect("the runtime runs");
        operator.ready_within(LONG).await.expect("it is ready");
        settle().await;
        assert_eq!(log.take(), ["start election", "every a/one", "every b/one", "every a/two"]);
        leads.send_replace(true);
        pass(1_500 * SECOND / 1_000).await;
        assert_eq!(log.take(), ["leader a/one"]);
        leads.send_replace(false);
        pass(60 * SECOND).await;
        assert_eq!(log.take(), ["leader b/one"], "what runs has its grace, and nothing new begins");
        let names = |runtime: &Runtime| -> Vec<String> {
            runtime.report().controllers.iter().map(|status| status.name.to_string()).collect()
        };
        assert_eq!(names(&runtime), ["every"]);
        leads.send_replace(true);
        pass(SECOND / 2).await;
        assert_eq!(names(&runtime), ["every", "leader"]);
        assert!(operator.drain().await.is_clean());
        let drained = ["leader a/one", "leader b/one", "leader a/two", "release lease"];
        assert_eq!(log.take(), drained, "what waits is reconciled, and then the lease is released");
        assert_eq!(names(&runtime), [] as [&str; 0]);
    });
}

#[test]
fn le_13_a_controller_of_the_next_term_begins_when_the_reconciles_of_the_term_before_have_ended() {
    Runtime::simulated(7).run(|runtime| async move {
        let (server, log) = (Server::<String>::new(), Log::default());
        server.apply("a/one", "1".to_owned());
        let texts = declared(&runtime, &server);
        let (leads, election) = election(&log);
        let operator = Operator::builder(&runtime)
            .leader_work(noting(&log, "leader", &texts, 4 * SECOND))
            .election(election)
            .cache(texts)
            .start()
            .expect("the runtime runs");
        leads.send_replace(true);
        operator.wait_until(|status| status.leads == Some(true)).await;
        pass(SECOND).await;
        leads.send_replace(false);
        pass(SECOND).await;
        leads.send_replace(true);
        log.take();
        let begun = runtime.now();
        until(|| log.len() == 2).await;
        let took = runtime.now() - begun;
        assert!(
            (6 * SECOND..7 * SECOND).contains(&took),
            "two seconds of the first, then the second: {took:?}"
        );
        assert!(operator.drain().await.is_clean());
    });
}

/// The log of a drain under the default limits, of a leader whose only reconcile goes on for this long after it was told to
/// end.
fn drained_with(goes_on: Duration, stop_grace: Duration) -> Vec<String> {
    Runtime::simulated(7).run(|runtime| async move {
        let (server, log) = (Server::<String>::new(), Log::default());
        server.apply("a/one", "1".to_owned());
        let texts = declared(&runtime, &server);
        let (leads, election) = election(&log);
        let (source, notes) = (texts.clone(), log.clone());
        let leader = controller("leader", move || {
            let log = notes.clone();
            let reconcile = move |request: Request<String>| {
                let log = log.clone();
                async move {
                    request.stopping().await;
                    log.note("told", "leader");
                    pass(goes_on).await;
                    log.note("end", "leader");
                    Ok(Outcome::Done)
                }
            };
            Controller::builder(&source).stop_grace(stop_grace).reconcile(reconcile).start()
        });
        let operator = Operator::builder(&runtime).leader_work(leader).election(election).cache(texts);
        let operator = operator.start().expect("the runtime runs");
        leads.send_replace(true);
        operator.wait_until(|status| status.leads == Some(true)).await;
        pass(SECOND).await;
        log.take();
        drop(operator.drain().await);
        pass(60 * SECOND).await;
        log.take()
    })
}

#[test]
fn le_13_the_lease_is_released_when_nothing_of_the_leaders_controller_runs_any_more_and_else_it_runs_out() {
    let grace = 5 * SECOND;
    assert_eq!(drained_with(4 * SECOND, grace), ["told leader", "end leader", "release lease"]);
    assert_eq!(drained_with(60 * SECOND, grace), ["told leader", "release lease"], "it is dropped before");
    assert_eq!(drained_with(14 * SECOND, 60 * SECOND), ["told leader", "end leader"], "it works on");
}

#[test]
fn op_01_a_controller_that_hangs_or_does_not_start_holds_up_no_other() {
    Runtime::simulated(7).run(|runtime| async move {
        let (server, log) = (Server::<String>::new(), Log::default());
        three(&server);
        let texts = declared(&runtime, &server);
        let refused: ControllerPart<_> =
            controller("refused", || Err::<Controller<String>, _>(std::io::Error::other("not today")));
        let operator = Operator::builder(&runtime)
            .work(noting(&log, "hangs", &texts, Duration::MAX))
            .work(refused)
            .work(noting(&log, "works", &texts, SECOND))
            .cache(texts)
            .start()
            .expect("the runtime runs");
        pass(60 * SECOND).await;
        assert_eq!(log.take(), ["works a/one", "works b/one", "works a/two"]);
        let unready = operator.unready();
        assert!(unready.len() == 1 && unready[0].ends_with(": not today"), "{unready:?}");
        let report = operator.drain().await;
        let left: Vec<_> = report.parts.iter().filter(|part| !part.clean).map(|part| &*part.name).collect();
        assert_eq!(left, ["hangs"], "{report}");
    });
}

// OP-07: given 100 controllers on one runtime, when nothing changes for 60 s, then all actors together take
// at most two turns a controller.
#[test]
fn op_07_a_hundred_controllers_on_one_runtime_take_two_turns_a_minute_each_while_nothing_changes() {
    let turns = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&turns);
    let faults = Faults::new(move |site| {
        counted.fetch_add(u64::from(site == Site::TurnBegun), Ordering::Relaxed);
    });
    Runtime::simulation(7).faults(faults).build().run(|runtime| async move {
        let (server, log) = (Server::<String>::new(), Log::default());
        three(&server);
        let mut builder = Operator::builder(&runtime);
        for _ in 0..100 {
            let texts = declared(&runtime, &server);
            builder = builder.work(noting(&log, "counts", &texts, Duration::ZERO)).cache(texts);
        }
        let operator = builder.start().expect("the runtime runs");
        operator.ready_within(LONG).await.expect("it is ready");
        until(|| log.len() == 300).await;
        pass(SECOND).await;
        let before = turns.load(Ordering::Relaxed);
        pass(60 * SECOND).await;
        let turns = turns.load(Ordering::Relaxed) - before;
        assert!(
            turns <= 200,
            "{turns} turns in a minute: more than two for each informer's check of its watch"
        );
        assert_eq!(log.len(), 300);
        assert!(operator.drain().await.is_clean());
    });
}

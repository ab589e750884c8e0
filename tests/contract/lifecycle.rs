//! An operator on simulated time: order of start and stop, the lease, failures, readiness, and the death of its actor.
//! LE-13, OP-01 to OP-06.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer_actors::informer::Informer;
use informer_actors::runtime::Runtime;
use informer_actors::testing::{Faults, Server, Site};
use informer_operator::lifecycle::{
    Operator, OperatorBuilder, OperatorStatus, PartContext, PartState, Phase, task,
};
use informer_operator::report::Reporting;
use tokio::sync::watch;

use crate::operator_parts::{Log, election};
use crate::world::{LONG, pass, settle, until};

const SECOND: Duration = Duration::from_secs(1);

fn cache(runtime: &Runtime, server: &Server<String>) -> Informer<String> {
    let source = server.clone();
    Informer::builder(runtime, "texts").source(move || source.clone()).declare().expect("the spec is valid")
}

/// An operator with a part of each phase; its cache is the informer of `server`.
fn whole(runtime: &Runtime, server: &Server<String>, log: &Log) -> (OperatorBuilder, watch::Sender<bool>) {
    let (leads, election) = election(log);
    let builder = Operator::builder(runtime)
        .leader_work(log.part("leader", SECOND))
        .election(election)
        .work(log.part("work", SECOND))
        .cache(cache(runtime, server))
        .probes(log.part("probes", Duration::ZERO));
    (builder, leads)
}

/// Waits until the leader's work is ready.
async fn leading(operator: &Operator) {
    let is_ready =
        |status: &OperatorStatus| status.part("leader").is_some_and(|part| part.state == PartState::Ready);
    assert!(is_ready(&operator.wait_until(is_ready).await), "{}", operator.status());
}

// LE-13: given a service with probes, caches and leader work, when it starts, stops, or loses its lease, then
// in that order, in reverse, and with leader work ended at once while caches go on.
// - a it starts in that order, and what is behind the caches when they are filled
// - b it stops in reverse, and the lease is released when the leader work has ended
// - c when the lease is lost, leader work ends at once, also during a drain, and everything else goes on:
//   `le_13_when_the_lease_is_lost_the_leaders_work_ends_at_once_and_everything_else_goes_on`
// - d an election that fails is a lost lease: `le_13_an_election_that_fails_is_a_lost_lease`
// - e so do controllers; what waits is reconciled before the lease is released:
//   `le_13_controllers_start_behind_their_caches_and_those_of_the_leader_come_and_go_with_the_lease`
// - f of a real election, too:
//   `le_13_the_leaders_work_starts_with_the_term_and_is_dropped_with_it_and_starts_again_with_the_next_one`
// - g it is released in any phase of the start, also if its part was not started yet or has failed:
//   `le_13_a_drain_before_the_caches_are_filled_gives_the_lease_back`
// - h when the operator is dropped, nothing leads any more:
//   `le_13_when_the_operator_is_dropped_in_any_phase_nothing_leads_whoever_holds_the_election`
// - i a controller of the next term begins when nothing of the former one runs:
//   `le_13_a_controller_of_the_next_term_begins_when_the_reconciles_of_the_term_before_have_ended`
// - j events are sent when the leader work has ended, before the lease is released:
//   `le_13_what_waits_of_the_events_is_sent_between_the_end_of_the_leaders_work_and_that_of_the_election`
// - k an election that was declared takes part when the caches are filled:
//   `le_13_a_declared_election_takes_part_when_the_caches_are_filled_and_another_replica_leads_until_then`
// - l work that goes on after its time keeps the lease from being released:
//   `le_13_the_lease_is_released_when_nothing_of_the_leaders_controller_runs_any_more_and_else_it_runs_out`
#[test]
fn le_13_probes_caches_work_and_leader_work_start_in_this_order_and_stop_in_reverse() {
    Runtime::simulated(7).run(|runtime| async move {
        let (server, log) = (Server::<String>::new(), Log::default());
        server.hold_lists(true);
        let (builder, leads) = whole(&runtime, &server, &log);
        let operator = builder.start().expect("the runtime runs");
        pass(SECOND).await;
        assert_eq!(log.take(), ["start probes"], "work and election wait for the cache");
        server.hold_lists(false);
        pass(SECOND).await;
        assert_eq!(log.take(), ["start work", "start election"]);
        leads.send_replace(true);
        leading(&operator).await;
        assert_eq!((log.take(), operator.status().leads), (vec!["start leader".to_owned()], Some(true)));
        let texts = runtime.informers().remove(0);
        let stopped = async {
            until(|| texts.status().stopped).await;
            log.note("stop", "cache");
        };
        let (report, ()) = tokio::join!(operator.drain(), stopped);
        assert!(report.is_clean(), "{report}");
        let expected =
            ["drain leader", "end leader", "release lease", "drain work", "end work", "drain probes"];
        let happened = log.take();
        assert_eq!(happened[..6], expected, "{happened:?}");
        assert_eq!(texts.status().objects, 0);
    });
}

#[test]
fn le_13_when_the_lease_is_lost_leader_work_is_dropped_at_once_and_caches_and_work_go_on() {
    Runtime::simulated(7).run(|runtime| async move {
        let (server, log) = (Server::<String>::new(), Log::default());
        let (builder, leads) = whole(&runtime, &server, &log);
        let operator = builder.start().expect("the runtime runs");
        leads.send_replace(true);
        leading(&operator).await;
        log.take();
        let before = runtime.now();
        leads.send_replace(false);
        operator
            .wait_until(|status| status.part("leader").expect("it is one").state == PartState::Standby)
            .await;
        assert_eq!(
            (log.take(), runtime.now()),
            (vec!["drop leader".to_owned()], before),
            "no drain, no time"
        );
        assert!(operator.unready().is_empty(), "a replica that waits for the lease is ready");
        let version = server.apply("a/one", "1".to_owned());
        let texts = runtime.informers().remove(0);
        until(|| texts.status().sources[0].version.as_ref() == Some(&version)).await;
        leads.send_replace(true);
        leading(&operator).await;
        assert_eq!(log.take(), ["start leader"]);
    });
}

// OP-01: given several parts in one process, when one fails, panics or hangs again and again, then no other
// part changes, it is started again after growing waits, and the status names it with the reason.
// - a no other part changes, whatever the history
// - b it is started again after growing waits:
//   `op_01_a_part_that_crash_loops_starts_again_after_growing_waits_and_no_other_part_is_touched`
// - c the status names it with the reason
// - d a controller that hangs, or does not start, holds up no other:
//   `op_01_a_controller_that_hangs_or_does_not_start_holds_up_no_other`
// - e work that is never ready holds up neither other work nor the election:
//   `op_01_work_that_is_never_ready_holds_up_neither_other_work_nor_the_election`
// - f the order, the lease and one life for each part hold in any history:
//   `op_01_any_history_keeps_the_order_the_lease_and_one_life_for_each_part`
// - g a factory whose informer is given up, which is revived:
//   `op_01_a_factory_of_which_an_informer_is_given_up_has_failed_and_starts_again_with_it`
#[test]
fn op_01_a_part_that_crash_loops_and_one_that_hangs_touch_no_other_and_the_status_shows_why() {
    Runtime::simulated(7).run(|runtime| async move {
        let (server, log) = (Server::<String>::new(), Log::default());
        let (builder, leads) = whole(&runtime, &server, &log);
        let operator = builder
            .work(task("fails", |_| async { Err("no luck".into()) }))
            .work(task("panics", |_| async { panic!("out of luck") }))
            .work(task("hangs", |_| std::future::pending()))
            .start()
            .expect("the runtime runs");
        leads.send_replace(true);
        pass(600 * SECOND).await;
        assert_eq!(log.take(), ["start probes", "start work", "start election", "start leader"], "each once");
        let status = operator.status();
        for (name, error) in [("fails", "no luck"), ("panics", "panicked: out of luck")] {
            let part = status.part(name).expect("it is a part");
            assert_eq!(part.last_error.as_deref(), Some(error));
            assert!(part.restarts > 10, "it is started again and again: {part:?}");
        }
        let unready = operator.unready();
        assert_eq!(unready.len(), 3, "{unready:?}");
        assert!(unready[0].starts_with("fails has failed and starts again in "), "{unready:?}");
        assert_eq!(unready[2], "hangs is not ready: it has not said that it is ready");
        assert!(operator.view().unhealthy().is_empty(), "a restart of the process would not help");
        let report = operator.drain().await.to_string();
        assert_eq!(report, "hangs has not ended in its time");
    });
}

#[test]
fn op_02_a_part_that_does_not_drain_in_its_time_is_dropped_and_the_next_phase_drains() {
    Runtime::simulated(7).run(|runtime| async move {
        let log = Log::default();
        let operator = Operator::builder(&runtime)
            .work(log.part("early", SECOND))
            .leader_work(log.part("slow", LONG))
            .drain_limit(Phase::LeaderWork, 3 * SECOND)
            .start()
            .expect("the runtime runs");
        operator.ready_within(SECOND).await.expect("it is ready");
        log.take();
        let before = runtime.now();
        let (first, second) = tokio::join!(operator.drain(), operator.drain());
        assert_eq!(runtime.now() - before, 4 * SECOND);
        assert_eq!(log.take(), ["drain slow", "drop slow", "drain early", "end early"]);
        assert_eq!((first.to_string(), &first), ("slow has not ended in its time".to_owned(), &second));
    });
}

// OP-02: given a drain, when a part does not end in the time of its phase, then it is dropped, the earlier
// phases drain, the report names it, and the drain ends whatever the parts do.
// - a it is dropped, the earlier phases drain, and the report names it:
//   `op_02_a_part_that_does_not_drain_in_its_time_is_dropped_and_the_next_phase_drains`
// - b one that blocks its thread is abandoned
// - c it ends whatever the parts do: `op_02_a_stop_ends_within_the_limits_whatever_the_parts_do`
#[test]
fn op_02_a_part_that_blocks_its_thread_is_abandoned_and_the_others_end_in_order() {
    let tokio_runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let tokio_runtime = tokio_runtime.expect("threads can be started");
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Mutex::new(Some(blocked));
    tokio_runtime.block_on(async {
        let (runtime, log) = (Runtime::threads().start().expect("threads can be started"), Log::default());
        let blocks = task("blocks", move |context: PartContext| {
            let blocked = blocked.lock().expect("no panic").take();
            async move {
                context.ready();
                blocked.and_then(|blocked| blocked.recv().ok());
                Ok(())
            }
        });
        let operator = Operator::builder(&runtime)
            .work(log.part("work", Duration::ZERO))
            .leader_work(blocks)
            .drain_limit(Phase::LeaderWork, Duration::from_millis(50))
            .start()
            .expect("the runtime runs");
        operator.ready_within(LONG).await.expect("it is ready");
        let report = operator.drain().await.to_string();
        assert_eq!(report, "blocks has not ended in its time");
        assert_eq!(log.take(), ["start work", "drain work", "end work"]);
    });
    drop(release);
}

// OP-03: given an operator, when its readiness is asked, then it names each thing that is missing with the
// reason; a replica that waits for the lease is ready, one that drains is not.
// - a each thing that is missing, with the reason
// - b without the lease it is ready
// - c during the drain it is not
// - d a controller names the informer that it waits for:
//   `op_03_a_controller_that_waits_names_the_informer_that_is_not_synced`
#[test]
fn op_03_readiness_names_what_is_missing_and_why() {
    Runtime::simulated(7).run(|runtime| async move {
        let (server, log) = (Server::<String>::new(), Log::default());
        server.hold_lists(true);
        let (builder, _leads) = whole(&runtime, &server, &log);
        let operator = builder.name("demo").start().expect("the runtime runs");
        pass(SECOND).await;
        let missing = [
            "texts is not ready: listing, 0 objects received",
            "work waits for the caches",
            "election waits for the caches",
        ];
        assert_eq!(operator.unready(), missing);
        let error = operator.ready_within(SECOND).await.expect_err("it is not ready").to_string();
        assert_eq!(error, format!("operator \"demo\" is not ready: {}", missing.join("; ")));
        let listed = runtime.report().operators;
        assert_eq!(listed.iter().map(|status| &*status.name).collect::<Vec<_>>(), ["demo"]);
        server.hold_lists(false);
        operator.ready_within(SECOND).await.expect("a replica without the lease is ready");
        let drain = tokio::spawn({
            let operator = operator.clone();
            async move { operator.drain().await }
        });
        settle().await;
        assert_eq!(operator.unready(), ["operator demo is stopping: work"]);
        assert!(drain.await.expect("no panic").is_clean());
        assert_eq!(operator.unready(), ["operator demo has stopped"]);
        settle().await;
        assert!(runtime.report().operators.is_empty());
    });
}

/// Starts, acquires, loses and acquires the lease, and drains, while the operator's actor is killed at its nth visit of
/// this site. Gives how often it came there.
fn run_killed_at(site: Site, nth: u32) -> u32 {
    let visits = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&visits);
    let faults = Faults::new(move |here| {
        assert!(here != site || counted.fetch_add(1, Ordering::Relaxed) + 1 != nth, "killed on purpose");
    });
    Runtime::simulation(7).faults(faults).build().run(|runtime| async move {
        let (server, log) = (Server::<String>::new(), Log::default());
        let (builder, leads) = whole(&runtime, &server, &log);
        let operator = builder.start().expect("the runtime runs");
        for leader in [true, false, true] {
            pass(10 * SECOND).await;
            leads.send_replace(leader);
        }
        pass(10 * SECOND).await;
        assert!(operator.drain().await.is_clean(), "killed at visit {nth} of {site:?}");
        let expected = "start probes, start work, start election, start leader, drop leader, start leader, \
                        drain leader, end leader, release lease, drain work, end work, drain probes, end probes";
        assert_eq!(log.take().join(", "), expected, "killed at visit {nth} of {site:?}");
    });
    visits.load(Ordering::Relaxed)
}

// OP-04: given an operator, when its actor dies at any of its messages, then its parts run on, and each
// starts and stops once and in order; when it is given up, every part is dropped and every wait ends.
// - a each part starts and stops once and in order
// - b when it is given up, every part is dropped and every wait ends:
//   `op_04_when_the_actor_is_given_up_every_part_is_dropped_and_every_wait_ends`
#[test]
fn op_04_an_operator_whose_actor_is_killed_at_any_of_its_messages_starts_and_stops_everything_once() {
    for site in [Site::OperatorStarted, Site::OperatorLook] {
        let visits = run_killed_at(site, 0);
        assert!(visits > 0, "{site:?} is visited");
        for nth in 1..=visits {
            run_killed_at(site, nth);
        }
    }
}

#[test]
fn op_04_when_the_actor_is_given_up_every_part_is_dropped_and_every_wait_ends() {
    let faults = Faults::new(|site| assert!(site != Site::OperatorLook, "always"));
    Runtime::simulation(7).faults(faults).build().run(|runtime| async move {
        let operator = Operator::builder(&runtime).work(Log::default().part("work", SECOND)).start();
        let operator = operator.expect("the runtime runs");
        let (ready, report) = tokio::join!(operator.ready_within(LONG), operator.drain());
        assert_eq!((ready.is_err(), operator.unready().len()), (true, 1));
        assert!(report.parts.len() == 1 && runtime.now() < LONG, "{report}");
    });
}

#[test]
fn op_05_when_the_last_handle_is_dropped_every_part_is_dropped_at_once() {
    Runtime::simulated(7).run(|runtime| async move {
        let (server, log) = (Server::<String>::new(), Log::default());
        let (builder, leads) = whole(&runtime, &server, &log);
        let operator = builder.start().expect("the runtime runs");
        leads.send_replace(true);
        leading(&operator).await;
        let (view, before) = (operator.view().clone(), runtime.now());
        log.take();
        drop(operator.clone());
        settle().await;
        assert!(view.unready().is_empty(), "another handle is left");
        drop(operator);
        until(|| log.len() == 3).await;
        let mut dropped = log.take();
        dropped.sort_unstable();
        assert_eq!(dropped, ["drop leader", "drop probes", "drop work"]);
        assert!(runtime.now() - before < SECOND);
        until(|| runtime.report().operators.is_empty()).await;
    });
}

// OP-05: given an operator, when its last handle is dropped or its runtime is shut down, then every part is
// dropped at once, and every wait ends.
// - a the last handle: `op_05_when_the_last_handle_is_dropped_every_part_is_dropped_at_once`
// - b the runtime, and every wait
#[tokio::test]
async fn op_05_a_shutdown_of_the_runtime_drops_every_part_and_ends_every_wait() {
    let (runtime, log) = (Runtime::threads().start().expect("threads can be started"), Log::default());
    let operator = Operator::builder(&runtime).work(log.part("work", LONG)).start().expect("it runs");
    operator.ready_within(LONG).await.expect("it is ready");
    let waits = tokio::spawn({
        let operator = operator.clone();
        async move { operator.run_until(std::future::pending::<()>()).await }
    });
    runtime.clone().shutdown(LONG).await.expect("nothing blocks a thread");
    assert!(!waits.await.expect("no panic").is_clean());
    until(|| log.len() == 2).await;
    assert_eq!(log.take(), ["start work", "drop work"]);
    let refused = Operator::builder(&runtime).start().expect_err("the runtime has ended").to_string();
    assert_eq!(refused, "the runtime was shut down: operator \"operator\" cannot start on it");
}

// OP-06: given an operator, when it runs and ends, then no signal handler is installed unless the program
// asks for one.
#[cfg(target_os = "linux")]
#[test]
fn op_06_an_operator_installs_no_signal_handler() {
    let caught = || {
        let status = std::fs::read_to_string("/proc/self/status").expect("it is there");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("the line").trim();
        // Bit n - 1 of the mask is signal n: SIGINT is 2, SIGTERM 15.
        u64::from_str_radix(mask, 16).expect("a number") & ((1 << 1) | (1 << 14))
    };
    Runtime::simulated(7).run(|runtime| async move {
        let operator = Operator::builder(&runtime).work(Log::default().part("work", SECOND)).start();
        let operator = operator.expect("the runtime runs");
        assert!(operator.run_until(pass(SECOND)).await.is_clean());
        assert_eq!(caught(), 0);
    });
}

#[test]
fn two_elections_are_refused() {
    Runtime::simulated(7).run(|runtime| async move {
        let parts = (Log::default().part("one", SECOND), Log::default().part("two", SECOND));
        let refused = Operator::builder(&runtime).election(parts.0).election(parts.1).start();
        let text = "operator \"operator\" has two elections, \"one\" and \"two\"";
        assert_eq!(refused.expect_err("it is refused").to_string(), text);
    });
}

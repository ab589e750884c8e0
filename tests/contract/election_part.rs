//! A leader election as a part of an operator (LE-13, LE-08), over the in-memory API server in the same simulation.
//!
//! Answers "what becomes of the leader's work and of the lease when the caches are filled, a term begins, is lost or given
//! up, and when the operator is drained or dropped in any of its phases?".

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_informer::controller::{Controller, Outcome};
use actix_informer::events::Recorder;
use actix_informer::leader_election::{LeaderElection, LeaseName, WhyNot};
use actix_informer::operator::{
    Operator, OperatorStatus, PartContext, PartState, Phase, Stage, controller, task,
};
use informer_actors::testing::{Faults, Site};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::{sleep, timeout};

use crate::factory::{Cluster, run, run_with};
use crate::log::recorded;
use crate::operator_parts::Log;

const SECOND: Duration = Duration::from_secs(1);
const ELECTION: &str = "election for default/operator";

impl Cluster {
    /// A replica whose leader notes what happens to it; its cache is that of config maps.
    fn operator(&self, log: &Log) -> (Operator, LeaderElection) {
        self.operator_of(log, self.candidate("me"))
    }

    fn operator_of(&self, log: &Log, election: LeaderElection) -> (Operator, LeaderElection) {
        let maps = self.client.resource::<ConfigMap>().informer(&self.runtime).expect("a resource");
        let operator = Operator::builder(&self.runtime)
            .cache(maps.declare().expect("declared"))
            .election(election.clone())
            .leader_work(log.part("leader", SECOND))
            .start();
        (operator.expect("the runtime runs"), election)
    }

    fn answers_for_leases(&self, answers: bool) {
        for verb in ["get", "update"] {
            match answers {
                true => self.server.faults().allow(verb, "leases"),
                false => self.server.faults().deny(verb, "leases"),
            };
        }
    }

    fn answers_for_maps(&self, answers: bool) {
        for verb in ["list", "watch"] {
            match answers {
                true => self.server.faults().allow(verb, "configmaps"),
                false => self.server.faults().deny(verb, "configmaps"),
            };
        }
    }

    async fn holder(&self) -> Option<String> {
        self.lease().await.spec.and_then(|spec| spec.holder_identity)
    }
}

async fn leader_is(operator: &Operator, state: PartState) {
    let is_so = |status: &OperatorStatus| status.part("leader").is_some_and(|part| part.state == state);
    let waited = timeout(600 * SECOND, operator.wait_until(is_so)).await;
    assert!(waited.is_ok_and(|status| is_so(&status)), "{}", operator.status());
}

#[test]
fn le_13_the_leaders_work_starts_with_the_term_and_is_dropped_with_it_and_starts_again_with_the_next_one() {
    run(|cluster| async move {
        let log = Log::default();
        let (operator, election) = cluster.operator(&log);
        leader_is(&operator, PartState::Ready).await;
        assert_eq!((log.take(), election.fence()), (vec!["start leader".to_owned()], Some(0)));
        cluster.answers_for_leases(false);
        leader_is(&operator, PartState::Standby).await;
        assert_eq!((log.take(), election.fence()), (vec!["drop leader".to_owned()], None));
        assert!(operator.unready().is_empty(), "a replica without the lease is ready");
        cluster.answers_for_leases(true);
        leader_is(&operator, PartState::Ready).await;
        assert_eq!((log.take(), election.fence()), (vec!["start leader".to_owned()], Some(1)));
        assert!(operator.drain().await.is_clean());
        assert_eq!(log.take(), ["drain leader", "end leader"]);
        assert_eq!(cluster.holder().await.as_deref(), Some(""), "given back behind the leader's work");
    });
}

/// Why this operator is not ready.
fn unready(operator: &Operator) -> String {
    operator.unready().join("\n")
}

#[test]
fn operator_a2_an_election_that_may_not_read_its_lease_is_not_ready_and_says_why_until_it_is_answered() {
    run(|cluster| async move {
        cluster.answers_for_leases(false);
        let (operator, election) = declared(&cluster, &Log::default());
        sleep(4_260 * SECOND).await;
        let why = unready(&operator);
        let begins = "election for default/operator is not ready: the lease could not be read yet: ";
        assert!(why.starts_with(begins) && why.contains("forbidden"), "{why:?}");
        assert_eq!(operator.view().unhealthy(), [] as [&str; 0], "a restart would not help");
        assert!(!election.status().answered);
        cluster.answers_for_leases(true);
        operator.ready_within(600 * SECOND).await.expect("it is ready with the first answer");
        leader_is(&operator, PartState::Ready).await;
        assert_eq!(operator.status().part(ELECTION).and_then(|part| part.stale.clone()), None);

        cluster.answers_for_leases(false);
        leader_is(&operator, PartState::Standby).await;
        sleep(600 * SECOND).await;
        assert!(operator.unready().is_empty(), "a replica that does not lead is ready");
        let stale = operator.status().part(ELECTION).and_then(|part| part.stale.clone());
        let stale = stale.expect("who leads is not known any more");
        assert!(stale.lasts > 600 * SECOND && stale.why.contains("forbidden"), "{stale}");
        let shown = operator.status().to_string();
        assert!(shown.contains("election: election for default/operator is ready, stale for 10m"), "{shown}");
        cluster.answers_for_leases(true);
        leader_is(&operator, PartState::Ready).await;
        assert_eq!(operator.status().part(ELECTION).and_then(|part| part.stale.clone()), None);
    });
}

#[test]
fn operator_a2_an_election_that_may_not_write_its_lease_is_not_ready_and_says_why_once_in_ten_minutes() {
    recorded(|log| {
        run(|cluster| async move {
            for verb in ["create", "update"] {
                cluster.server.faults().deny(verb, "leases");
            }
            let (operator, election) = declared(&cluster, &Log::default());
            sleep(1_750 * SECOND).await;
            let why = unready(&operator);
            let begins = "election for default/operator is not ready: the lease could not be taken yet: ";
            assert!(why.starts_with(begins) && why.contains("forbidden"), "{why:?}");
            assert!(election.status().failing_for.is_some_and(|lasts| lasts > 1_700 * SECOND));
            assert_eq!(log.with("a request failed").len(), 3, "one in ten minutes");
            assert_eq!(log.with("succeeds again").len(), 0);
            for verb in ["create", "update"] {
                cluster.server.faults().allow(verb, "leases");
            }
            operator.ready_within(600 * SECOND).await.expect("it is ready with the first write");
            leader_is(&operator, PartState::Ready).await;
            assert_eq!(log.with("succeeds again").len(), 1);
            assert_eq!(election.status().last_error, None);
        });
    });
}

#[test]
fn operator_a2_an_election_without_any_answer_says_that_the_server_has_not_answered() {
    run(|cluster| async move {
        cluster.server.faults().freeze_server(true);
        let operator = Operator::builder(&cluster.runtime).election(cluster.candidate("me")).start();
        let operator = operator.expect("the runtime runs");
        sleep(SECOND).await;
        assert_eq!(
            unready(&operator),
            "election for default/operator is not ready: the server has not answered yet what the lease says"
        );
    });
}

#[test]
fn operator_a9_a_factory_whose_informers_are_refused_later_says_which_and_is_unready_only_with_a_limit() {
    run(|cluster| async move {
        let factory = actix_informer::factory::InformerFactory::new(&cluster.runtime, &cluster.client);
        let maps = factory.informer::<ConfigMap>().expect("declared");
        let operator = Operator::builder(&cluster.runtime).cache(factory).start().expect("it runs");
        operator.ready_within(600 * SECOND).await.expect("it is ready");
        cluster.answers_for_maps(false);
        cluster.server.faults().end_watches();
        sleep(600 * SECOND).await;
        assert!(operator.unready().is_empty() && operator.view().unhealthy().is_empty());
        let stale = operator.status().part("informers").and_then(|part| part.stale.clone());
        let stale = stale.expect("it is shown").to_string();
        let name = maps.name();
        assert!(stale.contains(&format!("informer {name} is stale for ")), "{stale}");
        assert!(stale.contains("forbidden"), "{stale}");
    });
}

#[test]
fn le_13_a_drain_before_the_caches_are_filled_gives_the_lease_back() {
    run(|cluster| async move {
        let log = Log::default();
        cluster.answers_for_maps(false);
        let (operator, election) = cluster.operator(&log);
        election.acquired().await.expect("it campaigns from its own start");
        assert_eq!(operator.status().part(ELECTION).expect("a part").state, PartState::WaitsForCaches);
        let report = operator.drain().await;
        assert!(report.is_clean(), "{report}");
        assert_eq!(cluster.holder().await.as_deref(), Some(""));
        assert!(election.acquired().await.is_err() && log.take().is_empty());
    });
}

#[test]
fn le_13_when_the_operator_is_dropped_in_any_phase_nothing_leads_whoever_holds_the_election() {
    for are_caches_filled in [true, false] {
        run(|cluster| async move {
            let log = Log::default();
            if !are_caches_filled {
                cluster.answers_for_maps(false);
            }
            let (operator, election) = cluster.operator(&log);
            let term = election.acquired().await.expect("it leads");
            sleep(SECOND).await;
            drop(operator);
            assert!(term.has_ended() && !election.is_leader(), "at once");
            assert!(timeout(SECOND, election.acquired()).await.expect("it ends").is_err());
            sleep(60 * SECOND).await;
            assert_eq!(cluster.holder().await.as_deref(), Some("me"), "others wait until it has run out");
            let expected: &[&str] = if are_caches_filled { &["start leader", "drop leader"] } else { &[] };
            assert_eq!(log.take(), expected);
        });
    }
}

#[test]
fn le_08_liveness_fails_when_the_election_is_given_up_and_its_leader_has_ended() {
    let armed: Arc<AtomicBool> = Arc::default();
    let dies = Arc::clone(&armed);
    let faults =
        Faults::new(move |site| assert!(site != Site::ElectionAsks || !dies.load(Ordering::Relaxed)));
    run_with(faults, |cluster| async move {
        let log = Log::default();
        let (operator, election) = cluster.operator(&log);
        leader_is(&operator, PartState::Ready).await;
        assert_eq!(operator.view().unhealthy(), [] as [&str; 0]);
        armed.store(true, Ordering::Relaxed);
        election.lost().await;
        assert!(timeout(600 * SECOND, election.acquired()).await.expect("it is given up").is_err());
        let expected =
            format!("{ELECTION} is unhealthy: leader election default/operator has ended without a shutdown");
        assert_eq!(operator.view().unhealthy(), [expected]);
        leader_is(&operator, PartState::Standby).await;
        assert_eq!(log.take(), ["start leader", "drop leader"]);
        operator.drain().await;
        assert_eq!(operator.view().unhealthy(), [] as [&str; 0], "it ends anyway");
    });
}

// LE-08: given a term whose lease ran out longer than the tolerance ago, when health-checked, then unhealthy
// if the actor has not ended that term; a term that was ended, another holder, or within tolerance -> healthy
// (changed: client-go's programs end at the renew deadline, so an old lease of their own shows one that
// hangs; here the actor ends the term and the process goes on, and a restart does not reach a server that is
// silent).
// - a unhealthy, and healthy otherwise:
//   `le_08_a_term_that_is_not_ended_although_its_lease_ran_out_longer_ago_than_the_tolerance_is_unhealthy`
// - b of a running election whose server is silent, healthy:
//   `le_08_a_candidate_ends_its_term_at_the_renew_deadline_although_no_request_is_answered`
// - c so is an operator's liveness, which fails for an election that was given up
#[test]
fn le_08_liveness_does_not_fail_while_the_server_does_not_answer_since_the_term_was_ended() {
    run(|cluster| async move {
        let log = Log::default();
        let (operator, election) = cluster.operator(&log);
        leader_is(&operator, PartState::Ready).await;
        cluster.answers_for_leases(false);
        sleep(3600 * SECOND).await;
        assert_eq!(operator.view().unhealthy(), [] as [&str; 0]);
        assert_eq!(
            (election.fence(), log.take()),
            (None, vec!["start leader".to_owned(), "drop leader".to_owned()])
        );
        cluster.answers_for_leases(true);
        leader_is(&operator, PartState::Ready).await;
    });
}

/// A replica of which the election was declared.
fn declared(cluster: &Cluster, log: &Log) -> (Operator, LeaderElection) {
    let election = LeaderElection::builder(
        &cluster.client,
        &cluster.runtime,
        LeaseName { namespace: "default", name: "operator" },
    );
    cluster.operator_of(log, election.identity("me").declare().expect("it starts"))
}

#[test]
fn le_13_a_declared_election_takes_part_when_the_caches_are_filled_and_another_replica_leads_until_then() {
    run(|cluster| async move {
        let log = Log::default();
        cluster.answers_for_maps(false);
        let (operator, election) = declared(&cluster, &log);
        sleep(60 * SECOND).await;
        assert!(cluster.verbs().is_empty());
        assert_eq!(election.status().why_not, Some(WhyNot::NotBegun));
        let other = cluster.candidate("other");
        other.acquired().await.expect("nobody else takes part");
        cluster.answers_for_maps(true);
        operator.ready_within(600 * SECOND).await.expect("the caches are filled");
        assert_eq!(other.shutdown(SECOND).await, Ok(()));
        leader_is(&operator, PartState::Ready).await;
        assert_eq!(election.fence(), Some(1));
    });
}

#[test]
fn le_13_a_drain_of_a_declared_election_that_has_not_begun_asks_for_no_lease() {
    run(|cluster| async move {
        let log = Log::default();
        cluster.answers_for_maps(false);
        let (operator, election) = declared(&cluster, &log);
        sleep(60 * SECOND).await;
        let report = operator.drain().await;
        assert!(report.is_clean(), "{report}");
        assert!(election.acquired().await.is_err() && log.take().is_empty());
        assert!(cluster.verbs().is_empty());
    });
}

// LE-15: given two replicas as processes, when the leader is stopped (SIGSTOP) beyond its lease and wakes,
// then it begins no request: at most what each worker had under way arrives. When it wakes while the lease is
// free, it leads again, and nothing of its former term is written.
// - a by the server's versions of what both wrote:
//   `le_15_a_leader_that_was_stopped_beyond_its_lease_begins_no_request_when_it_wakes`
// - b also where it finds the lease free:
//   `le_15_a_leader_that_wakes_while_the_lease_is_free_leads_again_without_its_former_work`
// - c no term begins while work of a former one goes on, and another candidate may lead meanwhile:
//   `le_15_while_work_of_a_former_term_goes_on_a_lease_that_is_free_is_not_taken`
// - d nor does the controller of a coordinated election get an answer:
//   `le_15_a_candidate_whose_former_work_goes_on_does_not_answer_the_controller`
// - e the leader's work of an operator is such work, also what goes on for its grace:
//   `le_15_an_operator_leads_again_when_the_reconciles_of_its_former_term_have_ended_and_others_meanwhile`
// - f the log says so once for each term:
//   `le_15_the_log_says_once_for_each_term_that_work_of_it_keeps_the_process_from_leading_again`
// - g work that does not end makes the process unhealthy after ten minutes in which it could have led:
//   `le_15_work_that_keeps_the_process_from_leading_for_more_than_ten_minutes_makes_it_unhealthy`
// - h where a drain abandons such work, the election ends at once
// - i an end of the election does not wait for it:
//   `le_15_a_shutdown_and_the_end_of_the_last_handle_do_not_wait_for_work_of_a_term`
#[test]
fn le_15_an_election_whose_drain_abandons_leaders_work_ends_at_once_and_does_not_lead_beside_it() {
    run(|cluster| async move {
        let log = Log::default();
        let election = cluster.candidate("me");
        let stuck = task("leader", |context: PartContext| async move {
            context.outlives(std::future::pending());
            context.ready();
            context.stopping().await;
            Ok(())
        });
        let operator = Operator::builder(&cluster.runtime)
            .work(log.part("work", 5 * SECOND))
            .election(election.clone())
            .leader_work(stuck)
            .start()
            .expect("the runtime runs");
        leader_is(&operator, PartState::Ready).await;
        let observer = operator.view();
        let (report, ()) = tokio::join!(operator.drain(), async {
            let ends = |status: &OperatorStatus| status.stage == Stage::Stopping(Phase::Work);
            while !ends(&observer.status()) {
                sleep(SECOND / 10).await;
            }
            assert!(election.status().over && election.acquired().await.is_err(), "while others drain");
            assert_eq!(cluster.holder().await.as_deref(), Some("me"), "it is left to run out");
        });
        assert!(!report.is_clean());
    });
}

#[test]
fn inf_55_an_operator_whose_parts_may_take_for_ever_drains_each_of_them() {
    for limit in [Duration::MAX, Duration::MAX / 2, Duration::from_secs(u64::MAX / 5)] {
        run(|cluster| async move {
            let log = Log::default();
            let maps = cluster.client.resource::<ConfigMap>().informer(&cluster.runtime).expect("a resource");
            let maps = maps.declare().expect("declared");
            let source = maps.clone();
            let reconcile = controller("maps", move || {
                Controller::builder(&source).reconcile(|_| async { Ok(Outcome::Done) }).start()
            });
            let recorder = Recorder::builder(&cluster.client, &cluster.runtime, "operator").start();
            let builder = Operator::builder(&cluster.runtime)
                .cache(maps)
                .work(reconcile)
                .election(cluster.candidate("me"))
                .events(recorder.expect("it starts"))
                .leader_work(log.part("leader", SECOND));
            let builder =
                Phase::ALL.into_iter().fold(builder, |builder, phase| builder.drain_limit(phase, limit));
            let operator = builder.start().expect("the runtime runs");
            leader_is(&operator, PartState::Ready).await;
            let report = operator.drain().await;
            assert!(report.is_clean(), "{limit:?}: {report}");
            assert_eq!(log.take(), ["start leader", "drain leader", "end leader"]);
            assert_eq!(cluster.holder().await.as_deref(), Some(""), "{limit:?}: given back");
        });
    }
}

//! Two terms of one process, between which another one may have led (LE-14, LE-15), over the in-memory API server in the
//! same simulation.
//!
//! Answers "what of a former term goes on in the next one?": no request that was begun in it, nothing of a client of it,
//! and no work of an operator.

use std::time::Duration;

use actix_informer::client::Client;
use actix_informer::controller::{Controller, Outcome, Request};
use actix_informer::leader_election::{ForTerm, LeaderElection, WhyNot};
use actix_informer::operator::{Operator, controller};
use bytes::Bytes;
use futures_util::stream;
use informer_apiserver::ErrorBody;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::params::PostParams;
use tokio::time::{sleep, timeout};

use crate::factory::{Cluster, run};
use crate::leader_election::{map, maps};
use crate::log::recorded;
use crate::operator_parts::Log;

const SECOND: Duration = Duration::from_secs(1);

impl Cluster {
    fn refuses_leases(&self, refuses: bool) {
        for verb in ["get", "update"] {
            match refuses {
                true => self.server.faults().deny(verb, "leases"),
                false => self.server.faults().allow(verb, "leases"),
            };
        }
    }

    /// The term of this candidate ends, and the lease runs out.
    async fn lease_runs_out(&self, election: &LeaderElection) {
        self.refuses_leases(true);
        election.lost().await;
        sleep(30 * SECOND).await;
        self.refuses_leases(false);
    }
}

#[test]
fn le_14_a_request_that_waits_from_one_term_into_the_next_one_of_the_same_process_is_not_sent() {
    run(|cluster| async move {
        let leader = cluster.candidate("me");
        assert_eq!(leader.acquired().await.expect("it leads").fence(), 0);
        let (leading, post, waits) = (maps(&leader.guard(&cluster.client)), PostParams::default(), map("a"));
        let faults = cluster.server.faults();
        faults.of("configmaps").too_many_requests_next(1, 120, ErrorBody::Status);
        let (created, next) = tokio::join!(leading.create(&post, &waits), async {
            sleep(SECOND).await;
            cluster.lease_runs_out(&leader).await;
            leader.acquired().await.expect("it leads again")
        });
        assert_eq!((next.fence(), leader.fence()), (1, Some(1)));
        assert!(created.is_err_and(|error| error.is_not_leading()), "it was begun in the first term");
        leading.create(&post, &waits).await.expect("this one is begun in the second");
    });
}

// LE-14: given a client that is guarded by an election, when the term has ended by a clock that counts
// suspensions, then each request is refused with a typed error, last thing before the transport.
// - a refused before the term and after it, and sent in between:
//   `le_14_a_guarded_client_works_while_its_process_leads_and_is_refused_before_and_after`
// - b also one that waited for a retry meanwhile:
//   `le_14_a_request_that_is_tried_again_after_the_end_of_the_term_is_not_sent`
// - c also one that waited for its connection meanwhile, of which no byte is written:
//   `le_14_a_request_that_gets_its_connection_after_the_end_of_the_term_is_not_begun`
// - d one whose first byte may have been written goes on, and is never called unsent:
//   `le_14_a_request_that_was_begun_before_the_end_of_the_term_goes_on`
// - e of a client with two guards, each lease:
//   `le_14_of_a_client_with_two_guards_each_lease_is_asked_for_at_the_first_byte`
// - f also one that was begun in a former term of the same process:
//   `le_14_a_request_that_waits_from_one_term_into_the_next_one_of_the_same_process_is_not_sent`
// - g of a client of one term, also each that is begun in a later one, whatever number that has
#[test]
fn le_14_a_client_of_a_term_is_refused_in_every_later_term() {
    run(|cluster| async move {
        let leader = cluster.candidate("me");
        let first = leader.acquired().await.expect("it leads");
        let of_first = maps(&cluster.client.for_term(&first));
        of_first.create(&PostParams::default(), &map("a")).await.expect("it leads");
        cluster.lease_runs_out(&leader).await;
        let second = leader.acquired().await.expect("it leads again");
        assert!(of_first.get("a").await.is_err_and(|error| error.is_not_leading()));
        let both = cluster.client.for_term(&first).for_term(&second);
        assert!(maps(&both).get("a").await.is_err_and(|error| error.is_not_leading()), "each is asked");
        maps(&cluster.client.for_term(&second)).get("a").await.expect("it lasts");
    });
}

#[test]
fn le_14_a_request_that_another_guarded_client_hands_on_is_asked_for_by_that_one_too() {
    run(|cluster| async move {
        let (first, second) = (cluster.candidate("first"), cluster.candidate("second"));
        first.acquired().await.expect("it leads");
        let other = second.guard(&cluster.client);
        let hands_on = move |request: http::Request<Bytes>| {
            let other = other.clone();
            async move {
                let answer = other.send(request.map(|body| body.to_vec())).await;
                let is_refused = answer.is_err_and(|error| error.is_not_leading());
                let code = if is_refused { 403 } else { 200 };
                let body = stream::iter([Ok(Bytes::from_static(b"{}"))]);
                Ok(http::Response::builder().status(code).body(body).expect("an answer"))
            }
        };
        let leading = first.guard(&Client::in_process(&cluster.runtime, hands_on));
        let refused =
            leading.request(http::Method::GET, "/version", None).await.expect_err("the second does not lead");
        assert!(refused.to_string().contains("403"), "{refused}");
    });
}

#[test]
fn le_15_the_log_says_once_for_each_term_that_work_of_it_keeps_the_process_from_leading_again() {
    recorded(|log| {
        run(|cluster| async move {
            let leader = cluster.candidate("me");
            for said in 1..=2 {
                let term = leader.acquired().await.expect("it leads");
                let work = term.begin_work().expect("it lasts");
                cluster.lease_runs_out(&leader).await;
                sleep(60 * SECOND).await;
                let lines = log.with("work of its former term has not ended");
                assert_eq!(lines.len(), said, "{lines:?}");
                assert_eq!(lines[0].field("lease"), Some("default/operator"));
                drop(work);
            }
        });
    });
}

#[test]
fn le_15_an_operator_leads_again_when_the_reconciles_of_its_former_term_have_ended_and_others_meanwhile() {
    for other_leads in [false, true] {
        run(|cluster| async move {
            let log = Log::default();
            cluster
                .client
                .api::<ConfigMap>()
                .namespaced("default")
                .create(&PostParams::default(), &map("a"))
                .await
                .expect("created");
            let informer =
                cluster.client.resource::<ConfigMap>().informer(&cluster.runtime).expect("a resource");
            let informer = informer.declare().expect("declared");
            let election = cluster.candidate("me");
            let (source, notes) = (informer.clone(), log.clone());
            let leader = controller("leader", move || {
                let log = notes.clone();
                let reconcile = move |request: Request<ConfigMap>| {
                    let log = log.clone();
                    async move {
                        log.note("begin", "leader");
                        request.stopping().await;
                        sleep(200 * SECOND).await;
                        log.note("end", "leader");
                        Ok(Outcome::Done)
                    }
                };
                Controller::builder(&source).stop_grace(600 * SECOND).reconcile(reconcile).start()
            });
            let operator = Operator::builder(&cluster.runtime).cache(informer).election(election.clone());
            let operator = operator.leader_work(leader).start().expect("the runtime runs");
            election.acquired().await.expect("it leads");
            sleep(SECOND).await;
            assert_eq!(log.take(), ["begin leader"]);
            cluster.lease_runs_out(&election).await;
            if other_leads {
                let other = cluster.candidate("other");
                timeout(30 * SECOND, other.acquired()).await.expect("the lease is free").expect("it leads");
                sleep(5 * SECOND).await;
                assert_eq!(election.status().why_not, Some(WhyNot::HeldBy("other".into())));
                assert_eq!(other.shutdown(SECOND).await, Ok(()));
            }
            sleep(30 * SECOND).await;
            assert_eq!((election.fence(), log.take()), (None, vec![]), "the reconcile has not ended");
            assert_eq!(election.status().why_not, Some(WhyNot::FormerWork));
            assert_eq!(operator.view().unhealthy(), [] as [&str; 0]);
            sleep(200 * SECOND).await;
            assert_eq!(election.fence(), Some(1 + u64::from(other_leads)));
            assert_eq!(log.take(), ["end leader", "begin leader"]);
            operator.drain().await;
        });
    }
}

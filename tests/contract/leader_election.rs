//! Leader elections (LE-01 to LE-14) over the in-memory API server in the same simulation.
//!
//! What was asked of the server is read from its log of requests. The decisions alone are tested beside their core, and
//! the actor beside itself.

use std::time::Duration;

use actix_informer::client::{Api, Client, Error, TransportError};
use actix_informer::leader_election::{LeaderElection, LeaderElectionError, LeaseName, WhyNot};
use informer_apiserver::ErrorBody;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::params::PostParams;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::factory::{Cluster, run};

const SECOND: Duration = Duration::from_secs(1);

impl Cluster {
    pub(crate) fn candidate(&self, identity: &str) -> LeaderElection {
        let election = LeaderElection::builder(
            &self.client,
            &self.runtime,
            LeaseName { namespace: "default", name: "operator" },
        );
        election.identity(identity).start().expect("it starts")
    }

    pub(crate) async fn lease(&self) -> Lease {
        self.client.api::<Lease>().namespaced("default").get("operator").await.expect("a lease")
    }

    /// The verbs of requests for leases, but for those of this file.
    pub(crate) fn verbs(&self) -> Vec<String> {
        let requests = self.server.requests();
        requests
            .iter()
            .filter(|request| request.resource == "leases.coordination.k8s.io")
            .map(|it| it.verb.to_string())
            .collect()
    }

    /// How many config maps were asked for or written.
    fn asked_for_maps(&self) -> usize {
        self.server.requests().iter().filter(|request| request.resource == "configmaps").count()
    }
}

pub(crate) fn maps(client: &Client) -> Api<ConfigMap> {
    client.api::<ConfigMap>().namespaced("default")
}

pub(crate) fn map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

fn is_refused<T>(answer: Result<T, Error>) -> bool {
    let error = answer.err();
    let is_typed = matches!(&error, Some(Error::Transport(TransportError::NotLeading { lease })) if **lease == *"default/operator");
    is_typed && error.is_some_and(|error| error.is_not_leading())
}

// LE-05: given we lead, when renewing, then operation sequence is get,create,update,update (no gets on the
// happy path); on update conflict one get then update.
// - a get, create, update, update
// - b on a conflict one get, then an update
#[test]
fn le_01_and_le_05_the_server_is_asked_for_get_create_update_update_and_after_a_conflict_for_one_get() {
    run(|cluster| async move {
        let leader = cluster.candidate("me");
        assert_eq!(leader.acquired().await.expect("it leads").fence(), 0);
        sleep(5 * SECOND).await;
        assert_eq!(cluster.verbs(), ["get", "create", "update", "update"]);
        let lease = json!({"metadata": {"labels": {"team": "web"}}});
        let patch = kube_core::params::Patch::Merge(lease);
        let leases = cluster.client.api::<Lease>().namespaced("default");
        leases.patch("operator", &Default::default(), &patch).await.expect("patched");
        sleep(4 * SECOND).await;
        assert_eq!(cluster.verbs()[4..], ["patch", "update", "get", "update", "update"]);
        assert_eq!((leader.fence(), leader.status().figures.conflicts), (Some(0), 1));
        let metadata = cluster.lease().await.metadata;
        assert_eq!(metadata.labels.expect("labels")["team"], "web", "le_12: it stays");
    });
}

// LE-04: given an empty holder, when trying, then taken at once.
// - a taken at once
#[test]
fn le_02_and_le_04_a_lease_that_is_held_is_not_taken_and_one_without_a_holder_is() {
    run(|cluster| async move {
        let lease = |holder: &str| {
            let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 6});
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                   "metadata": {"name": "operator", "namespace": "default"}, "spec": spec})
        };
        cluster.server.create(lease("other")).expect("a lease");
        let candidate = cluster.candidate("me");
        sleep(10 * SECOND).await;
        assert_eq!(candidate.status().why_not, Some(WhyNot::HeldBy("other".into())));
        let leases = cluster.client.api::<Lease>().namespaced("default");
        let patch = kube_core::params::Patch::Merge(json!({"spec": {"holderIdentity": ""}}));
        leases.patch("operator", &Default::default(), &patch).await.expect("patched");
        let freed = Instant::now();
        assert_eq!(candidate.acquired().await.expect("it leads").fence(), 7);
        assert!(freed.elapsed() < 5 * SECOND, "{:?}", freed.elapsed());
    });
}

#[test]
fn bugs_client_a_lease_whose_fields_are_null_is_taken() {
    for spec in [
        json!(null),
        json!({}),
        json!({"holderIdentity": null, "leaseDurationSeconds": null, "acquireTime": null, "renewTime": null,
               "leaseTransitions": null}),
        json!({"holderIdentity": "other", "leaseDurationSeconds": null, "renewTime": null}),
    ] {
        run(|cluster| async move {
            let metadata = json!({"name": "operator", "namespace": "default"});
            let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec});
            cluster.server.create(lease).expect("a lease");
            let (candidate, began) = (cluster.candidate("me"), Instant::now());
            candidate.acquired().await.expect("it leads");
            assert!(began.elapsed() < 5 * SECOND, "{spec}: {:?}", began.elapsed());
            assert_eq!(cluster.lease().await.spec.expect("a spec").holder_identity.as_deref(), Some("me"));
        });
    }
}

#[test]
fn bugs_client_a_lease_that_is_deleted_while_it_leads_is_made_again_and_the_term_goes_on() {
    run(|cluster| async move {
        let leader = cluster.candidate("me");
        let term = leader.acquired().await.expect("it leads").fence();
        for _ in 0..3 {
            cluster.server.delete("leases.coordination.k8s.io", "default", "operator").expect("it is there");
            for _ in 0..60 {
                sleep(SECOND / 10).await;
                assert!(leader.is_leader() && leader.fence() == Some(term), "the term goes on");
            }
            assert_eq!(cluster.lease().await.spec.expect("a spec").holder_identity.as_deref(), Some("me"));
        }
        // Another candidate waits, as if the lease were still there: there are never two leaders.
        let other = cluster.candidate("other");
        sleep(4 * SECOND).await;
        for _ in 0..10 {
            cluster.server.delete("leases.coordination.k8s.io", "default", "operator").expect("it is there");
            for _ in 0..40 {
                sleep(SECOND / 10).await;
                assert!(leader.is_leader() && !other.is_leader());
            }
        }
    });
}

#[test]
fn le_14_a_guarded_client_works_while_its_process_leads_and_is_refused_before_and_after() {
    run(|cluster| async move {
        let (first, second) = (cluster.candidate("first"), cluster.candidate("second"));
        first.acquired().await.expect("it leads");
        let (leading, waiting) = (maps(&first.guard(&cluster.client)), maps(&second.guard(&cluster.client)));
        leading.create(&PostParams::default(), &map("a")).await.expect("it leads");
        assert!(is_refused(waiting.create(&PostParams::default(), &map("b")).await));
        let asked = cluster.asked_for_maps();
        // The server refuses the lease alone: work could go on.
        cluster.server.faults().deny("update", "leases");
        cluster.server.faults().deny("get", "leases");
        let denied = Instant::now();
        let mut worked = Duration::ZERO;
        while leading.get_opt("a").await.is_ok() {
            worked = denied.elapsed();
            sleep(SECOND / 10).await;
        }
        assert!((7 * SECOND..=10 * SECOND).contains(&worked), "{worked:?}");
        assert!(is_refused(leading.get_opt("a").await) && !first.is_leader());
        assert!(is_refused(
            first
                .guard(&cluster.client)
                .stream(http::Request::get("/version").body(Vec::new()).unwrap(), SECOND)
                .await
        ));
        let of_work = cluster.asked_for_maps();
        sleep(60 * SECOND).await;
        assert!(is_refused(leading.get_opt("a").await));
        assert_eq!(cluster.asked_for_maps(), of_work, "nothing was sent");
        assert!(of_work > asked && first.status().last_error.is_some_and(|why| why.contains("leases")));
        maps(&cluster.client).get("a").await.expect("the client that was guarded is as before");
        cluster.server.faults().allow("update", "leases");
        cluster.server.faults().allow("get", "leases");
        tokio::select! {
            term = first.acquired() => assert_eq!(term.expect("it leads").fence(), 1),
            term = second.acquired() => assert_eq!(term.expect("it leads").fence(), 1),
        }
    });
}

#[test]
fn le_14_a_request_that_is_tried_again_after_the_end_of_the_term_is_not_sent() {
    run(|cluster| async move {
        let leader = cluster.candidate("me");
        leader.acquired().await.expect("it leads");
        let leading = maps(&leader.guard(&cluster.client));
        let faults = cluster.server.faults();
        faults.of("configmaps").too_many_requests_next(1, 5, ErrorBody::Status);
        let post = PostParams::default();
        let (map, asked) = (map("a"), cluster.asked_for_maps());
        let (created, ended) = tokio::join!(leading.create(&post, &map), async {
            sleep(SECOND).await;
            leader.shutdown(SECOND).await
        });
        assert_eq!(ended, Ok(()));
        assert!(created.is_err_and(|error| error.is_not_leading()), "it waited, and then was refused");
        assert_eq!(cluster.asked_for_maps(), asked + 1, "the first attempt");
    });
}

// LE-06: given lease <= renew, or renew <= retry x 1.2, or any < 1, when configuring, then errors.
// - a each is an error
#[test]
fn le_06_an_election_that_cannot_work_is_refused_with_the_name_of_its_lease() {
    run(|cluster| async move {
        let election = |name| {
            LeaderElection::builder(
                &cluster.client,
                &cluster.runtime,
                LeaseName { namespace: "default", name },
            )
        };
        let error = election("operator").renew_deadline(SECOND).start().expect_err("shorter than an attempt");
        assert_eq!(
            error.to_string(),
            "leader election default/operator: renew deadline 1s is not longer than 1.2 times the retry period 2s"
        );
        assert!(matches!(election("a/b").start(), Err(LeaderElectionError::Name(_))));
        let coordinated = election("operator").identity("Not_A_Name").coordinated("1.0.0");
        assert!(matches!(coordinated.start(), Err(LeaderElectionError::Name(_))));
        assert!(cluster.verbs().is_empty());
    });
}

// LE-11: given candidate pinged, when observed, then it updates its renew time.
// - a to a time that is not before the ping, once:
//   `le_11_a_candidate_that_is_pinged_renews_its_registration_at_the_next_attempt`
// - b where candidates cannot register, the status says so
#[test]
fn le_11_without_lease_candidates_the_status_says_why_a_coordinated_candidate_does_not_lead() {
    run(|cluster| async move {
        let election = LeaderElection::builder(
            &cluster.client,
            &cluster.runtime,
            LeaseName { namespace: "default", name: "operator" },
        );
        let candidate = election.identity("me").coordinated("1.0.0").start().expect("it starts");
        sleep(10 * SECOND).await;
        let status = candidate.status();
        assert_eq!(status.why_not, Some(WhyNot::NotChosen), "{status:?}");
        let why = status.last_error.expect("there are no candidates");
        assert!(why.contains("the server serves no LeaseCandidate"), "{why}");
        assert!(cluster.verbs().iter().all(|verb| verb == "get"), "{:?}", cluster.verbs());
    });
}

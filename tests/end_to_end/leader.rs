//! Leader elections of two replicas on whole servers: crashes, ends, and a leader that is stopped beyond its lease.
//!
//! Answers "does at most one replica work, and does one work soon?" What a stopped leader has written is read from the
//! server: the versions of what both wrote, in order. Invariants:
//! 1. A leader that wakes is refused by its guard or told by its actor, whichever is first: here both may be. That the guard
//!    reads the clock itself is shown beside the actor, of which nothing moves there.
//! 2. No scenario looks at a clock to find out who led: terms have numbers, objects have versions.
//!
//! Read next: `replica.rs`, a replica as a process.

use std::collections::BTreeSet;
use std::time::Duration;

use actix_informer::leader_election::{LeaderElection, LeaseName, WhyNot};
use actix_informer::prelude::*;
use http::Method;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use rustix::process::Signal;
use serde_json::json;
use tokio::time::Instant;

use crate::replica::{LEASE, Replica, WORKERS, quick};
use crate::stage::{LONG, Stage, until};

/// How often the leader is stopped.
const STOPS: usize = 3;

impl Stage {
    fn candidate(&self, identity: &str) -> LeaderElection {
        let client = self.server.client();
        let election = LeaderElection::builder(
            &client,
            &self.runtime,
            LeaseName { namespace: &self.namespace, name: LEASE },
        );
        quick(election.identity(identity).label("app", "shop")).start().expect("it starts")
    }

    async fn lease(&self) -> Lease {
        let leases = self.server.client().api::<Lease>().namespaced(&*self.namespace);
        leases.get(LEASE).await.expect("a lease")
    }

    /// The names of the candidates that are registered, in order.
    async fn registrations(&self) -> Vec<String> {
        let group = self.server.client().request(Method::GET, "/apis/coordination.k8s.io", None).await;
        let group = String::from_utf8(group.expect("a group").into_body().to_vec()).expect("a text");
        let version = if group.contains("v1beta1") { "v1beta1" } else { "v1alpha2" };
        let path =
            format!("/apis/coordination.k8s.io/{version}/namespaces/{}/leasecandidates", self.namespace);
        let list = self.server.client().request(Method::GET, &path, None).await.expect("a list");
        let list: serde_json::Value = serde_json::from_slice(list.body()).expect("it is JSON");
        let names = list["items"].as_array().expect("items").iter();
        let mut names: Vec<_> =
            names.map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()).collect();
        names.sort();
        names
    }

    async fn holder(&self) -> String {
        self.lease().await.spec.and_then(|spec| spec.holder_identity).unwrap_or_default()
    }

    /// Waits until the present leader has written twenty objects more.
    async fn work_goes_on(&self) {
        let (end, before) = (Instant::now() + LONG, self.written().await.len());
        while self.written().await.len() <= before + 20 {
            assert!(Instant::now() < end, "nobody writes");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until so many objects of this term are written.
    async fn has_written(&self, term: u64, objects: usize) {
        let end = Instant::now() + LONG;
        while self.written().await.iter().filter(|(of, _)| *of == term).count() < objects {
            assert!(Instant::now() < end, "nobody writes in term {term}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// What replicas have written, in the order of the server: the term and the worker.
    async fn written(&self) -> Vec<(u64, String)> {
        let maps = self.server.client().api::<ConfigMap>().namespaced(&*self.namespace);
        let maps = maps.list(&ListParams::default().labels("written-by")).await.expect("a list");
        let mut written: Vec<_> = maps
            .into_iter()
            .map(|map| {
                let version: u64 =
                    map.metadata.resource_version.expect("a version").parse().expect("a number");
                let worker = map.metadata.labels.expect("labels")["written-by"].clone();
                let term = worker.split('-').nth(1).expect("a term").parse().expect("a number");
                (version, (term, worker))
            })
            .collect();
        written.sort();
        written.into_iter().map(|(_, by)| by).collect()
    }
}

// LE-01: given no lease, when acquiring, then created with us as holder, 0 transitions.
// - a created with us as holder and no transitions
/// One replica leads; when it ends without a word another one does, with a greater number; when that one is shut down the
/// next does at once. Labels and annotations of others stay.
pub(crate) async fn le_01_one_of_two_replicas_leads_and_the_other_takes_over_after_a_crash_and_after_a_shutdown(
    stage: Stage,
) {
    let first = stage.candidate("first");
    let term = first.acquired().await.expect("it leads");
    assert_eq!(term.fence(), 0);
    let leases = stage.server.client().api::<Lease>().namespaced(&*stage.namespace);
    let note =
        Patch::Merge(json!({"metadata": {"labels": {"team": "web"}, "annotations": {"note": "kept"}}}));
    leases.patch(LEASE, &PatchParams::default(), &note).await.expect("patched");
    let second = stage.candidate("second");
    until("the second has seen who leads", || {
        second.status().why_not == Some(WhyNot::HeldBy("first".into()))
    })
    .await;
    until("the first has renewed over the patch", || first.status().figures.slow_paths > 0).await;
    let renewals = first.status().figures.renewals;
    until("the first goes on", || first.status().figures.renewals > renewals + 3).await;
    assert!(!second.is_leader() && first.fence() == Some(0));

    drop(first); // as a crash: nothing is given back
    let crashed = Instant::now();
    assert_eq!(second.acquired().await.expect("it leads").fence(), 1);
    assert!(crashed.elapsed() >= Duration::from_secs(2), "{:?}", crashed.elapsed());
    let metadata = stage.lease().await.metadata;
    let (labels, annotations) =
        (metadata.labels.expect("labels"), metadata.annotations.expect("annotations"));
    assert_eq!((&*labels["team"], &*labels["app"], &*annotations["note"]), ("web", "shop", "kept"));

    let third = stage.candidate("third");
    until("the third has seen who leads", || &*third.status().holder == "second").await;
    let maps = second.guard(&stage.server.client()).api::<ConfigMap>().namespaced(&*stage.namespace);
    assert!(maps.get_opt("none").await.expect("it leads").is_none());
    second.shutdown(LONG).await.expect("the lease is given back");
    let refused = maps.get_opt("none").await.expect_err("it does not lead any more");
    assert!(refused.is_not_leading(), "{refused}");
    assert_eq!(third.acquired().await.expect("it leads").fence(), 2);
    third.shutdown(LONG).await.expect("the lease is given back");
    let spec = stage.lease().await.spec.expect("a spec");
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_duration_seconds), (Some(""), Some(1)));
    assert_eq!(spec.lease_transitions, Some(2));
}

/// The leader is stopped for longer than its lease, in the middle of its work, and the other one leads. When it wakes, it
/// sends nothing more: at most what each worker had under way arrives.
pub(crate) async fn le_15_a_leader_that_was_stopped_beyond_its_lease_begins_no_request_when_it_wakes(
    stage: Stage,
) {
    let replicas = [Replica::start(&stage, "a"), Replica::start(&stage, "b")];
    stage.work_goes_on().await;
    let mut under_way = BTreeSet::new();
    for _ in 0..STOPS {
        let leads = usize::from(stage.holder().await == "b");
        let (leader, other) = (&replicas[leads], ["b", "a"][leads]);
        leader.signal(Signal::STOP);
        let stopped = Instant::now();
        while stage.holder().await != other {
            assert!(stopped.elapsed() < LONG, "{other} does not take the lease");
        }
        stage.work_goes_on().await;
        under_way.extend(leader.under_way());
        leader.signal(Signal::CONT);
        leader.prints("refused ").await;
        stage.work_goes_on().await;
    }
    drop(replicas);
    let written = stage.written().await;
    let mut newest = 0;
    let mut late = Vec::new();
    for (term, worker) in written {
        if term < newest {
            late.push(worker);
        }
        newest = newest.max(term);
    }
    let all = late.len();
    late.sort();
    late.dedup();
    assert_eq!(all, late.len(), "at most one for each worker: {late:?}");
    let begun: Vec<_> = late.iter().filter(|worker| !under_way.contains(*worker)).collect();
    assert!(begun.is_empty(), "{begun:?} had nothing under way, and have written after another has led");
    assert!(under_way.len() <= STOPS * WORKERS, "{under_way:?}");
    assert!(newest >= 3, "{newest}");
}

/// The leader is stopped for longer than its lease, while both of its workers pause. The other one leads and gives the lease
/// back. The first one finds it free when it wakes: it leads again when nothing of its former term can write any more, and
/// nothing of that term comes behind what the other one has written.
pub(crate) async fn le_15_a_leader_that_wakes_while_the_lease_is_free_leads_again_without_its_former_work(
    stage: Stage,
) {
    let replica = Replica::start_with(&stage, "a", 100);
    replica.prints("leads 0").await;
    stage.has_written(0, WORKERS).await;
    replica.signal(Signal::STOP);
    let other = stage.candidate("b");
    let term = other.acquired().await.expect("the lease runs out");
    assert_eq!(term.fence(), 1);
    let maps = stage.server.client().for_term(&term).api::<ConfigMap>().namespaced(&*stage.namespace);
    let map = json!({"metadata": {"name": "b-1-0-0", "labels": {"written-by": "b-1-0"}}});
    let map: ConfigMap = serde_json::from_value(map).expect("a config map");
    maps.create(&PostParams::default(), &map).await.expect("it leads");
    other.shutdown(LONG).await.expect("the lease is given back");
    assert_eq!(stage.holder().await, "");
    replica.signal(Signal::CONT);
    replica.prints("refused 0").await;
    replica.prints("leads 2").await;
    stage.has_written(2, 2 * WORKERS).await;
    let terms: Vec<u64> = stage.written().await.into_iter().map(|(term, _)| term).collect();
    assert!(terms.is_sorted() && terms.contains(&1), "{terms:?}");
}

/// A replica that is killed is followed by the other one, and not before its lease has ended.
pub(crate) async fn a_leader_that_is_killed_is_followed_by_the_other_replica(stage: Stage) {
    let replicas = [Replica::start(&stage, "a"), Replica::start(&stage, "b")];
    stage.work_goes_on().await;
    let leads = usize::from(stage.holder().await == "b");
    replicas[leads].signal(Signal::KILL);
    replicas[1 - leads].prints("leads ").await;
    stage.work_goes_on().await;
    let terms: Vec<u64> = stage.written().await.into_iter().map(|(term, _)| term).collect();
    assert!(terms.is_sorted(), "{terms:?}");
}

// LE-10: given preferred holder set to another, when renewing in coordinated mode, then we stop renewing and
// hand over.
// - a the term ends and nothing is written:
//   `le_10_when_another_is_preferred_we_stop_renewing_and_leave_the_lease_to_run_out`
// - b not if we are preferred ourselves: `le_10_a_lease_that_prefers_us_is_renewed`
// - c a real controller then has the preferred candidate lead
/// In a coordinated election a controller of the server chooses: the candidate with the oldest version leads, and
/// hands over to one with an older version that comes.
pub(crate) async fn le_10_the_server_chooses_and_the_leader_hands_over(stage: Stage) {
    let client = stage.server.client();
    let candidate = |identity: &str, version: &str| {
        let election = LeaderElection::builder(
            &client,
            &stage.runtime,
            LeaseName { namespace: &stage.namespace, name: LEASE },
        );
        quick(election.identity(identity).coordinated(version)).start().expect("it starts")
    };
    let newer = candidate("newer", "1.2.0");
    let first = newer.acquired().await.expect("it is alone");
    let older = candidate("older", "1.1.0");
    let second = older.acquired().await.expect("it is older");
    assert!(second.fence() > first.fence() && first.has_ended() && !newer.is_leader());
    older.shutdown(LONG).await.expect("the lease is given back");
    let third = newer.acquired().await.expect("it is alone again");
    assert!(third.fence() > second.fence());
    assert_eq!(stage.registrations().await, ["newer"], "a shutdown takes the registration back");
    drop(newer); // as a crash: its registration stays
    let next = candidate("next", "1.3.0");
    assert!(next.acquired().await.expect("it is alive").fence() > third.fence());
    assert_eq!(stage.registrations().await, ["newer", "next"]);
    next.shutdown(LONG).await.expect("the lease is given back");
    assert_eq!(stage.registrations().await, ["newer"], "nobody renews it, and so it is not chosen");
}

//! The website operator, killed by SIGKILL at random moments while websites come, change and go.
//!
//! Answers "does anything stay behind, or is anything made twice, wherever the process ends?" Ten times in an ordinary run;
//! `INFORMER_KILLS=100 cargo test --all-features --test end_to_end killed` kills it a hundred times.

#![expect(clippy::unwrap_used, reason = "an operator that fails has failed the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use actix_informer::client::api::{Api, Preconditions};
use actix_informer::prelude::*;
use futures_util::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube_core::{Resource, ResourceExt};
use serde_json::json;

use crate::stage::{LONG, LOOK, Stage};
use crate::website::{Sites, install};
use crate::website_operator::parts::MANAGED;
use crate::website_operator::reconcile::FINALIZER;
use crate::website_process::Process;

/// How many keys the operator reconciles at a time.
const WORKERS: u32 = 4;

fn kills() -> u32 {
    std::env::var("INFORMER_KILLS").map_or(10, |kills| kills.parse().expect("a number"))
}

/// The uids of the deployments that each website has had.
type Made = BTreeMap<String, BTreeSet<String>>;

/// Notes every deployment that is ever made, until it is dropped.
async fn note(deployments: Api<Deployment>, version: String, made: std::rc::Rc<std::cell::RefCell<Made>>) {
    let mut watch = deployments.watch(&WatchParams::default(), &version).unwrap();
    while let Some(event) = watch.next().await {
        if let WatchEvent::Added(deployment) = event.unwrap() {
            let owner = deployment.owner_references()[0].uid.clone();
            made.borrow_mut().entry(owner).or_default().insert(deployment.uid().unwrap());
        }
    }
}

/// One random change: a new website, another page or host, a deletion.
async fn change(sites: &Sites, dice: &mut fastrand::Rng) {
    let name = format!("site-{}", dice.u32(0..6));
    let patch = async |spec| {
        let patch = Patch::Merge(json!({"spec": spec}));
        sites.sites.patch(&name, &PatchParams::default(), &patch).await.map(drop)
    };
    let changed = match dice.u32(0..8) {
        0..=2 => sites.make(&name, &format!("{name}.example.org")).await,
        3 => patch(json!({"page": dice.u32(..).to_string()})).await,
        4 => patch(json!({"replicas": dice.u32(0..5)})).await,
        5 => patch(json!({"host": format!("{name}-{}.example.org", dice.u32(0..2))})).await,
        _ => sites.sites.delete(&name, &DeleteParams::default()).await.map(drop),
    };
    // Whoever changes at random meets what is there already, is gone, or is going.
    assert!(changed.is_ok() || changed.as_ref().is_err_and(|error| error.refused().is_some()), "{changed:?}");
}

// OPR-22: given an operator that is killed by SIGKILL at random moments while objects come, change and go,
// when the last one goes on, then everything is as it is wanted, no child and no finalizer is left behind,
// and no child was made twice (changed: a request that is under way at a kill may land when its owner is
// gone, at most one a worker; the garbage collector deletes that child).
// - a everything is as it is wanted
// - b no child and no finalizer is left behind
// - c no child was made twice
pub(crate) async fn opr_22_an_operator_that_is_killed_at_random_moments_loses_nothing_and_makes_nothing_twice(
    stage: Stage,
) {
    let client = stage.server.client();
    install(&client).await;
    let sites = Sites::of(&client, &stage.namespace);
    let mut dice = fastrand::Rng::with_seed(stage.seed);
    let made = std::rc::Rc::new(std::cell::RefCell::new(Made::new()));
    let version =
        sites.deployments.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let noting = actix_rt::spawn(note(sites.deployments.clone(), version, std::rc::Rc::clone(&made)));

    for _ in 0..kills() {
        let process = Process::start(&stage.server);
        let end = tokio::time::Instant::now() + Duration::from_millis(dice.u64(50..1_500));
        while tokio::time::Instant::now() < end {
            change(&sites, &mut dice).await;
            tokio::time::sleep(Duration::from_millis(dice.u64(1..60))).await;
        }
        process.kill();
    }
    let last = Process::start(&stage.server);
    sites.make("site-0", "site-0.example.org").await.ok();
    let mut left = Left::default();
    settles(&sites, &mut left).await;
    let made = made.borrow().clone();
    assert!(!made.is_empty() && made.values().all(|uids| uids.len() == 1), "made twice: {made:#?}");
    for site in sites.sites.list(&ListParams::default()).await.unwrap() {
        sites.delete(&site.name_any()).await;
    }
    settles(&sites, &mut left).await;
    assert!(sites.sites.list(&ListParams::default()).await.unwrap().items.is_empty());
    assert!(left.0 <= kills() * WORKERS, "{} children without an owner after {} kills", left.0, kills());
    noting.abort();
    last.kill();
}

/// How many children a garbage collector had to delete. The real control plane of the tests has none, so these tests delete
/// what it would. A request that is under way when its process is killed may land when the owner is gone: at most one a worker.
#[derive(Default)]
struct Left(u32);

impl Left {
    /// Deletes each child of this kind whose owner is gone.
    async fn collect<K>(&mut self, sites: &Sites, api: &Api<K>)
    where
        K: Resource + serde::de::DeserializeOwned + Clone,
    {
        // Owners are listed after their children: an owner that is missing then is gone for good.
        let found = api.list(&ListParams::default().labels(MANAGED)).await.unwrap().items;
        let owners = sites.sites.list(&ListParams::default()).await.unwrap().items;
        let owners: BTreeSet<String> = owners.iter().map(|site| site.uid().unwrap()).collect();
        for child in found.iter().filter(|child| !owners.contains(&child.owner_references()[0].uid)) {
            let only_this = Preconditions { uid: child.uid(), resource_version: None };
            let params = DeleteParams::background().preconditions(only_this);
            self.0 += u32::from(api.delete(&child.name_any(), &params).await.is_ok());
        }
    }
}

/// Waits until the cluster is what its websites want.
async fn settles(sites: &Sites, left: &mut Left) {
    let end = tokio::time::Instant::now() + LONG;
    while let Err(why) = is_settled(sites).await {
        assert!(tokio::time::Instant::now() < end, "not settled: {why}");
        left.collect(sites, &sites.maps).await;
        left.collect(sites, &sites.services).await;
        left.collect(sites, &sites.deployments).await;
        tokio::time::sleep(10 * LOOK).await;
    }
}

/// Each website has its finalizer, its three parts and its host; there is nothing else.
async fn is_settled(sites: &Sites) -> Result<(), String> {
    let all = sites.sites.list(&ListParams::default()).await.unwrap().items;
    let uids: BTreeSet<String> = all.iter().map(|site| site.uid().unwrap()).collect();
    for site in &all {
        let served = sites.deployments.get_opt(&site.name_any()).await.unwrap();
        let has =
            |deployment: &Deployment| deployment.spec.as_ref().unwrap().replicas == Some(site.spec.replicas);
        let page = sites.maps.get_opt(&site.name_any()).await.unwrap();
        let text = page.and_then(|page| page.data).and_then(|data| data.get("index.html").cloned());
        let claim = sites.claims.get_opt(&format!("host-{}", site.spec.host)).await.unwrap();
        let is_mine =
            claim.is_some_and(|claim| claim.labels().get("example.org/site-uid") == site.uid().as_ref());
        let observed = site.status.iter().flat_map(|status| &status.conditions).next();
        let observed = observed.and_then(|one| one.observed_generation);
        let state = (
            site.finalizers(),
            served.as_ref().is_some_and(has),
            text.as_ref() == Some(&site.spec.page),
            is_mine,
        );
        if state != (&[FINALIZER.to_owned()], true, true, true) || observed != site.metadata.generation {
            return Err(format!("{}: {state:?}, observed {observed:?}", site.name_any()));
        }
    }
    counted("deployments", &sites.deployments, &uids).await?;
    counted("services", &sites.services, &uids).await?;
    counted("config maps", &sites.maps, &uids).await?;
    let claims =
        sites.claims.list(&ListParams::default().labels("example.org/site-uid")).await.unwrap().items;
    let holders: Vec<_> = claims.iter().map(|claim| claim.labels()["example.org/site-uid"].clone()).collect();
    let same = holders.len() == uids.len() && holders.iter().all(|uid| uids.contains(uid));
    if same { Ok(()) } else { Err(format!("{} claims of {} sites", holders.len(), uids.len())) }
}

/// There is one object of this kind for each website, which controls it, and no other.
async fn counted<K>(kind: &str, api: &Api<K>, owners: &BTreeSet<String>) -> Result<(), String>
where
    K: Resource + serde::de::DeserializeOwned + Clone,
{
    let found = api.list(&ListParams::default().labels(MANAGED)).await.unwrap().items;
    let controllers: BTreeSet<_> = found.iter().map(|one| one.owner_references()[0].uid.clone()).collect();
    let is_so = found.len() == owners.len() && controllers == *owners;
    if is_so { Ok(()) } else { Err(format!("{} {kind} of {} websites", found.len(), owners.len())) }
}

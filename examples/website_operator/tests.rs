//! Tests of the website operator: its functions with plain values, and the whole operator in simulated worlds.
//!
//! Answers "how is an operator tested without a cluster?" Nothing here sleeps or opens a socket: the clock is paused, and the
//! API server is in the same simulation.
//!
//! Read next: `tests/stage.rs`, the operator in a world; `tests/seeds.rs`, many worlds in which things go wrong.

use std::time::Duration;

use actix_informer::testing::{Incident, World};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use serde_json::{Value, json};

use crate::operator::NAMESPACE;
use crate::operator::hosts::Claim;
use crate::operator::parts::{deployment, page, service};
use crate::operator::reconcile::{FINALIZER, ready_condition};
use crate::operator::website::{Website, WebsiteSpec};
use crate::tests::stage::{DEPLOYMENTS, LEASES, MAPS, SITES, begin, create, replica};

mod flights;
mod judge;
mod seeds;
mod stage;
mod users;

const MINUTE: Duration = Duration::from_secs(60);

fn site(replicas: i32) -> Website {
    let host = "shop.example.org".to_owned();
    Website::new("shop", WebsiteSpec { host, page: "hello".to_owned(), replicas, image: "web:1".to_owned() })
}

fn serving(ready_replicas: i32) -> Deployment {
    let status = DeploymentStatus { ready_replicas: Some(ready_replicas), ..DeploymentStatus::default() };
    Deployment { status: Some(status), ..deployment(&site(2)) }
}

#[test]
fn the_parts_of_a_site_fit_each_other() {
    let site = site(3);
    let (deployment, service, page) = (deployment(&site), service(&site), page(&site));
    let spec = deployment.spec.unwrap();
    assert_eq!(spec.replicas, Some(3));
    assert_eq!(spec.selector.match_labels, service.spec.unwrap().selector, "the service reaches its pods");
    assert_eq!(spec.selector.match_labels, spec.template.metadata.unwrap().labels);
    let volumes = spec.template.spec.unwrap().volumes.unwrap();
    assert_eq!(Some(&volumes[0].config_map.as_ref().unwrap().name), page.metadata.name.as_ref());
    assert_eq!(page.data.unwrap()["index.html"], "hello");
}

#[test]
fn a_site_is_ready_when_it_has_its_host_and_its_replicas() {
    let of = |claim, served: Option<&Deployment>| {
        let condition = ready_condition(&site(2), &claim, served);
        (condition.status, condition.reason)
    };
    let told = |status: &str, reason: &str| (status.to_owned(), reason.to_owned());
    assert_eq!(of(Claim::Granted, None), told("False", "Starting"));
    assert_eq!(of(Claim::Granted, Some(&serving(1))), told("False", "Starting"));
    assert_eq!(of(Claim::Granted, Some(&serving(2))), told("True", "Served"));
    assert_eq!(of(Claim::Taken("a/b".to_owned()), Some(&serving(2))), told("False", "HostTaken"));
}

fn website(world: &World, name: &str) -> Option<Value> {
    world.server().get(SITES, "default", name).ok()
}

/// What the status of a site says, or that there is none.
fn reason(world: &World, name: &str) -> String {
    let site = website(world, name).unwrap_or_default();
    site["status"]["conditions"][0]["reason"].as_str().unwrap_or("nothing").to_owned()
}

/// For `eventually`: that the status says this, or what it says instead.
fn says(world: &World, name: &str, expected: &str) -> Result<(), String> {
    let said = reason(world, name);
    if said == expected { Ok(()) } else { Err(format!("{name} says {said}, not {expected}")) }
}

#[test]
fn while_the_server_refuses_writes_nothing_is_lost_and_afterwards_everything_is_made() {
    World::simulated(7).run(|world| async move {
        begin(&world);
        world.start("operator-0", replica);
        world.server().faults().deny("patch", "deployments.apps");
        create(&world, "shop", "shop.example.org");
        let is_made = || world.server().get(DEPLOYMENTS, "default", "shop").is_ok();
        world.never(10 * MINUTE, is_made).await; // takes no time
        assert_eq!(website(&world, "shop").unwrap()["metadata"]["finalizers"], json!([FINALIZER]));
        world.server().faults().allow("patch", "deployments.apps");
        world.eventually(20 * MINUTE, is_made).await;
        world.eventually(MINUTE, || says(&world, "shop", "Starting")).await;
    });
}

#[test]
fn of_two_sites_with_one_host_the_second_waits_until_the_first_is_gone() {
    World::simulated(7).run(|world| async move {
        begin(&world);
        world.start("operator-0", replica);
        create(&world, "first", "shop.example.org");
        world.eventually(MINUTE, || says(&world, "first", "Starting")).await;
        create(&world, "second", "shop.example.org");
        world.eventually(MINUTE, || says(&world, "second", "HostTaken")).await;
        world.settles(MINUTE, 5 * MINUTE).await;
        world.server().delete(SITES, "default", "first").unwrap();
        world.eventually(MINUTE, || says(&world, "second", "Starting")).await;
        assert!(website(&world, "first").is_none());
        assert!(world.server().get(DEPLOYMENTS, "default", "first").is_err());
    });
}

#[test]
fn a_claim_that_comes_late_is_given_back_whether_its_site_is_gone_or_wants_another_host() {
    World::simulated(7).run(|world| async move {
        begin(&world);
        world.start("operator-0", replica);
        create(&world, "shop", "shop.example.org");
        world.eventually(MINUTE, || says(&world, "shop", "Starting")).await;
        let claim_of = |host: &str| world.server().get(MAPS, NAMESPACE, &format!("host-{host}")).ok();
        let claim = claim_of("shop.example.org").unwrap();
        let late = |host: &str, site: &str, uid: &Value| {
            let mut late = claim.clone();
            late["metadata"] = json!({"name": format!("host-{host}"), "namespace": NAMESPACE});
            late["metadata"]["labels"] = claim["metadata"]["labels"].clone();
            late["metadata"]["labels"]["example.org/site-uid"] = uid.clone();
            late["data"]["site"] = json!(site);
            world.server().create(late).unwrap();
        };
        late("unwanted.example.org", "default/shop", &claim["metadata"]["labels"]["example.org/site-uid"]);
        late("former.example.org", "default/shop", &json!("a-former-uid"));
        late("gone.example.org", "default/gone", &json!("another-uid"));
        let lates = ["unwanted.example.org", "former.example.org", "gone.example.org"];
        world.eventually(MINUTE, || lates.iter().all(|host| claim_of(host).is_none())).await;
        assert_eq!(claim_of("shop.example.org"), Some(claim));
    });
}

#[test]
fn when_the_leader_crashes_the_other_replica_goes_on_and_when_it_is_stopped_nobody_waits_for_its_lease() {
    World::simulated(7).run(|world| async move {
        begin(&world);
        let (first, second) = (world.start("operator-0", replica), world.start("operator-1", replica));
        create(&world, "one", "one.example.org");
        world.eventually(MINUTE, || says(&world, "one", "Starting")).await;
        let holder = || {
            let lease = world.server().get(LEASES, "website-operator", "website-operator").unwrap();
            lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
        };
        let (leader, other) = if holder() == "operator-0" { (first, second) } else { (second, first) };
        leader.crash();
        create(&world, "two", "two.example.org");
        // Nobody has heard of the crash: the lease runs out.
        world.never(10 * MINUTE / 60, || says(&world, "two", "Starting")).await;
        world.eventually(MINUTE, || says(&world, "two", "Starting")).await;
        assert_eq!(holder(), other.name());
        assert!(other.stop(30 * MINUTE / 60).await, "{other}");
        assert_eq!((holder().as_str(), other.last_end().as_deref()), ("", Some("returned")));
    });
}

#[test]
fn events_are_told_before_the_lease_is_given_back() {
    World::simulated(7).run(|world| async move {
        begin(&world);
        let operator = world.start("operator-0", replica);
        // Each event waits for its turn at the server, so some are left when the operator is stopped.
        for site in 0..10 {
            create(&world, &format!("site-{site}"), &format!("site-{site}.example.org"));
        }
        world.eventually(MINUTE, || says(&world, "site-9", "Starting")).await;
        world.cause(Incident::Slow(4, MINUTE / 60)).await;
        assert!(operator.stop(MINUTE).await, "{operator}");
        let asked = world.requests();
        let release = asked.iter().rposition(|asked| asked.path.contains("/leases/")).unwrap();
        let last_event = asked.iter().rposition(|asked| asked.path.contains("/events")).unwrap();
        assert!(last_event < release, "{:?}", &asked[release..]);
        assert_eq!(world.server().list("events.events.k8s.io").unwrap().len(), 10);
    });
}

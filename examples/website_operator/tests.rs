//! Unit tests of the website operator: its functions with plain values, and the whole operator in a simulated world.
//!
//! Answers "how is an operator tested without a cluster?" Nothing here sleeps or opens a socket: the clock is paused, and the
//! API server is in the same simulation.

#![expect(clippy::unwrap_used, reason = "a scene that cannot be set up has failed the test")]

use std::time::Duration;

use actix_informer::prelude::*;
use informer_apiserver::ApiServer;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use serde_json::{Value, json};

use crate::operator::hosts::Claim;
use crate::operator::parts::{deployment, page, service};
use crate::operator::reconcile::{FINALIZER, ready_condition};
use crate::operator::website::{Website, WebsiteSpec};
use crate::operator::{NAMESPACE, start};

const DEFINITION: &str = include_str!("../../config/website-operator/crd.yaml");
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

/// The operator beside an API server, in a world in which an hour takes milliseconds.
fn world<F: Future<Output = ()>>(script: impl FnOnce(ApiServer, Runtime) -> F) {
    Runtime::simulated(7).run(|runtime| async move {
        let server = ApiServer::builder().seed(7).in_process(runtime.wall_time()).start().await.unwrap();
        server.create(serde_saphyr::from_str(DEFINITION).unwrap()).unwrap();
        server
            .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
            .unwrap();
        let client = Client::in_process(&runtime, server.service());
        let operator = start(&client, &runtime).unwrap();
        script(server, runtime).await;
        drop(operator);
    });
}

fn create(server: &ApiServer, name: &str) {
    let metadata = json!({"name": name, "namespace": "default"});
    let spec = json!({"host": "shop.example.org", "page": "hello"});
    let site = json!({"apiVersion": "example.org/v1", "kind": "Website", "metadata": metadata, "spec": spec});
    server.create(site).unwrap();
}

fn website(server: &ApiServer, name: &str) -> Option<Value> {
    server.get("websites.example.org", "default", name).ok()
}

#[test]
fn while_the_server_refuses_writes_nothing_is_lost_and_afterwards_everything_is_made() {
    world(|server, _runtime| async move {
        server.faults().deny("patch", "deployments.apps");
        create(&server, "shop");
        tokio::time::sleep(10 * MINUTE).await; // takes no time
        assert_eq!(website(&server, "shop").unwrap()["metadata"]["finalizers"], json!([FINALIZER]));
        assert!(server.get("deployments.apps", "default", "shop").is_err());
        server.faults().allow("patch", "deployments.apps");
        tokio::time::sleep(20 * MINUTE).await;
        assert!(server.get("deployments.apps", "default", "shop").is_ok());
        assert_eq!(website(&server, "shop").unwrap()["status"]["conditions"][0]["reason"], "Starting");
    });
}

#[test]
fn of_two_sites_with_one_host_the_second_waits_until_the_first_is_gone() {
    world(|server, _runtime| async move {
        let reason =
            |name: &str| website(&server, name).unwrap()["status"]["conditions"][0]["reason"].clone();
        create(&server, "first");
        tokio::time::sleep(MINUTE).await;
        create(&server, "second");
        tokio::time::sleep(MINUTE).await;
        assert_eq!((reason("first"), reason("second")), (json!("Starting"), json!("HostTaken")));
        server.delete("websites.example.org", "default", "first").unwrap();
        tokio::time::sleep(MINUTE).await;
        assert!(website(&server, "first").is_none());
        assert!(server.get("deployments.apps", "default", "first").is_err());
        assert_eq!(reason("second"), "Starting");
    });
}

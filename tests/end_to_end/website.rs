//! The website operator of the examples on both servers: with the manifests of `config/website-operator`, and with no more
//! rights than they give.
//!
//! Answers "does what the example shows work on a real API server?" Pods do not run here: the test says of deployments what a
//! cluster would.

#![expect(clippy::unwrap_used, reason = "an operator that fails has failed the test")]

use std::sync::Arc;

use actix_informer::client::Error;
use actix_informer::client::api::{Api, FieldValidation, conditions};
use actix_informer::prelude::*;
use actix_informer::reconcile::Condition;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Service, ServiceAccount};
use k8s_openapi::api::events::v1::Event;
use kube_core::discovery::ApiResource;
use kube_core::gvk::GroupVersionKind;
use serde_json::{Value, json};

use crate::server::Server;
use crate::stage::{LONG, LOOK, Stage};
use crate::website_operator::website::{READY, Website};
use crate::website_operator::{NAMESPACE, WebsiteOperator, figures};

const MANIFESTS: [&str; 4] = [
    include_str!("../../config/website-operator/00-namespace.yaml"),
    include_str!("../../config/website-operator/crd.yaml"),
    include_str!("../../config/website-operator/rbac.yaml"),
    include_str!("../../config/website-operator/deployment.yaml"),
];

/// Applies all manifests as they are, and refuses fields that the server does not know.
pub(crate) async fn install(client: &Client) {
    for text in MANIFESTS.iter().flat_map(|file| file.split("\n---\n")) {
        let object: Value = serde_saphyr::from_str(text).expect("YAML");
        let said = |field: &str| object[field].as_str().unwrap().to_owned();
        let (group, version) = said("apiVersion").rsplit_once('/').map_or_else(
            || (String::new(), said("apiVersion")),
            |(group, version)| (group.to_owned(), version.to_owned()),
        );
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, &version, &said("kind")));
        let mut api = client.dynamic_api(&resource).field_validation(FieldValidation::Strict);
        if let Some(namespace) = object["metadata"]["namespace"].as_str() {
            api = api.namespaced(namespace);
        }
        let name = object["metadata"]["name"].as_str().unwrap();
        let applied = api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(&object)).await;
        applied.unwrap_or_else(|error| panic!("{} {name}: {error}", said("kind")));
    }
    let definitions = client.api::<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition>();
    definitions.until("websites.example.org", conditions::crd_established(), LONG).await.unwrap();
}

/// A client with the rights of the operator's service account, and no others.
async fn account(server: &Server) -> Client {
    let accounts = server.client().api::<ServiceAccount>().namespaced(NAMESPACE);
    let spec = TokenRequestSpec { expiration_seconds: Some(3_600), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let issued = accounts.create_token("website-operator", &PostParams::default(), &request).await.unwrap();
    Client::new(server.config(None).token(issued.status.unwrap().token.unwrap())).unwrap()
}

/// The websites of a namespace and what belongs to them, as the administrator sees them.
#[derive(Clone)]
pub(crate) struct Sites {
    pub(crate) sites: Api<Website>,
    pub(crate) maps: Api<ConfigMap>,
    pub(crate) services: Api<Service>,
    pub(crate) deployments: Api<Deployment>,
    pub(crate) claims: Api<ConfigMap>,
    events: Api<Event>,
}

impl Sites {
    pub(crate) fn of(client: &Client, namespace: &str) -> Self {
        Self {
            sites: client.api().namespaced(namespace),
            maps: client.api().namespaced(namespace),
            services: client.api().namespaced(namespace),
            deployments: client.api().namespaced(namespace),
            claims: client.api().namespaced(NAMESPACE),
            events: client.api().namespaced(namespace),
        }
    }

    pub(crate) async fn make(&self, name: &str, host: &str) -> Result<(), Error> {
        let spec = json!({"host": host, "page": format!("this is {name}"), "replicas": 2});
        let site = json!({"metadata": {"name": name}, "spec": spec});
        self.sites.create(&PostParams::default(), &serde_json::from_value(site).unwrap()).await.map(drop)
    }

    /// Waits until the condition `Ready` has this reason.
    pub(crate) async fn reaches(&self, name: &str, reason: &str) -> Condition {
        let ready = |site: &Website| {
            let conditions = site.status.iter().flat_map(|status| &status.conditions);
            conditions.into_iter().find(|one| one.type_ == READY && one.reason == reason).cloned()
        };
        let is_so = |site: Option<&Website>| site.is_some_and(|site| ready(site).is_some());
        let site = self.sites.until(name, is_so, LONG).await.unwrap().unwrap();
        ready(&site).unwrap()
    }

    /// Waits for an event about a site with this reason; its type and its note.
    async fn hears(&self, name: &str, reason: &str) -> (Option<String>, Option<String>) {
        let is_it = |event: &Event| {
            let regarding = event.regarding.as_ref().and_then(|site| site.name.as_deref());
            (regarding, event.reason.as_deref()) == (Some(name), Some(reason))
        };
        let end = tokio::time::Instant::now() + LONG;
        loop {
            let all = self.events.list(&ListParams::default()).await.unwrap().items;
            if let Some(event) = all.into_iter().find(is_it) {
                return (event.type_, event.note);
            }
            assert!(tokio::time::Instant::now() < end, "no event {reason} about {name}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Says of a deployment what its pods would.
    async fn serve(&self, name: &str, ready: i32) {
        let status = json!({"status": {"replicas": ready, "readyReplicas": ready}});
        self.deployments.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.sites.delete(name, &DeleteParams::default()).await.unwrap();
    }
}

/// Whether nothing has these labels.
async fn has_none(maps: &Api<ConfigMap>, labels: &str) -> bool {
    maps.list(&ListParams::default().labels(labels)).await.unwrap().items.is_empty()
}

// OPR-20: given the manifests of the website operator, when they are applied and the operator runs with the
// rights of its service account alone, then each is accepted, and websites are served, wait for their host,
// are put right and are cleaned up.
// - a each manifest is accepted, with unknown fields refused
// - b its rights are enough for its work
pub(crate) async fn opr_20_the_website_operator_does_its_work_with_the_rights_of_its_manifests(stage: Stage) {
    let server = match &*stage.server {
        Server::Memory(_) => Arc::new(Server::memory_with_rbac()),
        Server::Real(_) => Arc::clone(&stage.server),
    };
    install(&server.client()).await;
    let api = crate::api::Api::new(server.client());
    if !Arc::ptr_eq(&server, &stage.server) {
        api.create_namespace(&stage.namespace).await;
    }
    let sites = Sites::of(&server.client(), &stage.namespace);
    let account = account(&server).await;
    let WebsiteOperator { builder, events } = WebsiteOperator::new(&account, &stage.runtime, None).unwrap();
    let operator = builder.start().unwrap();

    sites.make("shop", "shop.example.org").await.unwrap();
    let starting = sites.reaches("shop", "Starting").await;
    assert_eq!(
        (starting.message.as_str(), starting.observed_generation),
        ("0 of 2 replicas are ready", Some(1))
    );
    sites.serve("shop", 2).await;
    assert_eq!(sites.reaches("shop", "Served").await.status, "True");

    sites.make("copy", "shop.example.org").await.unwrap();
    let taken = sites.reaches("copy", "HostTaken").await;
    assert_eq!(taken.message, format!("shop.example.org belongs to the site {}/shop", stage.namespace));
    let warned = sites.hears("copy", "HostTaken").await;
    assert_eq!(warned, (Some("Warning".to_owned()), Some(taken.message)));
    assert!(sites.deployments.get_opt("copy").await.unwrap().is_none(), "it is not served");

    sites.deployments.delete("shop", &DeleteParams::background()).await.unwrap();
    sites.reaches("shop", "Starting").await;
    let change = Patch::Merge(json!({"spec": {"page": "new"}}));
    sites.sites.patch("shop", &PatchParams::default(), &change).await.unwrap();
    let is_new =
        |map: Option<&ConfigMap>| map.is_some_and(|map| map.data.as_ref().unwrap()["index.html"] == "new");
    sites.maps.until("shop", is_new, LONG).await.unwrap();

    sites.delete("shop").await;
    sites.sites.until("shop", conditions::absent(), LONG).await.unwrap();
    sites.reaches("copy", "Starting").await;
    sites.delete("copy").await;
    sites.sites.until("copy", conditions::absent(), LONG).await.unwrap();
    assert!(has_none(&sites.maps, crate::website_operator::parts::MANAGED).await);
    assert!(has_none(&sites.claims, "example.org/site-uid").await);
    assert!(sites.services.get_opt("copy").await.unwrap().is_none());
    let (status, shown) = (operator.status(), figures(&stage.runtime, &events));
    assert!(status.leads == Some(true) && status.unready().is_empty(), "{status}");
    assert!(
        shown.contains("controller website-operator: running") && shown.contains("its queue: "),
        "{shown}"
    );
    let report = operator.drain().await;
    assert!(report.is_clean(), "{report}");
    let lease = server.client().api::<Lease>().namespaced(NAMESPACE).get("website-operator").await.unwrap();
    let holder = lease.spec.unwrap().holder_identity;
    assert!(holder.as_deref().unwrap_or_default().is_empty(), "the lease is given back: {holder:?}");
}

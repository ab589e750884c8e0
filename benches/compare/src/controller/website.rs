//! The operator's kind, and the three children of each object, as the Rust clients make them.
//!
//! Answers "what is wanted?" for a website, once for all Rust clients. Invariant:
//! 1. Whoever reconciles a website applies all three children, in the same order, whatever is there already.
//!
//! Read next: `informer.rs`, `kube.rs`, the operators; `server.rs`, which checks what is there.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    ConfigMap, Container, PodSpec, PodTemplateSpec, Service, ServicePort, ServiceSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube_client::Resource;
use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Who applies.
pub(super) const MANAGER: &str = "bench";

#[derive(Debug, Clone, Serialize, Deserialize, CustomResource)]
#[kube(group = "bench.example.com", version = "v1", kind = "Website", namespaced, schema = "disabled")]
#[kube(status = "WebsiteStatus", crates(kube_core = "::kube_client::core"))]
pub(super) struct WebsiteSpec {
    pub(super) content: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebsiteStatus {
    pub(super) observed_generation: Option<i64>,
}

/// What each website has.
pub(super) struct Children {
    pub(super) map: ConfigMap,
    pub(super) service: Service,
    pub(super) deployment: Deployment,
}

/// Name, namespace and the three children of a website.
pub(super) fn children(site: &Website) -> (String, String, Children) {
    let name = site.metadata.name.clone().unwrap_or_default();
    let namespace = site.metadata.namespace.clone().unwrap_or_default();
    let metadata = || ObjectMeta {
        name: site.metadata.name.clone(),
        namespace: site.metadata.namespace.clone(),
        owner_references: site.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    let labels = BTreeMap::from([("app".to_owned(), name.clone())]);
    let content = BTreeMap::from([("content".to_owned(), site.spec.content.clone())]);
    let port = ServicePort { port: 80, ..ServicePort::default() };
    // Without an address: the server in memory looks for one among all services.
    let service = ServiceSpec {
        cluster_ip: Some("None".to_owned()),
        selector: Some(labels.clone()),
        ports: Some(vec![port]),
        ..ServiceSpec::default()
    };
    let container =
        Container { name: "web".to_owned(), image: Some("nginx".to_owned()), ..Container::default() };
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels.clone()),
            annotations: Some(content.clone()),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
    };
    let deployment = DeploymentSpec {
        replicas: Some(1),
        selector: LabelSelector { match_labels: Some(labels), ..LabelSelector::default() },
        template,
        ..DeploymentSpec::default()
    };
    let children = Children {
        map: ConfigMap { metadata: metadata(), data: Some(content), ..ConfigMap::default() },
        service: Service { metadata: metadata(), spec: Some(service), ..Service::default() },
        deployment: Deployment { metadata: metadata(), spec: Some(deployment), ..Deployment::default() },
    };
    (namespace, name, children)
}

/// The merge patch of the status, if it differs.
pub(super) fn status_patch(site: &Website) -> Option<Value> {
    let generation = site.metadata.generation;
    let observed = site.status.as_ref().and_then(|status| status.observed_generation);
    (observed != generation).then(|| json!({"status": {"observedGeneration": generation}}))
}

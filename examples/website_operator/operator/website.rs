//! The kind `Website`: what its author wants, and what the operator says about it.
//!
//! Answers "what does a website look like in the cluster?" Its definition is `config/website-operator/crd.yaml`.
//!
//! Read next: `parts.rs`.

use actix_informer::reconcile::Condition;
use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};

/// Whether the site is served as its author wants it.
pub(crate) const READY: &str = "Ready";

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.org", version = "v1", kind = "Website", namespaced, schema = "disabled")]
#[kube(status = "WebsiteStatus", crates(kube_core = "::kube_core"))]
pub(crate) struct WebsiteSpec {
    pub(crate) host: String,
    pub(crate) page: String,
    #[serde(default = "one")]
    pub(crate) replicas: i32,
    #[serde(default = "nginx")]
    pub(crate) image: String,
}

fn one() -> i32 {
    1
}

fn nginx() -> String {
    "nginx:1.29".to_owned()
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebsiteStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
    #[serde(default)]
    pub(crate) ready_replicas: i32,
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
}

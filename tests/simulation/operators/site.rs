//! The custom resource of the operators: a website, with a theme that several may share.
//!
//! Answers "what is the operator for?": each site has a config map that it owns, with its text and the colour of its theme,
//! and a second one, its mirror, as long as its author wants one.

use actix_informer::testing::World;
use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The finalizer of a site that has something outside of the cluster.
pub(crate) const FINALIZER: &str = "example.org/outside";
pub(crate) const SITES: &str = "websites.example.org";
pub(crate) const MAPS: &str = "configmaps";
/// The namespace of all objects.
pub(crate) const NAMESPACE: &str = "default";
/// The label of children, and of themes.
pub(crate) const ROLE: &str = "example.org/role";
pub(crate) const CHILD: &str = "child";
pub(crate) const THEME: &str = "theme";
/// The annotation of children with the fencing number of the leader that wrote them: a new leader writes each child anew.
pub(crate) const FENCE: &str = "example.org/fence";
/// The lease of the replicas.
pub(crate) const LEASE: &str = "operator";
pub(crate) const LEASES: &str = "leases.coordination.k8s.io";

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.org", version = "v1", kind = "Website", namespaced, schema = "disabled")]
#[kube(crates(kube_core = "::kube_core"), status = "WebsiteStatus")]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebsiteSpec {
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) theme: Option<String>,
    #[serde(default)]
    pub(crate) mirror: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebsiteStatus {
    pub(crate) observed_generation: i64,
    pub(crate) child: String,
}

/// Adds the definition of sites to the server.
pub(crate) fn define(world: &World) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}},
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "websites.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "websites", "singular": "website", "kind": "Website"},
        },
    });
    world.server().create(definition).expect("a valid definition");
}

/// The name of the config map of a site.
pub(crate) fn child_name(site: &str) -> String {
    format!("{site}-child")
}

/// The name of the second config map of a site that has one.
pub(crate) fn mirror_name(site: &str) -> String {
    format!("{site}-mirror")
}

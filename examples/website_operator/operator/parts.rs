//! What a website consists of: a config map with its page, a deployment that serves it, a service in front.
//!
//! Answers "what should be there for this website?" as plain functions, which unit tests call without a server. Each part
//! has the name of its site and the labels by which all of this operator's objects are found.
//!
//! Read next: `hosts.rs`, `reconcile.rs`.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube_core::{ObjectMeta, Resource};
use serde_json::json;

use super::website::Website;

/// The field manager, and the value of the label `app.kubernetes.io/managed-by`.
pub(crate) const MANAGER: &str = "website-operator";
/// Selects all that this operator makes.
pub(crate) const MANAGED: &str = "app.kubernetes.io/managed-by=website-operator";

pub(crate) fn labels(name: &str) -> BTreeMap<String, String> {
    let labels = [("app.kubernetes.io/managed-by", MANAGER), ("app.kubernetes.io/name", name)];
    labels.map(|(label, value)| (label.to_owned(), value.to_owned())).into()
}

fn metadata(site: &Website) -> ObjectMeta {
    let name = site.meta().name.clone().unwrap_or_default();
    ObjectMeta { labels: Some(labels(&name)), name: Some(name), ..ObjectMeta::default() }
}

pub(crate) fn page(site: &Website) -> ConfigMap {
    let files = [("index.html".to_owned(), site.spec.page.clone())];
    ConfigMap { metadata: metadata(site), data: Some(files.into()), ..ConfigMap::default() }
}

pub(crate) fn service(site: &Website) -> Service {
    let metadata = metadata(site);
    let spec = json!({"selector": metadata.labels, "ports": [{"name": "http", "port": 80}]});
    let spec = serde_json::from_value(spec).expect("a service's specification");
    Service { metadata, spec: Some(spec), ..Service::default() }
}

pub(crate) fn deployment(site: &Website) -> Deployment {
    let metadata = metadata(site);
    let container = json!({
        "name": "web", "image": site.spec.image,
        "ports": [{"name": "http", "containerPort": 80}],
        "volumeMounts": [{"name": "page", "mountPath": "/usr/share/nginx/html", "readOnly": true}],
    });
    let volume = json!({"name": "page", "configMap": {"name": metadata.name}});
    let spec = json!({
        "replicas": site.spec.replicas,
        "selector": {"matchLabels": metadata.labels},
        "template": {
            "metadata": {"labels": metadata.labels},
            "spec": {"containers": [container], "volumes": [volume]},
        },
    });
    let spec = serde_json::from_value(spec).expect("a deployment's specification");
    Deployment { metadata, spec: Some(spec), ..Deployment::default() }
}

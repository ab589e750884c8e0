//! The website operator in a simulated world: the cluster that it expects, and one replica of it as a process.
//!
//! Answers "what is the same in all worlds of these tests?" The replica is the operator of `main.rs` without probes, which
//! would need a socket.

use std::error::Error;

use actix_informer::testing::{Host, World};
use serde_json::json;

use crate::operator::{NAMESPACE, WebsiteOperator};

pub(crate) const SITES: &str = "websites.example.org";
pub(crate) const MAPS: &str = "configmaps";
pub(crate) const SERVICES: &str = "services";
pub(crate) const DEPLOYMENTS: &str = "deployments.apps";
pub(crate) const LEASES: &str = "leases.coordination.k8s.io";

const DEFINITION: &str = include_str!("../../../config/website-operator/crd.yaml");

/// Installs what `kubectl apply` does in a cluster.
pub(crate) fn begin(world: &World) {
    let server = world.server();
    server.create(serde_saphyr::from_str(DEFINITION).expect("YAML")).expect("a valid definition");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    server.create(namespace).expect("it is new");
}

/// A replica: it runs until it is stopped, and fails if not all of it has ended in order.
pub(crate) async fn replica(host: Host) -> Result<(), Box<dyn Error>> {
    let operator = WebsiteOperator::new(host.client(), host.runtime(), Some(host.name()))?.builder.start()?;
    let report = operator.run_until(host.stopping()).await;
    if report.is_clean() { Ok(()) } else { Err(report.to_string().into()) }
}

/// Makes a website as its author does; its uid. It may be there already.
pub(crate) fn create(world: &World, name: &str, host: &str) -> Option<String> {
    let metadata = json!({"name": name, "namespace": "default"});
    let spec = json!({"host": host, "page": format!("this is {name}")});
    let site = json!({"apiVersion": "example.org/v1", "kind": "Website", "metadata": metadata, "spec": spec});
    let made = world.server().create(site);
    assert!(made.as_ref().map_or_else(|error| error.code() == 409, |_| true), "{made:?}");
    made.ok().and_then(|made| made["metadata"]["uid"].as_str().map(str::to_owned))
}

//! The operator with actix-informer, twice: as its guide shows it, and with what its documentation advises for large numbers.
//!
//! Answers "how does a practised user write it?". As it comes: a controller of the websites that owns what it makes, of
//! which the informers keep the owner alone, with a filter for updates that change no generation, and with reported writes.
//! Tuned: the events of own writes lead to no other reconcile, and reconciles and their requests run on one thread.
//!
//! Read next: `kube.rs`, the same with kube-rs; `../controller.rs`, the rule for all.

use std::fmt;
use std::sync::Arc;

use actix_informer::controller::predicates;
use actix_informer::kube_core::NamespaceResourceScope;
use actix_informer::prelude::*;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube_client::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::subject::{Counts, LONG};
use super::website::{MANAGER, Website, children, status_patch};

/// What runs, as long as it is kept.
pub(super) struct Running {
    _runtime: Runtime,
    _controller: Controller<Website>,
}

/// Starts the operator; returns when its caches are synced.
pub(super) async fn start(
    url: &str,
    workers: usize,
    counts: &Arc<Counts>,
    is_tuned: bool,
) -> anyhow::Result<Running> {
    let (runtime, client) = (Runtime::threads().start()?, Client::new(Config::new(url)?)?);
    let client = if is_tuned { client.carried_by(&runtime) } else { client };
    let sites = client.resource::<Website>().informer(&runtime)?.start()?;
    let maps = client.controllers_of::<ConfigMap>().informer(&runtime)?.start()?;
    let services = client.controllers_of::<Service>().informer(&runtime)?.start()?;
    let deployments = client.controllers_of::<Deployment>().informer(&runtime)?.start()?;
    let builder = Controller::builder(&sites)
        .owns(&maps)
        .owns(&services)
        .owns(&deployments)
        .filter(predicates::generation_changed())
        .workers(workers);
    let counts = Arc::clone(counts);
    let function = move |request| {
        let (client, counts) = (client.clone(), Arc::clone(&counts));
        async move { counts.count(reconcile(&client, &request).await) }
    };
    let controller = match is_tuned {
        true => builder.ignore_own_writes().reconcile_local(function),
        false => builder.reconcile(function),
    };
    let controller = controller.start()?;
    sites.synced_within(LONG).await?;
    maps.synced_within(LONG).await?;
    services.synced_within(LONG).await?;
    deployments.synced_within(LONG).await?;
    Ok(Running { _runtime: runtime, _controller: controller })
}

async fn reconcile(client: &Client, request: &Request<Website>) -> Result<Outcome, ReconcileError> {
    let Some(site) = request.object() else { return Ok(Outcome::Done) };
    let (namespace, name, children) = children(site);
    apply(client, request, (&namespace, &name), &children.map).await?;
    apply(client, request, (&namespace, &name), &children.service).await?;
    apply(client, request, (&namespace, &name), &children.deployment).await?;
    if let Some(patch) = status_patch(site) {
        let sites = client.api::<Website>().namespaced(&namespace);
        let written = sites.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        request.written(&written);
    }
    Ok(Outcome::Done)
}

async fn apply<K>(
    client: &Client,
    request: &Request<Website>,
    (namespace, name): (&str, &str),
    child: &K,
) -> Result<(), ReconcileError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Serialize + DeserializeOwned,
    K: fmt::Debug + 'static,
{
    let params = PatchParams::apply(MANAGER).force();
    let written = client.api::<K>().namespaced(namespace).patch(name, &params, &Patch::Apply(child)).await?;
    request.written(&written);
    Ok(())
}

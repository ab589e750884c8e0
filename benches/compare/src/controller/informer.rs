//! The operator with actix-informer, four times: as it comes, on a lazy cache, with what its documentation advises for
//! large numbers, and with `Children`, as its guide shows it.
//!
//! Answers "how does a practised user write it?". As it comes: a controller of the websites that owns what it makes, of
//! which the informers keep the owner alone, with a filter for updates that change no generation, and with reported writes.
//! Tuned: the events of own writes lead to no other reconcile, and reconciles and their requests run on one thread.
//! With `Children`: tuned, and a child that the cache shows at the version of the last answer is not applied again.
//!
//! Read next: `kube.rs`, the same with kube-rs; `../controller.rs`, the rule for all.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use actix_informer::controller::{ControllerBuilder, predicates};
use actix_informer::informer::Body;
use actix_informer::kube_core::NamespaceResourceScope;
use actix_informer::prelude::*;
use actix_informer::reconcile::Children;
use actix_informer::representation::{ControllerOf, OfKind, ReadMetadata};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube_client::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::subject::{Counts, LONG};
use super::website::{MANAGER, Website, children, status_patch};

/// How it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As it comes.
    Plain,
    /// The same on a lazy cache.
    Lazy,
    /// With what the documentation advises for large numbers.
    Tuned,
    /// Tuned, and with `Children`.
    Children,
}

/// What runs, as long as it is kept.
pub(super) struct Running {
    _runtime: Runtime,
    _controller: Box<dyn Any>,
}

/// Starts the operator; returns when its caches are synced.
pub(super) async fn start(
    url: &str,
    workers: usize,
    counts: &Arc<Counts>,
    form: Form,
) -> anyhow::Result<Running> {
    let (runtime, client) = (Runtime::threads().start()?, Client::new(Config::new(url)?)?);
    let is_plain = matches!(form, Form::Plain | Form::Lazy);
    let client = if is_plain { client } else { client.carried_by(&runtime) };
    let maps = client.controllers_of::<ConfigMap>().informer(&runtime)?.start()?;
    let services = client.controllers_of::<Service>().informer(&runtime)?.start()?;
    let deployments = client.controllers_of::<Deployment>().informer(&runtime)?.start()?;
    let kept = Children::new(&client, MANAGER)
        .cached_controllers(&maps.lister())
        .cached_controllers(&services.lister())
        .cached_controllers(&deployments.lister());
    let kept = (form == Form::Children).then_some(kept);
    let (counts, carried) = (Arc::clone(counts), client.clone());
    let function = move |request| {
        let (client, kept, counts) = (carried.clone(), kept.clone(), Arc::clone(&counts));
        async move { counts.count(reconcile(&client, kept.as_ref(), &request).await) }
    };
    let owning = (&maps, &services, &deployments);
    let controller: Box<dyn Any> = if form == Form::Lazy {
        let sites = client.resource::<Website>().lazy().informer(&runtime)?.start()?;
        let controller = builder(&sites, owning, workers).reconcile_decoded(function).start()?;
        sites.synced_within(LONG).await?;
        Box::new(controller)
    } else {
        let sites = client.resource::<Website>().informer(&runtime)?.start()?;
        let builder = builder(&sites, owning, workers);
        let controller = match form {
            Form::Plain | Form::Lazy => builder.reconcile(function),
            Form::Tuned | Form::Children => builder.ignore_own_writes().reconcile_local(function),
        };
        let controller = controller.start()?;
        sites.synced_within(LONG).await?;
        Box::new(controller)
    };
    maps.synced_within(LONG).await?;
    services.synced_within(LONG).await?;
    deployments.synced_within(LONG).await?;
    Ok(Running { _runtime: runtime, _controller: controller })
}

/// The informers of what is made.
type Owning<'a> = (
    &'a Informer<ControllerOf<ConfigMap>>,
    &'a Informer<ControllerOf<Service>>,
    &'a Informer<ControllerOf<Deployment>>,
);

fn builder<S: Body + OfKind + ReadMetadata>(
    sites: &Informer<S>,
    (maps, services, deployments): Owning<'_>,
    workers: usize,
) -> ControllerBuilder<S> {
    let builder = Controller::builder(sites).owns(maps).owns(services).owns(deployments);
    builder.filter(predicates::generation_changed()).workers(workers)
}

async fn reconcile(
    client: &Client,
    kept: Option<&Children>,
    request: &Request<Website>,
) -> Result<Outcome, ReconcileError> {
    let Some(site) = request.object() else { return Ok(Outcome::Done) };
    let (namespace, name, children) = children(site);
    if let Some(kept) = kept {
        // Without `prune`, which the others leave out, too.
        let mut pass = kept.of(request, site)?;
        pass.apply(children.map).await?;
        pass.apply(children.service).await?;
        pass.apply(children.deployment).await?;
    } else {
        apply(client, request, (&namespace, &name), &children.map).await?;
        apply(client, request, (&namespace, &name), &children.service).await?;
        apply(client, request, (&namespace, &name), &children.deployment).await?;
    }
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

//! The operator under test: a reconcile function, the informers that lead to it, and workers.
//!
//! Answers "how does a site become what it should be?". It is level-triggered: it looks at what is there, and writes what is
//! missing. Nothing in it knows that it is simulated.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use actix_informer::kube_core::Resource;
use actix_informer::prelude::*;
use actix_informer::testing::Host;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::judge::Outside;
use super::plan::Plan;
use super::site::{CHILD, FINALIZER, NAMESPACE, ROLE, Website, WebsiteStatus, child_name};

/// What each reconcile needs.
struct Context {
    process: String,
    plan: Plan,
    outside: Outside,
    sites: Api<Website>,
    maps: Api<ConfigMap>,
    themes: Lister<ConfigMap>,
}

/// The program of one process.
pub(crate) fn program(
    plan: Plan,
    outside: Outside,
) -> impl Fn(Host) -> LocalBoxFuture<'static, Result<(), Box<dyn Error>>> {
    move |host| operate(host, plan.clone(), outside.clone()).boxed_local()
}

async fn operate(host: Host, plan: Plan, outside: Outside) -> Result<(), Box<dyn Error>> {
    let client = host.client();
    let sites = client.resource::<Website>().namespace(NAMESPACE).informer(host.runtime())?.start()?;
    let maps = client.resource::<ConfigMap>().namespace(NAMESPACE).labels(ROLE);
    let maps = maps.informer(host.runtime())?.start()?;
    let context = Arc::new(Context {
        process: host.name().to_owned(),
        sites: client.api::<Website>().namespaced(NAMESPACE),
        maps: client.api::<ConfigMap>().namespaced(NAMESPACE),
        themes: maps.lister(),
        plan: plan.clone(),
        outside,
    });
    let lister = sites.lister();
    let mut builder = Controller::builder(&sites)
        .owns(&maps)
        .maps(&maps, move |map: &Object<ConfigMap>| with_theme(&lister, map))
        .workers(plan.workers);
    if let Some(every) = plan.every {
        builder = builder.every(every);
    }
    let reconciled = move |request| {
        let context = Arc::clone(&context);
        async move { reconcile(&context, &request).await }
    };
    let controller = builder.reconcile(reconciled).start()?;
    host.stopping().await;
    controller.drain(Duration::from_secs(30)).await?;
    Ok(())
}

/// The sites that refer to this config map as their theme.
fn with_theme(sites: &Lister<Website>, map: &Object<ConfigMap>) -> Vec<ObjectKey> {
    let sites = sites.snapshot();
    let referring = sites.iter().filter(|site| site.spec.theme.as_deref() == Some(map.key().name()));
    referring.map(|site| site.key().clone()).collect()
}

async fn reconcile(context: &Context, request: &Request<Website>) -> Result<Outcome, ReconcileError> {
    let _flight = context.outside.begin(&context.process, request.key());
    let site = if context.plan.outside {
        // What is stored, not what is cached: something outside is made for it.
        context.sites.get_opt(request.key().name()).await?
    } else {
        request.object().map(|site| site.body().clone())
    };
    let Some(site) = site else { return Ok(Outcome::Done) };
    let name = request.key().name();
    let finalizers = site.metadata.finalizers.as_deref().unwrap_or_default();
    let is_held = finalizers.iter().any(|finalizer| finalizer == FINALIZER);
    if site.metadata.deletion_timestamp.is_some() {
        if is_held {
            context.outside.remove(name);
            hold(context, request, &site, json!([])).await?;
        }
        return Ok(Outcome::Done);
    }
    if context.plan.outside {
        if !is_held {
            hold(context, request, &site, json!([FINALIZER])).await?;
        }
        context.outside.add(name);
    }
    apply_child(context, request, &site).await?;
    let status = WebsiteStatus {
        observed_generation: site.metadata.generation.unwrap_or_default(),
        child: child_name(name),
    };
    if site.status.as_ref() != Some(&status) {
        let patch = Patch::Merge(json!({"status": status}));
        request.written(&context.sites.patch_status(name, &PatchParams::default(), &patch).await?);
    }
    Ok(Outcome::Done)
}

/// Sets the finalizers, if nobody else has changed the site meanwhile.
async fn hold(
    context: &Context,
    request: &Request<Website>,
    site: &Website,
    finalizers: Value,
) -> Result<(), ReconcileError> {
    let version = &site.metadata.resource_version;
    let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": version}});
    let written =
        context.sites.patch(request.key().name(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    if written.metadata.deletion_timestamp.is_some() {
        request.removed(&written);
    } else {
        request.written(&written);
    }
    Ok(())
}

async fn apply_child(
    context: &Context,
    request: &Request<Website>,
    site: &Website,
) -> Result<(), ReconcileError> {
    let name = child_name(request.key().name());
    let theme = site.spec.theme.as_deref().map(|theme| ObjectKey::namespaced(NAMESPACE, theme));
    let theme = theme.and_then(|theme| context.themes.get(&theme));
    let colour = theme.and_then(|theme| theme.data.as_ref()?.get("colour").cloned());
    let child = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {ROLE: CHILD}, "ownerReferences": [site.controller_owner_ref(&())]},
        "data": {"text": site.spec.text, "colour": colour.unwrap_or_default()},
    });
    let apply = PatchParams::apply("operator").force();
    request.written(&context.maps.patch(&name, &apply, &Patch::Apply(child)).await?);
    Ok(())
}

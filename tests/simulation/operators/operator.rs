//! The operator under test: a reconcile function, the informers that lead to it, workers, an election, events.
//!
//! Answers "how does a site become what it should be?". It is level-triggered: it looks at what is there, and writes what is
//! missing. Nothing in it knows that it is simulated.

use std::error::Error;
use std::sync::Arc;

use actix_informer::controller::ControllerBuilder;
use actix_informer::controller::predicates::generation_changed;
use actix_informer::leader_election::{LeaderElection, LeaderElectionError, LeaseName};
use actix_informer::object::meta_of;
use actix_informer::prelude::*;
use actix_informer::reconcile::{Applied, Children, Finalize, Written, finalizer, update_status};
use actix_informer::testing::Host;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;

use super::outside::{Life, Outside};
use super::own_writes::{OwnWrites, Pass};
use super::plan::{LEASE_DURATION, Plan, RENEW_DEADLINE, RETRY_PERIOD, STOP_LIMIT, WRITE_WAIT};
use super::site::{
    CHILD, FENCE, FINALIZER, LEASE, NAMESPACE, ROLE, Website, WebsiteStatus, child_name, mirror_name,
};

/// What each reconcile needs.
struct Context {
    process: String,
    plan: Plan,
    outside: Outside,
    own_writes: OwnWrites,
    /// Of a replica of several: sends nothing when its term is over.
    client: Client,
    children: Children,
    events: Option<Recorder>,
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
    let (client, runtime, instance) = (host.client(), host.runtime(), outside.start(host.name()));
    let election = plan.takeover.is_some().then(|| elect(&host)).transpose()?;
    if let Some(election) = election.clone() {
        actix_rt::spawn(say_who_leads(election, host.name().to_owned(), outside.clone()));
    }
    let leading = election.as_ref().map_or_else(|| client.clone(), |election| election.guard(client));
    // Anybody may say something: what has happened stays true when the term is over.
    let events = Recorder::builder(client, runtime, "website-operator").instance(instance.clone());
    let events = plan.events.then(|| events.start()).transpose()?;
    let sites = client.resource::<Website>().namespace(NAMESPACE).informer(runtime)?.start()?;
    let maps = client.resource::<ConfigMap>().namespace(NAMESPACE).labels(ROLE).informer(runtime)?;
    let maps = maps.start()?;
    let context = Arc::new(Context {
        process: host.name().to_owned(),
        own_writes: OwnWrites::new(&outside, &sites, &maps),
        children: Children::new(&leading, "operator").cached(&maps.lister()),
        client: leading,
        events: events.clone(),
        themes: maps.lister(),
        plan: plan.clone(),
        outside: outside.clone(),
    });
    let builder = Controller::builder(&sites).owns(&maps).maps(&maps, with_theme(&sites));
    let builder = with_settings(builder, &plan, election.clone());
    let reconciled = move |request| {
        let context = Arc::clone(&context);
        async move { reconcile(&context, &request).await }
    };
    let controller = builder.reconcile(reconciled).start()?;
    host.stopping().await;
    // A replica that does not lead leaves its keys to the one that does.
    if election.as_ref().is_none_or(|election| election.is_leader()) {
        controller.drain(STOP_LIMIT).await?;
    }
    controller.shut_down();
    controller.ended().await;
    if let Some(events) = &events {
        events.shutdown(STOP_LIMIT).await?;
    }
    if let Some(election) = &election {
        election.shutdown(STOP_LIMIT).await?;
    }
    outside.end(Life {
        instance,
        longest_reconcile: outside.longest_reconcile(host.name()),
        longest_hold: controller.status().queue.worked.max,
        events: events.map(|events| events.figures()),
    });
    Ok(())
}

/// The settings of the controller.
fn with_settings(
    builder: ControllerBuilder<Website>,
    plan: &Plan,
    election: Option<LeaderElection>,
) -> ControllerBuilder<Website> {
    let mut builder = builder.workers(plan.workers).time_limit(plan.time_limit).write_wait(WRITE_WAIT);
    if let Some(every) = plan.every {
        builder = builder.every(every);
    }
    if plan.ignores_own_writes {
        builder = builder.ignore_own_writes().filter(generation_changed());
    }
    match election {
        Some(election) => builder.fenced_by(move || election.fence()),
        None => builder,
    }
}

fn elect(host: &Host) -> Result<LeaderElection, LeaderElectionError> {
    LeaderElection::builder(host.client(), host.runtime(), LeaseName { namespace: NAMESPACE, name: LEASE })
        .identity(host.name())
        .lease_duration(LEASE_DURATION)
        .renew_deadline(RENEW_DEADLINE)
        .retry_period(RETRY_PERIOD)
        .start()
}

/// Says again and again that this process leads, if it does, as somebody asks whose work needs no server. More often than the
/// lease is renewed: after a stop of the process it is asked before the election has looked at its clock.
async fn say_who_leads(election: LeaderElection, process: String, outside: Outside) {
    loop {
        tokio::time::sleep(RETRY_PERIOD / 2).await;
        if election.is_leader() {
            outside.leads(&process);
        }
    }
}

/// The sites that refer to a config map as their theme.
fn with_theme(
    sites: &Informer<Website>,
) -> impl Fn(&Object<ConfigMap>) -> Vec<ObjectKey> + Send + Sync + use<> {
    let sites = sites.lister();
    move |map| {
        let sites = sites.snapshot();
        let referring = sites.iter().filter(|site| site.spec.theme.as_deref() == Some(map.key().name()));
        referring.map(|site| site.key().clone()).collect()
    }
}

async fn reconcile(context: &Context, request: &Request<Website>) -> Result<Outcome, ReconcileError> {
    let _flight = context.outside.begin(&context.process, request);
    let pass = &context.own_writes.begin(request.key());
    let name = request.key().name();
    let Some(site) = request.object() else {
        context.outside.forget(name, request.fence())?;
        return Ok(Outcome::Done);
    };
    if !context.plan.outside {
        return apply(context, (request, pass), site).await;
    }
    finalizer(&context.client, request, FINALIZER, |event| async move {
        match event {
            Finalize::Apply(site) => {
                context.outside.add(name, request.fence())?;
                apply(context, (request, pass), &site).await
            }
            Finalize::CleanUp(_) => {
                context.outside.remove(name, request.fence())?;
                Ok(Outcome::Done)
            }
        }
    })
    .await
}

async fn apply(
    context: &Context,
    (request, pass): (&Request<Website>, &Pass<'_>),
    site: &Object<Website>,
) -> Result<Outcome, ReconcileError> {
    let name = request.key().name();
    pass.site(site.cached_meta());
    let mut children = context.children.of(request, site)?;
    let names = [Some(child_name(name)), site.spec.mirror.then(|| mirror_name(name))];
    for name in names.into_iter().flatten() {
        let applied = children.apply(child(context, request, site, name)).await?;
        let is_shown = !matches!(&applied, Applied::Written(map) if !pass.map(map));
        if context.plan.step_by_step && !is_shown {
            // Its event is on its way, and leads to the next step.
            return Ok(Outcome::Done);
        }
    }
    children.prune().await?;
    let new = WebsiteStatus {
        observed_generation: site.metadata.generation.unwrap_or_default(),
        child: child_name(name),
    };
    let written = update_status(&context.client, request, site, |status| *status = new).await?;
    if let Written::Changed(site) = &written {
        pass.site(&meta_of(&**site)?);
    }
    if let Some(events) = context.events.as_ref().filter(|_| written.is_changed()) {
        let text = EventText { reason: "Published", action: "Reconcile", note: &site.spec.text };
        events.event(site, EventType::Normal, text);
    }
    Ok(Outcome::Done)
}

fn child(context: &Context, request: &Request<Website>, site: &Object<Website>, name: String) -> ConfigMap {
    let theme = site.spec.theme.as_deref().map(|theme| ObjectKey::namespaced(NAMESPACE, theme));
    let theme = theme.and_then(|theme| context.themes.get(&theme));
    let colour = theme.and_then(|theme| theme.data.as_ref()?.get("colour").cloned());
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name);
    map.metadata.labels = Some([(ROLE.to_owned(), CHILD.to_owned())].into());
    map.metadata.annotations = request.fence().map(|fence| [(FENCE.to_owned(), fence.to_string())].into());
    let data = [("text", site.spec.text.clone()), ("colour", colour.unwrap_or_default())];
    map.data = Some(data.map(|(name, value)| (name.to_owned(), value)).into());
    map
}

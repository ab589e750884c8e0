//! Brings one website into the state that its author wants, and says in its status how far it is.
//!
//! Answers "what follows from the present state of a website?" It is called again whenever the site or one of its parts
//! changes, and after each error with growing waits; so it looks at what is there and never at what has happened.
//!
//! Read next: `mod.rs`, which calls it.

use std::sync::Arc;

use actix_informer::controller::{Outcome, ReconcileError, Request};
use actix_informer::events::{EventText, EventType, Recorder};
use actix_informer::prelude::*;
use actix_informer::reconcile::{
    Children, Condition, Finalize, condition, finalizer, set_condition, update_status,
};
use k8s_openapi::api::apps::v1::Deployment;

use super::hosts::{Claim, Hosts};
use super::parts::{deployment, page, service};
use super::website::{READY, Website, WebsiteStatus};

/// It stays at a site until the site's host is given back.
pub(crate) const FINALIZER: &str = "example.org/website-operator";

/// What every reconcile uses.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) runtime: Runtime,
    pub(crate) children: Children,
    pub(crate) hosts: Hosts,
    pub(crate) events: Recorder,
}

pub(crate) async fn reconcile(
    context: Arc<Context>,
    request: Request<Website>,
) -> Result<Outcome, ReconcileError> {
    let (context, request) = (&*context, &request);
    context.hosts.release_former(&context.client, request).await?;
    finalizer(&context.client, request, FINALIZER, |event| async move {
        match event {
            Finalize::Apply(site) => context.apply(request, &site).await,
            Finalize::CleanUp(site) => context.clean_up(request, &site).await,
        }
    })
    .await
}

impl Context {
    async fn apply(
        &self,
        request: &Request<Website>,
        site: &Object<Website>,
    ) -> Result<Outcome, ReconcileError> {
        let mut children = self.children.of(request, site)?;
        let claim = self.hosts.claim(request, site).await?;
        let mut served = None;
        // A site without its host is not served: its parts are pruned.
        if claim == Claim::Granted {
            children.apply(page(site)).await?;
            children.apply(service(site)).await?;
            served = Some(children.apply(deployment(site)).await?);
        }
        children.prune().await?;
        let status = |status: &mut WebsiteStatus| self.report(site, &claim, served.as_deref(), status);
        if update_status(&self.client, request, site, status).await?.is_changed() {
            self.tell(site, &claim, served.as_deref());
        }
        Ok(Outcome::Done)
    }

    /// Says with an event what the status says, for `kubectl describe`.
    fn tell(&self, site: &Object<Website>, claim: &Claim, served: Option<&Deployment>) {
        let ready = ready_condition(site, claim, served);
        let needs_help = matches!(claim, Claim::Taken(_));
        let event_type = if needs_help { EventType::Warning } else { EventType::Normal };
        self.events.event(
            site,
            event_type,
            EventText { reason: &ready.reason, action: "Reconcile", note: &ready.message },
        );
    }

    /// First nothing is served any more, then the host may go to another site.
    async fn clean_up(
        &self,
        request: &Request<Website>,
        site: &Object<Website>,
    ) -> Result<Outcome, ReconcileError> {
        self.children.of(request, site)?.prune().await?;
        self.hosts.release(request, site).await?;
        Ok(Outcome::Done)
    }

    fn report(&self, site: &Website, claim: &Claim, served: Option<&Deployment>, status: &mut WebsiteStatus) {
        let ready = ready_condition(site, claim, served);
        status.host = (*claim == Claim::Granted).then(|| site.spec.host.clone());
        status.ready_replicas = ready_replicas(served);
        set_condition(&mut status.conditions, ready, self.runtime.wall_time());
    }
}

fn ready_replicas(served: Option<&Deployment>) -> i32 {
    served.and_then(|served| served.status.as_ref()?.ready_replicas).unwrap_or(0)
}

/// What the status says of a site in this state.
pub(crate) fn ready_condition(site: &Website, claim: &Claim, served: Option<&Deployment>) -> Condition {
    let (ready, wanted) = (ready_replicas(served), site.spec.replicas);
    let (holds, reason, message) = match claim {
        Claim::Taken(other) => {
            (false, "HostTaken", format!("{} belongs to the site {other}", site.spec.host))
        }
        Claim::Granted if ready < wanted => {
            (false, "Starting", format!("{ready} of {wanted} replicas are ready"))
        }
        Claim::Granted => (true, "Served", format!("{wanted} replicas are ready")),
    };
    let observed_generation = site.metadata.generation;
    Condition { message, observed_generation, ..condition(READY, holds, reason) }
}

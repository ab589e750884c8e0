//! The informers and the controller of the operator, put together.
//!
//! Answers "what runs, and what leads to a reconcile?" A website is reconciled when it changes, when one of its parts does,
//! and when somebody claims the host that it wants, or gives it back.
//!
//! Read next: `website.rs` (the kind), `parts.rs` (what a site consists of), `hosts.rs` (what is outside of its namespace),
//! `reconcile.rs`.

use std::sync::Arc;
use std::time::Duration;

use actix_informer::controller::Controller;
use actix_informer::events::Recorder;
use actix_informer::leader_election::LeaderElection;
use actix_informer::prelude::*;
use actix_informer::reconcile::{CONTROLLER_UID, Children, controller_uid};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};

use self::hosts::{Hosts, host_of};
use self::parts::{MANAGED, MANAGER};
use self::reconcile::{Context, reconcile};
use self::website::Website;

pub(crate) mod hosts;
pub(crate) mod parts;
pub(crate) mod reconcile;
pub(crate) mod website;

/// The namespace of the operator itself, with the claims of host names.
pub(crate) const NAMESPACE: &str = "website-operator";

/// The index of websites by the host that they want.
const BY_HOST: &str = "host";

/// A running operator; it stops when this is dropped.
pub(crate) struct WebsiteOperator {
    pub(crate) controller: Controller<Website>,
    election: LeaderElection,
    events: Recorder,
}

impl WebsiteOperator {
    /// The figures of the controller and its queue, of its events, and whether this replica leads.
    pub(crate) fn report(&self) -> String {
        let (told, leads) = (self.events.figures(), self.election.is_leader());
        let dropped = told.dropped.values().sum::<u64>();
        let events = format!("{} events sent, {dropped} dropped", told.created);
        format!("{}; {events}; leads: {leads}", self.controller.status())
    }

    /// Lets reconciles end, sends the events that wait, and gives the lease to another replica at once. Each takes
    /// no longer than the limit.
    pub(crate) async fn stop(self, limit: Duration) -> anyhow::Result<()> {
        // A replica that does not lead has keys that wait, which it leaves to the leader.
        let leads = self.election.is_leader();
        let drained = if leads { self.controller.drain(limit).await } else { Ok(()) };
        self.controller.shut_down();
        // What still runs is cancelled within its grace; only then another replica may lead.
        self.controller.ended().await;
        // The lease is given back also when events are left.
        let sent = self.events.shutdown(limit).await;
        self.election.shutdown(limit).await?;
        drained?;
        Ok(sent?)
    }
}

/// Starts the operator with these credentials. It works while it has the lease; its caches are filled before.
pub(crate) fn start(client: &Client, runtime: &Runtime) -> anyhow::Result<WebsiteOperator> {
    let mut election = LeaderElection::builder(client, runtime, NAMESPACE, MANAGER);
    // With the name of its pod, a container that was started again has the lease at once.
    if let Ok(pod) = std::env::var("POD_NAME") {
        election = election.identity(pod);
    }
    let election = election.start()?;
    // Sends nothing when the lease has ended, whatever is under way.
    let leading = election.guard(client);
    let events = Recorder::builder(&leading, runtime, MANAGER).start()?;
    let sites = client.resource::<Website>().informer(runtime)?;
    let sites = sites.index(BY_HOST, |site| [site.spec.host.clone()]).start()?;
    let maps = client.resource::<ConfigMap>().labels(MANAGED).informer(runtime)?;
    let maps = maps.index(CONTROLLER_UID, controller_uid).start()?;
    let services = client.resource::<Service>().labels(MANAGED).informer(runtime)?;
    let services = services.index(CONTROLLER_UID, controller_uid).start()?;
    let deployments = client.resource::<Deployment>().labels(MANAGED).informer(runtime)?;
    let deployments = deployments.index(CONTROLLER_UID, controller_uid).start()?;

    let children = Children::new(&leading, MANAGER)
        .cached(&maps.lister())
        .cached(&services.lister())
        .cached(&deployments.lister());
    let hosts = Hosts::new(&leading, NAMESPACE, maps.lister());
    let (runtime, recorder) = (runtime.clone(), events.clone());
    let context = Arc::new(Context { client: leading, runtime, children, hosts, events: recorder });
    let fence = election.clone();
    let wanted = sites.lister();
    let wants = move |claim: &Object<ConfigMap>| {
        let sites = host_of(claim).map(|host| wanted.by_index(BY_HOST, host).unwrap_or_default());
        sites.into_iter().flatten().map(|site| site.key().clone()).collect::<Vec<_>>()
    };
    let controller = Controller::builder(&sites)
        .owns(&maps)
        .maps(&maps, wants)
        .owns(&services)
        .owns(&deployments)
        .workers(4)
        .time_limit(Duration::from_secs(30))
        .fenced_by(move || fence.fence())
        .reconcile(move |request| reconcile(Arc::clone(&context), request))
        .start()?;
    Ok(WebsiteOperator { controller, election, events })
}

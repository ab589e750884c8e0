//! The parts of the operator, put together: what runs, in which order it starts and stops, and what leads to a reconcile.
//!
//! Answers "what is this operator made of?" A website is reconciled when it changes, when one of its parts does, and when
//! somebody claims the host that it wants, or gives it back. Invariants:
//! 1. Only the replica that has the lease reconciles, and what it writes with is guarded by the lease, but for its events.
//! 2. At a stop reconciles end first, then the events that wait are sent, then the lease is given back.
//!
//! Read next: `website.rs` (the kind), `parts.rs` (what a site consists of), `hosts.rs` (what is outside of its namespace),
//! `reconcile.rs`.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use actix_informer::controller::Controller;
use actix_informer::events::Recorder;
use actix_informer::informer::Index;
use actix_informer::leader_election::{LeaderElection, LeaseName};
use actix_informer::object::FieldText;
use actix_informer::operator::{Operator, OperatorBuilder, Part, controller};
use actix_informer::prelude::*;
use actix_informer::reconcile::Children;
use actix_informer::representation::LazyBody;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};

use self::hosts::{Hosts, holder_of, host_of};
use self::parts::{MANAGED, MANAGER};
use self::reconcile::{Context, reconcile};
use self::website::Website;

pub(crate) mod hosts;
pub(crate) mod parts;
pub(crate) mod reconcile;
pub(crate) mod website;

/// The namespace of the operator itself, with its lease and the claims of host names.
pub(crate) const NAMESPACE: &str = "website-operator";

/// An operator that is not started yet.
pub(crate) struct WebsiteOperator {
    /// Its parts. A program adds probes here.
    pub(crate) builder: OperatorBuilder,
    pub(crate) events: Recorder,
}

/// The caches of the operator: as texts where an object is read only when its site is due.
#[derive(Clone)]
struct Caches {
    sites: Informer<LazyBody<Website>>,
    by_host: Index<LazyBody<Website>, FieldText>,
    maps: Informer<ConfigMap>,
    services: Informer<LazyBody<Service>>,
    deployments: Informer<LazyBody<Deployment>>,
}

impl WebsiteOperator {
    /// The operator with these credentials. `replica` is the name of this candidate for the lease: with the name of its
    /// pod, a container that was started again has the lease at once.
    pub(crate) fn new(client: &Client, runtime: &Runtime, replica: Option<&str>) -> anyhow::Result<Self> {
        let mut election =
            LeaderElection::builder(client, runtime, LeaseName { namespace: NAMESPACE, name: MANAGER });
        if let Some(replica) = replica {
            election = election.identity(replica);
        }
        let election = election.declare()?; // takes part when the caches are filled
        // Sends nothing when the lease has ended, whatever is under way.
        let leading = election.guard(client);
        // Events tell what was done, also when the lease has ended since then.
        let events = Recorder::builder(client, runtime, MANAGER).start()?;
        let caches = Caches::declare(client, runtime)?;
        let context = Arc::new(Context {
            children: Children::new(&leading, MANAGER)
                .cached(&caches.maps.lister())
                .cached_lazy(&caches.services.lister())
                .cached_lazy(&caches.deployments.lister()),
            hosts: Hosts::new(&leading, NAMESPACE, caches.maps.lister()),
            client: leading,
            runtime: runtime.clone(),
            events: events.clone(),
        });
        // The order of start and stop is the operator's, not that of these lines.
        let builder = Operator::builder(runtime)
            .name(MANAGER)
            .cache(caches.sites.clone())
            .cache(caches.maps.clone())
            .cache(caches.services.clone())
            .cache(caches.deployments.clone())
            .election(election.clone())
            .events(events.clone())
            .leader_work(websites(caches, context, election));
        Ok(Self { builder, events })
    }
}

impl Caches {
    /// Declares the informers, which the operator starts.
    fn declare(client: &Client, runtime: &Runtime) -> anyhow::Result<Self> {
        let sites = client.resource::<Website>().lazy();
        // The websites by the host that they want.
        let by_host = sites.by_path("spec.host")?;
        let maps = client.resource::<ConfigMap>().labels(MANAGED).informer(runtime)?;
        let services = client.resource::<Service>().labels(MANAGED).lazy().informer(runtime)?;
        let deployments = client.resource::<Deployment>().labels(MANAGED).lazy().informer(runtime)?;
        Ok(Self {
            sites: sites.informer(runtime)?.index_with(&by_host).declare()?,
            by_host,
            maps: maps.declare()?,
            services: services.declare()?,
            deployments: deployments.declare()?,
        })
    }
}

/// The controller of websites, which is started each time this replica begins to lead.
fn websites(caches: Caches, context: Arc<Context>, election: LeaderElection) -> impl Part {
    controller("websites", move || {
        let (context, fence, wanted) = (Arc::clone(&context), election.clone(), caches.sites.lister());
        let by_host = caches.by_host.clone();
        // Who wants the host, and who has it, although that site may want another one by now, or be gone.
        let wants = move |claim: &Object<ConfigMap>| {
            let wanted = wanted.snapshot();
            let sites = host_of(claim).and_then(|host| by_host.get(&wanted, host).ok());
            let wanting = sites.into_iter().flatten().map(|site| site.key().clone());
            wanting.chain(holder_of(claim)).collect::<Vec<_>>()
        };
        Controller::builder(&caches.sites)
            .name(MANAGER) // who writes finalizers and statuses
            .owns(&caches.maps)
            .maps(&caches.maps, wants)
            .owns(&caches.services)
            .owns(&caches.deployments)
            .workers(4)
            .time_limit(Duration::from_secs(30))
            .fenced_by(move || fence.fence())
            .reconcile_decoded(move |request| reconcile(Arc::clone(&context), request))
            .start()
    })
}

/// What people want to know of a running operator: its controller, its queue, its events.
pub(crate) fn figures(runtime: &Runtime, events: &Recorder) -> String {
    let (report, mut text) = (runtime.report(), String::new());
    for controller in &report.controllers {
        let queue = &controller.queue;
        let (waited, worked) = (queue.waited.max, queue.worked.max);
        writeln!(text, "{controller}").expect("a text takes all");
        writeln!(
            text,
            "  its queue: {} adds, {} retries, {} delayed; longest wait {waited:.0?}, longest reconcile {worked:.0?}",
            queue.adds, queue.retries, queue.delayed,
        )
        .expect("a text takes all");
    }
    let told = events.figures();
    let dropped = told.dropped.values().sum::<u64>();
    write!(text, "events: {} sent, {} wait, {dropped} dropped", told.created, told.waiting)
        .expect("a text takes all");
    text
}

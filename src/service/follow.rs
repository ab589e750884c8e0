//! One kind: its informer, its subscription that prints, and how it is doing.
//!
//! Answers "what is told of this kind, and how does its following end?" for any representation behind one trait.
//! Invariants:
//! 1. Each notification becomes one line, handed over before the next one is taken; while the output has no room the
//!    subscription waits and coalesces, and the informer goes on.
//! 2. What is counted is what was handed over.
//! 3. After `shutdown` has returned clean, every line of it is with the output.
//!
//! Read next: `lines.rs`, what a line says; `output.rs`, where it goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube_core::DynamicObject;

use super::config::{InformerConfig, Kept};
use super::describe::{Describe, Values};
use super::error::Error;
use super::lines::{self, Doing, Style};
use super::output::Output;
use super::run::{CauseCounts, EventCounts, InformerReport};
use crate::client::{Client, ResourceSource};
use crate::core::delta::Cause;
use crate::informer::{Informer, ShutdownReport, WaitError};
use crate::messages::{Body, Notify};
use crate::representation::{MetadataOnly, Prune, Representation};
use crate::runtime::Runtime;
use crate::seat::EndReason;
use crate::status::InformerStatus;
use crate::subscription::{Policy, SubscribeOptions, Subscription};

/// kubectl's copy of the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Where lines go and how they look.
#[derive(Debug, Clone)]
pub(super) struct Printer {
    pub(super) style: Arc<Style>,
    pub(super) output: Output,
}

/// A kind that is followed, whatever is kept of its objects.
pub(super) trait Followed: Send + Sync {
    /// The kind, with its group where another kind has the same name.
    fn kind(&self) -> &str;

    /// How it is doing.
    fn doing(&self) -> Doing;

    /// Why its subscription has ended, if it has.
    fn silent(&self) -> Option<EndReason>;

    /// How many notifications were told, without those that only tell what was there at the beginning.
    fn told(&self) -> u64;

    /// Waits until the status satisfies `enough`.
    fn wait_until(
        &self,
        enough: Box<dyn FnMut(&InformerStatus) -> bool + Send>,
    ) -> BoxFuture<'static, Result<InformerStatus, WaitError>>;

    /// Stops it; returns when everything owed is with the output, or at the limit.
    fn shutdown(&self, limit: Duration) -> BoxFuture<'_, ShutdownReport>;

    /// Prints a line for each cached object, each as soon as there is room for it.
    fn print_cached<'a>(&'a self, printer: &'a Printer) -> BoxFuture<'a, ()>;

    /// What has come of it.
    fn report(&self) -> InformerReport;
}

/// Starts to follow one kind.
pub(super) fn follow(
    (client, runtime): (&Client, &Runtime),
    config: &InformerConfig,
    kind: &str,
    printer: &Printer,
) -> Result<Arc<dyn Followed>, Error> {
    let resource = config.kind.resource();
    let start = Start { runtime, config, kind, printer };
    match config.representation {
        Kept::Typed => start.with(client.resource::<Pod>()),
        Kept::Dynamic => start.with(client.dynamic(resource)),
        Kept::Metadata => start.with(client.dynamic(resource).keep_as(MetadataOnly::<DynamicObject>::new())),
    }
}

struct Start<'a> {
    runtime: &'a Runtime,
    config: &'a InformerConfig,
    kind: &'a str,
    printer: &'a Printer,
}

impl Start<'_> {
    fn with<R>(self, source: ResourceSource<R>) -> Result<Arc<dyn Followed>, Error>
    where
        R: Representation + Clone,
        R::Body: Describe,
    {
        let config = self.config;
        let values = if config.kind.holds_secrets() { Values::Hidden } else { Values::Shown };
        let mut source = source.labels(&*config.labels).fields(&*config.fields);
        if values == Values::Hidden {
            // The annotation holds the values again: they are not kept either.
            source = source.prune(Prune::default().cut(["metadata", "annotations", LAST_APPLIED]));
        }
        let builder = if config.namespaces.is_empty() {
            source.informer(self.runtime)?
        } else {
            source.informer_of_namespaces(self.runtime, config.namespaces.iter().map(String::as_str))?
        };
        let failed = |source| Error::Informer { kind: self.kind.to_owned(), source };
        let informer = builder.discipline(config.discipline).start().map_err(failed)?;
        let tally = Arc::new(Tally::default());
        let mut options = SubscribeOptions::new().name("informerd");
        if let Policy::Every { bytes, when_full } = config.policy {
            options = options.every(bytes, when_full);
        }
        if let Some(period) = config.resync {
            options = options.resync_every(period);
        }
        let printing = (self.printer.clone(), Arc::clone(&tally), Arc::<str>::from(self.kind));
        let subscription = informer
            .for_each_with(options, move |notify| {
                let (printer, tally, kind) = printing.clone();
                async move {
                    printer.output.line(printer.style.event((&kind, values), &notify)).await;
                    tally.count(&notify);
                }
            })
            .expect("an informer that has just started has not stopped");
        Ok(Arc::new(Following { kind: self.kind.to_owned(), informer, subscription, tally }))
    }
}

struct Following<S: Body> {
    kind: String,
    informer: Informer<S>,
    subscription: Subscription<S>,
    tally: Arc<Tally>,
}

impl<S: Body> Following<S> {
    /// The newest version that any source of the cache is at.
    fn version(&self) -> Option<String> {
        let snapshot = self.informer.snapshot();
        snapshot.versions().iter().map(|(_, version)| version).max().map(ToString::to_string)
    }
}

impl<S: Body + Describe> Followed for Following<S> {
    fn kind(&self) -> &str {
        &self.kind
    }

    fn doing(&self) -> Doing {
        Doing {
            status: self.informer.status(),
            subscription: self.subscription.status(),
            version: self.version(),
            now: self.informer.runtime().now(),
        }
    }

    fn silent(&self) -> Option<EndReason> {
        self.subscription.ended()
    }

    fn told(&self) -> u64 {
        self.tally.causes.iter().skip(1).map(|count| count.load(Ordering::Relaxed)).sum()
    }

    fn wait_until(
        &self,
        enough: Box<dyn FnMut(&InformerStatus) -> bool + Send>,
    ) -> BoxFuture<'static, Result<InformerStatus, WaitError>> {
        let informer = self.informer.clone();
        Box::pin(async move { informer.wait_until(enough).await })
    }

    fn shutdown(&self, limit: Duration) -> BoxFuture<'_, ShutdownReport> {
        Box::pin(self.informer.shutdown(limit))
    }

    fn print_cached<'a>(&'a self, printer: &'a Printer) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            for object in self.informer.snapshot().iter() {
                printer.output.line(printer.style.object(&self.kind, object)).await;
            }
        })
    }

    fn report(&self) -> InformerReport {
        let status = self.informer.status();
        let snapshot = self.informer.snapshot();
        let subscription = self.subscription.status();
        InformerReport {
            kind: self.kind.clone(),
            synced: status.synced,
            objects: snapshot.len(),
            resource_version: self.version(),
            newest_object: snapshot.iter().map(|object| object.version()).max().map(ToString::to_string),
            events: self.tally.events(),
            causes: self.tally.causes(),
            discipline: lines::discipline_name(status.discipline),
            policy: lines::policy_name(subscription.policy),
            coalesced: subscription.coalesced,
            dropped: subscription.dropped,
            restarts: status.restarts,
            relists: status.relists(),
            set_aside: status.set_aside,
            last_error: status.last_error().map(ToString::to_string),
        }
    }
}

/// What was told, counted; several readers, one writer.
#[derive(Debug, Default)]
struct Tally {
    events: [AtomicU64; 3],
    causes: [AtomicU64; 5],
}

impl Tally {
    fn count<S>(&self, notify: &Notify<S>) {
        let event = match notify {
            Notify::Added { .. } => 0,
            Notify::Updated { .. } => 1,
            Notify::Deleted { .. } => 2,
        };
        let cause = match notify.cause() {
            Cause::InitialList => 0,
            Cause::Watch => 1,
            Cause::Relist => 2,
            Cause::Rewind => 3,
            _ => 4,
        };
        self.events[event].fetch_add(1, Ordering::Relaxed);
        self.causes[cause].fetch_add(1, Ordering::Relaxed);
    }

    fn events(&self) -> EventCounts {
        let [added, updated, deleted] = self.events.each_ref().map(|count| count.load(Ordering::Relaxed));
        EventCounts { added, updated, deleted }
    }

    fn causes(&self) -> CauseCounts {
        let [initial_list, watch, relist, rewind, resync] =
            self.causes.each_ref().map(|count| count.load(Ordering::Relaxed));
        CauseCounts { initial_list, watch, relist, rewind, resync }
    }
}

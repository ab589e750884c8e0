//! Runs one watched kind: its informer and the subscription that prints its changes.
//!
//! A line enters the output before the next notification is handled: without room the subscription waits and coalesces. After a
//! clean `shutdown` the output has every line.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix_informer::subscription::Cause;
use actix_informer::subscription::{EndReason, Notify, Subscriber};

use super::Error;
use super::config::InformerConfig;
use super::describe::{LateKind, Values};
use super::discovered::awaited;
use super::kept::{KeptBody, followed};
use super::lines::{self, KindStatus, Style};
use super::output::Output;
use super::run::{CauseCounts, EventCounts, InformerReport};
use actix_informer::client::Client;
use actix_informer::informer::{Informer, ShutdownReport, WaitError};
use actix_informer::runtime::Runtime;
use actix_informer::status::{InformerStatus, SourceStatus};
use actix_informer::subscription::{Policy, SubscribeOptions, Subscription};

#[derive(Debug, Clone)]
pub(super) struct Printer {
    pub(super) style: Arc<Style>,
    pub(super) output: Output,
}

pub(super) fn follow(
    (client, runtime): (&Client, &Runtime),
    (informers, at): (&[InformerConfig], usize),
    kind: &str,
    printer: &Printer,
) -> Result<Arc<RunningKind>, Error> {
    let config = &informers[at];
    let late = Arc::new(LateKind::default());
    let source = match config.kind.resource() {
        Some(resource) => {
            late.found(kind.to_owned(), Values::of(config));
            followed(client, config, resource)
        }
        None => awaited(client, (informers, at), &late).name(kind),
    };
    let builder = match config.namespaces.as_slice() {
        [] => source.informer(runtime)?,
        some => source.namespaces(some).informer(runtime)?,
    };
    let failed = |source| Error::Informer { kind: kind.to_owned(), source };
    let informer = builder.queue_order(config.queue_order).start().map_err(failed)?;
    let mut options = SubscribeOptions::new().name("informerd");
    if let Policy::Every { bytes, when_full } = config.policy {
        options = options.every(bytes, when_full);
    }
    if let Some(period) = config.resync {
        options = options.resync_every(period);
    }
    Ok(Arc::new(RunningKind::new((kind, late), informer, options, printer)))
}

pub(super) struct RunningKind {
    /// From the configuration, or the server at the start.
    name: String,
    late: Arc<LateKind>,
    informer: Informer<KeptBody>,
    subscription: Subscription<KeptBody>,
    counts: Arc<Counts>,
    /// Read before the shutdown, which stops each source.
    was_failing: OnceLock<String>,
}

impl RunningKind {
    pub(super) fn new(
        (name, late): (&str, Arc<LateKind>),
        informer: Informer<KeptBody>,
        options: SubscribeOptions<KeptBody>,
        printer: &Printer,
    ) -> Self {
        let counts = Arc::new(Counts::default());
        let printing = (printer.clone(), Arc::clone(&counts), Arc::<str>::from(name), Arc::clone(&late));
        let subscription = informer
            .subscribe_with(
                options,
                Subscriber::each(move |notify| {
                    let (printer, counts, kind, late) = printing.clone();
                    async move {
                        let event = printer.style.event((late.name(&kind), late.values()), &notify);
                        printer.output.line(event).await;
                        counts.add(&notify);
                    }
                }),
            )
            .expect("an informer that has just started has not stopped");
        let was_failing = OnceLock::new();
        Self { name: name.to_owned(), late, informer, subscription, counts, was_failing }
    }

    /// Of the newest source.
    fn version(&self) -> Option<String> {
        let snapshot = self.informer.snapshot();
        snapshot.versions().iter().map(|(_, version)| version).max().map(ToString::to_string)
    }

    /// With its group if another watched kind has the same name; the configured word until the server knows the kind.
    pub(super) fn name(&self) -> &str {
        self.late.name(&self.name)
    }

    pub(super) fn status(&self) -> KindStatus {
        KindStatus {
            informer: self.informer.status(),
            subscription: self.subscription.status(),
            version: self.version(),
            now: self.informer.runtime().now(),
        }
    }

    pub(super) fn subscription_end(&self) -> Option<EndReason> {
        self.subscription.ended()
    }

    /// Without the initial list.
    pub(super) fn delivered_count(&self) -> u64 {
        self.counts.causes.iter().skip(1).map(|count| count.load(Ordering::Relaxed)).sum()
    }

    pub(super) async fn wait_until(
        &self,
        enough: impl FnMut(&InformerStatus) -> bool,
    ) -> Result<InformerStatus, WaitError> {
        self.informer.wait_until(enough).await
    }

    /// Returns when the output has every line, or at the limit.
    pub(super) async fn shutdown(&self, limit: Duration) -> ShutdownReport {
        let status = self.informer.status();
        let failed = status.failed.as_ref().map(ToString::to_string);
        let failing = status.sources.iter().find(|one| one.failing_since.is_some());
        let unknown = || "unknown".to_owned();
        let why = |one: &SourceStatus| one.last_error.as_ref().map_or_else(unknown, ToString::to_string);
        if let Some(why) = failed.or_else(|| failing.map(why)) {
            let _ = self.was_failing.set(why);
        }
        self.informer.shutdown(limit).await
    }

    pub(super) async fn print_cached(&self, printer: &Printer) {
        for object in self.informer.snapshot().iter() {
            printer.output.line(printer.style.object(self.name(), object)).await;
        }
    }

    pub(super) fn report(&self) -> InformerReport {
        let status = self.informer.status();
        let snapshot = self.informer.snapshot();
        let subscription = self.subscription.status();
        InformerReport {
            kind: self.name().to_owned(),
            synced: status.synced,
            objects: snapshot.len(),
            resource_version: self.version(),
            newest_object: snapshot.iter().map(|object| object.version()).max().map(ToString::to_string),
            events: self.counts.events(),
            causes: self.counts.causes(),
            queue_order: lines::queue_order_name(status.queue_order),
            policy: lines::policy_name(subscription.policy),
            coalesced: subscription.coalesced,
            dropped: subscription.dropped,
            restarts: status.restarts,
            relists: status.relists(),
            undecodable: status.undecodable,
            last_error: (self.was_failing.get().cloned())
                .or_else(|| status.last_error().map(ToString::to_string)),
            failing: self.was_failing.get().is_some(),
            hints: lines::hints(&status),
        }
    }
}

#[derive(Debug, Default)]
struct Counts {
    /// As in [`EventCounts`].
    events: [AtomicU64; 3],
    /// As in [`CauseCounts`].
    causes: [AtomicU64; 5],
}

impl Counts {
    fn add<S>(&self, notify: &Notify<S>) {
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

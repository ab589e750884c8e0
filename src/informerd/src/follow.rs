//! Runs one watched kind: its informer and the subscription that prints its changes.
//!
//! Answers "what is printed about this kind, what is its status, and how does it end?" Objects of every kind are kept in
//! one type, see `kept.rs`. The trait exists for the tests of the probes. Invariants:
//! 1. Each notification becomes one line, which is given to the output before the next notification is taken. While the
//!    output has no room the subscription waits and coalesces; the informer goes on.
//! 2. The counts are those of the lines that were given to the output.
//! 3. When `shutdown` has returned a clean report, every line of this kind was given to the output.
//!
//! Read next: `lines.rs`, the content of a line; `output.rs`, which writes it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix_informer::subscription::Cause;
use actix_informer::subscription::{EndReason, Notify, Subscriber};
use futures_util::future::BoxFuture;

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

/// The output and the style of its lines.
#[derive(Debug, Clone)]
pub(super) struct Printer {
    pub(super) style: Arc<Style>,
    pub(super) output: Output,
}

/// A watched kind that runs.
pub(super) trait WatchedKindHandle: Send + Sync {
    /// The name of the kind; with its group if another watched kind has the same name. The word of the configuration until
    /// the server knows the kind.
    fn name(&self) -> &str;

    /// Its status now.
    fn status(&self) -> KindStatus;

    /// Why its subscription has ended, if it has.
    fn subscription_end(&self) -> Option<EndReason>;

    /// How many notifications were delivered, without those of the initial list.
    fn delivered_count(&self) -> u64;

    /// Waits until the status satisfies `enough`.
    fn wait_until(
        &self,
        enough: Box<dyn FnMut(&InformerStatus) -> bool + Send>,
    ) -> BoxFuture<'static, Result<InformerStatus, WaitError>>;

    /// Stops it; returns when every line was given to the output, or at the limit.
    fn shutdown(&self, limit: Duration) -> BoxFuture<'_, ShutdownReport>;

    /// Prints a line for each cached object; waits while the output has no room.
    fn print_cached<'a>(&'a self, printer: &'a Printer) -> BoxFuture<'a, ()>;

    /// Its part of the summary.
    fn report(&self) -> InformerReport;
}

/// Starts the informer of one of these kinds and prints its changes.
pub(super) fn follow(
    (client, runtime): (&Client, &Runtime),
    (informers, at): (&[InformerConfig], usize),
    kind: &str,
    printer: &Printer,
) -> Result<Arc<dyn WatchedKindHandle>, Error> {
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
    let counts = Arc::new(Counts::default());
    let mut options = SubscribeOptions::new().name("informerd");
    if let Policy::Every { bytes, when_full } = config.policy {
        options = options.every(bytes, when_full);
    }
    if let Some(period) = config.resync {
        options = options.resync_every(period);
    }
    let name = kind.to_owned();
    let printing = (printer.clone(), Arc::clone(&counts), Arc::<str>::from(kind), Arc::clone(&late));
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
    Ok(Arc::new(RunningKind { name, late, informer, subscription, counts, was_failing }))
}

struct RunningKind {
    /// As the configuration says, or the server has said at the start.
    name: String,
    late: Arc<LateKind>,
    informer: Informer<KeptBody>,
    subscription: Subscription<KeptBody>,
    counts: Arc<Counts>,
    /// Why it was not followed when the shutdown began, if it was not: afterwards each source is stopped.
    was_failing: OnceLock<String>,
}

impl RunningKind {
    /// The newest resource version among the sources of the cache.
    fn version(&self) -> Option<String> {
        let snapshot = self.informer.snapshot();
        snapshot.versions().iter().map(|(_, version)| version).max().map(ToString::to_string)
    }
}

impl WatchedKindHandle for RunningKind {
    fn name(&self) -> &str {
        self.late.name(&self.name)
    }

    fn status(&self) -> KindStatus {
        KindStatus {
            informer: self.informer.status(),
            subscription: self.subscription.status(),
            version: self.version(),
            now: self.informer.runtime().now(),
        }
    }

    fn subscription_end(&self) -> Option<EndReason> {
        self.subscription.ended()
    }

    fn delivered_count(&self) -> u64 {
        self.counts.causes.iter().skip(1).map(|count| count.load(Ordering::Relaxed)).sum()
    }

    fn wait_until(
        &self,
        enough: Box<dyn FnMut(&InformerStatus) -> bool + Send>,
    ) -> BoxFuture<'static, Result<InformerStatus, WaitError>> {
        let informer = self.informer.clone();
        Box::pin(async move { informer.wait_until(enough).await })
    }

    fn shutdown(&self, limit: Duration) -> BoxFuture<'_, ShutdownReport> {
        let status = self.informer.status();
        let failed = status.failed.as_ref().map(ToString::to_string);
        let failing = status.sources.iter().find(|one| one.failing_since.is_some());
        let unknown = || "unknown".to_owned();
        let why = |one: &SourceStatus| one.last_error.as_ref().map_or_else(unknown, ToString::to_string);
        if let Some(why) = failed.or_else(|| failing.map(why)) {
            let _ = self.was_failing.set(why);
        }
        Box::pin(self.informer.shutdown(limit))
    }

    fn print_cached<'a>(&'a self, printer: &'a Printer) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            for object in self.informer.snapshot().iter() {
                printer.output.line(printer.style.object(self.name(), object)).await;
            }
        })
    }

    fn report(&self) -> InformerReport {
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

/// Counts of the delivered notifications. The subscription writes them; the reporter and the summary read them.
#[derive(Debug, Default)]
struct Counts {
    /// In the order of the fields of [`EventCounts`].
    events: [AtomicU64; 3],
    /// In the order of the fields of [`CauseCounts`].
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

//! Sends paths to a collector of OpenTelemetry while the program runs.
//!
//! 1. What has left no mark for five seconds is sent once. What cannot be sent is dropped and counted: no change is delayed, and
//!    memory is bounded by the kept marks.
//! 2. It does not keep the runtime alive, and ends with it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use http::Method;
use informer_actors::inner::sleep;
use informer_core::words::{Brief, QUOTED, one_line};

use super::otlp::request;
use crate::client::Client;
use crate::runtime::Runtime;

/// Between two requests; and how long a change or a reconcile is quiet before it is sent.
const EACH: Duration = Duration::from_secs(5);
const WARN_EACH: Duration = Duration::from_secs(600);

/// Sends the paths of a runtime to a collector, until it is dropped. Choose what leaves marks with
/// [`Runtime::paths`].
///
/// ```no_run
/// use actix_informer::path::SpanExporter;
/// use actix_informer::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = Runtime::threads().start()?;
/// runtime.paths().sample(64); // one of 64 changes, and the reconciles that it causes
/// let collector = Client::new(Config::new("http://127.0.0.1:4318")?)?; // OTLP over HTTP
/// let exporter = SpanExporter::start(&runtime, &collector, "website-operator");
/// # drop(exporter);
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "nothing is sent any more once this is dropped"]
pub struct SpanExporter {
    /// The task ends when this is dropped.
    counts: Arc<Counts>,
}

/// What an exporter has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpanFigures {
    /// Spans that the collector has accepted.
    pub sent: u64,
    /// Spans that it has refused, or that did not reach it: they are lost.
    pub dropped: u64,
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    dropped: AtomicU64,
}

impl SpanExporter {
    /// Begins. `collector` is the client of its address; `service` names this program.
    pub fn start(runtime: &Runtime, collector: &Client, service: impl Into<String>) -> Self {
        let (counts, service) = (Arc::<Counts>::default(), service.into());
        let kept = Arc::downgrade(&counts);
        let (collector, weak) = (collector.clone(), runtime.weak());
        runtime.spawn_local(move || async move {
            let (mut known, mut warned) = (BTreeSet::new(), None);
            loop {
                sleep(EACH).await;
                let (Some(counts), Some(runtime)) = (kept.upgrade(), weak.upgrade()) else { return };
                let (due, count) = due(&runtime, &service, &mut known);
                if count == 0 {
                    continue;
                }
                let now = runtime.now();
                drop(runtime);
                let body = Some(("application/json", due.into_bytes()));
                match collector.request(Method::POST, "/v1/traces", body).await {
                    Ok(_) => drop(counts.sent.fetch_add(count as u64, Ordering::Relaxed)),
                    Err(error) => {
                        counts.dropped.fetch_add(count as u64, Ordering::Relaxed);
                        if warned.is_none_or(|last| now.saturating_sub(last) >= WARN_EACH) {
                            warned = Some(now);
                            let (why, quiet) = (error.to_string(), Brief(WARN_EACH));
                            let why = one_line(&why, QUOTED);
                            tracing::warn!(target: "actix_informer::runtime", count, "spans of paths are lost: {why}; further losses are counted, and logged after {quiet} at the earliest");
                        }
                    }
                }
            }
        });
        Self { counts }
    }

    /// What was sent and lost until now.
    pub fn figures(&self) -> SpanFigures {
        let Counts { sent, dropped } = &*self.counts;
        SpanFigures { sent: sent.load(Ordering::Relaxed), dropped: dropped.load(Ordering::Relaxed) }
    }
}

/// A request with what is quiet and not yet sent, and its number of spans.
fn due(runtime: &Runtime, service: &str, known: &mut BTreeSet<u64>) -> (String, usize) {
    let now = runtime.now();
    let since_1970 = runtime.wall_time().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut kept = BTreeSet::new();
    let request = request(&runtime.paths().all(), service, since_1970.saturating_sub(now), |id, last| {
        let is_quiet = now.saturating_sub(last) >= EACH;
        let is_new = !known.contains(&id);
        if is_quiet || !is_new {
            kept.insert(id);
        }
        is_quiet && is_new
    });
    // Forgets what has no marks any more.
    *known = kept;
    request
}

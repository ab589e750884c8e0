//! Metrics of a runtime for Prometheus, with the feature `metrics`.
//!
//! [`Metrics`] is one collector for everything on a [`Runtime`]. A program registers it in its own registry, or serves it at
//! `/metrics` beside its probes.
//!
//! 1. What client-go and controller-runtime measure has their names, types and labels (`workqueue_*`, `controller_runtime_*`,
//!    `rest_client_*`, `leader_election_*`, `informer_queued_items`), so that their dashboards work. `src/metrics/names.txt`
//!    lists all names; `src/metrics/upstream.txt` lists theirs, and why some have no meaning here. No name changes within a major
//!    version.
//! 2. A series ends with what it describes. A counter never goes back while its series lasts: the counts of removed sources and
//!    ended clients stay in the sums.
//! 3. Labels are bounded: the sources of an informer share one series, 100 subscriptions of an informer have their own, there are
//!    1,000 rows of requests.
//! 4. A scrape copies figures under short locks, on the thread that asks: it works when other threads are blocked.
//!
//! Histograms of times have the steps 1, 2 and 5 from 10 us to 60 s; those of work queues also have all bounds of client-go and
//! controller-runtime.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use informer_actors::inner::WeakRuntime;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
#[cfg(feature = "probes")]
use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::registry::Registry;

use self::clients::Seen;
use self::write::{Labels, write};
use crate::runtime::Runtime;
use crate::status::{Reporting as _, RuntimeReport};

mod clients;
mod controllers;
mod informers;
#[cfg(all(test, feature = "test-kit"))]
mod tests;
mod write;

/// The `prometheus-client` crate with the registry that [`Metrics`] can be registered in.
pub use prometheus_client;

/// The metrics of everything on one runtime. It does not keep the runtime alive: after its end there are no
/// series.
///
/// ```
/// use actix_informer::metrics::Metrics;
/// use actix_informer::metrics::prometheus_client::registry::Registry;
/// use actix_informer::runtime::Runtime;
///
/// let runtime = Runtime::threads().start()?;
/// let mut registry = Registry::default(); // the program's own, with what it measures itself
/// registry.register_collector(Box::new(Metrics::of(&runtime)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// `ProbeSocket::metrics` serves them at `/metrics`.
pub struct Metrics {
    runtime: WeakRuntime,
    clients: Mutex<Seen>,
}

impl Metrics {
    /// The metrics of this runtime.
    pub fn of(runtime: &Runtime) -> Self {
        Self { runtime: runtime.weak(), clients: Mutex::default() }
    }

    /// A registry with nothing else.
    pub fn registry(self) -> Registry {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        registry
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(runtime) = self.runtime.upgrade() else { return Ok(()) };
        // One scrape after another: otherwise an older report could take a living client for an ended one.
        let mut seen = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        write_all(runtime.report(), &mut seen, &mut encoder)
    }
}

fn write_all(report: RuntimeReport, seen: &mut Seen, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let named = |label, name: &str| vec![(label, name.to_owned())];
    let threads = (report.bytes_to_free, report.arbiters);
    write(encoder, &[(Labels::new(), threads)], informers::RUNTIME)?;
    let informers = report.informers.into_iter();
    let informers = informers.map(|informer| (informers::labels(&informer), (report.at, informer)));
    let mut informers: Vec<_> = informers.collect();
    write(encoder, &informers, informers::INFORMERS)?;
    let subscriptions = informers.iter_mut().flat_map(informers::subscriptions).collect::<Vec<_>>();
    write(encoder, &subscriptions, informers::SUBSCRIPTIONS)?;
    let queues = report.work_queues.into_iter().map(|queue| {
        let name = queue.name.to_string();
        (vec![("name", name.clone()), ("controller", name)], queue)
    });
    write(encoder, &queues.collect::<Vec<_>>(), controllers::QUEUES)?;
    let controllers = report.controllers.into_iter();
    let controllers = controllers.map(|controller| (named("controller", &controller.name), controller));
    write(encoder, &controllers.collect::<Vec<_>>(), controllers::CONTROLLERS)?;
    let elections = report.elections.into_iter();
    let elections = elections.map(|election| (named("name", &election.lease), election));
    write(encoder, &elections.collect::<Vec<_>>(), controllers::ELECTIONS)?;
    let recorders = report.recorders.into_iter();
    let recorders = recorders.map(|recorder| (named("recorder", &recorder.name), recorder));
    write(encoder, &recorders.collect::<Vec<_>>(), controllers::RECORDERS)?;
    let clients = seen.update(report.clients);
    write(encoder, &clients, clients::CLIENTS)?;
    let without_host = clients.into_iter().map(|(_, client)| (Labels::new(), client));
    write(encoder, &without_host.collect::<Vec<_>>(), clients::PLUGINS)
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// OpenMetrics if the header `Accept` asks for it, else the older form.
#[cfg(feature = "probes")]
pub(crate) fn text_of(
    registry: &Registry,
    accept: Option<&str>,
) -> Result<(&'static str, String), fmt::Error> {
    const OPEN: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let mut text = String::new();
    if accept.is_some_and(|accept| accept.contains("application/openmetrics-text")) {
        text::encode(&mut text, registry)?;
        return Ok((OPEN, text));
    }
    prometheus_text::encode(&mut text, registry)?;
    Ok((prometheus_text::CONTENT_TYPE, text))
}

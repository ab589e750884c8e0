//! Starts and ends the service.
//!
//! 1. Start: socket of the probes, own server, client, informers, probes. End: probes answer "unready", the workload stops,
//!    informers drain, the summary is printed; then output, threads and own server end.
//! 2. The configured time is the limit for the informers, for the output and for the threads, one after the other.

use std::io::Write;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;

use super::Error;
use super::config::{Config, DemoConfig, Format, InformerConfig};
use super::discovered::discover;
use super::follow::{Printer, RunningKind, follow};
use super::lines::{Style, Text};
use super::output::{Ended, Output};
use super::probes::ProbeState;
use super::target::Target;
use actix_informer::client::{self, Client};
use actix_informer::metrics::Metrics;
use actix_informer::page::Page;
use actix_informer::printable::printable;
use actix_informer::probes::{ProbeSocket, Probes};
use actix_informer::runtime::Runtime;
use actix_informer::signals::{self, Signal};

pub use report::{CauseCounts, Ending, EventCounts, InformerReport, Report};

mod report;
mod status_reporter;

/// The service before it runs: its configuration and the server to read.
///
/// ```no_run
/// # async fn demo() -> Result<(), Box<dyn std::error::Error>> {
/// use informerd::{Config, Environment, Service, Target, stop_signal};
///
/// let target = Target::choose(None, None, &Environment::of_this_process())?;
/// let report = Service::new(Config::default(), target).run(stop_signal()?).await?;
/// assert!(report.clean);
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a service does nothing until it is run"]
pub struct Service {
    config: Config,
    target: Target,
}

struct Running {
    /// After the start of the demo's server.
    started: tokio::time::Instant,
    own_server: Option<OwnServer>,
    state: Arc<ProbeState>,
    printer: Printer,
    probes: Option<Probes>,
    reporters: Vec<tokio::task::JoinHandle<()>>,
}

impl Service {
    /// A service with this configuration that reads this server.
    pub fn new(config: Config, target: Target) -> Self {
        Self { config, target }
    }

    /// Runs until `stop` is ready, the configured time is over, or the output is closed; then drains. Must be
    /// called inside a tokio runtime with time and IO. Changes are printed to stdout, the announcements at
    /// the start to stderr.
    ///
    /// # Errors
    /// When it cannot start, `stop` is ready before it has, or writing the output fails for another reason
    /// than a closed pipe.
    pub async fn run(self, stop: impl Future<Output = Ending>) -> Result<Report, Error> {
        let mut stop = std::pin::pin!(stop);
        let running = tokio::select! {
            biased;
            _ending = &mut stop => return Err(Error::StoppedAtStart),
            running = self.start() => running?,
        };
        let started = running.started;
        let limit = async {
            match self.config.run.limit {
                // Includes the start.
                Some(limit) => tokio::time::sleep_until(started + limit).await,
                None => std::future::pending().await,
            }
        };
        let ending = tokio::select! {
            biased;
            ending = stop => ending,
            _ended = running.printer.output.ended() => Ending::OutputClosed,
            () = limit => Ending::TimeOver,
        };
        running.end(ending, &self.config).await
    }

    async fn start(&self) -> Result<Running, Error> {
        let socket = self.config.probes.listen.map(ProbeSocket::bind).transpose()?;
        let address = socket.as_ref().map(ProbeSocket::address);
        let (own_server, client_config) = match self.target.client_config()? {
            Some(config) => (None, config),
            None => OwnServer::start(&self.config.demo)?,
        };
        let started = tokio::time::Instant::now();
        let (endpoint, mut warnings) =
            (client_config.endpoint().to_owned(), client_config.warnings().to_vec());
        let client = Client::new(client_config)?;
        let runtime = Runtime::threads().start()?;
        let socket = socket.map(|socket| {
            socket.metrics(Metrics::of(&runtime).registry()).page(Page::of(&runtime, "informerd"))
        });
        let (informers, mut notes) = discover(&client, &self.config.informers, self.config.run.limit).await?;
        let kinds = kinds(&informers);
        let printer = self.printer(&kinds)?;
        let numbered = kinds.iter().enumerate();
        let kinds = numbered
            .map(|(at, kind)| follow((&client, &runtime), (&informers, at), kind, &printer))
            .collect::<Result<Vec<_>, _>>()?;
        let (draining, stale_limit) = (AtomicBool::new(false), self.config.probes.unready_when_stale_for);
        let state = Arc::new(ProbeState { kinds, runtime, draining, stale_limit });
        let probes = socket.map(|socket| socket.serve(Arc::clone(&state))).transpose()?;
        warnings.append(&mut notes);
        self.announce((own_server.as_ref(), &informers), (&endpoint, &warnings), address);
        let reporters = status_reporter::start(&state.kinds, &printer, &self.config.output);
        Ok(Running { started, own_server, state, printer, probes, reporters })
    }

    fn printer(&self, kinds: &[String]) -> Result<Printer, Error> {
        let coloured = self.config.output.colour.is_on(&std::io::stdout());
        let style = match self.config.output.format {
            Format::Json => Style::Json,
            Format::Text => {
                Style::Text(Text::new(coloured, kinds.iter().map(String::len).max().unwrap_or(0)))
            }
        };
        let output = Output::start(std::io::stdout()).map_err(Error::Output)?;
        Ok(Printer { style: Arc::new(style), output })
    }

    /// On stderr: stdout is for changes.
    fn announce(
        &self,
        (own, informers): (Option<&OwnServer>, &[InformerConfig]),
        (endpoint, warnings): (&str, &[String]),
        probes: Option<std::net::SocketAddr>,
    ) {
        let mut lines = vec![match &self.config.file {
            Some(file) => format!("configuration: {file}"),
            None => "configuration: the built-in defaults".to_owned(),
        }];
        match own {
            Some(own) => lines.extend(own.announcement()),
            None => lines.push(format!("reading {endpoint}, never writing to it")),
        }
        lines.extend(warnings.iter().map(|warning| format!("warning: {warning}")));
        lines.extend(informers.iter().map(announcement_of));
        if let Some(address) = probes {
            // Only a loopback address answers with the page.
            let here = match address.ip() {
                ip if ip.is_unspecified() => Some(IpAddr::from([127, 0, 0, 1])),
                ip => Some(ip).filter(IpAddr::is_loopback),
            };
            if let Some(page) = here.map(|here| std::net::SocketAddr::new(here, address.port())) {
                lines.insert(0, format!("see the actors at work: open http://{page}/ in a browser"));
            }
            lines.push(format!("probes at http://{address}/healthz and http://{address}/readyz, metrics at http://{address}/metrics"));
        }
        lines.push("press Ctrl-C to stop".to_owned());
        let text: String = lines.iter().map(|line| format!("informerd: {}\n", printable(line))).collect();
        // A closed stderr does not stop the service.
        drop(std::io::stderr().write_all(text.as_bytes()));
    }
}

/// With the group if two kinds have one name.
fn kinds(informers: &[InformerConfig]) -> Vec<String> {
    let name = |kind: &super::kinds::WatchedKind| {
        let of_that_name = informers.iter().filter(|other| other.kind.name() == kind.name()).count();
        let group = kind.resource().map(|resource| resource.group.as_str()).unwrap_or_default();
        let needs_group = of_that_name > 1 && !group.is_empty();
        if needs_group { format!("{}.{group}", kind.name()) } else { kind.name().to_owned() }
    };
    informers.iter().map(|informer| name(&informer.kind)).collect()
}

fn announcement_of(informer: &InformerConfig) -> String {
    let mut text = format!("watching {}", informer.kind.plural());
    match informer.namespaces.as_slice() {
        [] if informer.kind.is_cluster_scoped() => {}
        [] => text += " in all namespaces",
        some => text += &format!(" in {}", some.join(", ")),
    }
    let selectors = [("labels", &informer.labels), ("fields", &informer.fields)];
    let selectors = selectors.iter().filter(|(_, selector)| !selector.is_empty());
    let selectors: Vec<_> = selectors.map(|(what, selector)| format!("{what} {selector}")).collect();
    if selectors.is_empty() { text } else { format!("{text} with {}", selectors.join(" and ")) }
}

impl Running {
    async fn end(mut self, ending: Ending, config: &Config) -> Result<Report, Error> {
        self.state.draining.store(true, Ordering::Relaxed);
        if let Some(own_server) = &self.own_server {
            own_server.stop_workload();
        }
        let kinds = &self.state.kinds;
        let clean = drain(kinds, config.run.drain).await;
        for reporter in std::mem::take(&mut self.reporters) {
            // Each ends with its informer, which may still run after an unclean drain.
            if clean { drop(reporter.await) } else { reporter.abort() }
        }
        let seconds = self.started.elapsed().as_secs_f64();
        let informers = kinds.iter().map(|kind| kind.report()).collect();
        let mut report = Report { ending, seconds, clean, informers };
        let ended = tokio::time::timeout(config.run.drain, self.print_end(config, &report)).await;
        drop(self.probes.take());
        if let Err(error) = self.state.runtime.clone().shutdown(config.run.drain).await {
            tracing::warn!(target: "actix_informer::informerd", %error, "a thread of the runtime did not end in time; it ends with the process");
        }
        report.clean &= ended.is_ok();
        match ended {
            Ok(Ended::Failed(error)) => Err(Error::Output(std::io::Error::new(error.kind(), error))),
            _ => Ok(report),
        }
    }

    async fn print_end(&self, config: &Config, report: &Report) -> Ended {
        let Printer { style, output } = &self.printer;
        if config.output.list_at_end {
            for kind in &self.state.kinds {
                kind.print_cached(&self.printer).await;
            }
        }
        output.line(style.summary(report)).await;
        output.finish().await
    }
}

/// Returns whether every notification was printed: not if a subscription had ended before.
async fn drain(kinds: &[Arc<RunningKind>], limit: Duration) -> bool {
    let all_subscribed = kinds.iter().all(|kind| kind.subscription_end().is_none());
    let reports = join_all(kinds.iter().map(|kind| kind.shutdown(limit))).await;
    all_subscribed && reports.iter().all(actix_informer::informer::ShutdownReport::is_clean)
}

// Without the feature `embedded` there is no server of its own; its start is an error.

struct OwnServer {
    #[cfg(feature = "embedded")]
    demo: crate::demo::Demo,
    #[cfg(not(feature = "embedded"))]
    absent: std::convert::Infallible,
}

#[cfg(feature = "embedded")]
impl OwnServer {
    fn start(config: &DemoConfig) -> Result<(Option<Self>, client::Config), Error> {
        let demo = crate::demo::Demo::start(config)?;
        let client = client::Config::new(demo.url())?;
        Ok((Some(Self { demo }), client))
    }

    /// The server goes on.
    fn stop_workload(&self) {
        self.demo.stop_workload();
    }

    fn announcement(&self) -> [String; 2] {
        self.demo.announcement()
    }
}

#[cfg(not(feature = "embedded"))]
impl OwnServer {
    fn start(_config: &DemoConfig) -> Result<(Option<Self>, client::Config), Error> {
        Err(crate::target::NoCluster::NotConfigured.into())
    }

    fn stop_workload(&self) {
        match self.absent {}
    }

    fn announcement(&self) -> [String; 2] {
        match self.absent {}
    }
}

// A second signal ends the process at once.

/// Waits for SIGINT (Ctrl-C) or SIGTERM. Must be called inside a tokio runtime.
///
/// # Errors
/// When the system refuses the handlers.
pub fn stop_signal() -> std::io::Result<impl Future<Output = Ending>> {
    let signal = signals::stop_signal()?;
    Ok(async move {
        match signal.await {
            Signal::Interrupt => Ending::Interrupted,
            Signal::Terminate => Ending::Terminated,
        }
    })
}

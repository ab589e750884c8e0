//! The life of the service: start, follow, print, and an end that loses nothing.
//!
//! Answers "in which order does everything start and end?". Invariants:
//! 1. Start: socket of the probes, own server (if any), client, informers, probes. End: probes say no, the workload stops, informers drain,
//!    summary, output, threads, own server.
//! 2. Nothing is printed after the summary.
//! 3. The end takes at most the configured time for the informers, and as much again for a slow output.
//!
//! Read next: `follow.rs`, one kind; `run/telling.rs`, states and statuses; `demo.rs`, the workload.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;

use super::config::{Colour, Config, Format, InformerConfig};
use super::error::Error;
use super::follow::{Followed, Printer, follow};
use super::lines::{Style, Text};
use super::output::{Ended, Output};
use super::printable::printable;
use super::probes::{self, Probes, Vitals};
use super::target::Target;
use crate::client::Client;
use crate::runtime::Runtime;

mod own_server;
mod report;
mod telling;

use own_server::OwnServer;
pub use report::{CauseCounts, Ending, EventCounts, InformerReport, Report};

/// What informerd does, described and not yet begun.
///
/// ```no_run
/// # async fn demo() -> Result<(), Box<dyn std::error::Error>> {
/// use actix_informer::service::{Config, Environment, Service, Target, stop_signal};
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

/// Everything that runs.
struct Running {
    own_server: Option<OwnServer>,
    vitals: Arc<Vitals>,
    printer: Printer,
    probes: Option<Probes>,
    tellers: Vec<tokio::task::JoinHandle<()>>,
}

impl Service {
    /// Puts together what to do and where.
    pub fn new(config: Config, target: Target) -> Self {
        Self { config, target }
    }

    /// Runs until `stop` is ready, the configured time is over, or nobody reads the output any more; then drains.
    /// Must be called inside a tokio runtime with time and IO. Changes go to stdout, what it is about to stderr.
    ///
    /// # Errors
    /// When it cannot start, or the output breaks in another way than by being closed.
    pub async fn run(self, stop: impl Future<Output = Ending>) -> Result<Report, Error> {
        let started = tokio::time::Instant::now();
        let running = self.start()?;
        let limit = async {
            match self.config.run.limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let ending = tokio::select! {
            biased;
            ending = stop => ending,
            _ended = running.printer.output.ended() => Ending::OutputClosed,
            () = limit => Ending::TimeOver,
        };
        running.end(ending, &self.config, started).await
    }

    fn start(&self) -> Result<Running, Error> {
        let listener = self.config.probes.listen.map(probes::bind).transpose()?;
        let address = listener.as_ref().map(|(_, address)| *address);
        let (own_server, client_config) = match self.target.client_config()? {
            Some(config) => (None, config),
            None => OwnServer::start(&self.config.demo)?,
        };
        let (endpoint, warnings) = (client_config.endpoint().to_owned(), client_config.warnings().to_vec());
        let client = Client::new(client_config)?;
        let runtime = Runtime::threads().start()?;
        let kinds = self.kinds();
        let printer = self.printer(&kinds)?;
        let started = self.config.informers.iter().zip(&kinds);
        let followed = started
            .map(|(config, kind)| follow((&client, &runtime), config, kind, &printer))
            .collect::<Result<Vec<_>, _>>()?;
        let vitals = Arc::new(Vitals { followed, runtime, draining: AtomicBool::new(false) });
        let probes = listener.map(|socket| probes::serve(socket, Arc::clone(&vitals))).transpose()?;
        self.announce(own_server.as_ref(), (&endpoint, &warnings), address);
        let tellers = telling::start(&vitals.followed, &printer, &self.config.output);
        Ok(Running { own_server, vitals, printer, probes, tellers })
    }

    /// The kinds by name, with the group where two have one name.
    fn kinds(&self) -> Vec<String> {
        let informers = &self.config.informers;
        let name = |kind: &super::kinds::WatchedKind| {
            let twins = informers.iter().filter(|other| other.kind.name() == kind.name()).count();
            let group = &kind.resource().group;
            let qualified = twins > 1 && !group.is_empty();
            if qualified { format!("{}.{group}", kind.name()) } else { kind.name().to_owned() }
        };
        informers.iter().map(|informer| name(&informer.kind)).collect()
    }

    fn printer(&self, kinds: &[String]) -> Result<Printer, Error> {
        use std::io::IsTerminal as _;
        let wanted = || std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let coloured = match self.config.output.colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => std::io::stdout().is_terminal() && wanted(),
        };
        let style = match self.config.output.format {
            Format::Json => Style::Json,
            Format::Text => {
                Style::Text(Text::new(coloured, kinds.iter().map(String::len).max().unwrap_or(0)))
            }
        };
        let output = Output::start(std::io::stdout()).map_err(Error::Output)?;
        Ok(Printer { style: Arc::new(style), output })
    }

    /// Says on stderr what this is about to do; stdout is for what happens.
    fn announce(
        &self,
        own: Option<&OwnServer>,
        (endpoint, warnings): (&str, &[String]),
        probes: Option<std::net::SocketAddr>,
    ) {
        let mut told = vec![match &self.config.file {
            Some(file) => format!("configured by {file}"),
            None => "configured by the defaults that are built in".to_owned(),
        }];
        match own {
            Some(own) => told.extend(own.announcement()),
            None => told.push(format!("reading {endpoint}, never writing to it")),
        }
        told.extend(warnings.iter().map(|warning| format!("warning: {warning}")));
        told.extend(self.config.informers.iter().map(watched));
        if let Some(address) = probes {
            told.push(format!("probes at http://{address}/healthz and http://{address}/readyz"));
        }
        told.push("Ctrl-C ends it".to_owned());
        let text: String = told.iter().map(|line| format!("informerd: {}\n", printable(line))).collect();
        // A closed stderr is no reason not to work.
        drop(std::io::stderr().write_all(text.as_bytes()));
    }
}

/// What is watched of one kind, where, and what selects it.
fn watched(informer: &InformerConfig) -> String {
    let mut text = format!("watching {}", informer.kind.resource().plural);
    match informer.namespaces.as_slice() {
        [] => text += " everywhere",
        some => text += &format!(" in {}", some.join(", ")),
    }
    let selectors = [("labels", &informer.labels), ("fields", &informer.fields)];
    let selectors = selectors.iter().filter(|(_, selector)| !selector.is_empty());
    let selectors: Vec<_> = selectors.map(|(what, selector)| format!("{what} {selector}")).collect();
    if selectors.is_empty() { text } else { format!("{text} with {}", selectors.join(" and ")) }
}

impl Running {
    async fn end(
        mut self,
        ending: Ending,
        config: &Config,
        started: tokio::time::Instant,
    ) -> Result<Report, Error> {
        self.vitals.draining.store(true, Ordering::Relaxed);
        if let Some(own_server) = &self.own_server {
            own_server.stop_workload();
        }
        let followed = &self.vitals.followed;
        let clean = drain(followed, config.run.drain).await;
        for teller in std::mem::take(&mut self.tellers) {
            // Each ends with its informer; what is told after a drain that was not clean would come too late.
            if clean { drop(teller.await) } else { teller.abort() }
        }
        let seconds = started.elapsed().as_secs_f64();
        let mut report =
            Report { ending, seconds, clean, informers: followed.iter().map(|one| one.report()).collect() };
        let ended = tokio::time::timeout(config.run.drain, self.print_end(config, &report)).await;
        drop(self.probes.take());
        if let Err(error) = self.vitals.runtime.clone().shutdown(config.run.drain).await {
            // It ends with the process.
            tracing::warn!(%error, "a thread is left behind");
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
            for one in &self.vitals.followed {
                one.print_cached(&self.printer).await;
            }
        }
        output.line(style.summary(report)).await;
        output.finish().await
    }
}

async fn drain(followed: &[Arc<dyn Followed>], limit: Duration) -> bool {
    let lost: Vec<bool> = followed.iter().map(|one| one.silent().is_some()).collect();
    let reports = join_all(followed.iter().map(|one| one.shutdown(limit))).await;
    !lost.contains(&true) && reports.iter().all(crate::informer::ShutdownReport::is_clean)
}

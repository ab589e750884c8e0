//! The command `informerd`: a command line for the library.
//!
//! Exit codes: see `Arguments`. A closed pipe is a normal end. 1 also if it did not drain in time, or had not synced at its time
//! limit; 2 also if no cluster is configured.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use informerd::config::{Colour, Format};
use informerd::{Config, Ending, Environment, Error, Report, Service, Target, printable, stop_signal};
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Keeps a live copy of Kubernetes objects and prints their changes.
///
/// It reads the cluster that is configured by --kubeconfig, by the variable KUBECONFIG, or by the pod it runs
/// in. It never writes to this cluster, and it reads ~/.kube/config only with --home. If no cluster is
/// configured, it starts an in-memory API server with a demo workload (in builds with the feature
/// `embedded`). The variable RUST_LOG (such as warn, or actix_informer=debug) sets what it logs on stderr.
///
/// Exit codes: 0 all is well; 1 it has failed, or was not in time; 2 something was refused that it was given;
/// 3 a kind was not followed at the end: it was refused, missing or not reached.
#[derive(Debug, Parser)]
#[command(name = "informerd", version)]
struct Arguments {
    /// The kinds to watch and how to print them; config/informerd.toml shows every key [default: the values
    /// in that file]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The cluster of this kubeconfig
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The cluster of ~/.kube/config, kubectl's default
    #[arg(long, conflicts_with = "kubeconfig")]
    home: bool,
    /// The context of the kubeconfig, instead of its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The format: text for people, or one JSON document per line
    #[arg(long, value_enum)]
    output: Option<Format>,
    /// Stop after this time, such as 10s or 5m
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    limit: Option<Duration>,
    /// When the text output and the logs are coloured
    #[arg(long, value_enum)]
    colour: Option<Colour>,
    /// The port of /healthz, /readyz and /metrics; 0 takes a free one
    #[arg(long, value_name = "PORT")]
    probe_port: Option<u16>,
    /// Print every cached object before the summary
    #[arg(long)]
    list_at_end: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log_to_stderr(arguments.colour);
    match run(&arguments) {
        Ok(report) if !report.clean => failed("not every change was printed in time"),
        Ok(report) if report.not_followed().next().is_some() => not_followed(&report),
        Ok(report) if report.ending == Ending::TimeOver && !report.synced() => {
            failed("the time was over before every kind was synced")
        }
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("informerd: {}", printable(&error.to_string()));
            // No request was sent yet: the error is about the configuration.
            let refused = matches!(
                error.downcast_ref(),
                Some(
                    Error::Config(_)
                        | Error::NoCluster(_)
                        | Error::Client(_)
                        | Error::WatchedTwice { .. }
                        | Error::Category(_)
                        | Error::ProbesAreOff
                )
            );
            if refused { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn not_followed(report: &Report) -> ExitCode {
    for informer in report.not_followed() {
        let why = informer.last_error.as_deref().unwrap_or("unknown");
        eprintln!(
            "informerd: {}",
            printable(&format!("{} was not followed at the end: {why}", informer.kind))
        );
    }
    ExitCode::from(3)
}

fn failed(why: &str) -> ExitCode {
    eprintln!("informerd: {why}");
    ExitCode::FAILURE
}

#[tokio::main(flavor = "current_thread")]
async fn run(arguments: &Arguments) -> anyhow::Result<Report> {
    let stop = stop_signal().context("the signal handlers could not be installed")?;
    let config = configuration(arguments)?;
    let environment = Environment::of_this_process();
    let context = arguments.context.as_deref();
    let target = match arguments.home {
        true => Target::home(context).map_err(Error::Client)?,
        false => Target::choose(arguments.kubeconfig.as_deref(), context, &environment)
            .map_err(Error::NoCluster)?,
    };
    Ok(Service::new(config, target).run(stop).await?)
}

fn configuration(arguments: &Arguments) -> Result<Config, Error> {
    let mut config = match &arguments.config {
        Some(file) => Config::load(file)?,
        None => Config::default(),
    };
    config.run.limit = arguments.limit.or(config.run.limit);
    config.output.list_at_end = arguments.list_at_end;
    config.output.format = arguments.output.unwrap_or(config.output.format);
    config.output.colour = arguments.colour.unwrap_or(config.output.colour);
    if let Some(port) = arguments.probe_port {
        config.probes.listen.as_mut().ok_or(Error::ProbesAreOff)?.set_port(port);
    }
    Ok(config)
}

fn duration(text: &str) -> Result<Duration, String> {
    let allowed =
        || format!("{text:?} is not a time; allowed: a number with a unit, such as 10s, 5m or 1h30m");
    let duration: jiff::SignedDuration = text.parse().map_err(|_| allowed())?;
    Duration::try_from(duration).map_err(|_| allowed())
}

/// Failures of lists and watches are also on stdout, as states.
fn log_to_stderr(colour: Option<Colour>) {
    let coloured = colour.unwrap_or(Colour::Auto).is_on(&std::io::stderr());
    let (filter, mistake) = log_filter(std::env::var("RUST_LOG").ok().as_deref());
    let lines = tracing_subscriber::fmt::layer().with_ansi(coloured);
    let lines = lines.with_writer(move || Escaping { coloured, out: std::io::stderr() });
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
    if let Some(mistake) = mistake {
        tracing::error!(target: "actix_informer::informerd", "RUST_LOG is invalid ({mistake}); only errors are logged");
    }
}

/// With the error of an invalid `RUST_LOG`.
fn log_filter(asked: Option<&str>) -> (Targets, Option<String>) {
    let only_errors = || Targets::new().with_default(LevelFilter::ERROR);
    let parsed = |asked: &str| asked.parse().map_err(|error: ParseError| error.to_string());
    match asked.map(str::trim).filter(|asked| !asked.is_empty()).map(parsed) {
        None => (only_errors(), None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(mistake)) => (only_errors(), Some(mistake)),
    }
}

/// Writes each record at once and escapes it: a quoted text cannot begin a line or control the terminal.
struct Escaping {
    coloured: bool,
    out: std::io::Stderr,
}

impl Write for Escaping {
    fn write(&mut self, record: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(record);
        let (line, end) = text.strip_suffix('\n').map_or((&*text, ""), |line| (line, "\n"));
        // The subscriber has escaped what it quotes: these sequences are its colours.
        let shown = match self.coloured {
            true => line.split('\u{1b}').map(printable).collect::<Vec<_>>().join("\u{1b}"),
            false => printable(line).into_owned(),
        };
        self.out.write_all(format!("{shown}{end}").as_bytes())?;
        Ok(record.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn only_errors_are_logged_unless_the_variable_asks_for_more() {
        for asked in [None, Some(""), Some(" ")] {
            let (filter, mistake) = log_filter(asked);
            assert!(mistake.is_none());
            assert!(filter.would_enable("actix_informer", &Level::ERROR));
            assert!(!filter.would_enable("actix_informer", &Level::WARN));
        }
        let (filter, mistake) = log_filter(Some("warn,actix_informer::client=debug"));
        assert_eq!(mistake, None);
        assert!(filter.would_enable("actix_informer::informer", &Level::WARN));
        assert!(!filter.would_enable("actix_informer::informer", &Level::INFO));
        assert!(filter.would_enable("actix_informer::client", &Level::DEBUG));
    }

    #[test]
    fn a_level_that_does_not_exist_is_reported_and_errors_are_logged() {
        let (filter, mistake) = log_filter(Some("actix_informer=loud"));
        assert!(mistake.is_some());
        assert!(filter.would_enable("actix_informer", &Level::ERROR));
    }
}

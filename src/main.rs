//! The command `informerd`: keeps a live copy of Kubernetes objects and prints what happens to them.
//!
//! Answers "how do I see this at work?". It reads its arguments, chooses the server and runs the service; all
//! behaviour is in `service`. Exit codes: 0 drained (also by Ctrl-C, SIGTERM, a closed pipe), 1 failed or not drained
//! in time, 2 refused (arguments, configuration, no cluster).

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use actix_informer::service::config::{Colour, Format};
use actix_informer::service::{Config, Environment, Error, Report, Service, Target, stop_signal};
use anyhow::Context as _;
use clap::{Parser, ValueEnum};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The file that is read where none is named, if it is there.
const USUAL_FILE: &str = "config/informerd.toml";

/// Keeps a live copy of Kubernetes objects and prints what happens to them.
///
/// It reads the cluster that it is told of: --kubeconfig, the variable KUBECONFIG, or the pod it runs in; it never
/// writes to it and looks for none in the home directory. Told of none, it starts an in-memory API server with a demo
/// workload (in builds with the feature `embedded`).
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// What to watch and how to tell it [default: config/informerd.toml if it is there, else the same built in]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The cluster of this kubeconfig
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// This context of it, instead of its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// For people, or one JSON document a line
    #[arg(long, value_enum)]
    output: Option<Output>,
    /// End by itself after this time, such as 10s or 5m
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    limit: Option<Duration>,
    /// When text is coloured
    #[arg(long, value_enum)]
    colour: Option<When>,
    /// The port of /healthz and /readyz; 0 takes a free one
    #[arg(long, value_name = "PORT")]
    probe_port: Option<u16>,
    /// Print every cached object before the summary
    #[arg(long)]
    list_at_end: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Output {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log_to_stderr();
    match run(&arguments) {
        Ok(report) if report.clean => ExitCode::SUCCESS,
        Ok(_) => {
            eprintln!("informerd: not everything was delivered in time");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("informerd: {error}");
            let refused = matches!(error.downcast_ref(), Some(Error::Config(_) | Error::NoCluster(_)));
            if refused { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run(arguments: &Arguments) -> anyhow::Result<Report> {
    let stop = stop_signal().context("no signal handlers")?;
    let config = configuration(arguments)?;
    let environment = Environment::of_this_process();
    let target = Target::choose(arguments.kubeconfig.as_deref(), arguments.context.as_deref(), &environment)
        .map_err(Error::NoCluster)?;
    Ok(Service::new(config, target).run(stop).await?)
}

fn configuration(arguments: &Arguments) -> Result<Config, Error> {
    let mut config = match &arguments.config {
        Some(file) => Config::load(file)?,
        None if Path::new(USUAL_FILE).exists() => Config::load(USUAL_FILE)?,
        None => Config::default(),
    };
    config.run.limit = arguments.limit.or(config.run.limit);
    config.output.list_at_end = arguments.list_at_end;
    if let Some(output) = arguments.output {
        config.output.format = match output {
            Output::Text => Format::Text,
            Output::Json => Format::Json,
        };
    }
    if let Some(when) = arguments.colour {
        config.output.colour = match when {
            When::Auto => Colour::Auto,
            When::Always => Colour::Always,
            When::Never => Colour::Never,
        };
    }
    if let (Some(port), Some(listen)) = (arguments.probe_port, &mut config.probes.listen) {
        listen.set_port(port);
    }
    Ok(config)
}

fn duration(text: &str) -> Result<Duration, String> {
    let allowed = || format!("{text:?} is no time; allowed: a number with a unit, such as 10s, 5m or 1h30m");
    let duration: jiff::SignedDuration = text.parse().map_err(|_| allowed())?;
    Duration::try_from(duration).map_err(|_| allowed())
}

/// What the library logs goes to stderr, and only errors unless RUST_LOG says otherwise: stdout is the output, and
/// tells refusals and failures as changes of state.
fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::builder()
        .with_default_directive(tracing_subscriber::filter::LevelFilter::ERROR.into())
        .from_env_lossy();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}

//! The command `informerd`: keeps a live copy of Kubernetes objects and prints what happens to them.
//!
//! Answers "how do I see this at work?". It reads its arguments, chooses the server and runs the service; all
//! behaviour is in `service`. Exit codes: 0 drained (also by Ctrl-C, SIGTERM, a closed pipe), 1 failed, not drained in
//! time, or never synced when its time was over, 2 refused (arguments, configuration, kubeconfig, no cluster).

use std::io::{IsTerminal as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use actix_informer::service::config::{Colour, Format};
use actix_informer::service::{
    Config, Ending, Environment, Error, Report, Service, Target, printable, stop_signal,
};
use anyhow::Context as _;
use clap::{Parser, ValueEnum};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Keeps a live copy of Kubernetes objects and prints what happens to them.
///
/// It reads the cluster that it is told of: --kubeconfig, the variable KUBECONFIG, or the pod it runs in; it never
/// writes to it and looks for none in the home directory. Told of none, it starts an in-memory API server with a demo
/// workload (in builds with the feature `embedded`). The variable RUST_LOG (such as warn, or actix_informer=debug) says
/// what it logs on stderr.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// What to watch and how to tell it; config/informerd.toml shows every key [default: what that file shows]
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
    /// When text and logs are coloured
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
    log_to_stderr(arguments.colour);
    match run(&arguments) {
        Ok(report) if !report.clean => failed("not everything was delivered in time"),
        Ok(report) if report.ending == Ending::TimeOver && !report.synced() => {
            failed("the time was over before everything was synced")
        }
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("informerd: {}", printable(&error.to_string()));
            // What the client refuses at the start is its configuration: it has sent nothing yet.
            let refused = matches!(
                error.downcast_ref(),
                Some(Error::Config(_) | Error::NoCluster(_) | Error::Client(_))
            );
            if refused { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("informerd: {why}");
    ExitCode::FAILURE
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
/// tells refusals and failures as changes of state. Coloured on a terminal only, as the lines are.
fn log_to_stderr(colour: Option<When>) {
    let coloured = match colour.unwrap_or(When::Auto) {
        When::Always => true,
        When::Never => false,
        When::Auto => {
            std::io::stderr().is_terminal()
                && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        }
    };
    let filter = tracing_subscriber::EnvFilter::builder()
        .with_default_directive(tracing_subscriber::filter::LevelFilter::ERROR.into())
        .from_env_lossy();
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(coloured);
    subscriber.with_writer(move || Escaping { coloured, out: std::io::stderr() }).init();
}

/// Stderr for log lines: a record is one write, and whatever it quotes stays on its line and commands no terminal.
struct Escaping {
    coloured: bool,
    out: std::io::Stderr,
}

impl Write for Escaping {
    fn write(&mut self, record: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(record);
        let (line, end) = text.strip_suffix('\n').map_or((&*text, ""), |line| (line, "\n"));
        // The colours are the subscriber's own; it escapes those of the texts that it quotes.
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

//! Measures 200 informers of 50 kinds in one process: a factory of ours, kube-rs's reflectors, client-go's factories.
//!
//! Answers "what do many small informers cost?": from the start to the last first list, what is resident then, and how
//! much processor time they take while nothing changes. Invariants:
//! 1. Each client is a process of its own beside one server; they run in turn, round by round.
//! 2. Each follows the same: of every kind all objects, those of two namespaces, and those with a label, as dynamic
//!    objects, with a handler that counts what it receives. A run counts only if each received every object.
//! 3. The clients have no limit of requests a second; client-go's default of 5 would decide everything.
//!
//! Read next: `many/server.rs`, `many/clients.rs`.

mod clients;
mod server;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use actix_informer::client::Config;
use anyhow::{Context, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

pub(crate) use self::clients::resource;
pub(crate) use self::server::{Serving, serve};
use crate::meter::{self, Meter};

/// How much is followed.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Plan {
    /// How many kinds there are; each is followed four times.
    #[arg(long, default_value_t = 50)]
    kinds: usize,
    /// How many objects each kind has.
    #[arg(long, default_value_t = 40)]
    objects: usize,
    /// How long nothing changes.
    #[arg(long, default_value_t = 10)]
    idle_seconds: u64,
    /// How often each client runs; the table has medians.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Over HTTPS, and ours over HTTP/2 beside the others.
    #[arg(long)]
    tls: bool,
}

impl Plan {
    /// So many kinds with so many objects each.
    pub(crate) fn of(kinds: usize, objects: usize) -> Self {
        Self { kinds, objects, idle_seconds: 0, rounds: 1, tls: false }
    }
}

/// Whose informers they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Client {
    /// A factory of actix-informer.
    Informer,
    /// The same over HTTP/2, which only HTTPS has.
    Http2,
    /// kube-rs: a watcher, a reflector and a store for each.
    Kube,
    /// client-go: a dynamic factory for each part, if `INFORMER_GO_CLIENTS` names the program.
    Go,
}

/// What one client has cost.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Report {
    /// Seconds until everything was synced.
    sync_wall: f64,
    /// Processor seconds until then.
    sync_cpu: f64,
    /// Resident then, in KiB.
    resident_kib: u64,
    /// Processor milliseconds a second while nothing changes.
    idle_cpu: f64,
    /// How many objects the handlers received.
    received: u64,
}

/// The parts of each kind that are followed: a namespace, a selector.
const PARTS: [(Option<&str>, Option<&str>); 4] =
    [(None, None), (Some("a"), None), (Some("b"), None), (None, Some("half=yes"))];

/// Each object is received by the informer of everything and by that of its namespace, and every other one by that of
/// the label.
fn expected(plan: &Plan) -> u64 {
    (plan.kinds * (2 * plan.objects + plan.objects / 2)) as u64
}

fn ours(server: &str) -> anyhow::Result<Config> {
    Ok(match server.starts_with("http://") {
        true => Config::new(server)?,
        false => Config::from_kubeconfig_text(server, None)?,
    })
}

/// Runs one client and prints its report.
pub(crate) fn client(url: &str, client: Client, plan: &Plan) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(async {
        let meter = Meter::start();
        let followed: Box<dyn clients::Followed> = match client {
            Client::Informer => Box::new(clients::informer(ours(url)?, plan.kinds).await?),
            Client::Http2 => Box::new(clients::informer(ours(url)?.http2(), plan.kinds).await?),
            Client::Kube => Box::new(clients::kube(url, plan.kinds).await?),
            Client::Go => anyhow::bail!("client-go is a program of its own"),
        };
        followed.received(expected(plan)).await?;
        let sync = meter.cost();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let resident_kib = meter::resident()?;
        let meter = Meter::start();
        tokio::time::sleep(Duration::from_secs(plan.idle_seconds)).await;
        let idle = meter.cost();
        anyhow::Ok(Report {
            sync_wall: sync.wall,
            sync_cpu: sync.cpu,
            resident_kib,
            idle_cpu: idle.cpu * 1_000.0 / idle.wall,
            received: followed.count(),
        })
    })?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

/// `None` for client-go where its program is not named.
fn command(plan: &Plan, client: Client, place: &str, go: Option<&str>) -> anyhow::Result<Option<Command>> {
    let (kinds, objects) = (plan.kinds.to_string(), plan.objects.to_string());
    let idle = plan.idle_seconds.to_string();
    if client == Client::Go {
        return Ok(go.map(|program| {
            let mut command = Command::new(program);
            command.args(["factory", place, &kinds, &objects, &idle]);
            command
        }));
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["many-client", "--server", place, "--client", &name(client)]);
    command.args(["--kinds", &kinds, "--objects", &objects, "--idle-seconds", &idle]);
    Ok(Some(command))
}

/// Runs every client in every round and prints the table.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    ensure!(plan.kinds > 0 && plan.objects > 1 && plan.rounds > 0, "nothing to compare");
    let go = std::env::var("INFORMER_GO_CLIENTS").ok();
    let mut reports: BTreeMap<Client, Vec<Report>> = BTreeMap::new();
    for _ in 0..plan.rounds {
        for &client in Client::value_variants() {
            if client == (if plan.tls { Client::Go } else { Client::Http2 }) {
                continue;
            }
            let serving = Serving::start(plan)?;
            let Some(mut command) = command(plan, client, serving.place(), go.as_deref())? else { continue };
            let output = command.stderr(Stdio::inherit()).output()?;
            ensure!(output.status.success(), "{} failed", name(client));
            let report: Report = serde_json::from_slice(&output.stdout).context("a report")?;
            ensure!(report.received == expected(plan), "{}: {report:?}", name(client));
            reports.entry(client).or_default().push(report);
        }
    }
    println!(
        "{:<10} {:>11} {:>11} {:>9} {:>12}   medians of {} rounds, {} informers",
        "client",
        "sync wall s",
        "sync CPU s",
        "MiB",
        "idle CPU ms/s",
        plan.rounds,
        plan.kinds * PARTS.len()
    );
    for (client, reports) in &reports {
        let of = |figure: fn(&Report) -> f64| median(reports.iter().map(figure).collect());
        println!(
            "{:<10} {:>11.3} {:>11.3} {:>9.1} {:>12.2}",
            name(*client),
            of(|report| report.sync_wall),
            of(|report| report.sync_cpu),
            of(|report| report.resident_kib as f64 / 1024.0),
            of(|report| report.idle_cpu),
        );
    }
    if go.is_none() && !plan.tls {
        println!("go: INFORMER_GO_CLIENTS names no program: eval \"$(tests/control-plane/build.sh)\"");
    }
    Ok(())
}

fn name(client: Client) -> String {
    client.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

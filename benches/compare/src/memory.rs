//! Measures how memory grows while the objects of a cache change, under the system's allocator or mimalloc.
//!
//! Answers "does a program that follows many changes need more memory than after its first list?" for typed, lazy, packed, dynamic
//! and metadata informers, for kube-rs's reflector and client-go's informer, each in a process of its own: with changes as fast as they
//! are read, at a steady rate, and one at a time. Invariants:
//! 1. Memory is what the system counts (`VmRSS`), read after the first list and after the changes; `VmHWM` is the most
//!    between the two.
//! 2. A row counts only if the cache has the last change.
//! 3. Nobody is subscribed: the backlog of a subscriber that is behind is its own (ARCHITECTURE.md, memory).
//!
//! Run it with `--no-default-features`: then no allocator is linked but the system's, as in a program that chooses none.
//! Linux only. Read next: `clients/`, what is started.

use std::process::{Command, Stdio};
use std::time::Duration;

use actix_informer::client::Config;
use actix_informer::prelude::*;
use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use k8s_openapi::api::core::v1::Pod;
use kube_client::api::ApiResource;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::clients::{By, reflector::Reflected};
use crate::drive::Cache;
use crate::memory_bar;
use crate::meter::{self, Cost, Meter};
use crate::run::{Plan as Served, Serving};
use crate::server::Server;

const LONG: Duration = Duration::from_secs(3_600);
/// How long a client rests before its memory is read.
const REST: Duration = Duration::from_secs(1);

/// How much changes, how fast, and in whose cache.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Plan {
    /// Pods that are listed.
    #[arg(long, default_value_t = 50_000)]
    pods: usize,
    /// Changes as fast as they are read; none: this part is left out.
    #[arg(long, default_value_t = 500_000)]
    changes: u64,
    /// Changes at the steady rate; none: this part is left out.
    #[arg(long, default_value_t = 200_000)]
    paced: u64,
    /// How many of those there are in a second.
    #[arg(long, default_value_t = 4_000)]
    rate: u64,
    /// Changes that come alone; none: this part is left out.
    #[arg(long, default_value_t = 500)]
    lone: u64,
    /// How many of those there are in a second.
    #[arg(long, default_value_t = 50)]
    lone_rate: u64,
    /// Which clients.
    #[arg(long, value_delimiter = ',', default_values_t = Kept::value_variants().to_vec())]
    clients: Vec<Kept>,
    /// Fail if a cache of actix-informer (but the lazy and the packed one) takes more than 5 % more than after the list (with fewer than 30,000 pods:
    /// more than what 1,500 of them take), and 2 MiB.
    #[arg(long)]
    check: bool,
}

/// Whose cache it is, and what it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kept {
    /// actix-informer, `Typed<Pod>`.
    Typed,
    /// actix-informer, `Lazy<Pod>`.
    Lazy,
    /// actix-informer, `Packed<Pod>`.
    Packed,
    /// actix-informer, `DynamicObject`.
    Dynamic,
    /// actix-informer, metadata alone.
    Metadata,
    /// kube-rs's reflector, typed.
    Kube,
    /// client-go's informer, typed, if `INFORMER_GO_CLIENTS` names the program.
    Go,
}

/// What one client reports.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Report {
    listed_kib: u64,
    peak_kib: u64,
    changed_kib: u64,
    changes: Cost,
}

/// Runs each client in turn, and prints a row for each.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    println!(
        "{} pods of 8.9 KB; MiB resident; {}\n{:<34} {:>9} {:>9} {:>9} {:>9} {:>13} {:>8}",
        plan.pods,
        crate::ALLOCATOR_NAME,
        "",
        "listed",
        "the most",
        "changed",
        "growth",
        "CPU us/change",
        "wall s"
    );
    let go = std::env::var("INFORMER_GO_CLIENTS").ok();
    if go.is_none() && plan.clients.contains(&Kept::Go) {
        println!("go: INFORMER_GO_CLIENTS names no program: eval \"$(tests/control-plane/build.sh)\"");
    }
    let is_there = |client: &Kept| *client != Kept::Go || go.is_some();
    let mut grown = Vec::new();
    for (changes, rate) in [(plan.changes, 0), (plan.paced, plan.rate), (plan.lone, plan.lone_rate)] {
        for &client in plan.clients.iter().filter(|client| changes > 0 && is_there(client)) {
            let report = measured((plan.pods, go.as_deref()), client, changes, rate)
                .with_context(|| format!("{client}"))?;
            let pace = if rate == 0 { "at full speed".to_owned() } else { format!("at {rate}/s") };
            let what = format!("{client}, {changes} {pace}");
            let growth = report.changed_kib as f64 / report.listed_kib as f64;
            println!(
                "{what:<34} {:>9} {:>9} {:>9} {growth:>9.3} {:>13.1} {:>8.1}",
                report.listed_kib >> 10,
                report.peak_kib >> 10,
                report.changed_kib >> 10,
                report.changes.cpu * 1e6 / changes as f64,
                report.changes.wall
            );
            let most = memory_bar::most(report.listed_kib, plan.pods as u64);
            // What waits to be freed is more than 5 % of a cache of texts: it is shown, and has no bar yet.
            if !matches!(client, Kept::Lazy | Kept::Packed | Kept::Kube | Kept::Go)
                && report.changed_kib as f64 > most
            {
                grown.push(what);
            }
        }
    }
    ensure!(!plan.check || grown.is_empty(), "memory grew too much: {}", grown.join("; "));
    Ok(())
}

fn measured(
    (pods, go): (usize, Option<&str>),
    client: Kept,
    changes: u64,
    rate: u64,
) -> anyhow::Result<Report> {
    let (_serving, server) = Serving::start(&Served::of(pods, changes))?;
    let mut command = match (client, go) {
        (Kept::Go, Some(go)) => Command::new(go),
        _ => Command::new(std::env::current_exe()?),
    };
    match client {
        Kept::Go => command.arg("memory-bench"),
        _ => command.args(["memory-client", "--client", &client.to_string()]),
    };
    let output = command
        .args(["--server", server.url()])
        .args(["--changes", &changes.to_string(), "--rate", &rate.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "the client failed");
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Runs one client against a fresh server and prints its report.
pub(crate) fn client(url: &str, kept: Kept, changes: u64, rate: u64) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let server = Server::at(url);
    let report = runtime.block_on(async {
        match kept {
            Kept::Kube => kube(&server, changes, rate).await,
            Kept::Go => bail!("client-go is a program of its own"),
            Kept::Typed => {
                ours(&server, changes, rate, |client, runtime| {
                    Ok(client.resource::<Pod>().informer(runtime)?.start()?)
                })
                .await
            }
            Kept::Lazy => {
                ours(&server, changes, rate, |client, runtime| {
                    Ok(client.resource::<Pod>().lazy().informer(runtime)?.start()?)
                })
                .await
            }
            Kept::Packed => {
                ours(&server, changes, rate, |client, runtime| {
                    Ok(client.resource::<Pod>().packed().informer(runtime)?.start()?)
                })
                .await
            }
            Kept::Dynamic => {
                ours(&server, changes, rate, |client, runtime| {
                    let resource = ApiResource::erase::<Pod>(&());
                    Ok(client.dynamic(&resource).informer(runtime)?.start()?)
                })
                .await
            }
            Kept::Metadata => {
                ours(&server, changes, rate, |client, runtime| {
                    Ok(client.metadata::<Pod>().informer(runtime)?.start()?)
                })
                .await
            }
        }
    })?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

async fn ours<S: Send + Sync + 'static>(
    server: &Server,
    changes: u64,
    rate: u64,
    start: impl FnOnce(&Client, &Runtime) -> anyhow::Result<Informer<S>>,
) -> anyhow::Result<Report> {
    let last = server.version()? + changes;
    let (runtime, client) = (Runtime::threads().start()?, Client::new(Config::new(server.url())?)?);
    let pods = start(&client, &runtime)?;
    pods.synced_within(LONG).await?;
    ensure!(pods.status().undecodable == 0, "{} objects were not decoded", pods.status().undecodable);
    let last = ResourceVersion::from_number(last).context("a version is not zero")?;
    let lister = pods.lister();
    let caught_up = async { Ok(lister.wait_for(&last, LONG).await?) };
    measure(server, rate, caught_up).await
}

async fn kube(server: &Server, changes: u64, rate: u64) -> anyhow::Result<Report> {
    let last = server.version()? + changes;
    let mut pods = Reflected::start(server.url(), By::List, false, [last; 2])?;
    pods.synced().await?;
    measure(server, rate, pods.caught_up(last)).await
}

/// Measures from the first list on, which the client has, until it has the last change.
async fn measure(
    server: &Server,
    rate: u64,
    caught_up: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<Report> {
    sleep(REST).await;
    let listed_kib = meter::resident()?;
    meter::forget_peak()?;
    let meter = Meter::start();
    match rate {
        0 => server.release_events()?,
        rate => server.release_paced(None, rate)?,
    }
    caught_up.await?;
    let changes = meter.cost();
    sleep(REST).await;
    Ok(Report { listed_kib, peak_kib: meter::peak()?, changed_kib: meter::resident()?, changes })
}

impl std::fmt::Display for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}

//! How long an informer takes until its objects are there, with a list and with what was saved before.
//!
//! Answers "what does `persist` win at a restart, and what does it cost?" A process lists pods, packed, and saves them;
//! then others begin with the file, one after another. Invariants:
//! 1. All begin with the same server, which nothing changes.
//! 2. A row after the first counts only if the informer began with the file.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use actix_informer::client::Config;
use actix_informer::prelude::*;
use anyhow::ensure;
use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::meter::{self, Meter};
use crate::run::{Plan as Served, Serving};

const LONG: Duration = Duration::from_secs(3_600);

/// How much, and how often.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Plan {
    /// Pods that are listed.
    #[arg(long, default_value_t = 200_000)]
    pods: usize,
    /// Restarts.
    #[arg(long, default_value_t = 3)]
    restarts: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct Report {
    synced: f64,
    cpu: f64,
    resident_kib: u64,
    began_with_file: bool,
    saved: f64,
}

/// Prints a row for each start.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    let (_serving, server) = Serving::start(&Served::of(plan.pods, 1))?;
    let directory = std::env::temp_dir().join(format!("informer-compare-{}", std::process::id()));
    std::fs::create_dir(&directory)?;
    let done = rows(plan, server.url(), &directory.join("pods.redb"));
    std::fs::remove_dir_all(&directory)?;
    done
}

fn rows(plan: &Plan, url: &str, file: &Path) -> anyhow::Result<()> {
    println!(
        "{} pods of 8.9 KB, packed\n{:<16} {:>10} {:>8} {:>8} {:>14} {:>10}",
        plan.pods, "", "synced s", "CPU s", "MiB", "then saved s", "file MiB"
    );
    for start in 0..=plan.restarts {
        let output = Command::new(std::env::current_exe()?)
            .args(["warm-client", "--server", url, "--file"])
            .arg(file)
            .stderr(Stdio::inherit())
            .output()?;
        ensure!(output.status.success(), "the client failed");
        let report: Report = serde_json::from_slice(&output.stdout)?;
        ensure!(report.began_with_file == (start > 0), "start {start}: {report:?}");
        println!(
            "{:<16} {:>10.2} {:>8.2} {:>8} {:>14.2} {:>10}",
            if start == 0 { "with a list" } else { "with the file" },
            report.synced,
            report.cpu,
            report.resident_kib >> 10,
            report.saved,
            std::fs::metadata(file)?.len() >> 20
        );
    }
    Ok(())
}

/// One start; prints its report.
pub(crate) fn client(url: &str, file: PathBuf) -> anyhow::Result<()> {
    let waiting = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = waiting.block_on(async {
        let (meter, begun) = (Meter::start(), Instant::now());
        let (runtime, client) = (Runtime::threads().start()?, Client::new(Config::new(url)?)?);
        let source = client.resource::<Pod>().packed().persist(file);
        let pods = source.informer(&runtime)?.start()?;
        pods.synced_within(LONG).await?;
        let (synced, cpu) = (begun.elapsed().as_secs_f64(), meter.cost().cpu);
        let is_saved = |status: &InformerStatus| {
            status.saved.as_ref().is_some_and(|saved| saved.saved_at.is_some() || saved.problem.is_some())
        };
        let saved = pods.wait_until(is_saved).await?.saved.unwrap_or_default();
        ensure!(saved.problem.is_none(), "{:?}", saved.problem);
        anyhow::Ok(Report {
            synced,
            cpu,
            resident_kib: meter::resident()?,
            began_with_file: saved.began_with.is_some(),
            saved: begun.elapsed().as_secs_f64() - synced,
        })
    })?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

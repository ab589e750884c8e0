//! Runs the comparison: starts servers and clients one after another, checks their reports and prints them.
//!
//! Answers "what is started, and when?": in each round every client once, one at a time, each with a new server, first
//! by list and then by watch-list. It measures nothing itself. Invariants:
//! 1. If a client's cache differs from the server's state in any of the three comparisons, the run fails.
//! 2. No process outlives the run: a server ends with the pipe that this process holds.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use clap::ValueEnum;

use crate::clients::{By, Client, Subject};
use crate::drive::Report;
use crate::server::Server;
use crate::table;

/// How much is compared, and how often.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Plan {
    /// Pods that are listed.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) pods: usize,
    /// Changes of them that are watched.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) events: u64,
    /// How often every client runs; the table has medians.
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// How long a client rests before its memory is read.
    #[arg(long, default_value_t = 1_000)]
    pub(crate) settle_ms: u64,
}

impl Plan {
    /// One round of so much.
    pub(crate) fn of(pods: usize, events: u64) -> Self {
        Self { pods, events, rounds: 1, settle_ms: 0 }
    }
}

/// What every client reported, a report for each round.
pub(crate) type Reports = BTreeMap<Subject, Vec<Report>>;

/// Runs every client in every round and prints the table.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    ensure!(plan.pods > 0 && plan.events > 0 && plan.rounds > 0, "nothing to compare");
    let mut reports = Reports::new();
    for round in 1..=plan.rounds {
        for &by in By::value_variants() {
            for &client in Client::value_variants() {
                let subject = Subject { client, by };
                let report = measured(plan, subject).with_context(|| format!("{client} by {by}"))?;
                let Report { sync, synced_kib, events, steady_kib, relist, peak_kib, .. } = &report;
                eprintln!(
                    "round {round}: {client} by {by}: sync {:.2} s of CPU, then {synced_kib} KiB; events {:.2} s, \
                     then {steady_kib} KiB; relist {:.2} s, at most {peak_kib} KiB",
                    sync.cpu, events.cpu, relist.cpu
                );
                reports.entry(subject).or_default().push(report);
            }
        }
    }
    print!("{}", table::table(plan, &reports));
    Ok(())
}

fn measured(plan: &Plan, subject: Subject) -> anyhow::Result<Report> {
    let (_serving, server) = Serving::start(plan)?;
    let before = server.state()?;
    let output = Command::new(std::env::current_exe()?)
        .args(["client", "--server", server.url()])
        .args(["--client", &argument(subject.client), "--by", &argument(subject.by)])
        .args(["--events", &plan.events.to_string(), "--settle-ms", &plan.settle_ms.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "the client failed");
    let report: Report = serde_json::from_slice(&output.stdout)?;
    let after = server.state()?;
    ensure!(before != after, "the events changed nothing");
    ensure!(report.states == [before, after, after], "the cache was not the server's state: {report:?}");
    Ok(report)
}

fn argument(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// A server that ends when this is dropped.
pub(crate) struct Serving(Child);

impl Serving {
    pub(crate) fn start(plan: &Plan) -> anyhow::Result<(Self, Server)> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["serve", "--pods", &plan.pods.to_string(), "--events", &plan.events.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().context("the server's output is piped")?;
        let serving = Self(child);
        let mut url = String::new();
        BufReader::new(stdout).read_line(&mut url)?;
        ensure!(!url.trim().is_empty(), "the server did not start");
        Ok((serving, Server::at(url.trim())))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It ends by itself now; if it is gone already, there is nothing to wait for.
        let _gone = self.0.wait();
    }
}

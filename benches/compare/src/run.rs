//! Runs the comparison: starts servers and clients one after another, checks their reports and prints them.
//!
//! Answers "what is started, and when?": in each round every client once, one at a time, each with a new server, first
//! by watch-list, the bare clients before all others, and then by list. It measures nothing itself. Invariants:
//! 1. No process outlives the run: a server ends with the pipe that this process holds.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use clap::ValueEnum;

use crate::clients::{By, Client, Subject};
use crate::drive::{CHANGED, LONE, Report};
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
    /// Which clients; all unless set.
    #[arg(long, value_delimiter = ',')]
    pub(crate) clients: Vec<Client>,
    /// The server sends protobuf to who asks for it.
    #[arg(skip)]
    pub(crate) protobuf: bool,
}

impl Plan {
    /// One round of so much.
    pub(crate) fn of(pods: usize, events: u64) -> Self {
        Self { pods, events, rounds: 1, settle_ms: 0, clients: Vec::new(), protobuf: false }
    }
}

/// What every client reported, a report for each round.
pub(crate) type Reports = BTreeMap<Subject, Vec<Report>>;

/// Runs every client in every round and prints the table.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    ensure!(plan.pods > 0 && plan.events > 0 && plan.rounds > 0, "nothing to compare");
    let go = std::env::var("INFORMER_GO_CLIENTS").ok();
    let clients = if plan.clients.is_empty() { Client::value_variants() } else { &plan.clients };
    if go.is_none() && clients.iter().any(|client| client.is_go()) {
        println!("client-go: INFORMER_GO_CLIENTS names no program: eval \"$(tests/control-plane/build.sh)\"");
    }
    let is_there = |client: &Client| go.is_some() || !client.is_go();
    let mut reports = Reports::new();
    for round in 1..=plan.rounds {
        for &by in By::value_variants().iter().rev() {
            for &client in clients.iter().filter(|client| is_there(client) && client.goes(by)) {
                let report = measured((plan, go.as_deref()), Subject { client, by });
                let report = report.with_context(|| format!("{client} by {by}"))?;
                eprintln!("round {round}: {client} by {by}: {}", serde_json::to_string(&report)?);
                reports.entry(Subject { client, by }).or_default().push(report);
            }
        }
    }
    print!("{}", table::table(plan, &reports));
    Ok(())
}

fn measured((plan, go): (&Plan, Option<&str>), subject: Subject) -> anyhow::Result<Report> {
    let Subject { client, by } = subject;
    let changed = (plan.pods / CHANGED) as u64;
    let served =
        Plan { protobuf: client.reads_protobuf(), ..Plan::of(plan.pods, plan.events + LONE + changed) };
    let (_serving, server) = Serving::start(&served)?;
    let mut command = match go.filter(|_| client.is_go()) {
        Some(go) => Command::new(go),
        None => Command::new(std::env::current_exe()?),
    };
    match client {
        Client::Go => command.arg("table-bench"),
        Client::GoProtobuf => command.args(["table-bench", "--protobuf"]),
        _ => command.args(["client", "--client", &argument(client), "--by", &argument(by)]),
    };
    let output = command
        .args(["--server", server.url(), "--events", &plan.events.to_string()])
        .args(["--lone", &LONE.to_string(), "--changed", &changed.to_string()])
        .args(["--settle-ms", &plan.settle_ms.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "the client failed");
    Ok(serde_json::from_slice(&output.stdout)?)
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
            .args(plan.protobuf.then_some("--protobuf"))
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

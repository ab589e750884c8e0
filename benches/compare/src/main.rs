//! What the same pods and the same watch events cost in actix-informer and in kube-rs's reflector.
//!
//! Answers "how do the two compare, on one machine, in one run?" with one table. One binary in three parts: `run`
//! (what it does when told nothing) starts `serve`, the replay server, and then one `client`, each in a process of
//! its own, so that what is measured is one client and nothing else. Invariants:
//! 1. Each client has a server of its own, which sends it the same bytes as any other.
//! 2. A figure counts only if the client's cache was equal to the server's state, pod by pod, field by field (without
//!    `managedFields`); otherwise the run fails.
//! 3. Both clients run on the same allocator, on plain HTTP/1.1, each with its own defaults.
//!
//! Linux only where memory is read. Read next: `run.rs`, what is started and when; `drive.rs`, what is measured.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

use clients::Subject;
use run::{Plan, Serving};

mod clients;
mod drive;
mod floor;
mod meter;
#[path = "../../support/pod.rs"]
mod pod;
mod replay;
mod run;
mod server;
mod stalled;
mod state;
mod table;
mod tick;
mod turns;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Compares actix-informer with kube-rs's reflector.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    plan: Plan,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// The replay server alone; prints its URL, and ends when its standard input does.
    Serve {
        /// How many pods it has.
        #[arg(long)]
        pods: usize,
        /// How many of their changes it sends when told.
        #[arg(long)]
        events: u64,
    },
    /// One client alone; prints its figures as one line of JSON.
    Client {
        /// The URL of a fresh replay server.
        #[arg(long)]
        server: String,
        /// How many changes that server has.
        #[arg(long)]
        events: u64,
        #[command(flatten)]
        subject: Subject,
        /// How long it rests before memory is read.
        #[arg(long, default_value_t = 1_000)]
        settle_ms: u64,
    },
    /// actix-informer alone: how late a tick on its arbiter becomes while everything is listed, and how long its turns are
    /// while lists fail, go back and are let go.
    Tick {
        /// How many pods are listed over the network.
        #[arg(long, default_value_t = 100_000)]
        pods: usize,
        /// How many objects the other lists have.
        #[arg(long, default_value_t = 500_000)]
        objects: usize,
    },
    /// An informer that keeps nothing of its objects, and a client without actors that reads the same bytes.
    Floor {
        /// How many pods there are.
        #[arg(long, default_value_t = 20_000)]
        pods: usize,
        /// How many changes of them are told.
        #[arg(long, default_value_t = 200_000)]
        events: u64,
    },
    /// actix-informer alone: ten subscribers, and the same with one that is stalled for ever.
    Stalled {
        /// How many pods there are.
        #[arg(long, default_value_t = 20_000)]
        pods: usize,
        /// How many changes of them are told.
        #[arg(long, default_value_t = 100_000)]
        events: u64,
    },
}

fn main() -> ExitCode {
    let Arguments { part, plan } = Arguments::parse();
    let done = match part {
        None => run::run(&plan),
        Some(Part::Serve { pods, events }) => replay::serve(pods, events),
        Some(Part::Client { server, events, subject, settle_ms }) => {
            drive::client(&server, events, subject, std::time::Duration::from_millis(settle_ms))
        }
        Some(Part::Tick { pods, objects }) => {
            let plan = Plan::of(pods, 1);
            let ticks = Serving::start(&plan).and_then(|(_serving, server)| tick::run(&server));
            ticks.and_then(|()| turns::run(objects))
        }
        Some(Part::Floor { pods, events }) => floor::run(&Plan::of(pods, events)),
        Some(Part::Stalled { pods, events }) => stalled::run(&Plan::of(pods, events)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("informer-compare: {error:#}");
            ExitCode::FAILURE
        }
    }
}

//! Measures what the same pods and the same watch events cost in actix-informer, kube-rs's reflector and client-go.
//!
//! Answers "how do the two compare, on one machine, in one run?" with one table. The binary has three parts: `run` (the
//! default) starts `serve`, the replay server, and then one `client`, each in a process of its own, so that only one
//! client is measured. Invariants:
//! 1. Each client has a server of its own, which sends it the same bytes as any other.
//! 2. A result counts only if the client's cache was equal to the server's state in every field of every pod, except
//!    `managedFields`, after each stretch; otherwise the run fails. Of client-go only the number of pods is compared.
//! 3. The clients in Rust use the same allocator, and all plain HTTP/1.1, each with its own defaults.
//!
//! Linux only where memory is read. Read next: `run.rs`, what is started and when; `drive.rs`, what is measured.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use clients::Subject;
use drive::Stages;
use run::{Plan, Serving};

mod clients;
mod controller;
mod drive;
mod floor;
mod gzip;
mod idle;
mod many;
mod memory;
#[path = "../../support/memory_bar.rs"]
mod memory_bar;
mod meter;
#[expect(dead_code, reason = "the benches of the crate take texts")]
#[path = "../../support/pod.rs"]
mod pod;
mod replay;
mod requests;
mod run;
mod server;
mod stalled;
mod state;
mod table;
mod tick;
mod turns;
mod warm;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
/// Who gives memory to the Rust clients.
const ALLOCATOR_NAME: &str = if cfg!(feature = "mimalloc") { "mimalloc" } else { "the system's allocator" };

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
        /// How many of their changes it sends on command.
        #[arg(long)]
        events: u64,
        /// It sends protobuf to who asks for it.
        #[arg(long)]
        protobuf: bool,
    },
    /// One client alone; prints its figures as one line of JSON.
    Client {
        /// The URL of a fresh replay server.
        #[arg(long)]
        server: String,
        #[command(flatten)]
        stages: Stages,
        #[command(flatten)]
        subject: Subject,
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
        /// How many changes of them are delivered.
        #[arg(long, default_value_t = 200_000)]
        events: u64,
        /// How often both are measured, one after the other.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
    /// Single requests, by actix-informer's `Api` and by kube-rs's, one at a time and 32 in flight.
    Requests {
        /// How many requests each client sends in a round.
        #[arg(long, default_value_t = 10_000)]
        requests: usize,
        /// How many rounds there are; the table has medians.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
    /// 200 informers of 50 kinds: a factory of actix-informer, kube-rs's reflectors and client-go's factories.
    Factory(many::Plan),
    /// The server of `factory` alone; prints where it is, and ends when its standard input does.
    ManyServe {
        /// How many kinds there are.
        #[arg(long)]
        kinds: usize,
        /// How many objects each has.
        #[arg(long)]
        objects: usize,
        /// Over HTTPS.
        #[arg(long)]
        tls: bool,
    },
    /// One client of `factory` alone; prints its figures as one line of JSON.
    ManyClient {
        /// The URL of a server of `factory`, or a kubeconfig.
        #[arg(long)]
        server: String,
        /// Which client.
        #[arg(long)]
        client: many::Client,
        #[command(flatten)]
        plan: many::Plan,
    },
    /// Lists in pages, plain and with gzip, over networks of several speeds.
    Gzip(gzip::Plan),
    /// The server of `gzip` alone; prints its URL, and ends when its standard input does.
    GzipServe {
        /// Mebibytes a second that it sends at most; 0: no limit.
        #[arg(long)]
        speed: u64,
    },
    /// One operator with 10,000 objects: actix-informer's controller, kube-rs's and controller-runtime's.
    Controller(controller::Plan),
    /// The server of `controller` alone; prints its URL, is told what to do, and ends when its standard input does.
    ControllerServe(controller::Plan),
    /// One client of `controller` alone; tells its figures when it is asked, and ends when its standard input does.
    ControllerClient {
        /// The URL of a server of `controller`.
        #[arg(long)]
        server: String,
        /// Which client.
        #[arg(long)]
        client: controller::Client,
        /// How many reconciles run at the same time.
        #[arg(long)]
        workers: usize,
    },
    /// actix-informer alone: 100 controllers on one runtime while nothing changes.
    Idle(idle::Plan),
    /// How memory grows while objects change: typed, lazy, dynamic and metadata informers, and kube-rs's reflector.
    Memory(memory::Plan),
    /// One client of `memory` alone; prints its figures as one line of JSON.
    MemoryClient {
        /// The URL of a fresh replay server.
        #[arg(long)]
        server: String,
        /// Whose cache.
        #[arg(long)]
        client: memory::Kept,
        /// How many changes that server has.
        #[arg(long)]
        changes: u64,
        /// How many of them there are in a second; 0: as fast as they are read.
        #[arg(long)]
        rate: u64,
    },
    /// How long an informer takes until its objects are there: with a list, and with a file of them.
    Warm(warm::Plan),
    /// One client of `warm` alone; prints its figures as one line of JSON.
    WarmClient {
        /// The URL of a replay server.
        #[arg(long)]
        server: String,
        /// Where it saves.
        #[arg(long)]
        file: std::path::PathBuf,
    },
    /// actix-informer alone: ten subscribers, and the same with one that is stalled for ever.
    Stalled {
        /// How many pods there are.
        #[arg(long, default_value_t = 20_000)]
        pods: usize,
        /// How many changes of them are delivered.
        #[arg(long, default_value_t = 100_000)]
        events: u64,
    },
}

fn main() -> ExitCode {
    let Arguments { part, plan } = Arguments::parse();
    let done = match part {
        None => run::run(&plan),
        Some(Part::Serve { pods, events, protobuf }) => replay::serve(pods, events, protobuf),
        Some(Part::Client { server, stages, subject }) => drive::client(&server, stages, subject),
        Some(Part::Tick { pods, objects }) => {
            let plan = Plan::of(pods, 1);
            let ticks = Serving::start(&plan).and_then(|(_serving, server)| tick::run(&server));
            ticks.and_then(|()| turns::run(objects))
        }
        Some(Part::Floor { pods, events, rounds }) => floor::run(&Plan { rounds, ..Plan::of(pods, events) }),
        Some(Part::Requests { requests, rounds }) => requests::run(requests, rounds),
        Some(Part::Factory(plan)) => many::run(&plan),
        Some(Part::ManyServe { kinds, objects, tls }) => many::serve(kinds, objects, tls),
        Some(Part::ManyClient { server, client, plan }) => many::client(&server, client, &plan),
        Some(Part::Gzip(plan)) => gzip::run(&plan),
        Some(Part::GzipServe { speed }) => gzip::serve(speed),
        Some(Part::Controller(plan)) => controller::run(&plan),
        Some(Part::ControllerServe(plan)) => controller::serve(&plan),
        Some(Part::ControllerClient { server, client, workers }) => {
            controller::client(&server, client, workers)
        }
        Some(Part::Memory(plan)) => memory::run(&plan),
        Some(Part::MemoryClient { server, client, changes, rate }) => {
            memory::client(&server, client, changes, rate)
        }
        Some(Part::Warm(plan)) => warm::run(&plan),
        Some(Part::WarmClient { server, file }) => warm::client(&server, file),
        Some(Part::Idle(plan)) => idle::run(&plan),
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

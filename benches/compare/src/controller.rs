//! Measures the same operator with actix-informer's controller, kube-rs's, and controller-runtime's.
//!
//! Answers "what does an operator cost?": 10,000 websites, each with a config map, a service and a deployment. Invariants:
//! 1. The rule for all: a reconcile applies the three children by server-side apply, always and one after the other, and
//!    patches the status if it has not observed the generation. Only `informer-children` leaves out what its helper
//!    knows to change nothing: kube-rs has no such helper. Updates of a website that change no generation lead to no
//!    reconcile where the library can leave them out. The rest is each library's own: caches, queue, what it watches.
//! 2. Each client is a process of its own beside a server of its own, in turn, round by round, with the same number of
//!    workers and without a debounce, as is each one's default. The Rust ones use the same allocator.
//! 3. A stretch ends when the server's store is in order, whatever the client says.
//!
//! Read next: `controller/drive.rs`, what is measured; `controller/server.rs`, what is in order.

mod drive;
mod informer;
mod kube;
mod server;
mod subject;
mod table;
mod website;

use std::time::Duration;

use anyhow::ensure;
use clap::ValueEnum;

pub(crate) use self::server::serve;
pub(crate) use self::subject::client;
use self::table::Reports;

/// How much is reconciled.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Plan {
    /// How many objects there are, each with three children.
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
    /// How many changes a second are made of random objects.
    #[arg(long, default_value_t = 2_000)]
    changes_per_second: u64,
    /// For how long.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// For how long nothing changes.
    #[arg(long, default_value_t = 10)]
    idle_seconds: u64,
    /// For how long a client has to end no reconcile, to count as quiet: longer than it waits after an error, which are
    /// 5 s in kube-rs's guide.
    #[arg(long, default_value_t = 6_000)]
    quiet_ms: u64,
    /// For how long everything may be out of order in a stretch: a client that takes longer has this as its time.
    #[arg(long, default_value_t = 300)]
    limit_seconds: u64,
    /// How many reconciles run at the same time.
    #[arg(long, default_value_t = 16)]
    workers: usize,
    /// How often each client runs; the table has medians.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// From what the changes are drawn.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many threads the server has.
    #[arg(long, default_value_t = 1)]
    server_workers: usize,
    /// A server that keeps no managed fields: writes cost it less, and objects are smaller.
    #[arg(long)]
    bare_server: bool,
    /// Which clients run.
    #[arg(long, value_delimiter = ',', default_values_t = Client::value_variants().to_vec(), value_parser = clap::value_parser!(Client))]
    clients: Vec<Client>,
}

impl Plan {
    fn changes(&self) -> u64 {
        self.changes_per_second * self.seconds
    }

    /// One child of every tenth object is deleted.
    fn deleted(&self) -> usize {
        self.objects / 10
    }

    fn quiet(&self) -> Duration {
        Duration::from_millis(self.quiet_ms)
    }

    /// What the server has to know, as arguments.
    fn arguments(&self) -> Vec<String> {
        let numbers = [("--objects", self.objects), ("--server-workers", self.server_workers)];
        let mut all: Vec<String> =
            numbers.iter().flat_map(|(name, number)| [(*name).to_owned(), number.to_string()]).collect();
        all.extend(["--seed".to_owned(), self.seed.to_string()]);
        all.extend(self.bare_server.then(|| "--bare-server".to_owned()));
        all
    }
}

/// Whose controller it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Client {
    /// actix-informer's, as it comes.
    Informer,
    /// actix-informer's, as it comes, on a lazy cache of the websites.
    InformerLazy,
    /// actix-informer's, with what its documentation advises for large numbers.
    InformerTuned,
    /// actix-informer's tuned, with `Children` on a cache of their controllers, as its guide shows it for many objects.
    InformerChildren,
    /// kube-rs's, as its guide shows it.
    Kube,
    /// kube-rs's, with what its documentation advises for large numbers.
    KubeTuned,
    /// controller-runtime's, if `INFORMER_GO_CLIENTS` names the program.
    Go,
}

impl std::fmt::Display for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&name(*self))
    }
}

/// Runs every client in every round and prints the table, then all figures as one line of JSON.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    let numbers = [plan.objects as u64, plan.changes(), plan.workers as u64, plan.rounds as u64];
    ensure!(numbers.iter().all(|number| *number > 0), "nothing to compare");
    let go = std::env::var("INFORMER_GO_CLIENTS").ok();
    let clients = plan.clients.iter().filter(|client| **client != Client::Go || go.is_some());
    let mut reports = Reports::new();
    for round in 1..=plan.rounds {
        for &client in clients.clone() {
            let report = drive::drive(plan, client, go.as_deref())?;
            eprintln!("round {round}, {client}: {}", serde_json::to_string(&report)?);
            reports.entry(client).or_default().push(report);
        }
    }
    print!("{}", table::table(plan, &reports));
    let all: std::collections::BTreeMap<_, _> =
        reports.iter().map(|(client, reports)| (name(*client), reports)).collect();
    println!("{}", serde_json::to_string(&all)?);
    if go.is_none() && plan.clients.contains(&Client::Go) {
        println!("go: INFORMER_GO_CLIENTS names no program: eval \"$(tests/control-plane/build.sh)\"");
    }
    Ok(())
}

fn name(client: Client) -> String {
    client.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

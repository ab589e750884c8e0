//! A replica of an operator as a process of its own, which can be stopped, woken and killed.
//!
//! Answers "what does a leader write that knows nothing of being stopped?" The process is this test binary again: it runs
//! the one test below, which does nothing in other runs. Its two workers create config maps as long as their guarded
//! client lets them, and look neither at the election nor at a clock. They are work of their term: the process does not lead
//! again before both have been refused. Invariants:
//! 1. The name of each config map says who wrote it, in which term, and as which; the server's versions are their order.
//! 2. Each worker prints a line before each of its requests and behind it: a worker whose last line is the second one has
//!    nothing under way.
//! 3. The process ends when its parent does.
//!
//! Read next: `leader.rs`, which runs replicas.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use actix_informer::leader_election::{LeaderElection, LeaderElectionBuilder, LeaseName};
use actix_informer::prelude::*;
use futures_util::future::join;
use k8s_openapi::api::core::v1::ConfigMap;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::sleep;

use crate::stage::{LONG, Stage};

/// The lease that replicas compete for.
pub(crate) const LEASE: &str = "operator";
/// How many requests each replica has under way.
pub(crate) const WORKERS: usize = 2;

const VARIABLES: [&str; 4] = ["REPLICA_NAMESPACE", "REPLICA_IDENTITY", "REPLICA_KUBECONFIG", "REPLICA_NAPS"];

/// Durations that make a takeover a matter of seconds.
pub(crate) fn quick(builder: LeaderElectionBuilder) -> LeaderElectionBuilder {
    builder
        .lease_duration(Duration::from_secs(4))
        .renew_deadline(Duration::from_secs(3))
        .retry_period(Duration::from_millis(300))
}

/// A running process. It is killed at the drop.
pub(crate) struct Replica {
    child: Child,
    lines: Receiver<String>,
}

impl Replica {
    /// Starts a replica of this name on the stage.
    pub(crate) fn start(stage: &Stage, identity: &str) -> Self {
        Self::start_with(stage, identity, 1)
    }

    /// As [`Self::start`]. Each worker naps so often between two requests: what is left of many naps when the process is
    /// stopped is still left when it wakes.
    pub(crate) fn start_with(stage: &Stage, identity: &str, naps: u32) -> Self {
        let program = std::env::current_exe().expect("this program");
        let values =
            [stage.namespace.clone(), identity.to_owned(), stage.server.kubeconfig(), naps.to_string()];
        let mut child = Command::new(program)
            .args(["replica::runs_as_a_process_of_its_own", "--exact", "--nocapture"])
            .envs(VARIABLES.into_iter().zip(values))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().expect("its output"));
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                drop(sender.send(line));
            }
        });
        Self { child, lines }
    }

    /// Waits until it prints a line that begins so, and gives the rest.
    pub(crate) async fn prints(&self, begin: &str) -> String {
        let found = async {
            loop {
                match self.lines.try_recv().ok().and_then(|line| line.strip_prefix(begin).map(str::to_owned))
                {
                    Some(rest) => return rest,
                    None => sleep(Duration::from_millis(5)).await,
                }
            }
        };
        tokio::time::timeout(LONG, found).await.unwrap_or_else(|_| panic!("it does not print {begin:?}"))
    }

    /// Forgets what it has printed. Gives the workers that had a request under way, by what was printed since the last call.
    pub(crate) fn under_way(&self) -> BTreeSet<String> {
        let mut workers = BTreeSet::new();
        for line in self.lines.try_iter() {
            if let Some(worker) = line.strip_prefix("begins ") {
                workers.insert(worker.to_owned());
            } else if let Some(worker) = line.strip_prefix("ended ") {
                workers.remove(worker);
            }
        }
        workers
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(id, signal).expect("it runs");
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn runs_as_a_process_of_its_own() {
    let values = VARIABLES.map(|name| std::env::var(name).ok());
    let [Some(namespace), Some(identity), Some(kubeconfig), Some(naps)] = values else { return };
    let naps = naps.parse().expect("a number");
    std::thread::spawn(|| {
        // The parent holds the other end of this pipe.
        let _ended = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(1);
    });
    actix_rt::Runtime::new().expect("a runtime").block_on(async {
        let client = Client::new(Config::from_kubeconfig_text(&kubeconfig, None).expect("a kubeconfig"));
        let (client, runtime) = (client.expect("a client"), Runtime::threads().start().expect("threads"));
        let election =
            LeaderElection::builder(&client, &runtime, LeaseName { namespace: &namespace, name: LEASE })
                .identity(&*identity);
        let election = quick(election).start().expect("it starts");
        let leading = election.guard(&client).api::<ConfigMap>().namespaced(namespace);
        loop {
            let term = election.acquired().await.expect("nobody shuts it down");
            let Some(work) = term.begin_work() else { continue };
            let term = term.fence();
            println!("\nleads {term}");
            let worker = |number| create(&leading, format!("{identity}-{term}-{number}"), naps);
            join(worker(0), worker(1)).await;
            println!("\nrefused {term}");
            drop(work);
        }
    });
}

/// Creates config maps until a request is refused because this process does not lead.
async fn create(maps: &Api<ConfigMap>, worker: String, naps: u32) {
    for number in 0.. {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(format!("{worker}-{number}"));
        map.metadata.labels = Some(BTreeMap::from([("written-by".to_owned(), worker.clone())]));
        println!("\nbegins {worker}");
        let created = maps.create(&PostParams::default(), &map).await;
        println!("\nended {worker}");
        if created.is_err_and(|error| error.is_not_leading()) {
            return;
        }
        for _ in 0..naps {
            sleep(Duration::from_millis(30)).await;
        }
    }
}

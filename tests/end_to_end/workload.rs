//! A seeded random workload: what a cluster does all day, running while something else fails.
//!
//! Answers "what if it happens while everything changes?" Creates, label changes (some of which take a pod out of the
//! selector or back into it), status patches, deletions, and deletions followed at once by a creation of that name,
//! over HTTP. It checks nothing itself: the comparison at the end does. Invariants:
//! 1. One seed gives one sequence of intended writes; the result of each depends on the server.
//! 2. A server that is away stops no writer: a write without an answer leaves the state of its name unknown, and the
//!    next write of that name finds it out.
//! 3. After `stop` this process has no open write. What the server still does with an unanswered one is not known
//!    here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix_informer::client::Error;
use actix_rt::task::JoinHandle;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::api::{Api, MERGE_PATCH, pod, pods};
use crate::stage::until;

/// How many names there are in each namespace.
const NAMES: usize = 40;

/// What is written, how often, and from which seed.
pub(crate) struct Plan {
    /// One writer each.
    pub(crate) namespaces: Vec<String>,
    /// The label that selects what is written.
    pub(crate) label: String,
    pub(crate) writes_per_second: u32,
    pub(crate) seed: u64,
}

/// Writers at work.
pub(crate) struct Workload {
    tally: Arc<Tally>,
    stopping: watch::Sender<bool>,
    writers: Vec<JoinHandle<()>>,
}

/// The results of the writes.
#[derive(Default)]
struct Tally {
    acknowledged: AtomicU64,
    refused: AtomicU64,
    unanswered: AtomicU64,
}

impl Workload {
    /// Begins to write.
    pub(crate) fn start(api: &Api, plan: &Plan) -> Self {
        let (tally, (stopping, stop)) = (Arc::new(Tally::default()), watch::channel(false));
        let writers = u32::try_from(plan.namespaces.len()).expect("a few");
        let period = Duration::from_secs(1) * writers / plan.writes_per_second;
        let writer = |(n, namespace): (usize, &String)| Writer {
            api: api.clone(),
            namespace: namespace.clone(),
            label: plan.label.clone(),
            random: fastrand::Rng::with_seed(plan.seed.wrapping_add(n as u64)),
            beliefs: vec![Belief::Absent; NAMES],
            tally: Arc::clone(&tally),
        };
        let writers = plan.namespaces.iter().enumerate().map(writer);
        let writers = writers.map(|writer| actix_rt::spawn(writer.write(period, stop.clone()))).collect();
        Self { tally, stopping, writers }
    }

    /// Waits until the server has acknowledged so many writes more.
    pub(crate) async fn goes_on(&self, writes: u64) {
        let wanted = self.acknowledged() + writes;
        until("the workload goes on", || self.acknowledged() >= wanted).await;
    }

    /// How many writes the server has acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.tally.acknowledged.load(Ordering::Relaxed)
    }

    /// Waits for the open writes, and returns a line with the results of all.
    pub(crate) async fn stop(self) -> String {
        self.stopping.send_replace(true);
        for writer in self.writers {
            writer.await.expect("writers do not panic");
        }
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Tally { acknowledged, refused, unanswered } = &*self.tally;
        let (refused, unanswered) = (count(refused), count(unanswered));
        format!("{} writes acknowledged, {refused} refused, {unanswered} unanswered", count(acknowledged))
    }
}

/// Writes one namespace, one write at a time.
struct Writer {
    api: Api,
    namespace: String,
    label: String,
    random: fastrand::Rng,
    beliefs: Vec<Belief>,
    tally: Arc<Tally>,
}

/// Whether a pod of a name exists, as far as is known here.
#[derive(Clone, Copy, PartialEq)]
enum Belief {
    Present,
    Absent,
    InDoubt,
}

impl Writer {
    async fn write(mut self, period: Duration, mut stop: watch::Receiver<bool>) {
        let mut pace = interval(period);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _stopping_or_dropped = stop.wait_for(|stopping| *stopping) => return,
                _ = pace.tick() => {}
            }
            self.write_one().await;
        }
    }

    async fn write_one(&mut self) {
        let n = self.random.usize(..NAMES);
        // Drawn in any case, so that the sequence does not depend on the server.
        let (dice, value) = (self.random.u8(..100), self.random.u32(..));
        if self.beliefs[n] != Belief::Present {
            return self.create(n).await;
        }
        match dice {
            0..45 => self.patch(n, "", json!({"metadata": {"labels": {"app": format!("v{value}")}}})).await,
            45..70 => self.patch(n, "/status", json!({"status": {"message": format!("m{value}")}})).await,
            70..80 => {
                let selected = (value % 2 == 0).then_some("yes");
                let labels = json!({"metadata": {"labels": {(&*self.label): selected}}});
                self.patch(n, "", labels).await;
            }
            80..90 => self.delete(n).await,
            _ => {
                self.delete(n).await;
                self.create(n).await;
            }
        }
    }

    async fn create(&mut self, n: usize) {
        let mut pod = pod(&name(n));
        pod["metadata"]["labels"][&self.label] = json!("yes");
        let body = Some(("application/json", pod.to_string().into_bytes()));
        self.ask(n, (Method::POST, pods(&self.namespace)), body, Belief::Present).await;
    }

    async fn patch(&mut self, n: usize, subresource: &str, patch: Value) {
        let path = format!("{}/{}{subresource}", pods(&self.namespace), name(n));
        let body = Some((MERGE_PATCH, patch.to_string().into_bytes()));
        self.ask(n, (Method::PATCH, path), body, Belief::Present).await;
    }

    async fn delete(&mut self, n: usize) {
        let path = format!("{}/{}", pods(&self.namespace), name(n));
        self.ask(n, (Method::DELETE, path), None, Belief::Absent).await;
    }

    /// Sends one write; `then` is the assumed state when it was done.
    async fn ask(
        &mut self,
        n: usize,
        (method, path): (Method, String),
        body: Option<(&str, Vec<u8>)>,
        then: Belief,
    ) {
        let (counter, belief) = match self.api.try_ask(method, &path, body).await {
            Ok(_) => (&self.tally.acknowledged, then),
            Err(Error::Refused(status)) => match status.code {
                404 => (&self.tally.refused, Belief::Absent),
                409 => (&self.tally.refused, Belief::Present),
                // A server that had a failure may have applied it before that.
                _ => (&self.tally.refused, Belief::InDoubt),
            },
            Err(_) => (&self.tally.unanswered, Belief::InDoubt),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.beliefs[n] = belief;
    }
}

fn name(n: usize) -> String {
    format!("pod-{n:02}")
}

//! Informers with their subscribers, a random workload, and a relay of its own for each informer: what a disaster
//! affects.
//!
//! Answers "has any subscriber received an untrue event?" A trial begins healthy; a scenario then causes its disaster,
//! and `ends` checks the result. Invariants:
//! 1. Two ways of listing are on trial each time: watch-list, and paged list with a watch.
//! 2. Each informer has three subscribers: one that receives the newest state, one that receives every event, and one
//!    that is slower than the workload, whose backlog is coalesced, or dropped and delivered as a difference.
//! 3. `ends` requires three things that no disaster excuses: the store equals the server's list; each subscriber's
//!    events, replayed, give the store; no event contradicts another.
//! 4. The workload outlasts the disaster: the end is compared only after more was written.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix_informer::prelude::*;
use actix_informer::testing::Recorder;
use informer_core::backoff::BackoffPolicy;
use informer_core::reflector::ReflectorConfig;
use tokio::time::{Instant, sleep};

use crate::api::{pod, pods};
use crate::followed::{Followed, Watched};
use crate::relay::Relay;
use crate::stage::{LOOK, Pod, Stage, eventually};
use crate::workload::{Plan, Workload};

/// Writes a second, unless a scenario sets fewer.
pub(crate) const BUSY: u32 = 60;
/// How long it may take from the end of a disaster to agreement: above the longest wait between two attempts.
const REPAIR: Duration = Duration::from_secs(240);
/// How often the server is asked again for its list, in case a write of unknown result has been applied late.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// How long the slow subscriber takes for each event.
const SLOWNESS: Duration = Duration::from_millis(30);
/// The longest lower bound of a wait of informers with short waits.
const SOON: Duration = Duration::from_secs(1);
/// How many bytes may wait for a subscriber to every event.
const EVERY_BYTES: usize = 32 << 20;
/// The same for one that then receives the difference instead: some twenty events.
const FEW_BYTES: usize = 32 << 10;
const PAGE: u32 = 20;

/// All participants of one disaster.
pub(crate) struct Trial {
    pub(crate) stage: Stage,
    pub(crate) observers: Vec<Observer>,
    pub(crate) workload: Workload,
    marks: AtomicU64,
}

/// An informer behind a relay, with its subscribers.
pub(crate) struct Observer {
    pub(crate) name: &'static str,
    pub(crate) wire: Relay,
    pub(crate) pods: Followed<Pod>,
    every: Watched<Pod>,
    slow: Watched<Pod>,
}

/// One pod, written to see whether its event arrives.
pub(crate) struct Mark {
    pub(crate) key: ObjectKey,
    written: Instant,
}

impl Trial {
    /// A busy cluster, in which both informers have synced and stream.
    pub(crate) async fn begin(stage: Stage) -> Self {
        Self::begin_with(stage, BUSY, |_| {}).await
    }

    /// The same with this many writes a second, and relays with this fault from the beginning.
    pub(crate) async fn begin_with(stage: Stage, writes_per_second: u32, wire: impl Fn(&Relay)) -> Self {
        Self::begin_as(stage, writes_per_second, wire, |config| config).await
    }

    /// The same as the first, with informers that wait for two seconds where others wait for a minute.
    pub(crate) async fn begin_hurried(stage: Stage) -> Self {
        let hurry = |config| ReflectorConfig {
            backoff: BackoffPolicy { cap: SOON, ..BackoffPolicy::default() },
            refused_wait: SOON,
            ..config
        };
        Self::begin_as(stage, BUSY, |_| {}, hurry).await
    }

    async fn begin_as(
        stage: Stage,
        writes_per_second: u32,
        wire: impl Fn(&Relay),
        configure: fn(ReflectorConfig) -> ReflectorConfig,
    ) -> Self {
        let mut namespaces = vec![stage.namespace.clone()];
        for more in ["b", "c"] {
            let namespace = format!("{}-{more}", stage.namespace);
            stage.api.create_namespace(&namespace).await;
            namespaces.push(namespace);
        }
        let plan = Plan { namespaces, label: label(&stage), writes_per_second, seed: stage.seed };
        let workload = Workload::start(&stage.api, &plan);
        workload.goes_on(30).await;
        let mut trial = Self { stage, observers: Vec::new(), workload, marks: AtomicU64::new(0) };
        trial.observe("streamed", configure, &wire).await;
        let listed = |config| {
            let config = configure(config);
            ReflectorConfig { watch_list: false, page_size: Some(PAGE), ..config }
        };
        trial.observe("listed", listed, &wire).await;
        for observer in &trial.observers {
            observer.pods.informer.synced_within(REPAIR).await.expect("it syncs");
            observer.pods.follows().await;
        }
        trial
    }

    /// Starts one more informer behind a relay of its own.
    pub(crate) async fn observe(
        &mut self,
        name: &'static str,
        configure: impl FnOnce(ReflectorConfig) -> ReflectorConfig,
        set: impl FnOnce(&Relay),
    ) -> &Observer {
        let wire = Relay::to(&self.stage.server).await;
        set(&wire);
        let client = self.stage.server.client_through(&wire, self.stage.context);
        let source = client.resource::<Pod>().labels(label(&self.stage));
        let source = source.settings(|settings| *settings = configure(settings.clone()));
        let builder = source.name(name).informer(&self.stage.runtime).expect("a valid selector");
        let pods = Followed::start(builder, &[]);
        let options = SubscribeOptions::new().name("every").every(EVERY_BYTES, WhenFull::Disconnect);
        let every = Watched::of(&pods.informer, options);
        let lagging = SubscribeOptions::new().name("slow");
        let lagging = match name {
            "listed" => lagging.every(FEW_BYTES, WhenFull::Restate),
            _ => lagging,
        };
        let slow = slow(&pods.informer, lagging);
        self.observers.push(Observer { name, wire, pods, every, slow });
        self.observers.last().expect("it was put there")
    }

    /// Does the same to each relay.
    pub(crate) fn wires(&self, act: impl Fn(&Relay)) {
        self.observers.iter().for_each(|observer| act(&observer.wire));
    }

    /// Lets the disaster last: its duration, in the real time of the servers, is a part of it.
    pub(crate) async fn lasts(&self, length: Duration) {
        sleep(length).await;
    }

    /// Writes a pod that the workload does not touch.
    pub(crate) async fn mark(&self) -> Mark {
        let namespace = &*self.stage.namespace;
        let name = format!("mark-{}", self.marks.fetch_add(1, Ordering::Relaxed));
        self.create(&name).await;
        Mark { key: ObjectKey::namespaced(namespace, name), written: Instant::now() }
    }

    /// Creates a pod of this name, selected.
    pub(crate) async fn create(&self, name: &str) {
        let mut pod = pod(name);
        pod["metadata"]["labels"][label(&self.stage)] = "yes".into();
        self.stage.api.post(&pods(&self.stage.namespace), &pod).await;
    }

    /// Waits until every informer has the marked pod, and returns the time since it was written.
    pub(crate) async fn arrives(&self, mark: &Mark) -> Duration {
        for Observer { name, pods, .. } in &self.observers {
            let lister = pods.informer.lister();
            let known =
                || lister.get(&mark.key).ok_or_else(|| format!("{name}: {:?}", pods.informer.status()));
            eventually("the marked pod arrives", || known().map(drop)).await;
        }
        mark.written.elapsed()
    }

    /// How many failures each informer has met.
    pub(crate) fn failures(&self) -> Vec<u64> {
        self.observers.iter().map(|observer| observer.pods.counters().failures).collect()
    }

    /// Removes all faults: everything must come to agree with the server.
    pub(crate) async fn ends(self) {
        let Self { stage, observers, workload, .. } = self;
        workload.goes_on(30).await;
        let written = workload.stop().await;
        let count = agree(&stage, &observers).await;
        for observer in &observers {
            observer.pods.streams().await;
        }
        eprintln!("{}: {}: {count} pods at the end; {written}", stage.server.name(), stage.namespace);
        for observer in &observers {
            observer.received_the_truth().await;
        }
    }
}

impl Observer {
    /// Waits until each subscriber's replay equals the store; a contradiction among its events fails at last.
    async fn received_the_truth(&self) {
        let informer = &self.pods.informer;
        for (kind, watched) in [("newest", &self.pods.first), ("every", &self.every), ("slow", &self.slow)] {
            let what = format!("what {} of {} received is the store", kind, self.name);
            eventually(&what, || watched.received.agrees_with(&informer.snapshot())).await;
            assert_eq!(watched.subscription.ended(), None, "{what}");
        }
        let received = (self.every.received.len(), self.slow.received.len());
        assert!(
            received.1 <= received.0,
            "the slow subscriber does not receive what it missed: {received:?}"
        );
    }
}

/// Waits until each store equals the server's list, and returns its length. The list is taken anew each time:
/// a write whose answer was lost may be applied late.
async fn agree(stage: &Stage, observers: &[Observer]) -> usize {
    let end = Instant::now() + REPAIR;
    loop {
        let expected = stage.api.list(&format!("/api/v1/pods?labelSelector={}", label(stage))).await;
        let ask_again = Instant::now() + ASK_AGAIN;
        loop {
            let differs = |observer: &Observer| {
                let why = observer.pods.differs(&expected).err()?;
                Some(format!("{}: {why}; {:?}", observer.name, observer.pods.informer.status()))
            };
            let Some(why) = observers.iter().find_map(differs) else { return expected.len() };
            assert!(Instant::now() < end, "not the server's list: {why}");
            if Instant::now() >= ask_again {
                break;
            }
            sleep(LOOK).await;
        }
    }
}

/// The label that the informers on this stage select; its value is `yes`.
fn label(stage: &Stage) -> String {
    format!("trial-{}", stage.namespace)
}

/// A closure that takes some time for each event.
fn slow(informer: &Informer<Pod>, options: SubscribeOptions<Pod>) -> Watched<Pod> {
    let received = Recorder::new().1;
    let record = received.clone();
    let subscription = informer.subscribe_with(
        options,
        Subscriber::each(move |notify: Notify<Pod>| {
            let record = record.clone();
            async move {
                // A slow subscriber, not a wait of the test.
                sleep(SLOWNESS).await;
                record.record(&notify);
            }
        }),
    );
    Watched { subscription: subscription.expect("the informer runs"), received }
}

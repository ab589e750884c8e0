//! A running informer that gets batches from the benchmark, and subscribed actors that count events.
//!
//! Answers "when has every subscriber handled every event?". Reflector, DeltaFifo, Indexer, Processor and Listeners run
//! as in production, on threads of `Runtime::threads()`; the counting actors run on the benchmark's thread, as a user's
//! actors would. Invariants:
//! 1. [`Pipeline::start`] and each stretch of [`Updated::run`] end when every subscriber has handled every event.
//! 2. A stretch updates no key twice, so nothing is coalesced: every update is delivered.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use actix::{Actor, Context, Handler};
use actix_informer::informer::Informer;
use actix_informer::runtime::Runtime;
use actix_informer::subscription::Subscription;
use criterion::measurement::Measurement;
use futures_util::{StreamExt, stream};
use informer_actors::subscription::Notify;
use informer_core::meta::{Object, ResourceVersion};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::cost::spent;
use super::feed::feed;
use super::objects::{BATCH, Batch, Body, Population};

/// The threads: one for pipelines, one that frees. The subscribers run on the benchmark's thread.
pub(crate) fn threads() -> Runtime {
    let threads = Runtime::threads().decoders(1).start_jitter(Duration::ZERO);
    threads.start().expect("three threads can be started")
}

/// An informer that has delivered its first list and waits for batches.
pub(crate) struct Pipeline {
    main: actix_rt::Runtime,
    informer: Informer<Body>,
    batches: UnboundedSender<Batch>,
    counts: Rc<Counts>,
    subscriptions: Vec<Subscription<Body>>,
}

impl Pipeline {
    /// Lists `objects` and delivers them to this many subscribers.
    pub(crate) fn start(
        runtime: &Runtime,
        objects: &[Object<Body>],
        version: ResourceVersion,
        listeners: usize,
    ) -> Self {
        let (batches, mut waiting) = unbounded_channel();
        let live = stream::poll_fn(move |cx| waiting.poll_recv(cx)).boxed();
        let source = feed(objects, version, live);
        let informer = Informer::builder(runtime, "fed").source_with(source).start();
        let informer = informer.expect("its name is free and it has a source");
        let main = actix_rt::Runtime::new().expect("a runtime can be started");
        let counts = Rc::new(Counts::default());
        let subscribe = || {
            let counter = main.block_on(async { Counter(Rc::clone(&counts)).start() });
            informer.subscribe(counter).expect("the informer runs")
        };
        let subscriptions = (0..listeners).map(|_| subscribe()).collect();
        let started = Self { main, informer, batches, counts, subscriptions };
        started.wait(objects.len());
        started
    }

    /// Sends batches, which together update no key twice, and waits until they are delivered.
    fn apply(&self, batches: Vec<Batch>) {
        let updates = batches.iter().map(Vec::len).sum();
        for batch in batches {
            self.batches.send(batch).expect("the feed is watched");
        }
        self.wait(updates);
    }

    /// Stops all actors.
    pub(crate) fn stop(self) {
        let Self { main, informer, subscriptions, .. } = self;
        drop(subscriptions);
        main.block_on(informer.shutdown(Duration::from_secs(5)));
    }

    /// Waits for this many more events at each subscriber.
    fn wait(&self, events: usize) {
        let all = events * self.subscriptions.len();
        self.main.block_on(self.counts.count_to(all));
    }
}

/// A population, and the pipeline that follows its updates.
pub(crate) struct Updated {
    population: Population,
    pipeline: Pipeline,
    /// Batches in one stretch.
    batches: usize,
}

impl Updated {
    /// Lists `keys` objects for this many subscribers; a stretch has at most `batches` batches.
    pub(crate) fn new(keys: usize, listeners: usize, batches: usize) -> Self {
        let mut population = Population::new(keys);
        let objects = population.everything();
        let pipeline = Pipeline::start(&threads(), &objects, population.version(), listeners);
        Self { population, pipeline, batches: stretch(keys, batches) }
    }

    /// The cost of this many stretches. The objects of each are made before it and not counted.
    pub(crate) fn run<M: Measurement>(&mut self, measurement: &M, times: u64) -> M::Value {
        let Self { population, pipeline, batches } = self;
        let one = |sum: M::Value, _| {
            let stretch = (0..*batches).map(|_| population.batch(BATCH)).collect();
            measurement.add(&sum, &spent(measurement, || pipeline.apply(stretch)))
        };
        (0..times).fold(measurement.zero(), one)
    }

    /// The informer that is fed.
    #[allow(dead_code, reason = "not every benchmark uses it")]
    pub(crate) fn informer(&self) -> &Informer<Body> {
        &self.pipeline.informer
    }

    /// Stops all actors.
    pub(crate) fn stop(self) {
        self.pipeline.stop();
    }
}

/// A thread that has read a snapshot once and sleeps until this is dropped.
#[allow(dead_code, reason = "not every benchmark has readers")]
pub(crate) struct IdleReader(std::sync::mpsc::Sender<()>);

#[allow(dead_code, reason = "not every benchmark has readers")]
impl IdleReader {
    /// Returns when the thread has read.
    pub(crate) fn new(informer: &Informer<Body>) -> Self {
        let ((end, ended), (read, has_read)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
        let informer = informer.clone();
        std::thread::spawn(move || {
            read.send(informer.snapshot().len()).expect("the constructor waits for it");
            drop(informer);
            let _dropped: Result<(), _> = ended.recv();
        });
        has_read.recv().expect("the thread reads");
        Self(end)
    }
}

/// The number of batches in a stretch: `wanted`, or fewer if these would update a key twice.
pub(crate) fn stretch(keys: usize, wanted: usize) -> usize {
    wanted.min(keys / BATCH)
}

/// How many events all counters together have handled.
#[derive(Default)]
struct Counts {
    handled: Cell<usize>,
    awaited: Cell<Option<usize>>,
    complete: tokio::sync::Notify,
}

impl Counts {
    /// Waits for `events` and subtracts them.
    async fn count_to(&self, events: usize) {
        if self.handled.get() < events {
            self.awaited.set(Some(events));
            self.complete.notified().await;
        }
        self.handled.set(self.handled.get() - events);
    }

    fn count(&self) {
        self.handled.set(self.handled.get() + 1);
        if self.awaited.get() == Some(self.handled.get()) {
            self.awaited.set(None);
            self.complete.notify_one();
        }
    }
}

/// A subscribed actor that counts.
struct Counter(Rc<Counts>);

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Handler<Notify<Body>> for Counter {
    type Result = ();

    fn handle(&mut self, _notify: Notify<Body>, _ctx: &mut Context<Self>) {
        self.0.count();
    }
}

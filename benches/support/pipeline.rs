//! A whole running informer, fed with batches, and subscribed actors that count.
//!
//! Answers "when has everybody been told everything?". Reflector, DeltaFifo, Indexer, Processor and Listeners run as
//! in production, on threads of `Runtime::threads()`; the counting actors live on the bench's own thread, as a user's
//! would. Invariants:
//! 1. [`Pipeline::start`] and each stretch of [`Updated::run`] end when every subscriber has handled everything.
//! 2. A stretch updates no key twice, so nothing in it is coalesced: what is sent is what is told.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use actix::{Actor, Context, Handler};
use actix_informer::core::meta::{Object, ResourceVersion};
use actix_informer::informer::Informer;
use actix_informer::messages::Notify;
use actix_informer::runtime::Runtime;
use actix_informer::subscription::Subscription;
use criterion::measurement::Measurement;
use futures_util::{StreamExt, stream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::cost::spent;
use super::feed::feed;
use super::objects::{BATCH, Batch, Body, Population};

/// The threads: one for pipelines, one that frees; the bench's own thread is the subscribers'.
pub(crate) fn threads() -> Runtime {
    let threads = Runtime::threads().decoders(1).start_jitter(Duration::ZERO);
    threads.start().expect("the system gives three threads")
}

/// An informer that has listed and told everything, and waits for batches.
pub(crate) struct Pipeline {
    main: actix_rt::Runtime,
    informer: Informer<Body>,
    batches: UnboundedSender<Batch>,
    tally: Rc<Tally>,
    subscriptions: Vec<Subscription<Body>>,
}

impl Pipeline {
    /// Lists `objects` and tells them to so many listeners.
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
        let main = actix_rt::Runtime::new().expect("the system gives a runtime");
        let tally = Rc::new(Tally::default());
        let subscribe = || {
            let counter = main.block_on(async { Counter(Rc::clone(&tally)).start() });
            informer.subscribe(counter).expect("the informer runs")
        };
        let subscriptions = (0..listeners).map(|_| subscribe()).collect();
        let started = Self { main, informer, batches, tally, subscriptions };
        started.wait(objects.len());
        started
    }

    /// Sends batches, which together update no key twice, and waits until they have been told.
    fn apply(&self, batches: Vec<Batch>) {
        let updates = batches.iter().map(Vec::len).sum();
        for batch in batches {
            self.batches.send(batch).expect("the feed is watched");
        }
        self.wait(updates);
    }

    /// Ends every actor.
    pub(crate) fn stop(self) {
        let Self { main, informer, subscriptions, .. } = self;
        drop(subscriptions);
        main.block_on(informer.shutdown(Duration::from_secs(5)));
    }

    /// Waits for so many more events at each listener.
    fn wait(&self, events: usize) {
        let all = events * self.subscriptions.len();
        self.main.block_on(self.tally.count_to(all));
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
    /// Lists `keys` objects to so many listeners; a stretch is to have at most `batches` batches.
    pub(crate) fn new(keys: usize, listeners: usize, batches: usize) -> Self {
        let mut population = Population::new(keys);
        let objects = population.everything();
        let pipeline = Pipeline::start(&threads(), &objects, population.version(), listeners);
        Self { population, pipeline, batches: stretch(keys, batches) }
    }

    /// What so many stretches cost. The objects of each are made right before it, and not counted.
    pub(crate) fn run<M: Measurement>(&mut self, measurement: &M, times: u64) -> M::Value {
        let Self { population, pipeline, batches } = self;
        let one = |sum: M::Value, _| {
            let stretch = (0..*batches).map(|_| population.batch(BATCH)).collect();
            measurement.add(&sum, &spent(measurement, || pipeline.apply(stretch)))
        };
        (0..times).fold(measurement.zero(), one)
    }

    /// The informer that is fed.
    #[allow(dead_code, reason = "not every bench reads it")]
    pub(crate) fn informer(&self) -> &Informer<Body> {
        &self.pipeline.informer
    }

    /// Ends every actor.
    pub(crate) fn stop(self) {
        self.pipeline.stop();
    }
}

/// A thread that has read a snapshot once, and sleeps until this is dropped.
#[allow(dead_code, reason = "not every bench has readers")]
pub(crate) struct IdleReader(std::sync::mpsc::Sender<()>);

#[allow(dead_code, reason = "not every bench has readers")]
impl IdleReader {
    /// Returns when the thread has read.
    pub(crate) fn new(informer: &Informer<Body>) -> Self {
        let ((end, ended), (read, has_read)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
        let informer = informer.clone();
        std::thread::spawn(move || {
            read.send(informer.snapshot().len()).expect("somebody waits for it");
            drop(informer);
            let _dropped: Result<(), _> = ended.recv();
        });
        has_read.recv().expect("the thread reads");
        Self(end)
    }
}

/// How many batches a stretch has: as many as are wanted, unless they updated a key twice.
pub(crate) fn stretch(keys: usize, wanted: usize) -> usize {
    wanted.min(keys / BATCH)
}

/// How many events have been told to all counters together.
#[derive(Default)]
struct Tally {
    told: Cell<usize>,
    awaited: Cell<Option<usize>>,
    complete: tokio::sync::Notify,
}

impl Tally {
    /// Waits for `events`, and starts over.
    async fn count_to(&self, events: usize) {
        if self.told.get() < events {
            self.awaited.set(Some(events));
            self.complete.notified().await;
        }
        self.told.set(self.told.get() - events);
    }

    fn count(&self) {
        self.told.set(self.told.get() + 1);
        if self.awaited.get() == Some(self.told.get()) {
            self.awaited.set(None);
            self.complete.notify_one();
        }
    }
}

/// A subscribed actor that counts.
struct Counter(Rc<Tally>);

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Handler<Notify<Body>> for Counter {
    type Result = ();

    fn handle(&mut self, _notify: Notify<Body>, _ctx: &mut Context<Self>) {
        self.0.count();
    }
}

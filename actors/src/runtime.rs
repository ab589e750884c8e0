//! Where the actors run: threads, clock, chance, decode pool and list budget as one value.
//!
//! Answers "on which thread, at what time, with which luck?". Wiring takes a [`Runtime`] and asks nothing else of the
//! world. Two kinds share one wiring: [`Runtime::threads`] (named OS threads, real time) and, with the feature
//! `testing`, a simulated one (one thread, paused clock, everything from one seed). Invariants:
//! 1. No actix `System`, no global: two runtimes in one process know nothing of each other, inside any async main.
//! 2. No signal handler is installed.
//! 3. Every seed, jitter and clock reading of the pipeline comes from here.
//!
//! Read next: `runtime/arbiter.rs`, one thread; `wiring.rs`, the user of all this.

mod arbiter;
mod callbacks;
mod clock;
pub mod faults;
mod freeing;
mod labels;
mod lent;
mod list_budget;
pub(crate) mod mailbox;
mod pool;
pub(crate) mod progress;
mod registry;
mod watchdog;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

pub(crate) use arbiter::ArbiterHandle;
pub use arbiter::ArbiterHealth;
pub(crate) use callbacks::{CallbackPool, Strand, drop_payload};
pub use clock::Chance;
pub(crate) use clock::{Clock, sleep, sleep_until, within};
pub(crate) use freeing::Freeing;
pub(crate) use labels::{Label, Labelled};
pub(crate) use lent::Lent;
pub(crate) use list_budget::ListBudget;
pub(crate) use pool::panic_text;
pub use pool::{DecodePool, JobPanicked};
pub(crate) use registry::{Registration, Registry, Resident};
pub use watchdog::{Stuck, StuckKind};
pub(crate) use watchdog::{Watchdog, Watched};

use crate::runtime::faults::Faults;

/// Lists that may be under way at once in one runtime, unless told otherwise.
const DEFAULT_LIST_BUDGET: usize = 4;

/// Threads, clock, chance, pool and budget for any number of informers. Cloning copies a pointer; the threads end
/// when the last clone (each informer holds one) is dropped, or at [`Runtime::shutdown`].
#[derive(Clone)]
pub struct Runtime(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pipelines: Vec<ArbiterHandle>,
    callbacks: ArbiterHandle,
    next: AtomicUsize,
    pub(crate) pool: DecodePool,
    pub(crate) blocking: CallbackPool,
    pub(crate) freeing: Freeing,
    pub(crate) watchdog: Watchdog,
    pub(crate) lists: ListBudget,
    pub(crate) clock: Clock,
    pub(crate) faults: Faults,
    pub(crate) start_jitter: Duration,
    seed: u64,
    streams: AtomicU64,
    registry: Arc<Registry>,
}

/// Why a runtime did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// A thread could not be started.
    #[error("thread {name} did not start")]
    Thread {
        /// Its name.
        name: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// Threads of a runtime had not ended at its shutdown's limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the runtime has not ended at the limit: {}", self.holders())]
#[non_exhaustive]
pub struct StillRunning {
    /// The arbiters that something blocks, and what.
    pub stuck: Vec<Stuck>,
    /// Every arbiter has ended, and an object is still being decoded or transformed.
    pub decoding: bool,
    /// Nothing is decoded any more, and an object that nobody holds is still being dropped.
    pub freeing: bool,
}

impl StillRunning {
    fn holders(&self) -> String {
        if self.decoding {
            return "an object is still being decoded".to_owned();
        }
        if self.freeing {
            return "an object is still being dropped".to_owned();
        }
        self.stuck.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// How many threads a [`Runtime`] has and how many lists it allows.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `start`"]
pub struct RuntimeBuilder {
    arbiters: usize,
    decoders: usize,
    lists: usize,
    start_jitter: Duration,
    name: String,
    seed: Option<u64>,
    faults: Faults,
}

impl Runtime {
    /// Named threads and real time. Defaults: one arbiter for pipelines (enough for some 180,000 small events a
    /// second), one for callbacks, as many decoders as cores, four lists at once.
    ///
    /// ```
    /// use informer_actors::runtime::Runtime;
    /// let runtime = Runtime::threads().arbiters(1).start()?;
    /// drop(runtime); // its threads end
    /// # Ok::<(), informer_actors::runtime::RuntimeError>(())
    /// ```
    pub fn threads() -> RuntimeBuilder {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        RuntimeBuilder {
            arbiters: 1,
            decoders: cores,
            lists: DEFAULT_LIST_BUDGET,
            start_jitter: Duration::from_millis(100),
            name: "informer".to_owned(),
            seed: None,
            faults: Faults::default(),
        }
    }

    /// Time since this runtime started. In simulation it is the paused clock's.
    pub fn now(&self) -> Duration {
        self.0.clock.now()
    }

    /// The pool on which objects are decoded, off the arbiters.
    pub fn decode_pool(&self) -> DecodePool {
        self.0.pool.clone()
    }

    /// Roughly how many bytes of objects nobody holds any more and a thread has still to free: lists that failed,
    /// states that were replaced, informers that have ended. From 256 MiB on no list begins until it is less. Zero in
    /// simulation, where everything is freed at once.
    pub fn bytes_to_free(&self) -> usize {
        self.0.freeing.owed()
    }

    /// Each arbiter's name, how long ago it last showed a pulse, and what it was doing then.
    pub fn arbiters(&self) -> Vec<ArbiterHealth> {
        self.0.arbiters().map(ArbiterHandle::health).collect()
    }

    /// Stops every informer of this runtime, then its threads, and waits until they have ended. Blocks no thread of
    /// the caller. To have listeners told what they are owed, shut the informers down first: here nothing is drained,
    /// and what still runs on an arbiter is dropped. Callbacks that block on the callback pool are not waited for.
    ///
    /// What handles of its informers do afterwards, whoever holds them:
    /// - every wait ends, also one that began before: `synced`, `wait_until` and `wait_for` with their `Stopped`;
    /// - every subscription has ended with [`EndReason::InformerStopped`](crate::pipeline::seat::EndReason), its stream gives
    ///   `None`, and no callback begins any more;
    /// - whoever subscribes, adds an index or starts an informer is refused;
    /// - listers and snapshots go on reading what was published last.
    ///
    /// # Errors
    /// At the limit, with what blocks a thread. Such a thread ends by itself once that returns, nothing further
    /// begins on it, and all waits but those of streams have ended all the same.
    pub async fn shutdown(self, limit: Duration) -> Result<(), StillRunning> {
        let residents = self.0.registry.close();
        residents.iter().for_each(|resident| resident.stop());
        for arbiter in self.0.arbiters() {
            arbiter.stop();
        }
        let over: Vec<_> = residents.iter().map(|resident| resident.over()).collect();
        let ended = async {
            join_all(self.0.arbiters().map(ArbiterHandle::ended)).await;
            join_all(over.iter().map(CancellationToken::cancelled)).await;
            self.0.pool.close().await;
            self.0.freeing.close().await;
        };
        if within(limit, ended).await.is_some() {
            self.0.blocking.close();
            self.0.watchdog.close();
            return Ok(());
        }
        self.0.end();
        residents.iter().for_each(|resident| resident.abandon());
        let running = self.0.arbiters().filter(|arbiter| !arbiter.is_over());
        let stuck: Vec<Stuck> = running.map(ArbiterHandle::blocked).collect();
        let decoding = stuck.is_empty() && !self.0.pool.is_over();
        Err(StillRunning { decoding, freeing: stuck.is_empty() && !decoding, stuck })
    }

    /// All that lives on it, in the order in which it came: what that is, is known above.
    pub(crate) fn residents(&self) -> Vec<Arc<dyn Any + Send + Sync>> {
        self.0
            .registry
            .residents()
            .into_iter()
            .map(|resident| resident as Arc<dyn Any + Send + Sync>)
            .collect()
    }

    /// The arbiter for the next pipeline, in turn.
    pub(crate) fn pipeline_arbiter(&self) -> ArbiterHandle {
        let turn = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.0.pipelines[turn % self.0.pipelines.len()].clone()
    }

    /// The arbiter on which foreign async code runs.
    pub(crate) fn callback_arbiter(&self) -> ArbiterHandle {
        self.0.callbacks.clone()
    }

    /// A stream of chance of its own: the same seed and the same order of calls give the same streams.
    pub(crate) fn chance(&self) -> Chance {
        Chance::new(self.0.seed, self.0.streams.fetch_add(1, Ordering::Relaxed))
    }

    /// A place for one more informer, or `None` after the shutdown.
    pub(crate) fn register(&self, name: &Arc<str>) -> Option<Registration> {
        self.0.registry.register(name)
    }
}

impl Inner {
    fn arbiters(&self) -> impl Iterator<Item = &ArbiterHandle> {
        self.pipelines.iter().chain(std::iter::once(&self.callbacks))
    }
}

impl Inner {
    /// Ends everything, and waits for nothing.
    fn end(&self) {
        for arbiter in self.arbiters() {
            arbiter.stop();
        }
        self.blocking.end();
        self.freeing.end();
        self.watchdog.end();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("arbiters", &self.0.pipelines.len()).finish_non_exhaustive()
    }
}

impl RuntimeBuilder {
    /// How many threads the pipelines are dealt out to, one pipeline always on one of them (at least 1).
    pub fn arbiters(mut self, count: usize) -> Self {
        self.arbiters = count.max(1);
        self
    }

    /// How many threads decode objects (at least 1).
    pub fn decoders(mut self, count: usize) -> Self {
        self.decoders = count.max(1);
        self
    }

    /// How many lists may be under way at once (at least 1). With sources of several clusters: so many for each cluster.
    pub fn lists_at_once(mut self, count: usize) -> Self {
        self.lists = count.max(1);
        self
    }

    /// Within which time the first requests of informers are spread: each waits for a part of it by chance, so that
    /// with `Duration::MAX` none ever comes. 100 ms unless set.
    pub fn start_jitter(mut self, jitter: Duration) -> Self {
        self.start_jitter = jitter;
        self
    }

    /// The first part of its threads' names. `informer` unless set.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Fixes the seed of every jitter; otherwise it comes from the system.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Installs a fault hook: kills actors of ours on purpose.
    #[cfg(any(test, feature = "testing"))]
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(self) -> Result<Runtime, RuntimeError> {
        let clock = Clock::started_now();
        let arbiter = |name: String| ArbiterHandle::thread(name, clock.clone());
        let pipelines: Vec<_> =
            (0..self.arbiters).map(|n| arbiter(format!("{}-{n}", self.name))).collect::<Result<_, _>>()?;
        let callbacks = arbiter(format!("{}-calls", self.name))?;
        let watched = pipelines.iter().cloned().chain([callbacks.clone()]).collect();
        Ok(Runtime(Arc::new(Inner {
            watchdog: Watchdog::thread(&self.name, clock.clone(), watched)?,
            pipelines,
            callbacks,
            next: AtomicUsize::new(0),
            pool: DecodePool::threads(&self.name, self.decoders)?,
            blocking: CallbackPool::threads(&self.name),
            freeing: Freeing::thread(&self.name)?,
            lists: ListBudget::new(self.lists),
            clock,
            faults: self.faults,
            start_jitter: self.start_jitter,
            seed: self.seed.unwrap_or_else(clock::seed_from_system),
            streams: AtomicU64::new(0),
            registry: Arc::default(),
        })))
    }
}

#[cfg(any(test, feature = "testing"))]
mod simulation;
#[cfg(any(test, feature = "testing"))]
pub use simulation::{Simulation, SimulationBuilder};

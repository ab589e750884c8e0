//! The runtime of informers: threads, clock, random numbers, decode pool and list budget as one value.
//!
//! An informer gets all that it uses of the system from here. There is no actix `System`, no global and no signal
//! handler, so several runtimes in a process do not affect each other.

pub(crate) mod arbiter;
pub(crate) mod callbacks;
pub(crate) mod clock;
mod errors;
pub(crate) mod faults;
mod freeing;
pub(crate) mod inside;
pub(crate) mod labels;
mod list_budget;
pub(crate) mod locked;
pub(crate) mod mailbox;
mod on_arbiter;
mod passing;
mod paths;
mod pool;
pub(crate) mod progress;
pub(crate) mod registry;
pub(crate) mod saved;
pub(crate) mod signal;
pub(crate) mod sizes;
pub(crate) mod spans;
mod watchdog;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

pub use arbiter::ArbiterHealth;
pub(crate) use arbiter::{ArbiterHandle, OwnArbiter};
pub(crate) use callbacks::{CallbackPool, PooledValue, drop_payload};
pub(crate) use clock::{Clock, RandomNumbers, sleep, sleep_until, within};
pub use errors::{RuntimeError, StillRunning, Stuck, StuckKind};
pub(crate) use freeing::Freeing;
pub(crate) use informer_core::words::panic_text;
pub use labels::ActorTurns;
pub(crate) use labels::{Label, Labelled};
pub(crate) use list_budget::ListBudget;
pub(crate) use on_arbiter::OnArbiter;
pub use passing::{PassTo, Passed, PassedParts, passing};
#[doc(hidden)]
pub use passing::{PassesOn, ReceiverGone};
pub(crate) use paths::Arrival;
pub use paths::{Paths, TooManyKeys};
pub use pool::{DecodePool, JobPanicked};
pub(crate) use registry::{Named, Registrant, Registration, Registry};
pub use saved::SavedStatus;
pub use sizes::{FieldBytes, InformerMemory, MemoryReport};
pub(crate) use watchdog::{Watchdog, Watched};

use informer_core::path::Choice;

use crate::runtime::faults::Faults;
use crate::runtime::locked::Guarded;

/// Per cluster, unless the builder sets another number.
const DEFAULT_LIST_BUDGET: usize = 4;

/// Threads, clock, random numbers, pool and budget for any number of informers. Cloning copies a pointer; the threads
/// end when the last clone (each informer holds one) is dropped, or at [`Runtime::shutdown`].
#[derive(Clone)]
pub struct Runtime(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pipelines: Vec<ArbiterHandle>,
    callbacks: ArbiterHandle,
    /// Of one actor each.
    others: Guarded<Vec<ArbiterHandle>>,
    name: String,
    next: AtomicUsize,
    pub(crate) pool: DecodePool,
    pub(crate) blocking: CallbackPool,
    pub(crate) freeing: Freeing,
    pub(crate) watchdog: Watchdog,
    pub(crate) lists: ListBudget,
    pub(crate) clock: Clock,
    pub(crate) paths: Paths,
    pub(crate) faults: Faults,
    pub(crate) start_jitter: Duration,
    seed: u64,
    streams: AtomicU64,
    registry: Arc<Registry>,
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
    /// Named threads and real time. Defaults: one arbiter for pipelines (enough for about 180,000 small
    /// events a second), one for callbacks, as many decoders as cores, four lists at once.
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// use actix_informer::runtime::Runtime;
    /// let runtime = Runtime::threads().arbiters(1).start()?;
    /// drop(runtime); // its threads end
    /// # Ok::<(), actix_informer::runtime::RuntimeError>(())
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

    /// The paths of objects through what runs on it.
    pub fn paths(&self) -> &Paths {
        &self.0.paths
    }

    /// Time since this runtime started. In simulation, the paused clock measures it.
    pub fn now(&self) -> Duration {
        self.0.clock.now()
    }

    /// The time of day, for values that other machines compare: leases, events and conditions. On real
    /// threads this is the system's clock, read at each call, and it jumps when that clock is set. To measure
    /// durations use [`Self::now`], which never goes back. In simulation the time of day begins on a day that
    /// the seed chooses and moves with the simulated time; the same seed shows the same times. Cheap, does
    /// not block.
    ///
    /// The type is std's, so that this crate needs no calendar. `jiff::Timestamp::try_from` accepts it, for
    /// `Time` and `MicroTime` of `k8s-openapi`.
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// # #[cfg(feature = "testing")] {
    /// use std::time::Duration;
    /// use actix_informer::runtime::Runtime;
    /// let show = || Runtime::simulated(7).run(|runtime| async move {
    ///     let before = runtime.wall_time();
    ///     tokio::time::sleep(Duration::from_secs(3600)).await; // takes no time
    ///     (before, runtime.wall_time())
    /// });
    /// let (before, after) = show();
    /// assert_eq!(after, before + Duration::from_secs(3600));
    /// assert_eq!(show(), (before, after));
    /// # }
    /// ```
    pub fn wall_time(&self) -> SystemTime {
        self.0.clock.wall_time()
    }

    /// Runs a future that need not be `Send` on the thread of the async callbacks (in simulation on the only
    /// thread). `make` runs there too. The future runs until it is done or the runtime ends; then it is
    /// dropped on that thread. After the runtime's end nothing runs. The future must not block. It does not
    /// keep the runtime alive. A panic ends only this future; it is logged, and counted in
    /// [`ArbiterHealth::panics`].
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// # #[cfg(feature = "testing")] {
    /// use actix_informer::runtime::Runtime;
    /// Runtime::simulated(7).run(|runtime| async move {
    ///     let (done, result) = tokio::sync::oneshot::channel();
    ///     runtime.spawn_local(|| async move { drop(done.send(42)) });
    ///     assert_eq!(result.await, Ok(42));
    /// });
    /// # }
    /// ```
    pub fn spawn_local<F>(&self, make: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        self.0.callbacks.spawn_until_stop(make);
    }

    /// The pool that decodes objects, so that arbiters need not.
    pub fn decode_pool(&self) -> DecodePool {
        self.0.pool.clone()
    }

    /// Roughly how many bytes are no longer used but not freed yet: failed lists, replaced states, informers
    /// that have ended. A thread frees them. While it is 256 MiB or more, no list begins. Zero in simulation,
    /// where everything is freed where it is dropped.
    pub fn bytes_to_free(&self) -> usize {
        self.0.freeing.pending_bytes()
    }

    /// Each arbiter's name, how long ago its last heartbeat was, and which actor it runs now.
    pub fn arbiters(&self) -> Vec<ArbiterHealth> {
        self.0.arbiters().iter().map(ArbiterHandle::health).collect()
    }

    /// Stops every informer of this runtime, then its threads, and waits until they have ended. Does not
    /// block the caller's thread. This call delivers no more events: call [`Self::drain`] first if
    /// subscribers must receive those that wait. It drops the futures that still run on an arbiter. It does
    /// not wait for callbacks that block on the callback pool.
    ///
    /// Handles of its informers then behave like this:
    /// - every wait ends, also one that began before: `synced`, `wait_until` and `wait_for` with their
    ///   `Stopped`;
    /// - every subscription has ended with [`EndReason::InformerStopped`](crate::subscription::EndReason),
    ///   its stream returns `None`, and no callback begins any more;
    /// - subscribing, adding an index and starting an informer are refused;
    /// - listers and snapshots still read the state published last.
    ///
    /// # Errors
    /// At the limit, with what blocks a thread. Such a thread ends by itself once that code returns. Nothing
    /// more begins on it, and all waits except those of streams have ended.
    pub async fn shutdown(self, limit: Duration) -> Result<(), StillRunning> {
        let registrants = self.0.registry.close();
        registrants.iter().for_each(|registrant| registrant.stop());
        let arbiters = self.0.arbiters();
        arbiters.iter().for_each(ArbiterHandle::stop);
        let over: Vec<_> = registrants.iter().map(|registrant| registrant.over()).collect();
        let ended = async {
            join_all(arbiters.iter().map(ArbiterHandle::ended)).await;
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
        registrants.iter().for_each(|registrant| registrant.abandon());
        let running = arbiters.iter().filter(|arbiter| !arbiter.is_over());
        let stuck: Vec<Stuck> = running.map(ArbiterHandle::blocked).collect();
        let decoding = stuck.is_empty() && !self.0.pool.is_over();
        Err(StillRunning { decoding, freeing: stuck.is_empty() && !decoding, stuck })
    }
}

impl Inner {
    fn arbiters(&self) -> Vec<ArbiterHandle> {
        let others = self.others.with(|others| others.clone());
        self.pipelines.iter().cloned().chain([self.callbacks.clone()]).chain(others).collect()
    }

    /// Does not wait for the threads.
    fn end(&self) {
        self.arbiters().iter().for_each(ArbiterHandle::stop);
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

informer_core::debug_as!(Runtime, self, arbiters = self.0.pipelines.len());

impl RuntimeBuilder {
    /// How many threads run pipelines (at least 1). Each pipeline runs on one of them.
    pub fn arbiters(mut self, count: usize) -> Self {
        self.arbiters = count.max(1);
        self
    }

    /// How many threads decode objects (at least 1).
    pub fn decoders(mut self, count: usize) -> Self {
        self.decoders = count.max(1);
        self
    }

    /// How many lists may be open at once (at least 1). With sources of several clusters, the number applies
    /// to each cluster.
    pub fn lists_at_once(mut self, count: usize) -> Self {
        self.lists = count.max(1);
        self
    }

    /// The time over which the first requests of informers are spread: each waits for a random part of it.
    /// With `Duration::MAX` no request is ever sent. 100 ms unless set.
    pub fn start_jitter(mut self, jitter: Duration) -> Self {
        self.start_jitter = jitter;
        self
    }

    /// The prefix of its threads' names. `informer` unless set.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the seed of every jitter; otherwise it comes from the system.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Installs a fault hook, which can kill actors of this crate in a test.
    #[cfg(any(test, feature = "testing"))]
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// When the system cannot start a thread.
    pub fn start(self) -> Result<Runtime, RuntimeError> {
        let clock = Clock::started_now();
        let arbiter = |name: String| ArbiterHandle::thread(name, clock.clone());
        let pipelines: Vec<_> =
            (0..self.arbiters).map(|n| arbiter(format!("{}-{n}", self.name))).collect::<Result<_, _>>()?;
        let callbacks = arbiter(format!("{}-calls", self.name))?;
        let freeing = Freeing::thread(&self.name)?;
        Ok(Runtime(Arc::new(Inner {
            watchdog: Watchdog::thread(&self.name, clock.clone(), (&pipelines, &callbacks))?,
            pipelines,
            callbacks,
            others: Guarded::default(),
            next: AtomicUsize::new(0),
            pool: DecodePool::threads(&self.name, self.decoders, &freeing)?,
            blocking: CallbackPool::threads(&self.name),
            freeing,
            lists: ListBudget::new(self.lists),
            paths: Paths::new(clock.clone(), Choice::NOTHING),
            clock,
            faults: self.faults,
            start_jitter: self.start_jitter,
            seed: self.seed.unwrap_or_else(clock::seed_from_system),
            streams: AtomicU64::new(0),
            registry: Arc::default(),
            name: self.name,
        })))
    }
}

#[cfg(any(test, feature = "testing"))]
mod simulation;
#[cfg(any(test, feature = "testing"))]
pub use simulation::{Simulation, SimulationBuilder};

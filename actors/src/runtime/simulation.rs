//! The simulated runtime: one thread, a paused clock, inline pools, everything from one seed.
//!
//! Answers "how does the real wiring run without waiting, and the same way each time?". Hours of simulated time take
//! milliseconds: tokio advances the paused clock when nothing else can run. Invariants:
//! 1. The wiring is the one that [`Runtime::threads`] uses; only threads and clock differ.
//! 2. One seed and one script give one trace.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

use super::{
    ArbiterHandle, CallbackPool, Clock, DEFAULT_LIST_BUDGET, DecodePool, Freeing, Inner, ListBudget, Runtime,
    Watchdog,
};
use crate::runtime::faults::Faults;

/// A simulation: one thread, a paused clock, and the [`Runtime`] for wiring.
///
/// ```
/// use std::time::Duration;
/// use informer_actors::runtime::Runtime;
/// let woken = Runtime::simulated(7).run(|runtime| async move {
///     tokio::time::sleep(Duration::from_secs(3600)).await; // takes no time
///     runtime.now()
/// });
/// assert_eq!(woken, Duration::from_secs(3600));
/// ```
#[must_use = "a simulation does nothing until `run`"]
pub struct Simulation {
    builder: SimulationBuilder,
}

/// The settings of a simulation.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct SimulationBuilder {
    seed: u64,
    faults: Faults,
    start_jitter: Duration,
    lists: usize,
    watched: bool,
}

impl Runtime {
    /// A simulation with this seed.
    pub fn simulated(seed: u64) -> Simulation {
        Self::simulation(seed).build()
    }

    /// A simulation with this seed, and with other settings.
    pub fn simulation(seed: u64) -> SimulationBuilder {
        SimulationBuilder {
            seed,
            faults: Faults::default(),
            start_jitter: Duration::ZERO,
            lists: DEFAULT_LIST_BUDGET,
            watched: false,
        }
    }
}

impl SimulationBuilder {
    /// Installs a fault hook.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Spreads the first requests within this time; none by default.
    pub fn start_jitter(mut self, jitter: Duration) -> Self {
        self.start_jitter = jitter;
        self
    }

    /// How many lists may be open at once.
    pub fn lists_at_once(mut self, count: usize) -> Self {
        self.lists = count.max(1);
        self
    }

    /// Starts a watchdog, which looks once in each simulated second. Without it nothing wakes an idle simulation.
    pub fn watched(mut self) -> Self {
        self.watched = true;
        self
    }

    /// The simulation.
    pub fn build(self) -> Simulation {
        Simulation { builder: self }
    }
}

impl Simulation {
    /// Runs `scenario` to its end on this thread, with the clock paused, and gives its result.
    ///
    /// # Panics
    /// When called inside an async context, or when the system has no resources for a runtime.
    pub fn run<F, T>(self, scenario: impl FnOnce(Runtime) -> F) -> T
    where
        F: Future<Output = T>,
    {
        let tokio_runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("the system has resources for one more runtime");
        let world = actix_rt::Runtime::from(tokio_runtime);
        world.block_on(async {
            let clock = Clock::simulated(self.builder.seed);
            let watched = self.builder.watched;
            let (pipeline, pipeline_work) = ArbiterHandle::here("simulated", clock.clone(), watched);
            let (callbacks, callback_work) = ArbiterHandle::here("simulated-calls", clock.clone(), watched);
            actix_rt::spawn(pipeline_work);
            actix_rt::spawn(callback_work);
            let mut watchdog = Watchdog::none();
            if watched {
                let (looks, look) = Watchdog::here(clock.clone(), vec![pipeline.clone(), callbacks.clone()]);
                actix_rt::spawn(look);
                watchdog = looks;
            }
            let runtime = self.runtime([pipeline, callbacks], clock, watchdog);
            scenario(runtime).await
        })
    }

    fn runtime(
        &self,
        [pipeline, callbacks]: [ArbiterHandle; 2],
        clock: Clock,
        watchdog: Watchdog,
    ) -> Runtime {
        Runtime(Arc::new(Inner {
            pipelines: vec![pipeline],
            callbacks,
            next: AtomicUsize::new(0),
            pool: DecodePool::inline(),
            blocking: CallbackPool::inline(),
            freeing: Freeing::inline(),
            watchdog,
            lists: ListBudget::new(self.builder.lists),
            clock,
            faults: self.builder.faults.clone(),
            start_jitter: self.builder.start_jitter,
            seed: self.builder.seed,
            streams: AtomicU64::new(0),
            registry: Arc::default(),
        }))
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation").field("seed", &self.builder.seed).finish_non_exhaustive()
    }
}

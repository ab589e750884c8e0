//! The simulated runtime: one thread, a paused clock, inline pools, everything from one seed.
//!
//! It has the wiring of [`Runtime::threads`]: one seed and one scenario always produce the same trace. tokio advances
//! the paused clock when nothing else can run.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

use futures_util::FutureExt as _;

use super::{
    ArbiterHandle, CallbackPool, Clock, DEFAULT_LIST_BUDGET, DecodePool, Freeing, Inner, ListBudget, Paths,
    RandomNumbers, Runtime, Watchdog,
};
use informer_core::path::Choice;

use crate::runtime::faults::Faults;
use crate::runtime::locked::Guarded;

/// A simulation: one thread, a paused clock, and a [`Runtime`] for the scenario.
///
/// ```
/// # use informer_actors::face as actix_informer;
/// use std::time::Duration;
/// use actix_informer::runtime::Runtime;
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
    /// Runs `scenario` to its end on this thread, with the clock paused, and returns its result.
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
        let mut result = None;
        let told = &mut result;
        let run = async move {
            let clock = Clock::simulated(self.builder.seed);
            *told = Some(scenario(self.builder.start(clock)).await);
        };
        // One type: tokio's runtime would be compiled for each scenario.
        world.block_on(run.boxed_local());
        result.expect("the scenario has ended")
    }
}

impl Runtime {
    /// A new stream of random numbers from this runtime's seed. It differs from all its other streams.
    pub fn random_numbers(&self) -> RandomNumbers {
        self.chance()
    }

    /// Another runtime in the same simulation. It has its own arbiters, random numbers and informers, and
    /// shares the thread and the clock. Several runtimes in one simulation stand for several processes. The
    /// new one has the settings of this one, without its fault hook.
    ///
    /// Its work runs in tasks of the `LocalSet` in which this is called. When that is dropped, all of it ends
    /// at once, as in a process that is killed.
    ///
    /// # Panics
    /// When called outside of a simulation, where there is no `LocalSet`.
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// use actix_informer::runtime::Runtime;
    /// Runtime::simulated(7).run(|runtime| async move {
    ///     let other = runtime.simulate_another(8);
    ///     other.shutdown(std::time::Duration::from_secs(1)).await?;
    ///     let (done, result) = tokio::sync::oneshot::channel();
    ///     runtime.spawn_local(|| async move { drop(done.send(42)) });
    ///     assert_eq!(result.await, Ok(42)); // the first one goes on
    ///     Ok::<(), Box<dyn std::error::Error>>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn simulate_another(&self, seed: u64) -> Self {
        let inner = &self.0;
        let settings =
            Self::simulation(seed).start_jitter(inner.start_jitter).lists_at_once(inner.lists.size());
        settings.start(Clock::simulated_from(inner.clock.wall_time()))
    }
}

impl SimulationBuilder {
    /// In the `LocalSet` of the caller.
    fn start(&self, clock: Clock) -> Runtime {
        let (pipeline, pipeline_work) = ArbiterHandle::here("simulated", clock.clone(), self.watched);
        let (callbacks, callback_work) = ArbiterHandle::here("simulated-calls", clock.clone(), self.watched);
        actix_rt::spawn(pipeline_work);
        actix_rt::spawn(callback_work);
        let mut watchdog = Watchdog::none();
        if self.watched {
            let (looks, look) = Watchdog::here(clock.clone(), (std::slice::from_ref(&pipeline), &callbacks));
            actix_rt::spawn(look);
            watchdog = looks;
        }
        Runtime(Arc::new(Inner {
            pipelines: vec![pipeline],
            callbacks,
            others: Guarded::default(),
            name: "simulated".to_owned(),
            next: AtomicUsize::new(0),
            pool: DecodePool::inline(),
            blocking: CallbackPool::inline(),
            freeing: Freeing::inline(),
            watchdog,
            lists: ListBudget::new(self.lists),
            paths: Paths::new(clock.clone(), Choice::NOTHING.sampling(1)),
            clock,
            faults: self.faults.clone(),
            start_jitter: self.start_jitter,
            seed: self.seed,
            streams: AtomicU64::new(0),
            registry: Arc::default(),
        }))
    }
}

informer_core::debug_as!(Simulation, self, seed = self.builder.seed);

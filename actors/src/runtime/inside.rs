//! What actors ask of their runtime, also those of `informer-operator`; programs do not.
//!
//! Answers "on which thread, with which random numbers and under which name does this run?". Read next: `registry.rs`,
//! what is registered; `arbiter.rs`, a thread.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use informer_core::off_arbiter::Release;

use super::{
    ArbiterHandle, Named, OwnArbiter, RandomNumbers, Registration, Runtime, RuntimeError, clock, locked,
};

impl Runtime {
    /// All that are registered, in the order of registration. Their type is known to the layers above.
    #[doc(hidden)]
    pub fn registrants(&self) -> Vec<Arc<dyn Any + Send + Sync>> {
        self.0
            .registry
            .registrants()
            .into_iter()
            .map(|registrant| registrant as Arc<dyn Any + Send + Sync>)
            .collect()
    }

    /// Whether it is a simulated one: then nothing runs on a thread of others.
    #[doc(hidden)]
    pub fn is_simulated(&self) -> bool {
        self.0.clock.is_simulated()
    }

    /// The arbiter for the next pipeline, in turn.
    pub(crate) fn pipeline_arbiter(&self) -> ArbiterHandle {
        let turn = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.0.pipelines[turn % self.0.pipelines.len()].clone()
    }

    /// A thread of its own for one actor, which nothing else can delay; in simulation the only one.
    #[doc(hidden)]
    pub fn own_arbiter(&self, name: &str) -> Result<OwnArbiter, RuntimeError> {
        if self.is_simulated() {
            return Ok(OwnArbiter { arbiter: self.pipeline_arbiter(), is_shared: true });
        }
        let arbiter = ArbiterHandle::thread(format!("{}-{name}", self.0.name), self.0.clock.clone())?;
        let mut others = locked::locked(&self.0.others);
        others.retain(|other| !other.is_over());
        others.push(arbiter.clone());
        Ok(OwnArbiter { arbiter, is_shared: false })
    }

    /// The arbiter that runs async callbacks of subscribers.
    #[doc(hidden)]
    pub fn callback_arbiter(&self) -> ArbiterHandle {
        self.0.callbacks.clone()
    }

    /// The receiver of values that another thread frees, for an `OffArbiter`.
    #[doc(hidden)]
    pub fn release(&self) -> Arc<dyn Release> {
        self.0.freeing.release()
    }

    /// A new stream of random numbers: the same seed and the same order of calls give the same streams.
    #[doc(hidden)]
    pub fn chance(&self) -> RandomNumbers {
        RandomNumbers::new(self.0.seed, self.0.streams.fetch_add(1, Ordering::Relaxed))
    }

    /// A number that differs from process to process, whatever the seed is; in simulation it comes from the seed.
    #[doc(hidden)]
    pub fn unique_number(&self) -> u64 {
        match self.is_simulated() {
            true => self.chance().draw().to_bits(),
            false => clock::seed_from_system(),
        }
    }

    /// Registers one more informer, or something else with a name; `None` after the shutdown.
    #[doc(hidden)]
    pub fn register(&self, named: Named, name: &Arc<str>) -> Option<Registration> {
        self.0.registry.register(named, name)
    }
}

//! What actors, also those of `informer-operator`, request from their runtime. Not for programs.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use informer_core::off_arbiter::Release;

use super::{
    ArbiterHandle, Named, OwnArbiter, RandomNumbers, Registration, Runtime, RuntimeError, clock, locked,
};

impl Runtime {
    /// All that are registered, in the order of registration. The layers above know their types.
    #[doc(hidden)]
    pub fn registrants(&self) -> Vec<Arc<dyn Any + Send + Sync>> {
        self.0
            .registry
            .registrants()
            .into_iter()
            .map(|registrant| registrant as Arc<dyn Any + Send + Sync>)
            .collect()
    }

    /// Whether it is a simulation, in which everything shares one thread.
    #[doc(hidden)]
    pub fn is_simulated(&self) -> bool {
        self.0.clock.is_simulated()
    }

    /// Takes the arbiters in turn.
    pub(crate) fn pipeline_arbiter(&self) -> ArbiterHandle {
        let turn = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.0.pipelines[turn % self.0.pipelines.len()].clone()
    }

    /// A thread for one actor, which nothing else can delay. In simulation, the only thread.
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

    /// For an `OffArbiter`: the receiver of values that another thread frees.
    #[doc(hidden)]
    pub fn release(&self) -> Arc<dyn Release> {
        self.0.freeing.release()
    }

    /// A new stream of random numbers: the same seed and the same order of calls produce the same streams.
    #[doc(hidden)]
    pub fn chance(&self) -> RandomNumbers {
        RandomNumbers::new(self.0.seed, self.0.streams.fetch_add(1, Ordering::Relaxed))
    }

    /// A number that differs from process to process, whatever the seed is. In simulation the seed determines
    /// it.
    #[doc(hidden)]
    pub fn unique_number(&self) -> u64 {
        match self.is_simulated() {
            true => self.chance().draw().to_bits(),
            false => clock::seed_from_system(),
        }
    }

    /// Registers an informer or another holder of a name; `None` after the shutdown.
    #[doc(hidden)]
    pub fn register(&self, named: Named, name: &Arc<str>) -> Option<Registration> {
        self.0.registry.register(named, name)
    }
}

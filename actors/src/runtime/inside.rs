//! What actors, also those of `informer-operator`, request from their runtime. Not for programs.

use std::any::Any;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use informer_core::off_arbiter::Release;

use super::{
    ArbiterHandle, Inner, Named, OwnArbiter, RandomNumbers, Registration, Runtime, RuntimeError, clock,
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

    /// Shows something that the program keeps in reports, until nobody keeps it any more.
    #[doc(hidden)]
    pub fn observe<T: Any + Send + Sync>(&self, what: &Arc<T>) {
        let what: Arc<T> = Arc::clone(what);
        self.0.registry.observe(what);
    }

    /// What is observed, in the order of the calls.
    #[doc(hidden)]
    pub fn observed(&self) -> Vec<Arc<dyn Any + Send + Sync>> {
        self.0.registry.observed()
    }

    /// A handle that does not keep the runtime alive.
    #[doc(hidden)]
    pub fn weak(&self) -> WeakRuntime {
        WeakRuntime(Arc::downgrade(&self.0))
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
        self.0.others.with(|others| {
            others.retain(|other| !other.is_over());
            others.push(arbiter.clone());
        });
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
        self.0.freeing.as_release()
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

/// A handle of a runtime that does not keep it alive.
#[derive(Clone)]
pub struct WeakRuntime(Weak<Inner>);

impl WeakRuntime {
    /// `None` after the end of the runtime.
    pub fn upgrade(&self) -> Option<Runtime> {
        self.0.upgrade().map(Runtime)
    }
}

informer_core::debug_as!(WeakRuntime, self);

//! What runs on a runtime, under which names, and how the runtime stops it.
//!
//! 1. A name has at most one holder of each kind. A taken name gets a number: `pods`, `pods-2`.
//! 2. A name is free when its holder stops. The holder stays listed until all its actors have ended.
//! 3. No method of a [`Registrant`] is called under the lock.
use crate::runtime::locked::locked;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use tokio_util::sync::CancellationToken;

/// The kinds of holders; each kind has its own names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "known to our own crates alone")]
pub enum Named {
    /// Informers.
    Informer,
    /// Work queues.
    Queue,
    /// Leader elections.
    Election,
    /// Controllers.
    Controller,
    /// Operators.
    Operator,
    /// Recorders of events.
    Recorder,
}

/// How a runtime stops what is registered.
pub trait Registrant: Any + Send + Sync {
    /// Stops it, because the runtime ends.
    fn stop(&self);

    /// Ends every wait for it although a blocked thread still has a part of it. From then on none of its
    /// actors starts.
    fn abandon(&self);

    /// Cancelled when all of its actors have ended.
    fn over(&self) -> CancellationToken;
}

#[derive(Default)]
pub(crate) struct Registry(Mutex<State>);

#[derive(Default)]
struct State {
    closed: bool,
    names: BTreeSet<(Named, Arc<str>)>,
    registrants: BTreeMap<u64, Arc<dyn Registrant>>,
    registered: u64,
    observed: Vec<Weak<dyn Any + Send + Sync>>,
}

/// A place in the registry; its drop removes it.
pub struct Registration {
    registry: Weak<Registry>,
    named: Named,
    name: Arc<str>,
    number: u64,
    holds_name: AtomicBool,
}

impl Registry {
    /// `None` after the close.
    pub(crate) fn register(self: &Arc<Self>, named: Named, name: &Arc<str>) -> Option<Registration> {
        let mut state = self.state();
        if state.closed {
            return None;
        }
        let name = state.free_name(named, name);
        state.names.insert((named, Arc::clone(&name)));
        state.registered += 1;
        let (registry, number) = (Arc::downgrade(self), state.registered);
        Some(Registration { registry, named, name, number, holds_name: AtomicBool::new(true) })
    }

    /// Refuses registrations from now on.
    pub(super) fn close(&self) -> Vec<Arc<dyn Registrant>> {
        let mut state = self.state();
        state.closed = true;
        state.registrants.values().cloned().collect()
    }

    /// In the order of registration.
    pub(super) fn registrants(&self) -> Vec<Arc<dyn Registrant>> {
        self.state().registrants.values().cloned().collect()
    }

    /// Shows it in reports as long as somebody else keeps it. Costs a look at each that is observed.
    pub(super) fn observe(&self, what: Arc<dyn Any + Send + Sync>) {
        let mut state = self.state();
        let is_it =
            |known: &Weak<dyn Any + Send + Sync>| std::ptr::addr_eq(known.as_ptr(), Arc::as_ptr(&what));
        if !state.observed.iter().any(is_it) {
            state.observed.retain(|known| known.strong_count() > 0);
            state.observed.push(Arc::downgrade(&what));
        }
    }

    pub(super) fn observed(&self) -> Vec<Arc<dyn Any + Send + Sync>> {
        self.state().observed.iter().filter_map(Weak::upgrade).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.0)
    }
}

impl State {
    fn free_name(&self, named: Named, wanted: &Arc<str>) -> Arc<str> {
        let mut name = Arc::clone(wanted);
        let mut number = 1_u64;
        while self.names.contains(&(named, Arc::clone(&name))) {
            number += 1;
            name = format!("{wanted}-{number}").into();
        }
        name
    }
}

impl Registration {
    /// The registered name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Lists `registrant`. Stops it at once if the runtime was closed in between.
    pub fn list(&self, registrant: Arc<dyn Registrant>) {
        let listed = Arc::clone(&registrant);
        let closed = self.registry.upgrade().is_none_or(|registry| {
            let mut state = registry.state();
            state.registrants.insert(self.number, listed);
            state.closed
        });
        if closed {
            registrant.stop();
        }
    }

    /// Makes the name free for others.
    pub fn release_name(&self) {
        if let Some(registry) =
            self.registry.upgrade().filter(|_| self.holds_name.swap(false, Ordering::AcqRel))
        {
            registry.state().names.remove(&(self.named, Arc::clone(&self.name)));
        }
    }

    /// Removes it from the list.
    pub fn unlist(&self) {
        let Some(registry) = self.registry.upgrade() else { return };
        let left = registry.state().registrants.remove(&self.number);
        drop(left);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.release_name();
        self.unlist();
    }
}

informer_core::debug_as!(Registration, self, named = self.named, name = self.name);

//! The informers of a runtime: their names, and how the runtime stops them when it ends first.
//!
//! Answers "which names are taken, and who is told when the runtime is shut down?". It knows informers only as
//! [`Resident`]s. Invariants:
//! 1. A name has one holder. Whoever asks for a taken name gets it with a number behind it: `pods`, `pods-2`.
//! 2. A name is free again at the stop of its informer; the informer stays listed until nothing of it runs.
//! 3. After the close nobody is registered any more, and the close gives everybody who is.
//! 4. Nothing of a resident is called under the lock.
//!
//! Read next: `informer.rs`, the residents; `runtime.rs`, which closes.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio_util::sync::CancellationToken;

/// What a runtime does with an informer that lives on it.
pub(crate) trait Resident: Any + Send + Sync {
    /// Stops it, because the runtime ends.
    fn stop(&self);

    /// Ends whoever waits for it, though a blocked thread keeps a part of it: nothing of it begins any more.
    fn abandon(&self);

    /// Cancelled when nothing of it runs any more.
    fn over(&self) -> CancellationToken;
}

/// The names and residents of one runtime.
#[derive(Default)]
pub(crate) struct Registry(Mutex<State>);

#[derive(Default)]
struct State {
    closed: bool,
    names: BTreeSet<Arc<str>>,
    residents: BTreeMap<u64, Arc<dyn Resident>>,
    registered: u64,
}

/// The place of one informer in the registry; given up when dropped.
pub(crate) struct Registration {
    registry: Weak<Registry>,
    name: Arc<str>,
    number: u64,
    holds_name: AtomicBool,
}

impl Registry {
    /// A place under this name, or under the first free one of `name-2`, `name-3` and so on; `None` after the close.
    pub(crate) fn register(self: &Arc<Self>, name: &Arc<str>) -> Option<Registration> {
        let mut state = self.state();
        if state.closed {
            return None;
        }
        let name = state.free_name(name);
        state.names.insert(Arc::clone(&name));
        state.registered += 1;
        let (registry, number) = (Arc::downgrade(self), state.registered);
        Some(Registration { registry, name, number, holds_name: AtomicBool::new(true) })
    }

    /// Refuses everybody from now on, and gives all who live here.
    pub(super) fn close(&self) -> Vec<Arc<dyn Resident>> {
        let mut state = self.state();
        state.closed = true;
        state.residents.values().cloned().collect()
    }

    /// All who live here, in the order in which they came.
    pub(super) fn residents(&self) -> Vec<Arc<dyn Resident>> {
        self.state().residents.values().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn free_name(&self, wanted: &Arc<str>) -> Arc<str> {
        let mut name = Arc::clone(wanted);
        let mut number = 1_u64;
        while self.names.contains(&name) {
            number += 1;
            name = format!("{wanted}-{number}").into();
        }
        name
    }
}

impl Registration {
    /// The name that was free.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Lists `resident`; stops it at once if the runtime has been closed meanwhile.
    pub(crate) fn move_in(&self, resident: Arc<dyn Resident>) {
        let listed = Arc::clone(&resident);
        let closed = self.registry.upgrade().is_none_or(|registry| {
            let mut state = registry.state();
            state.residents.insert(self.number, listed);
            state.closed
        });
        if closed {
            resident.stop();
        }
    }

    /// Makes the name free for others.
    pub(crate) fn release_name(&self) {
        if let Some(registry) =
            self.registry.upgrade().filter(|_| self.holds_name.swap(false, Ordering::AcqRel))
        {
            registry.state().names.remove(&self.name);
        }
    }

    /// Leaves the list of residents.
    pub(crate) fn move_out(&self) {
        let Some(registry) = self.registry.upgrade() else { return };
        let left = registry.state().residents.remove(&self.number);
        drop(left);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.release_name();
        self.move_out();
    }
}

//! The addresses of all live Listeners, which a new Processor asks to attach again.
//!
//! Answers "which listeners are there, also after a restart of the Processor?". Its lock guards a small map, is never
//! held over an await, and is released before an address is dropped: dropping the last address drops the messages of a
//! mailbox.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use actix::Addr;
use informer_core::processor::ListenerId;

use crate::pipeline::listener::Listener;
use crate::pipeline::messages::Body;
use crate::runtime::locked::locked;

/// The addresses of all live listeners; they survive a restart of the Processor.
pub(crate) struct ListenerRoster<S: Body>(Arc<Mutex<Addresses<S>>>);

type Addresses<S> = BTreeMap<ListenerId, Arc<Addr<Listener<S>>>>;

impl<S: Body> ListenerRoster<S> {
    /// Without listeners.
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn join(&self, id: ListenerId, listener: Arc<Addr<Listener<S>>>) {
        let replaced = self.addresses().insert(id, listener);
        // Dropping the last address drops the messages of a mailbox and their bodies: not under the lock.
        drop(replaced);
    }

    pub(crate) fn leave(&self, id: ListenerId) {
        let removed = self.addresses().remove(&id);
        drop(removed);
    }

    pub(crate) fn all(&self) -> Vec<Arc<Addr<Listener<S>>>> {
        self.addresses().values().cloned().collect()
    }

    fn addresses(&self) -> MutexGuard<'_, Addresses<S>> {
        locked(&self.0)
    }
}

impl<S: Body> Clone for ListenerRoster<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

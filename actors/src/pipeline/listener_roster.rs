//! Whom a new Processor asks to attach again: the addresses of all live Listeners.
//!
//! Answers "who listens, whatever happened to the Processor?". Its lock guards a small map, is never held over an await,
//! and is released before an address is dropped: with the last address go the messages of a mailbox.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix::Addr;
use informer_core::processor::ListenerId;

use crate::pipeline::listener::Listener;
use crate::pipeline::messages::Body;

/// The seats of all live listeners: whom a new Processor asks to attach again.
pub(crate) struct ListenerRoster<S: Body>(Arc<Mutex<Addresses<S>>>);

type Addresses<S> = BTreeMap<ListenerId, Arc<Addr<Listener<S>>>>;

impl<S: Body> ListenerRoster<S> {
    /// Nobody listens.
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn join(&self, id: ListenerId, listener: Arc<Addr<Listener<S>>>) {
        let replaced = self.addresses().insert(id, listener);
        // With the last address go the messages of a mailbox, and the bodies in them: not under the lock.
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Body> Clone for ListenerRoster<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

//! What several tasks of a controller share: what is known of its keys, the writes of a request, the subscriptions.
//!
//! Answers "who may look at it, and for how long?". As with a work queue, what is known of the keys is beside the actors
//! and tasks, behind a short lock: events of several arbiters change it at once, so that nothing is in a mailbox that a
//! panic could take it from. Invariants:
//! 1. A lock is held for one call of the core, or while a list is moved. No code of a user runs under it.
//!
//! Read next: `informer_core::controller`, which decides.

use std::sync::Mutex;

use informer_core::controller::{
    Arrival, Awaited, Begun, Ended, Ledger, LedgerFigures, Next, Reason, Writes,
};
use informer_core::meta::{Meta, ObjectKey};

use super::status::Failure;
use super::watched::Feed;
use crate::runtime::locked::locked;

/// What is known of the keys.
pub(super) struct LedgerCell<S>(Mutex<Ledger<S>>);

impl<S> LedgerCell<S> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Ledger::default()))
    }

    pub(super) fn arrive(&self, key: &ObjectKey, arrival: Arrival<'_, S>, reason: Reason) -> bool {
        locked(&self.0).handle_arrival(key, arrival, reason)
    }

    pub(super) fn begin(&self, key: &ObjectKey, cached: Option<&Meta>) -> Option<Begun<S>> {
        locked(&self.0).handle_begin(key, cached)
    }

    pub(super) fn answered(&self, key: &ObjectKey, writes: &Writes) -> bool {
        locked(&self.0).handle_writes(key, writes)
    }

    pub(super) fn end(&self, key: &ObjectKey, ended: Ended) -> Next {
        locked(&self.0).handle_end(key, ended)
    }

    pub(super) fn figures(&self) -> LedgerFigures {
        locked(&self.0).figures()
    }
}

/// What one request has written.
#[derive(Default)]
pub(super) struct WritesCell(Mutex<Writes>);

impl WritesCell {
    pub(super) fn write(&self, informer: usize, key: &ObjectKey, awaited: Awaited) {
        locked(&self.0).handle_write(informer, key, awaited);
    }

    pub(super) fn take(&self) -> Writes {
        std::mem::take(&mut *locked(&self.0))
    }
}

/// The subscriptions that feed the queue, until the controller takes nothing more.
pub(super) struct Feeds(Mutex<Vec<Box<dyn Feed>>>);

impl Feeds {
    pub(super) fn new(feeds: Vec<Box<dyn Feed>>) -> Self {
        Self(Mutex::new(feeds))
    }

    /// Ends them.
    pub(super) fn end(&self) {
        let feeds = std::mem::take(&mut *locked(&self.0));
        drop(feeds);
    }

    /// Those that have ended by themselves, with the reason.
    pub(super) fn ended(&self) -> Vec<String> {
        locked(&self.0).iter().filter_map(|feed| feed.ended()).collect()
    }
}

/// The failure that came last.
#[derive(Default)]
pub(super) struct LastFailure(Mutex<Option<Failure>>);

impl LastFailure {
    pub(super) fn set(&self, failure: Failure) {
        let former = locked(&self.0).replace(failure);
        drop(former);
    }

    pub(super) fn get(&self) -> Option<Failure> {
        locked(&self.0).clone()
    }
}

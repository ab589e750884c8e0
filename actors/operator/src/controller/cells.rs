//! What several tasks of a controller share: what is known of its keys beside the queue, the writes of a request, the
//! subscriptions.
//!
//! Answers "who may look at it, and for how long?". As with a work queue, what is known of the keys is beside the actors
//! and tasks, behind a short lock: events of several arbiters change it at once, so that nothing is in a mailbox that a
//! panic could take it from. Invariants:
//! 1. A lock is held for one call of the machine, or while a list is moved. No code of a user runs under it, also no drop
//!    of a body: what the machine gives back is freed when the lock is released, and a panic of that drop is caught.
//!
//! Read next: `controller/machine.rs`, which decides.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::controller::machine::{
    Arrival, Awaited, Begun, Ended, Failing, Ledger, LedgerFigures, Next, Reason, Repeated, Telling, Writes,
};
use informer_core::meta::{Meta, Object, ObjectKey};
use informer_core::off_arbiter::{Freeing, Release};

use super::status::Failure;
use super::watched::Follows;
use informer_actors::informer::Body;
use informer_actors::inner::locked;
use informer_actors::subscription::Subscription;

/// What is known of the keys.
pub(super) struct LedgerCell<S: Body> {
    ledger: Mutex<Ledger<S>>,
    /// How last states are freed.
    freeing: Freeing<Object<S>>,
}

impl<S: Body> LedgerCell<S> {
    pub(super) fn new(release: Arc<dyn Release>) -> Self {
        Self { ledger: Mutex::new(Ledger::default()), freeing: Freeing::whole(release) }
    }

    /// The reason with which the key is to be added to the queue, if it is; and another key whose last state is not kept any
    /// more for this one.
    pub(super) fn arrive(
        &self,
        key: &ObjectKey,
        arrival: Arrival<'_, S>,
        reason: Reason,
    ) -> (Option<Reason>, Option<ObjectKey>) {
        let arrived = locked(&self.ledger).handle_arrival(key, arrival, reason);
        let other = arrived.released.as_ref().map(Object::key).filter(|released| *released != key).cloned();
        self.free(arrived.released);
        (arrived.reason, other)
    }

    /// Whether the last state is kept of an object of this key that has left.
    pub(super) fn keeps_left(&self, key: &ObjectKey) -> bool {
        locked(&self.ledger).keeps_left(key)
    }

    pub(super) fn begin(&self, key: &ObjectKey, cached: Option<&Meta>) -> Option<Begun<S>> {
        locked(&self.ledger).handle_begin(key, cached)
    }

    pub(super) fn answered(
        &self,
        key: &ObjectKey,
        writes: &Writes,
        is_told: impl Fn(usize) -> bool,
    ) -> Vec<Reason> {
        locked(&self.ledger).handle_writes(key, writes, is_told)
    }

    pub(super) fn not_seen(&self, informer: usize, object: &ObjectKey) {
        locked(&self.ledger).handle_not_seen(informer, object);
    }

    pub(super) fn end(&self, key: &ObjectKey, ended: Ended) -> Next {
        let concluded = locked(&self.ledger).handle_end(key, ended);
        self.free(concluded.released);
        concluded.next
    }

    /// Nothing is known of this key any more, which is not being reconciled.
    pub(super) fn forget(&self, key: &ObjectKey) {
        let released = locked(&self.ledger).handle_forgotten(key);
        self.free(released);
    }

    pub(super) fn figures(&self) -> LedgerFigures {
        locked(&self.ledger).figures()
    }

    /// Called when the lock is released.
    fn free(&self, released: Option<Object<S>>) {
        if let Some(released) = released {
            drop(self.freeing.keep(released));
        }
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
pub(super) struct Feeds(Mutex<Vec<Box<dyn Follows>>>);

impl Feeds {
    pub(super) fn new(feeds: Vec<Box<dyn Follows>>) -> Self {
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

/// The subscription to one informer, which is made anew when its Listener has failed.
pub(super) struct SubscriptionCell<T: Body>(Mutex<Option<Subscription<T>>>);

impl<T: Body> SubscriptionCell<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub(super) fn set(&self, subscription: Subscription<T>) {
        let former = locked(&self.0).replace(subscription);
        drop(former);
    }

    /// Unsubscribes.
    pub(super) fn clear(&self) {
        let subscription = locked(&self.0).take();
        drop(subscription);
    }

    /// What this says of the subscription, if there is one.
    pub(super) fn read<R>(&self, read: impl FnOnce(&Subscription<T>) -> R) -> Option<R> {
        locked(&self.0).as_ref().map(read)
    }
}

/// What has failed: the failure that came last, and what was said of each key that fails.
#[derive(Default)]
pub(super) struct Failures(Mutex<FailuresNow>);

#[derive(Default)]
struct FailuresNow {
    last: Option<Failure>,
    failing: Failing,
    /// Writes that the cache of an informer did not show in time, by its number.
    not_seen: BTreeMap<usize, Repeated>,
}

impl Failures {
    pub(super) fn set(&self, failure: Failure) {
        let former = locked(&self.0).last.replace(failure);
        drop(former);
    }

    pub(super) fn last(&self) -> Option<Failure> {
        locked(&self.0).last.clone()
    }

    /// How this failure of a key is told.
    pub(super) fn tell(&self, key: &ObjectKey, why: &Arc<str>, now: Duration) -> Telling {
        locked(&self.0).failing.handle_failure(key, why, now)
    }

    /// What was said of this key is not remembered any more: it is in order, or gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        locked(&self.0).failing.handle_success(key);
    }

    pub(super) fn forget_all(&self) {
        let former = std::mem::take(&mut locked(&self.0).failing);
        drop(former);
    }

    /// The cache of this informer did not show a write in time. Returns for how many writes that is to be logged now, if it is.
    pub(super) fn not_seen(&self, informer: usize, now: Duration) -> Option<u64> {
        locked(&self.0).not_seen.entry(informer).or_default().count(now)
    }
}

//! The addresses of all live Listeners, and the states of subscriptions. No lock is held over an await.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix::Addr;
use informer_core::processor::ListenerId;

use super::listener::Listener;
use super::messages::Body;
use super::subscription_state::{EndReason, SubscriptionState};
use crate::runtime::locked::Guarded;

pub(crate) struct ListenerRoster<S: Body>(Arc<Guarded<Addresses<S>>>);

type Addresses<S> = BTreeMap<ListenerId, Arc<Addr<Listener<S>>>>;

impl<S: Body> ListenerRoster<S> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn join(&self, id: ListenerId, listener: Arc<Addr<Listener<S>>>) {
        let replaced = self.0.with(|addresses| addresses.insert(id, listener));
        // Not under the lock: the last address drops the messages of a mailbox and their bodies.
        drop(replaced);
    }

    pub(crate) fn leave(&self, id: ListenerId) {
        let removed = self.0.with(|addresses| addresses.remove(&id));
        drop(removed);
    }

    pub(crate) fn all(&self) -> Vec<Arc<Addr<Listener<S>>>> {
        self.0.with(|addresses| addresses.values().cloned().collect())
    }
}

informer_core::clone_of!([S: Body] ListenerRoster<S>);

#[derive(Debug, Clone, Default)]
pub(crate) struct Subscriptions(Arc<Guarded<Vec<SubscriptionState>>>);

impl Subscriptions {
    pub(crate) fn add(&self, state: SubscriptionState) {
        self.0.with(|subscriptions| {
            // Finished ones are removed only when the list is full: on average O(1) checks for each.
            if subscriptions.len() == subscriptions.capacity() {
                subscriptions.retain(|state| !state.has_left());
            }
            subscriptions.push(state);
        });
    }

    fn live(&self) -> Vec<SubscriptionState> {
        self.those(|state| !state.has_ended())
    }

    pub(crate) fn end_all(&self, reason: &EndReason) {
        self.live().iter().for_each(|state| state.end_with(reason.clone()));
    }

    pub(crate) fn with_pending_events(&self) -> Vec<SubscriptionState> {
        let mut live = self.live();
        live.retain(SubscriptionState::has_pending);
        live
    }

    /// Those that have a Listener or a closure, even after their end.
    pub(crate) fn present(&self) -> Vec<SubscriptionState> {
        self.those(|state| !state.has_left())
    }

    fn those(&self, are: impl Fn(&SubscriptionState) -> bool) -> Vec<SubscriptionState> {
        self.0.with(|subscriptions| subscriptions.iter().filter(|state| are(state)).cloned().collect())
    }
}

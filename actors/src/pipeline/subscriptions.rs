//! The states of an informer's subscriptions, for its end and its reports.
//!
//! Answers "which subscriptions are alive, which have undelivered events, and which still have a Listener or a
//! closure?". Its lock guards a list and is held only while the list is copied.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::pipeline::subscription_state::{EndReason, SubscriptionState};
use crate::runtime::locked::locked;

/// The states of all subscriptions of an informer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subscriptions(Arc<Mutex<Vec<SubscriptionState>>>);

impl Subscriptions {
    pub(crate) fn add(&self, state: SubscriptionState) {
        let mut subscriptions = self.subscriptions();
        // Finished ones are removed only when the list is full: on average a constant number of checks for each.
        if subscriptions.len() == subscriptions.capacity() {
            subscriptions.retain(|state| !state.has_left());
        }
        subscriptions.push(state);
    }

    fn live(&self) -> Vec<SubscriptionState> {
        self.subscriptions().iter().filter(|state| !state.has_ended()).cloned().collect()
    }

    pub(crate) fn end_all(&self, reason: &EndReason) {
        self.live().iter().for_each(|state| state.end_with(reason.clone()));
    }

    /// Those with events that are not delivered, or not handled.
    pub(crate) fn with_pending_events(&self) -> Vec<SubscriptionState> {
        let mut live = self.live();
        live.retain(SubscriptionState::has_pending);
        live
    }

    /// Those that still have a Listener or a closure, also after their end.
    pub(crate) fn present(&self) -> Vec<SubscriptionState> {
        self.subscriptions().iter().filter(|state| !state.has_left()).cloned().collect()
    }

    fn subscriptions(&self) -> MutexGuard<'_, Vec<SubscriptionState>> {
        locked(&self.0)
    }
}

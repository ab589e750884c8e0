//! A report of one informer and everything on it.
//!
//! Answers "how are its sources, its queue and its subscriptions doing?" by a copy of the status: no message is sent, so
//! it also works when a thread is blocked. Invariant:
//! 1. A subscription is listed until no actor runs for it.
//!
//! Read next: `status.rs` and `subscription_state.rs`, the values of the parts; `board.rs`, where they come from.

use std::any::Any;
use std::sync::Arc;

use crate::pipeline::ending::Ending;
use crate::pipeline::status::InformerStatus;
use crate::pipeline::subscription_state::{SubscriptionState, SubscriptionStatus};

/// How one informer and everything on it is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InformerReport {
    /// The informer with its sources and its queue.
    pub status: InformerStatus,
    /// Its subscriptions.
    pub subscriptions: Vec<SubscriptionStatus>,
}

impl Ending {
    /// How the informer is doing.
    pub(crate) fn report(&self) -> InformerReport {
        InformerReport { status: self.board.read(), subscriptions: self.subscriptions() }
    }

    /// How its subscriptions are doing.
    pub(crate) fn subscriptions(&self) -> Vec<SubscriptionStatus> {
        self.subscriptions.present().iter().map(SubscriptionState::read).collect()
    }
}

/// The reports of the informers among what is registered, in the same order.
pub fn informer_reports(registrants: &[Arc<dyn Any + Send + Sync>]) -> Vec<InformerReport> {
    let endings =
        registrants.iter().filter_map(|registrant| Arc::clone(registrant).downcast::<Ending>().ok());
    endings.map(|ending| ending.report()).collect()
}

//! A report of everything that runs on a runtime, in one value.
//!
//! Answers "what runs here, and how is it doing?". The program needs no list of its own: a runtime knows its informers,
//! an informer its sources, its queue and its subscriptions. Each call copies the status; it sends no message to an
//! actor, so it also works when a thread is blocked. Invariants:
//! 1. Arbiters, informers and sources come in the order in which they were made, subscriptions in that of their calls.
//! 2. An informer is listed from its start until nothing of it runs any more, a subscription until no actor runs for
//!    it.
//!
//! Read next: `status.rs` and `subscription_state.rs`, the values of the parts; `board.rs`, where they come from.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use crate::pipeline::ending::Ending;
use crate::pipeline::status::InformerStatus;
use crate::pipeline::subscription_state::{SubscriptionState, SubscriptionStatus};
use crate::runtime::{ArbiterHealth, Runtime};

/// How a runtime and everything on it is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RuntimeReport {
    /// When it was made, as time since the runtime's start.
    pub at: Duration,
    /// Its threads for actors and async closures.
    pub arbiters: Vec<ArbiterHealth>,
    /// Bytes that are dropped and not yet freed.
    pub bytes_to_free: usize,
    /// Its informers.
    pub informers: Vec<InformerReport>,
}

/// How one informer and everything on it is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InformerReport {
    /// The informer with its sources and its queue.
    pub status: InformerStatus,
    /// Its subscriptions.
    pub subscriptions: Vec<SubscriptionStatus>,
}

impl Runtime {
    /// How it and everything on it is doing: all figures that there are. Blocks for no longer than copies take; its
    /// cost grows with the number of informers, sources and subscriptions, and with nothing else.
    pub fn report(&self) -> RuntimeReport {
        let ending = |registrant: Arc<dyn Any + Send + Sync>| registrant.downcast::<Ending>().ok();
        let registrants = self.registrants().into_iter();
        RuntimeReport {
            at: self.now(),
            arbiters: self.arbiters(),
            bytes_to_free: self.bytes_to_free(),
            informers: registrants.filter_map(ending).map(|ending| ending.report()).collect(),
        }
    }
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

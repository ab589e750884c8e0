//! Subscriptions: who receives changes, what a change looks like, and how far behind a subscriber may be.
//!
//! Answers "how does a program receive changes, and what happens if it is slow?" with names from `informer_actors` and
//! `informer_core`; adds nothing. Read next: `informer.rs`, which has the methods that subscribe.

pub use informer_actors::subscription::{
    Batch, CALL_GRACE, ChangeFilter, EndReason, Events, Marked, MarkedEvents, Notify, Policy, ShutdownError,
    SubscribeError, SubscribeOptions, Subscriber, Subscription, SubscriptionStatus, Touched, Unfinished,
    WhenFull,
};
pub use informer_core::delta::Cause;

#[cfg(feature = "client")]
pub use crate::controller::predicates::{annotations_changed, generation_changed, labelled, labels_changed};
#[cfg(feature = "kube")]
pub use crate::kube_events::{KubeEvents, kube_events};

//! Subscriptions: who receives changes, what a change looks like, and how far behind a subscriber may be.
//!
//! An [`Informer`](crate::informer::Informer) has the methods that subscribe.

pub use informer_actors::subscription::{
    Batch, CALL_GRACE, ChangeFilter, EndReason, Events, Marked, MarkedEvents, Notify, Policy, ShutdownError,
    SubscribeError, SubscribeOptions, Subscriber, Subscription, SubscriptionStatus, Touched, Unfinished,
    WhenFull,
};
pub use informer_core::delta::Cause;

#[cfg(feature = "client")]
pub use crate::controller::predicates::{annotations_changed, generation_changed, labelled, labels_changed};

#[cfg(feature = "kube")]
pub use crate::kube_events::{KubeEvents, kube_events, lazy_kube_events};

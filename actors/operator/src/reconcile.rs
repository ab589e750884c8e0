//! What reconcilers share: finalizers, owner references, children, conditions, the status.
//!
//! Answers "who decides what a reconcile may delete, and when its object may end?". It has no actor: a reconcile calls it. Read
//! next: `reconcile/machine.rs`, the decisions; `reconcile/kubernetes.rs`, the requests.

#[cfg(feature = "kubernetes")]
pub mod kubernetes;
pub mod machine;

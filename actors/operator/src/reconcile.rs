//! What reconcilers share: finalizers, owner references, children, conditions, the status.
//!
//! Answers "who decides what a reconcile may delete, and when its object may end?". It has no actor: a reconcile calls it. Read
//! next: `reconcile/machine/children.rs` and `reconcile/machine/finalizer.rs`, the decisions; `reconcile/kubernetes.rs`, the
//! requests.

#[cfg(feature = "kubernetes")]
pub mod kubernetes;

/// The decisions of reconcilers: whether a child may be written or deleted, and what follows for a finalizer from the
/// state of its object.
pub mod machine {
    pub mod children;
    pub mod finalizer;
}

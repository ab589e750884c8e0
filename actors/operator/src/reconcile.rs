//! What reconcilers share: finalizers, owner references, children, conditions, the status. It has no actor: a
//! reconcile calls it.

#[cfg(feature = "kubernetes")]
pub mod kubernetes;

/// The decisions of reconcilers: whether a child may be written or deleted, and what follows for a finalizer
/// from the state of its object.
pub mod machine {
    pub mod children;
    pub mod finalizer;
}

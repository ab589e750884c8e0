//! What most reconcilers write by hand: finalizers, owner references, children, conditions, the status.
//!
//! Answers "how does my reconcile function change the cluster so that nothing is lost if it is cut off anywhere?" Each part
//! works with a controller's request and without a controller ([`Subject`]). Invariants:
//! 1. A finalizer is on the server before the first effect, and stays until the clean-up has succeeded.
//! 2. Nothing is deleted that the owner does not control, by uid, or that another field manager has made.
//! 3. A pass that finds everything as it should be writes nothing.
//! 4. Each answer of the server is reported to the subject, so that a controller can wait until its cache has it.
//!
//! | controller-runtime | kube-rs | here |
//! |---|---|---|
//! | `controllerutil.AddFinalizer`, `RemoveFinalizer` | `finalizer` | [`finalizer()`] |
//! | `SetControllerReference` | `controller_owner_ref` | [`OwnedBy::owned_by`] |
//! | `CreateOrUpdate`, hand-written pruning | | [`Children`] |
//! | `meta.SetStatusCondition` | | [`set_condition`] |
//! | `Status().Update` | `Api::replace_status` | [`update_status`] |
//! | `ControllerExpectations` | | the answers that are reported, see [`Subject`] |
//!
//! Read next: `reconcile/kubernetes/finalizer.rs`, `reconcile/kubernetes/children.rs`.

pub use children::{
    Adopt, Applied, CONTROLLER_UID, ChildBody, ChildError, ChildPass, ChildPolicy, Children, Pruned,
    controller_uid,
};
pub use condition::{ConditionStatus, condition, is_condition_true, set_condition};
pub use finalizer::{Finalize, FinalizerError, finalizer};
pub use owner::{OwnedBy, OwnerError};
pub use status::{StatusError, Written, update_status};
pub use subject::{Subject, WriteLog, WriteRecord};

/// The condition of Kubernetes' own API types.
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

mod children;
mod condition;
mod finalizer;
mod owner;
mod status;
mod subject;

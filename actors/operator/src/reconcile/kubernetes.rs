//! What most reconcilers need: finalizers, owner references, children, conditions, the status, for a
//! controller's request or an object alone ([`Subject`]).
//!
//! A pass that finds everything in order writes nothing. Each answer to a write is reported to the subject.
//!
//! | controller-runtime | kube-rs | here |
//! |---|---|---|
//! | `controllerutil.AddFinalizer`, `RemoveFinalizer` | `finalizer` | [`finalizer()`] |
//! | `SetControllerReference` | `controller_owner_ref` | [`OwnedBy::owned_by`] |
//! | `CreateOrUpdate`, hand-written pruning | | [`Children`] |
//! | `meta.SetStatusCondition` | | [`set_condition`] |
//! | `Status().Update` | `Api::replace_status` | [`update_status`] |
//! | `ControllerExpectations` | | the reported answers, see [`Subject`] |

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

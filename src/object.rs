//! Objects in a cache: keys, versions, snapshots.

pub use informer_core::meta::{
    ClusterName, KeyText, Meta, Object, ObjectKey, ParseClusterError, ParseKeyError, ParseVersionError,
    ResourceVersion, SourceId, Uid,
};
pub use informer_core::snapshot::{Namespace, Snapshot};

#[cfg(feature = "client")]
pub use informer_client::object::{BodyError, from_body, meta_of};
#[cfg(feature = "client")]
pub use informer_client::select::{FieldSelector, FieldText, Fields, Select};
#[cfg(feature = "client")]
pub use informer_client::{FieldPath, FieldPathError, LabelSelector, SelectorError};

//! Names of this crate as `actix-informer` exports them, for examples that a user of it can paste.
//!
//! Answers "how does an example here name what a program cannot name as `informer_core`?" Such an example begins with the
//! hidden line `use informer_core::face as actix_informer;`. That `actix-informer` has each of the names is checked by
//! `tests/documentation`, which compiles the examples without that line. Nothing else may use this module.

pub mod informer {
    pub use crate::index::{Index, UnknownIndex};
}

pub mod object {
    pub use crate::meta::{
        ClusterName, Meta, Object, ObjectKey, ParseClusterError, ParseVersionError, ResourceVersion,
        SourceId, Uid,
    };
    pub use crate::snapshot::Snapshot;
}

pub mod subscription {
    pub use crate::listener::ChangeFilter;
}

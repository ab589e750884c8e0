//! Names of this crate as `actix-informer` exports them, for examples only. These begin with the hidden line
//! `use informer_core::face as actix_informer;`.

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

pub mod status {
    pub use crate::timing::{TIMING_BOUNDS, Timing};
}

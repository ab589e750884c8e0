//! Names of this crate as `actix-informer` exports them, for examples only. These begin with the hidden line
//! `use informer_actors::face as actix_informer;`.

pub use informer_core::face::object;

pub use crate::runtime;
#[cfg(any(test, feature = "testing"))]
pub use crate::testing;

pub mod fake {
    pub use crate::informer::FakeInformer;
}

pub mod informer {
    pub use crate::informer::{AnyInformer, Informer, Lister, Snapshots, StartError, Versions};
    pub use informer_core::index::Index;
}

pub mod source {
    pub use crate::runtime::{PassTo, PassedParts, passing};
    pub use informer_core::list_watch_error::ListWatchError;
}

pub mod subscription {
    pub use crate::subscription::{
        Batch, ChangeFilter, Marked, Notify, SubscribeError, SubscribeOptions, Subscriber, Subscription,
        Touched,
    };
    pub use informer_core::delta::Cause;
}

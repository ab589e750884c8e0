//! Names of this crate as `actix-informer` exports them, for examples that a user of it can paste.
//!
//! Answers "how does an example here name what a program cannot name as `informer_actors`?" Such an example begins with
//! the hidden line `use informer_actors::face as actix_informer;`. That `actix-informer` has each of the names is checked
//! by `tests/documentation`, which compiles the examples without that line. Nothing else may use this module.

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
    pub use informer_core::list_watch_error::ListWatchError;
}

pub mod subscription {
    pub use crate::subscription::{
        Batch, ChangeFilter, Marked, Notify, SubscribeError, SubscribeOptions, Subscriber, Subscription,
        Touched,
    };
    pub use informer_core::delta::Cause;
}

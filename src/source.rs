//! Where objects come from: the trait of a source, its requests and answers, the settings of its reflector.
//!
//! The example `custom_source` follows something that is not Kubernetes.

pub use informer_actors::list_watch::{
    Connect, Coverage, KnownObjects, ListStream, ListWatch, ObjectSample, SavedNote, SelectorInput,
    SourceSpec, WatchStream,
};
pub use informer_actors::runtime::{PassTo, Passed, PassedParts, passing};
pub use informer_core::backoff::BackoffPolicy;
pub use informer_core::delta::{ListPart, Undecodable, WatchPart};
pub use informer_core::list_watch_error::{ErrorClass, ListWatchError, SharedCause, WithCauses};
pub use informer_core::passing::PassedPart;
pub use informer_core::reflector::ReflectorConfig;
pub use informer_core::request::{AskedVersion, ListRequest, WatchRequest};

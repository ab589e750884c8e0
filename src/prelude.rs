//! The names that most programs with an informer use. `actix_informer::Error` is not among them: programs have an `Error` of
//! their own.

pub use crate::controller::{Controller, Outcome, ReconcileError, Request};
pub use crate::informer::{
    AnyInformer, Informer, InformerBuilder, Lister, QueueOrder, ShutdownReport, StartError, WaitError,
    WeakInformer,
};
pub use crate::object::{ClusterName, Meta, Object, ObjectKey, ResourceVersion, Snapshot, SourceId, Uid};
pub use crate::runtime::{Runtime, StillRunning, Stuck};
pub use crate::source::{
    AskedVersion, KnownObjects, ListPart, ListRequest, ListStream, ListWatch, ListWatchError, WatchPart,
    WatchRequest, WatchStream,
};
pub use crate::status::{InformerStatus, Reporting, SourceState};
pub use crate::subscription::{
    Cause, ChangeFilter, Events, Notify, Policy, ShutdownError, SubscribeOptions, Subscriber, Subscription,
    Touched, WhenFull,
};
pub use crate::work_queue::{Enqueue, Priority, WorkItem, WorkQueue};

#[cfg(feature = "client")]
pub use crate::client::api::{
    Api, AttachParams, DeleteParams, ListParams, LogParams, Patch, PatchParams, PostParams, WatchEvent,
    WatchParams,
};
#[cfg(feature = "client")]
pub use crate::client::{Client, Config, NamedResource};
#[cfg(feature = "client")]
pub use crate::controller::{OwnWrites, Owns};
#[cfg(feature = "client")]
pub use crate::events::{EventText, EventType, Recorder};
#[cfg(feature = "client")]
pub use crate::factory::InformerFactory;
#[cfg(feature = "client")]
pub use crate::informer::AddTo;
#[cfg(feature = "client")]
pub use crate::leader_election::ForTerm;
#[cfg(feature = "client")]
pub use crate::object::{LabelSelector, Select};

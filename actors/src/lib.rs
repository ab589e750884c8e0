//! Informers as supervised actors: Reflector, DeltaFifo, Indexer, Processor and Listeners. Each decides by calls into
//! its core twin in `informer_core`.
//!
//! Objects come in through [`list_watch::ListWatch`] alone: this crate does not know HTTP, files or Kubernetes.
//!
//! ```text
//!  source ──▶ Reflector ──Delta, Replace──▶ DeltaFifo ◀──Pop── Indexer ──FanOut──▶ Processor ──Distribute──▶ Listener
//!                                              ▲                 │ publishes           │                      │ Notify
//!                                              └──────Resync─────┼─────────────────────┘                      ▼
//!                                                                ▼                                actor, closure, stream
//!                                                             Snapshot ──▶ Listers
//! ```
//!
//! Programs use `actix-informer`, which reexports and promises what they need. What else is public is for
//! `informer-client` and `informer-operator`.

#[cfg(panic = "abort")]
compile_error!("supervision restarts actors after panics: build with panic = \"unwind\"");

mod all_informers;
mod any_informer;
mod builder;
mod event_stream;
#[doc(hidden)]
pub mod face;
mod fake;
mod followed;
pub mod informer;
pub mod list_watch;
mod lister;
mod observed;
mod pipeline;
mod running;
pub mod runtime;
mod snapshots;
mod source_failures;
mod subscribe_options;
mod subscriber;
pub mod subscription;
mod supervision;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod until;
mod wait_error;
mod weak_informer;

/// The version of actix whose actors can subscribe.
pub use actix;
pub use pipeline::status;

/// For the other crates of `actix-informer` only: nothing here is promised to programs.
#[doc(hidden)]
pub mod inner {
    pub use crate::followed::Followed;
    pub use crate::lister::Below;
    pub use crate::pipeline::ending::{informer_reports, memory_of, objects_of};
    pub use crate::pipeline::listener::delivery::Feed;
    pub use crate::pipeline::notifications::Fed;
    pub use crate::pipeline::published::{ListedObject, ListedPage, Listing};
    pub use crate::pipeline::sources::Selected;
    pub use crate::runtime::arbiter::{ArbiterHandle, OwnArbiter};
    pub use crate::runtime::callbacks::drop_payload;
    pub use crate::runtime::clock::{Clock, RandomNumbers, sleep, sleep_until, within};
    pub use crate::runtime::faults::{Faults, Site};
    pub use crate::runtime::inside::WeakRuntime;
    pub use crate::runtime::labels::{Label, Labelled};
    pub use crate::runtime::locked::{Guarded, Locked, Machine, locked};
    pub use crate::runtime::mailbox::{Asked, Closed, answer, ask, ask_with};
    pub use crate::runtime::registry::{Named, Registrant, Registration};
    pub use crate::runtime::signal::Signal;
    pub use crate::runtime::spans::Spans;
    pub use crate::supervision::group::Group;
    pub use crate::supervision::owner::{Child, ChildEvent, Ended, Mailbox, Owner};
    pub use crate::supervision::parent::{ChildContext, Parent};
    pub use crate::supervision::runner::{ALONE, Alarm, Look, Run, Runner};
}

//! The names that most programs with an informer use, under one import.
//!
//! Answers "what do I import?": `use actix_informer::prelude::*;`. It adds nothing of its own.

pub use informer_actors::any_informer::AnyInformer;
pub use informer_actors::builder::InformerBuilder;
pub use informer_actors::event_stream::Events;
pub use informer_actors::informer::{Informer, ShutdownReport, StartError, WaitError};
pub use informer_actors::list_watch::{Known, ListStream, ListWatch, WatchStream};
pub use informer_actors::lister::Lister;
pub use informer_actors::messages::Notify;
pub use informer_actors::runtime::{Runtime, StillRunning, Stuck};
pub use informer_actors::status::InformerStatus;
pub use informer_actors::subscription::{Policy, ShutdownError, SubscribeOptions, Subscription, WhenFull};
pub use informer_actors::weak_informer::WeakInformer;
pub use informer_core::delta::{Cause, ListPart, WatchPart};
pub use informer_core::delta_fifo::Discipline;
pub use informer_core::list_watch_error::ListWatchError;
pub use informer_core::meta::{ClusterName, Meta, Object, ObjectKey, ResourceVersion, SourceId, Uid};
pub use informer_core::reflector::SourceState;
pub use informer_core::request::{AskedVersion, ListRequest, WatchRequest};
pub use informer_core::snapshot::Snapshot;

#[cfg(feature = "client")]
pub use crate::client::Client;

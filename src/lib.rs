//! Kubernetes informers as supervised actix actors.
//!
//! An informer keeps a local copy of one kind of object, tells subscribers what changes, and never stops on its own:
//! Reflector, DeltaFifo, Indexer, Processor and Listeners are actors that a Supervisor restarts when they fail. This
//! crate is the front door: the machinery comes from `informer_actors`, its decisions from `informer_core`; the
//! `client` feature adds Kubernetes as a source of objects.
//!
//! ```
//! use actix_informer::prelude::*;
//! use std::time::Duration;
//!
//! async fn watch_pods(client: Client) -> Result<(), Box<dyn std::error::Error>> {
//!     let runtime = Runtime::threads().start()?;
//!     let pods = client.resource::<k8s_openapi::api::core::v1::Pod>().informer(&runtime)?.start()?;
//!     pods.synced_within(Duration::from_secs(30)).await?;   // Err says why it is not
//!     println!("{} pods", pods.lister().snapshot().len());
//!     Ok(())
//! }
//! ```
//!
//! Read next: [`informer::Informer`]; `ARCHITECTURE.md` for the whole design.

#[cfg(feature = "client")]
pub mod client;
pub mod informer;
pub mod prelude;
#[cfg(feature = "client")]
pub mod representation;
#[cfg(feature = "service")]
pub mod service;
#[cfg(feature = "client")]
mod text;

pub use informer_actors::{
    builder, list_watch, lister, messages, report, runtime, seat, status, subscription, wiring,
};
pub use informer_core as core;

/// What tests of operators need: simulated runtimes, scripted sources, fault hooks.
#[cfg(feature = "testing")]
pub use informer_actors::{faults, testing};

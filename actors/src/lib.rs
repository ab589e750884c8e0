//! Informers as supervised actors: Reflector, DeltaFifo, Indexer, Processor and Listeners, which meet in messages.
//!
//! This crate answers "who does what, on which thread, and what happens when one of them dies?". Every decision is a
//! call into its core twin (`informer_core`); the outside world comes in through [`list_watch::ListWatch`] alone, so
//! nothing here knows HTTP, files or Kubernetes.
//!
//! ```text
//!  source ──▶ Reflector ──Delta, Replace──▶ DeltaFifo ◀──Pop── Indexer ──Changes──▶ Processor ──Owed──▶ Listener 1..n
//!                                              ▲                 │ publishes            │                   │ Notify
//!                                              └──────Resync─────┼──────────────────────┘                   ▼
//!                                                                ▼                                 actor, closure, stream
//!                                                             Snapshot ──▶ Listers
//! ```
//!
//! Start with [`messages`], the wiring table; then [`informer::Informer`], the handle; then any actor.

#[cfg(panic = "abort")]
compile_error!("supervision restarts actors after panics: build with panic = \"unwind\"");

mod actor_subscriber;
pub mod any_informer;
mod blocking;
pub mod builder;
mod callback;
pub mod event_stream;
pub mod informer;
pub mod list_watch;
pub mod lister;
mod pipeline;
mod running;
pub mod runtime;
pub mod subscription;
mod supervision;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod wait_error;
pub mod weak_informer;

pub use pipeline::{messages, report, seat, status, wiring};
pub use runtime::faults;

//! Informers as supervised actors: Reflector, DeltaFifo, Indexer, Processor and Listeners, which exchange messages.
//!
//! This crate answers "who does what, on which thread, and what happens when one of them dies?". Every decision is a
//! call into its core twin (`informer_core`); the outside world comes in through [`list_watch::ListWatch`] alone, so
//! nothing here knows HTTP, files or Kubernetes.
//!
//! ```text
//!  source ──▶ Reflector ──Delta, Replace──▶ DeltaFifo ◀──Pop── Indexer ──FanOut──▶ Processor ──Distribute──▶ Listener
//!                                              ▲                 │ publishes           │                      │ Notify
//!                                              └──────Resync─────┼─────────────────────┘                      ▼
//!                                                                ▼                                actor, closure, stream
//!                                                             Snapshot ──▶ Listers
//! ```
//!
//! Programs use `actix-informer`, which names what they need of this crate and promises it; who writes another front door
//! depends on this one. Ten modules are the face: [`informer`] (handles and their builder), [`list_watch`] (what a source
//! is), [`subscription`], [`work_queue`], [`controller`], [`events`], [`leader_election`], [`operator`], [`status`],
//! [`runtime`]; with the feature `testing`, `testing`. All else is private.
//!
//! To read the code, start with `pipeline/messages.rs`, the wiring table; then [`informer::Informer`], the handle; then any
//! actor.

#[cfg(panic = "abort")]
compile_error!("supervision restarts actors after panics: build with panic = \"unwind\"");

mod actor_subscriber;
mod all_informers;
mod any_informer;
mod builder;
mod callback;
pub mod controller;
mod event_stream;
pub mod events;
#[doc(hidden)]
pub mod face;
mod fake;
pub mod informer;
pub mod leader_election;
pub mod list_watch;
mod lister;
mod observed;
pub mod operator;
mod overlay;
mod pipeline;
mod report;
mod running;
pub mod runtime;
mod snapshots;
mod source_failures;
mod subscribe_options;
pub mod subscription;
mod supervision;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod until;
mod wait_error;
mod weak_informer;
pub mod work_queue;

/// The version whose actors subscribe here.
pub use actix;
pub use pipeline::status;

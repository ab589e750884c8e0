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
mod blocking;
pub mod builder;
mod callback;
mod delta_fifo;
mod ending;
pub mod event_stream;
pub mod faults;
mod guard;
mod indexer;
pub mod informer;
pub mod list_watch;
mod listener;
pub mod lister;
mod mailbox;
pub mod messages;
mod odd_data;
mod processor;
mod progress;
mod published;
mod reflector;
pub mod runtime;
pub mod seat;
pub mod status;
pub mod subscription;
mod supervisor;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod wait_error;
pub mod wiring;

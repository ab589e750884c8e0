//! `informerd` as a library: it runs informers of the configured kinds, prints their changes, and answers probes.
//!
//! Answers "what does a supervised, long-running service over informers consist of?". The binary only adds a command
//! line. The rest of the crate does not use this module. Invariants:
//! 1. It reads a cluster only if one is configured, and writes only to a server that it started itself.
//! 2. Every notification of its subscriptions is printed, in order for each object, before the summary.
//! 3. It prints no value of a Secret, and no control sequence for a terminal except its own colours.
//! 4. It ends by a signal, a time limit or a closed output. It drains first, at most for the configured time.
//!
//! ```text
//!  target ─▶ client ─▶ informers ─▶ subscriptions ─▶ lines ─▶ output ─▶ stdout
//!                          └──────▶ states, probes ───┘
//! ```
//! Read next: `run.rs`, start and end; `config.rs`, the settings; `follow.rs`, one kind.

pub mod config;
#[cfg(feature = "embedded")]
mod demo;
mod describe;
mod discovered;
mod error;
mod follow;
mod kept;
mod kinds;
mod lines;
mod output;
mod probes;
mod run;
mod target;

pub use actix_informer::printable::printable;
pub use config::Config;
pub use error::Error;
pub use kinds::WatchedKind;
pub use run::{CauseCounts, Ending, EventCounts, InformerReport, Report, Service, stop_signal};
pub use target::{Environment, NoCluster, Target};

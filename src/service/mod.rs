//! `informerd`, as a library: informers of configured kinds, printed, probed and drained.
//!
//! Answers "what does a supervised, long-running service over informers consist of?". The binary adds a command line
//! and nothing else. Nothing below uses this module. Invariants:
//! 1. It reads a cluster only when told to, and writes only to a server that it started itself.
//! 2. Every notification that its subscriptions are told is printed, in order for each object, before the summary.
//! 3. No value of a Secret is printed, and nothing that is printed commands a terminal.
//! 4. It ends by a signal, a time limit or a closed output, and drains first, at most for the configured time.
//!
//! ```text
//!  target ─▶ client ─▶ informers ─▶ subscriptions ─▶ lines ─▶ output ─▶ stdout
//!                          └──────▶ states, probes ───┘
//! ```
//! Read next: `run.rs`, the life of it; `config.rs`, what it is told; `follow.rs`, one kind.

mod clock;
pub mod config;
#[cfg(feature = "embedded")]
mod demo;
mod describe;
mod error;
mod follow;
mod kinds;
mod lines;
mod output;
mod printable;
mod probes;
mod run;
mod signals;
mod target;

pub use config::Config;
pub use error::Error;
pub use kinds::WatchedKind;
pub use printable::printable;
pub use run::{CauseCounts, Ending, EventCounts, InformerReport, Report, Service};
pub use signals::stop_signal;
pub use target::{Environment, NoCluster, Target};

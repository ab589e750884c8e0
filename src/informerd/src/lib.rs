//! `informerd` as a library: informers of the configured kinds, whose changes it prints, and probes.
//!
//! 1. It reads a cluster only if one is configured, and writes only to a server of its own.
//! 2. Every notification is printed, in order for each object, before the summary.
//! 3. It prints no value of a Secret, and no control sequence except its own colours.
//! 4. The text of an [`Error`] contains its cause: a person sees only the text. Failures after the start are printed and retried.
//!
//! ```text
//!  target ─▶ client ─▶ informers ─▶ subscriptions ─▶ lines ─▶ output ─▶ stdout
//!                          └──────▶ states, probes ───┘
//! ```

pub mod config;
#[cfg(feature = "embedded")]
mod demo;
mod describe;
mod discovered;
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
pub use kinds::WatchedKind;
pub use run::{CauseCounts, Ending, EventCounts, InformerReport, Report, Service, stop_signal};
pub use target::{Environment, NoCluster, Target};

use actix_informer::client;
use actix_informer::informer::StartError;
use actix_informer::runtime::RuntimeError;

/// A failure of the service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is refused.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// No cluster is configured, and no in-memory server is built in.
    #[error(transparent)]
    NoCluster(#[from] NoCluster),
    /// The cluster's configuration cannot be used.
    #[error(transparent)]
    Client(#[from] client::Error),
    /// The threads did not start.
    #[error("the runtime's threads could not be started: {0}")]
    Runtime(#[from] RuntimeError),
    /// An informer did not start.
    #[error("{kind} cannot be watched: {source}")]
    Informer {
        /// Its kind.
        kind: String,
        /// Why.
        source: StartError,
    },
    /// Two names of the configuration mean the same resource.
    #[error(
        "{resource} are watched twice; allowed: one informer for each kind, which may have several namespaces"
    )]
    WatchedTwice {
        /// The resource.
        resource: String,
    },
    /// A name of the configuration is a category of several kinds.
    #[error("{0}; allowed: one [[informer]] for each kind")]
    Category(#[source] client::DiscoveryError),
    /// A port is given for probes that are off.
    #[error("--probe-port is given, but the probes are off: remove it, or set [probes] enabled = true")]
    ProbesAreOff,
    /// The probes cannot listen.
    #[error(
        "probes cannot listen on {address}: {source}; change it with [probes] address and port, or --probe-port"
    )]
    Probes {
        /// The address.
        address: std::net::SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// It was told to stop before it had started.
    #[error("stopped while it asked the server which kinds there are; nothing was followed")]
    StoppedAtStart,
    /// The output could not be written.
    #[error("the output cannot be written: {0}")]
    Output(#[source] std::io::Error),
    /// The in-memory API server or its workload did not start.
    #[cfg(feature = "embedded")]
    #[error("the in-memory API server did not start: {0}")]
    Embedded(#[source] Box<dyn std::error::Error + Send + Sync>),
}

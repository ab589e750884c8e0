//! Why informerd did not start, or could not print.
//!
//! Answers "at which step did it fail?". What fails while it runs is shown and overcome, and is no error here.
//! 1. The cause is in `source` and in the text, because the text is what a person sees.

use super::config;
use super::target::NoCluster;
use crate::client;
use crate::informer::StartError;
use crate::runtime::RuntimeError;

/// A failure of the service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is refused.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// It was not told of a cluster, and has none of its own.
    #[error(transparent)]
    NoCluster(#[from] NoCluster),
    /// The cluster's configuration cannot be used.
    #[error(transparent)]
    Client(#[from] client::Error),
    /// The threads did not start.
    #[error("no threads: {0}")]
    Runtime(#[from] RuntimeError),
    /// An informer did not start.
    #[error("{kind} cannot be watched: {source}")]
    Informer {
        /// Of which kind.
        kind: String,
        /// Why.
        source: StartError,
    },
    /// The probes cannot listen.
    #[error(
        "probes cannot listen on {address}: {source}; [probes] address and port, or --probe-port, say where"
    )]
    Probes {
        /// Where.
        address: std::net::SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// What was to be printed was not taken.
    #[error("output failed: {0}")]
    Output(#[source] std::io::Error),
    /// The in-memory API server or its workload did not start.
    #[cfg(feature = "embedded")]
    #[error("the in-memory API server did not start: {0}")]
    Embedded(#[source] Box<dyn std::error::Error + Send + Sync>),
}

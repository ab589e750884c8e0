//! What can go wrong between this process and an API server.
//!
//! Answers "at which step did it fail?" for configuration and single requests. A refusal by the server is not here
//! twice: it is the `Status` in [`Error::Refused`]. Lists and watches fail with
//! [`informer_core::list_watch_error::ListWatchError`], into which a [`TransportError`] turns. Invariants:
//! 1. No message, no Debug and no cause holds a secret: no password or query of a URL, no text of a kubeconfig, no
//!    value of an object, and no token, not even where a server repeats it.
//! 2. A timeout is never reported as a broken connection, nor the other way round.
//!
//! Read next: `transport.rs`, where most of these begin.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use informer_core::list_watch_error::ListWatchError;
use kube_client::config::InClusterError;

use super::status::Status;

/// A failure of the client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kubeconfig is not one, or names things that are not there.
    #[error("kubeconfig{} cannot be used: {what}", named(.path))]
    Kubeconfig {
        /// Which file, if it is one and not several or a text.
        path: Option<PathBuf>,
        /// Why, with line and column where they are known, and without a word of the file.
        what: String,
    },
    /// This process does not run in a pod, or its service account is not mounted.
    #[error("in-cluster configuration cannot be used: {0}")]
    InCluster(#[source] Box<InClusterError>),
    /// Neither `KUBECONFIG` nor an in-cluster environment is there.
    #[error("no cluster is configured: set KUBECONFIG, give a kubeconfig, or run in a pod")]
    NotConfigured,
    /// The configuration asks for something that this client does not do.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The URL of the API server is not one.
    #[error("endpoint {endpoint:?} is no http or https URL: {reason}")]
    Endpoint {
        /// The text, without user, password, query and fragment.
        endpoint: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A name from which no path can be made.
    #[error("{text:?} is no {what}")]
    Name {
        /// What it should name.
        what: &'static str,
        /// The name.
        text: String,
    },
    /// A file of the configuration cannot be read.
    #[error("{what} {path:?} cannot be read: {source}")]
    File {
        /// What the file holds.
        what: &'static str,
        /// Where it should be.
        path: PathBuf,
        /// Why it cannot be read.
        source: io::Error,
    },
    /// A certificate, key, token or name of the configuration cannot be used.
    #[error("{what} cannot be used: {reason}")]
    Unusable {
        /// Which one.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// The request never got a whole answer.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The server answered with something else than success.
    #[error("server answered {}: {}", .0.code, .0.message)]
    Refused(Box<Status>),
    /// The answer is larger than a single request may be.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The client's thread cannot be started, or has ended.
    #[error("the client's thread is gone")]
    Stopped,
}

fn named(path: &Option<PathBuf>) -> String {
    path.as_deref().map(|path| format!(" {}", path.display())).unwrap_or_default()
}

impl From<InClusterError> for Error {
    fn from(error: InClusterError) -> Self {
        Self::InCluster(Box::new(error))
    }
}

/// Why a request got no whole answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// No connection could be made.
    #[error("cannot connect to {endpoint}: {source}")]
    Connect {
        /// Where to.
        endpoint: String,
        /// Why.
        source: io::Error,
    },
    /// The connection broke before the answer's head was there, or in its body.
    #[error("connection broke {during}: {source}")]
    Broken {
        /// What was going on.
        during: &'static str,
        /// How it broke.
        source: io::Error,
    },
    /// The connection was closed before the body was whole.
    #[error("the body was cut off")]
    Truncated,
    /// Something took too long.
    #[error("{what} took longer than {after:?}")]
    Timeout {
        /// What did.
        what: &'static str,
        /// The deadline.
        after: Duration,
    },
    /// The peer does not speak HTTP/1.1 as asked.
    #[error("the answer is not HTTP as asked: {0}")]
    Malformed(String),
    /// The request cannot be sent as it is.
    #[error("the request is invalid: {0}")]
    Request(String),
    /// There is no usable token.
    #[error("no credentials: {0}")]
    Credentials(#[source] Arc<Error>),
}

impl From<TransportError> for ListWatchError {
    fn from(error: TransportError) -> Self {
        let message: Arc<str> = error.to_string().into();
        match error {
            TransportError::Timeout { .. } => Self::Timeout(message),
            TransportError::Malformed(_) => Self::Protocol(message),
            TransportError::Request(_) => Self::Source { message, source: None },
            TransportError::Credentials(cause) => Self::Source { message, source: Some(cause) },
            TransportError::Connect { .. } | TransportError::Broken { .. } | TransportError::Truncated => {
                Self::Connection { message, source: Some(Arc::new(error)) }
            }
        }
    }
}

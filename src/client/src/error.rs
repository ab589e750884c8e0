//! What can go wrong between this process and an API server. Lists and watches fail with [`ListWatchError`],
//! into which a [`TransportError`] converts.
//!
//! 1. No message, Debug or cause holds a secret: no password or query of a URL, no text of a kubeconfig, no
//!    value of an object that does not decode, and no token, even if a server repeats it. The only foreign
//!    text is the server's message in a refusal: it may quote a refused write.
//! 2. A timeout is never reported as a broken connection, nor the other way round.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use informer_core::list_watch_error::ListWatchError;

use crate::wire::JsonError;
pub use causes::{OidcError, PluginError, ProxyError, StreamError};
pub use refused::Refused;

pub(crate) mod advice;
mod causes;
mod refused;
pub(crate) mod status;

/// A failure of the client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kubeconfig cannot be parsed, or refers to entries that do not exist.
    #[error("kubeconfig{} cannot be used: {what}", named(.path))]
    Kubeconfig {
        /// The file; `None` for several files or a text.
        path: Option<PathBuf>,
        /// Why, with line and column where they are known, and without any text of the file.
        what: String,
    },
    /// This process does not run in a pod, or its service account is not mounted.
    #[error("in-cluster configuration cannot be used: {0}")]
    InCluster(String),
    /// Neither `KUBECONFIG` is set, nor does the process run in a pod.
    #[error(
        "no cluster is configured: set KUBECONFIG, give a kubeconfig, or run in a pod; \
         Client::from_home() and Config::from_home() read ~/.kube/config, which kubectl reads by itself"
    )]
    NotConfigured,
    /// The configuration needs something that this client does not support.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The text is not the URL of an API server.
    #[error("endpoint {endpoint:?} is not an http, https or unix URL: {reason}")]
    Endpoint {
        /// The text, without user, password, query and fragment.
        endpoint: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The text is not the URL of a proxy, or the proxy cannot be used for this endpoint.
    #[error("the proxy {proxy:?} cannot be used: {reason}")]
    Proxy {
        /// Its URL, without user, password, query and fragment.
        proxy: String,
        /// Why, and the variable of the environment that names it.
        reason: String,
    },
    /// A name from which no path can be made.
    #[error("{text:?} is not a valid {what}")]
    Name {
        /// What it should name.
        what: &'static str,
        /// The name.
        text: String,
    },
    /// A namespace was named for a cluster-scoped kind; nothing was sent.
    #[error("{resource} are cluster-scoped: leave out the namespace {namespace:?}")]
    ClusterScoped {
        /// The resource, such as `nodes`.
        resource: String,
        /// The namespace.
        namespace: String,
    },
    /// A selector that no server understands; nothing was sent.
    #[error("{what} {text:?} cannot be parsed: {reason}")]
    Selector {
        /// Whether it selects by labels or by fields.
        what: &'static str,
        /// The selector.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It is not known whether this representation keeps the same of every object as another one, because it
    /// has a transform or fields of its own.
    #[error("the representation of {resource} needs a name, so that it can be compared: use `keep_as_named`")]
    Unnamed {
        /// The resource.
        resource: String,
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
    /// The credential plugin of the kubeconfig returned no credentials.
    #[error("credential plugin {command:?} gave no credentials: {source}")]
    Plugin {
        /// The program.
        command: String,
        /// Why.
        source: PluginError,
    },
    /// The OpenID Connect login of the kubeconfig returned no token.
    #[error("the oidc auth provider gave no token: {0}")]
    Oidc(#[from] OidcError),
    /// The request got no complete answer.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The server refused the request.
    #[error("{0}")]
    Refused(Box<Refused>),
    /// The server accepted the request, and its answer does not decode.
    #[error("the answer to {request} does not decode: {source}")]
    Answer {
        /// Method and path of the request.
        request: String,
        /// The field, and what was expected there.
        source: JsonError,
    },
    /// The server accepted the request and sent something else than was requested: another content type, or
    /// whole objects instead of their metadata.
    #[error(
        "the answer to {request} is {received}, where {asked} was asked for: a proxy or a login page may have given it"
    )]
    UnexpectedAnswer {
        /// Method and path of the request.
        request: String,
        /// The content type that was requested.
        asked: &'static str,
        /// The content type of the answer, or the kind that it names.
        received: String,
    },
    /// The server accepted the request and sent another object than the one that was requested by name:
    /// something between the program and the server has mixed up answers. What a write did is not known. This
    /// client's pooled connections are closed; those of a kube client or of an in-process server are not.
    #[error("the answer to {request} is the object {received:?}, where {asked:?} was asked for")]
    AnotherObject {
        /// Method and path of the request.
        request: String,
        /// The name that was requested, with its namespace.
        asked: String,
        /// The name of the object that was sent.
        received: String,
    },
    /// The server accepted the request, and its stream over a websocket could not be opened, or ended early.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// No request can be built from the arguments; nothing was sent.
    #[error("the request cannot be made: {0}")]
    Request(String),
    /// The answer is larger than a single request may be.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The client's thread cannot be started, or has ended; or the runtime of a client in process has ended.
    #[error("the client's thread has ended")]
    Stopped,
}

impl Error {
    /// What the server answered, if it refused.
    pub fn refused(&self) -> Option<&Refused> {
        match self {
            Self::Refused(refused) => Some(refused),
            _ => None,
        }
    }

    /// Whether the server answered 404 NotFound. [`Refused::is_object_not_found`] is true if the object does
    /// not exist, and false if the server does not serve the kind.
    pub fn is_not_found(&self) -> bool {
        self.refused().is_some_and(|refused| refused.is_not_found())
    }

    /// Whether another writer was faster: the object has changed since it was read (409 Conflict), or another
    /// manager has one of the applied fields. Read it again, see
    /// [`Client::retry_on_conflict`](super::Client::retry_on_conflict).
    pub fn is_conflict(&self) -> bool {
        self.refused().is_some_and(|refused| refused.is_conflict())
    }

    /// Whether an object of this name is there already (409 AlreadyExists).
    pub fn is_already_exists(&self) -> bool {
        self.refused().is_some_and(|refused| refused.is_already_exists())
    }

    /// Whether the request, or its last attempt, was not sent because this process does not lead: no byte of
    /// it was written. See `LeaderElection::guard`.
    pub fn is_not_leading(&self) -> bool {
        matches!(self, Self::Transport(error) if error.is_not_leading())
    }

    /// Whether RBAC or an admission plugin does not allow it (403 Forbidden).
    pub fn is_forbidden(&self) -> bool {
        self.refused().is_some_and(|refused| refused.is_forbidden())
    }

    /// Whether the object breaks the rules of its kind (422 Invalid). The causes in the details name the
    /// fields.
    pub fn is_invalid(&self) -> bool {
        self.refused().is_some_and(|refused| refused.is_invalid())
    }

    /// Whether the server no longer has the version or the page that was asked for (410): list again.
    pub fn is_expired(&self) -> bool {
        self.refused()
            .is_some_and(|refused| refused.code == 410 || matches!(&*refused.reason, "Expired" | "Gone"))
    }
}

fn named(path: &Option<PathBuf>) -> String {
    path.as_deref().map(|path| format!(" {}", path.display())).unwrap_or_default()
}

/// Why a request got no complete answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// No connection could be made.
    #[error("cannot connect to {endpoint}: {source}")]
    Connect {
        /// The address.
        endpoint: String,
        /// Why.
        source: io::Error,
    },
    /// The proxy made no connection to the API server; nothing was sent to the server.
    #[error("cannot connect to {endpoint} through the proxy {proxy}: {source}")]
    Proxy {
        /// The address of the API server.
        endpoint: String,
        /// The URL of the proxy, without user and password.
        proxy: String,
        /// Why.
        source: ProxyError,
    },
    /// The connection broke before the head of the answer had arrived, or in its body.
    #[error("connection broke {during}: {source}")]
    Broken {
        /// At which point of the request.
        during: &'static str,
        /// Why it broke.
        source: io::Error,
    },
    /// The connection was closed before the end of the body.
    #[error("the body was cut off")]
    Truncated,
    /// A step took too long.
    #[error("{what} took longer than {after:?}")]
    Timeout {
        /// Which step.
        what: &'static str,
        /// The deadline.
        after: Duration,
    },
    /// The request was not sent: a limit of the client would have held it back beyond its deadline.
    #[error("{what} held the request back beyond its deadline, for {after:?}; nothing was sent")]
    Limited {
        /// Which limit of the client.
        what: &'static str,
        /// How long it waited, or would have waited.
        after: Duration,
    },
    /// The last of several attempts failed.
    #[error("{source} (attempt {attempts}; before it: {previous})")]
    Retried {
        /// How often the request was sent.
        attempts: u32,
        /// What was wrong with the attempt before the last.
        previous: String,
        /// What was wrong with the last.
        source: Box<Self>,
    },
    /// The answer is not HTTP/1.1, or not in a form that was requested.
    #[error("the answer is not valid HTTP: {0}")]
    Malformed(String),
    /// The request cannot be sent as it is.
    #[error("the request is invalid: {0}")]
    Request(String),
    /// The request was not sent: this process does not hold the lease, or has not renewed it in time.
    #[error("the request was not sent: this process does not lead by the lease {lease}")]
    NotLeading {
        /// The lease, as `namespace/name`.
        lease: Arc<str>,
    },
    /// There is no usable token.
    #[error("no credentials: {0}")]
    Credentials(#[source] Arc<Error>),
}

impl TransportError {
    fn is_not_leading(&self) -> bool {
        match self {
            Self::NotLeading { .. } => true,
            Self::Retried { source, .. } => source.is_not_leading(),
            _ => false,
        }
    }
}

impl From<TransportError> for ListWatchError {
    fn from(error: TransportError) -> Self {
        let message: Arc<str> = error.to_string().into();
        match error {
            TransportError::Timeout { .. }
            | TransportError::Limited { .. }
            | TransportError::Proxy { source: ProxyError::TimedOut { .. }, .. } => Self::Timeout(message),
            TransportError::Retried { source, .. } => Self::from(*source),
            TransportError::Malformed(_) => Self::Protocol(message),
            TransportError::Request(_) | TransportError::NotLeading { .. } => {
                Self::Source { message, source: None }
            }
            TransportError::Credentials(cause) => Self::Source { message, source: Some(cause) },
            TransportError::Connect { .. }
            | TransportError::Proxy { .. }
            | TransportError::Broken { .. }
            | TransportError::Truncated => Self::Connection { message, source: Some(Arc::new(error)) },
        }
    }
}

//! Why a list, a watch or a get failed, and what that means for the next request ([`ListWatchError::class`]).

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::meta::{ClusterName, ObjectKey};

/// The cause below an error, shared so that errors can be cloned.
pub type SharedCause = Arc<dyn StdError + Send + Sync + 'static>;

/// What a failure asks the reflector to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorClass {
    /// Wait out a backoff step and try again.
    Retry,
    /// The server named the wait.
    RetryAfter(Duration),
    /// The requested version is expired or not reached yet: list again.
    Relist,
    /// The source does not know this kind of request (watch-list): list instead, without a wait.
    Unsupported,
    /// The server does not accept our credentials (401).
    Unauthorized,
    /// The server knows us, and we may not do this (403).
    Denied,
    /// The kind does not exist (404). Not HTTP's 410 Gone: that is [`Self::Relist`].
    Gone,
    /// The server rejects the label or field selector (400, 422).
    SelectorRejected,
}

/// A failed list, watch or get.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ListWatchError {
    /// The version or continue token is too old: 410, or an ERROR frame with reason Expired or Gone.
    #[error("expired: {0}")]
    Expired(Arc<str>),
    /// The version lies ahead of the server's: 504 with cause ResourceVersionTooLarge.
    #[error("too large resource version: {0}")]
    TooLargeVersion(Arc<str>),
    /// The server is overloaded: 429, with the wait it named.
    #[error("overloaded: {message}")]
    Overloaded {
        /// The server's message.
        message: Arc<str>,
        /// How long it asks to wait.
        retry_after: Option<Duration>,
    },
    /// Initial events on a watch are not supported here.
    #[error("watch-list is not supported: {0}")]
    WatchListUnsupported(Arc<str>),
    /// The server does not accept the credentials: 401.
    #[error("not authenticated: {0}")]
    Unauthorized(Arc<str>),
    /// Not allowed: 403.
    #[error("denied: {0}")]
    Denied(Arc<str>),
    /// The kind, or the path of it, does not exist: 404.
    #[error("no such resource: {0}")]
    NotFound(Arc<str>),
    /// The label or field selector is not one that the server knows for this kind: 400 or 422.
    #[error("selector rejected: {selectors}: {message}")]
    SelectorRejected {
        /// The selectors as they were set: `labels=app=shop,fields=spec.nodeName=a`.
        selectors: Arc<str>,
        /// The server's message.
        message: Arc<str>,
    },
    /// Any other answer that is a failure, as the server worded it.
    #[error("server answered {code}{}: {message}", reason_text(.reason))]
    Status {
        /// The HTTP status code, or the code of the Status object.
        code: u16,
        /// The machine-readable reason, possibly empty.
        reason: Arc<str>,
        /// The server's message.
        message: Arc<str>,
    },
    /// The connection could not be made, or broke.
    #[error("connection failed: {message}")]
    Connection {
        /// What was tried.
        message: Arc<str>,
        /// The error of the connection.
        source: Option<SharedCause>,
    },
    /// No answer, or no further byte, in time.
    #[error("timed out: {0}")]
    Timeout(Arc<str>),
    /// The answer is not what was requested: broken JSON, another kind, a list that does not end, a Table.
    #[error("unexpected answer: {0}")]
    Protocol(Arc<str>),
    /// A frame whose object has no readable key: only a list shows which object it was.
    #[error("unreadable frame: {0}")]
    Unreadable(Arc<str>),
    /// The answer has a key of another cluster than the one that its source was declared for. No part of it
    /// is used.
    #[error("foreign cluster: {key} was brought by a source {}", declared(.cluster))]
    ForeignCluster {
        /// The first such key.
        key: ObjectKey,
        /// The cluster of the source; `None` if it was declared without one.
        cluster: Option<ClusterName>,
    },
    /// A watch ended without a frame, and sooner than a watch without changes would end.
    #[error("very short watch: {0}")]
    VeryShortWatch(Arc<str>),
    /// Something on the client's side failed: credentials that cannot be read, or a custom source.
    #[error("source failed: {message}")]
    Source {
        /// What was tried.
        message: Arc<str>,
        /// What failed.
        source: Option<SharedCause>,
    },
}

fn declared(cluster: &Option<ClusterName>) -> String {
    cluster.as_ref().map_or_else(|| "without a cluster".to_owned(), |cluster| format!("of cluster {cluster}"))
}

fn reason_text(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(" {reason}") }
}

impl ListWatchError {
    /// The class of the failure; a pure function of the variant.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Expired(_) | Self::TooLargeVersion(_) | Self::Unreadable(_) => ErrorClass::Relist,
            Self::Overloaded { retry_after: Some(wait), .. } => ErrorClass::RetryAfter(*wait),
            Self::WatchListUnsupported(_) => ErrorClass::Unsupported,
            Self::Unauthorized(_) => ErrorClass::Unauthorized,
            Self::Denied(_) => ErrorClass::Denied,
            Self::NotFound(_) => ErrorClass::Gone,
            Self::SelectorRejected { .. } => ErrorClass::SelectorRejected,
            Self::Overloaded { retry_after: None, .. }
            | Self::Status { .. }
            | Self::Connection { .. }
            | Self::Timeout(_)
            | Self::Protocol(_)
            | Self::ForeignCluster { .. }
            | Self::VeryShortWatch(_)
            | Self::Source { .. } => ErrorClass::Retry,
        }
    }

    /// Its text and those of its causes, each once: what to show to people.
    pub fn with_causes(&self) -> WithCauses<'_> {
        WithCauses(self)
    }

    /// A failed connection with its cause.
    pub fn connection(message: impl Into<Arc<str>>, cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::Connection { message: message.into(), source: Some(Arc::new(cause)) }
    }

    /// A failure of a custom source.
    pub fn source(message: impl Into<Arc<str>>) -> Self {
        Self::Source { message: message.into(), source: None }
    }
}

/// A failure as text with its causes. A cause that the text already contains is left out.
#[derive(Debug, Clone, Copy)]
pub struct WithCauses<'a>(&'a ListWatchError);

impl fmt::Display for WithCauses<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.0.to_string();
        let mut cause = StdError::source(self.0);
        while let Some(error) = cause {
            let words = error.to_string();
            if !text.contains(&words) {
                text = format!("{text}: {words}");
            }
            cause = error.source();
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::ListWatchError;

    // INF-57: given any error of a start, a wait, a subscription, an index, a shutdown or a source, when it
    // is shown, then it names the informer, source or subscription, shows states and causes in plain words,
    // and says nothing twice.
    // - a errors of handles: `inf_57_every_error_of_a_handle_names_who_and_why_in_plain_words`
    // - b states of sources: `inf_57_every_state_of_a_source_is_shown_in_plain_words`
    // - c failures of sources with their causes
    #[test]
    fn inf_57_a_failure_is_shown_with_its_causes_and_each_of_them_once() {
        let refused = || io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
        let texts = [
            (ListWatchError::Denied("Unauthorized".into()), "denied: Unauthorized"),
            (
                ListWatchError::connection("cannot connect to 10.0.0.1:6443", refused()),
                "connection failed: cannot connect to 10.0.0.1:6443: connection refused",
            ),
            (
                ListWatchError::connection("cannot connect to a: connection refused", refused()),
                "connection failed: cannot connect to a: connection refused",
            ),
        ];
        for (error, text) in texts {
            assert_eq!(error.with_causes().to_string(), text);
        }
    }
}

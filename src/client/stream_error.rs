//! What can go wrong on a stream after the server has accepted the request.
//!
//! Answers "why did this stream end early?" A refusal of the request is [`Error::Refused`]. Invariants:
//! 1. No message holds a byte of what was sent, except the reason that the server gave for closing, shortened.
//!
//! [`Error::Refused`]: crate::client::Error::Refused

use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Why a stream over a websocket ended early. Readers carry it as the cause of their `std::io::Error`.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The server answered 101, and its answer is not that of a websocket with channels.
    #[error("the server does not speak a websocket with channels: {0}")]
    Handshake(&'static str),
    /// The server sent what the protocol does not allow.
    #[error("the server broke the websocket protocol: {0}")]
    Protocol(String),
    /// A frame is longer than any server sends.
    #[error("a frame of the websocket is longer than {0} bytes")]
    TooLarge(usize),
    /// The server closed the websocket with a code that is not the normal one.
    #[error("the server closed the websocket with code {code}: {reason}")]
    Closed {
        /// The code of RFC 6455 section 7.4.
        code: u16,
        /// What the server says; empty if it says nothing.
        reason: String,
    },
    /// The connection ended, and the server did not say that the stream has ended.
    #[error("the connection was cut off")]
    CutOff,
    /// The server did not answer a ping: it is gone, or something on the way forwards nothing any more.
    #[error("the server did not answer a ping within {0:?}")]
    Silent(Duration),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(#[source] Arc<io::Error>),
    /// A port of the pod cannot be reached, or what listened there is gone.
    #[error("port {port} of the pod: {reason}")]
    Port {
        /// The port.
        port: u16,
        /// What the node says.
        reason: String,
    },
    /// The command has ended, and its status does not decode or was never sent.
    #[error("the status of the command cannot be read: {0}")]
    Status(String),
    /// The protocol that the server chose cannot do this.
    #[error("{0}")]
    Unsupported(&'static str),
}

impl From<StreamError> for io::Error {
    fn from(error: StreamError) -> Self {
        let kind = match &error {
            StreamError::Broken(source) => source.kind(),
            StreamError::CutOff => io::ErrorKind::UnexpectedEof,
            StreamError::Silent(_) => io::ErrorKind::TimedOut,
            StreamError::Unsupported(_) => io::ErrorKind::Unsupported,
            StreamError::Port { .. } => io::ErrorKind::ConnectionRefused,
            StreamError::Closed { .. } => io::ErrorKind::ConnectionAborted,
            _ => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}

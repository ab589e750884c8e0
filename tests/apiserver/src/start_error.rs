//! Why a server does not start.
//!
//! Answers: what failed? Each reason keeps what the system said as its source.
/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The port cannot be listened on.
    #[error("cannot listen on loopback port {port}")]
    Bind {
        /// The port that was asked for.
        port: u16,
        /// What the system said.
        source: std::io::Error,
    },
    /// The server's own authority or certificate could not be made.
    #[error("cannot make the certificates")]
    Certificates(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A server in process follows the clock of a tokio runtime, and was not started inside of one.
    #[error("a server in process has to be started inside of a tokio runtime")]
    NoRuntime,
    /// The server's thread could not be started, or ended before it listened.
    #[error("cannot start the server's thread")]
    Thread(#[source] std::io::Error),
}

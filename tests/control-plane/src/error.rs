//! What can go wrong with a control plane: starting it, and everything after.
//!
//! Question: what does a failing test print, so that the cause is visible without running it again?
//! 1. An error of a process carries the end of its log, because the directory is removed with the test.
//! 2. No error is worth a retry here: ports taken by another process have been retried already.
//!
//! Read next: `process.rs`, which makes most of these.

use std::{io, process::ExitStatus, time::Duration};

/// Why a control plane, or one of its processes, did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A file of the temporary directory could not be written.
    #[error("cannot prepare the control plane's directory")]
    Directory(#[source] io::Error),
    /// A key or certificate could not be made.
    #[error("cannot make the control plane's certificates")]
    Certificates(#[source] rcgen::Error),
    /// The TLS client that asks for readiness refused the certificates.
    #[error("cannot set up TLS towards the control plane")]
    Tls(#[source] rustls::Error),
    /// No free ports were found on loopback.
    #[error("cannot find free ports on loopback")]
    Ports(#[source] io::Error),
    /// A timeout variable is not a duration.
    #[error("{variable} is not a duration such as 20s: {text:?}")]
    Variable {
        /// The environment variable.
        variable: &'static str,
        /// Its value.
        text: String,
    },
    /// The program could not be run at all.
    #[error("cannot run {process}")]
    Spawn {
        /// Which program.
        process: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The process ended before it was ready.
    #[error("{process} ended while starting ({status}); the end of its log:\n{log}")]
    Exited {
        /// Which program.
        process: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// The last lines it wrote.
        log: String,
    },
    /// The process runs, but did not answer as ready in time, and has been killed.
    #[error("{process} was not ready within {limit:?} (last answer: {answer}); the end of its log:\n{log}")]
    NotReady {
        /// Which program.
        process: &'static str,
        /// The limit, from `KUBEBUILDER_CONTROLPLANE_START_TIMEOUT`.
        limit: Duration,
        /// What it answered last.
        answer: String,
        /// The last lines it wrote.
        log: String,
    },
}

/// Why something asked of a running control plane failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A process did not start again.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The call needs a process that is not running.
    #[error("{process} is not running")]
    NotRunning {
        /// Which program.
        process: &'static str,
    },
    /// The call would start a process that runs already.
    #[error("{process} is running already")]
    AlreadyRunning {
        /// Which program.
        process: &'static str,
    },
    /// The process did not end after SIGTERM in time, and has been killed.
    #[error("{process} did not end within {limit:?} and was killed; the end of its log:\n{log}")]
    Stop {
        /// Which program.
        process: &'static str,
        /// The limit, from `KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT`.
        limit: Duration,
        /// The last lines it wrote.
        log: String,
    },
    /// The operating system refused a signal, a file or a connection.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A key or certificate could not be made.
    #[error("cannot make the certificate")]
    Certificate(#[source] rcgen::Error),
    /// etcd refused a request.
    #[error("etcd answered {status}: {body}")]
    Etcd {
        /// The HTTP status.
        status: u16,
        /// The body, as text.
        body: String,
    },
    /// kubectl ended with a failure.
    #[error("kubectl {arguments} failed: {output}")]
    Kubectl {
        /// The arguments, as given.
        arguments: String,
        /// What it wrote to standard error.
        output: String,
    },
}

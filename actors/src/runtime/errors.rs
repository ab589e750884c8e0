//! Why a runtime did not start, or has not ended.
//!
//! Answers "what went wrong with the threads themselves?" Invariants:
//! 1. Each error names the thread or the arbiter that it is about.
//!
//! Read next: `../runtime.rs`, which gives them.

use super::Stuck;

/// Why a runtime did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// A thread could not be started.
    #[error("thread {name} did not start")]
    Thread {
        /// The thread's name.
        name: String,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
}

/// The error of a shutdown: threads of the runtime had not ended at the limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the runtime has not ended at the limit: {}", self.causes())]
#[non_exhaustive]
pub struct StillRunning {
    /// The arbiters that are blocked, and what blocks them.
    pub stuck: Vec<Stuck>,
    /// Every arbiter has ended, but an object is still being decoded or transformed.
    pub decoding: bool,
    /// Every arbiter has ended and nothing is decoded any more, but objects are still being freed.
    pub freeing: bool,
}

impl StillRunning {
    fn causes(&self) -> String {
        if self.decoding {
            return "an object is still being decoded".to_owned();
        }
        if self.freeing {
            return "an object is still being dropped".to_owned();
        }
        self.stuck.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

//! Why a runtime did not start, is stuck, or has not ended.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Something that is stuck: the thread, the actor and the kind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stuck {
    /// In which way it is stuck.
    pub kind: StuckKind,
    /// The thread's name.
    pub arbiter: Arc<str>,
    /// The actor that blocks the thread or makes no progress, as `informer/actor`; `None` if it is neither an actor of
    /// this crate nor a subscriber's closure.
    pub actor: Option<Arc<str>>,
    /// When the thread's last heartbeat was, or the pipeline last made progress, as time since the runtime's start.
    pub since: Duration,
}

/// In which way something is stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StuckKind {
    /// The thread has no heartbeat: the code that runs on it does not return, and nothing else on it can run.
    Blocked,
    /// The thread runs, but the informer applies nothing of what its source has sent: a bug of this crate.
    NoProgress,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let actor = self.actor.as_deref().unwrap_or("something that is not an actor");
        match self.kind {
            StuckKind::Blocked => write!(f, "{actor} blocks the thread {}", self.arbiter),
            StuckKind::NoProgress => write!(f, "{actor} makes no progress on the thread {}", self.arbiter),
        }
    }
}

/// The error of starting a runtime.
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

/// The error of a shutdown: some threads of the runtime had not ended at the limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the runtime has not ended at the limit: {}", self.causes())]
#[non_exhaustive]
pub struct StillRunning {
    /// The arbiters that are blocked, and what blocks them.
    pub stuck: Vec<Stuck>,
    /// Every arbiter has ended, but an object is still being decoded or transformed.
    pub decoding: bool,
    /// Every arbiter has ended and no object is being decoded, but objects are still being freed.
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

//! The question of a guard to its Supervisor: the only message of supervision.
//!
//! It has a file of its own, so that the guard and the Supervisor do not depend on each other. Each child has at most
//! one ask in flight.

use std::sync::Arc;

use actix::Message;
use informer_core::restart::{Exit, RestartHistory, Role, Verdict};

/// A child has ended; the answer is what follows.
#[derive(Debug)]
pub(crate) struct Exited {
    pub(crate) child: Arc<str>,
    pub(crate) role: Role,
    /// Its restarts so far; none before the first, and of a child that is restarted with its group.
    pub(crate) history: Option<Box<RestartHistory>>,
    pub(crate) exit: Exit,
}

/// What follows, and the history with it.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) verdict: Verdict,
    pub(crate) history: Option<Box<RestartHistory>>,
}

impl Message for Exited {
    type Result = Decided;
}

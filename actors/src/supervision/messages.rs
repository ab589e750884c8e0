//! What a guard asks its Supervisor.
//!
//! The only message of supervision, in a file of its own so that guard and Supervisor need not know each other. One ask
//! is in flight for each child.

use std::sync::Arc;

use actix::Message;
use informer_core::restart::{Exit, Role, Verdict};

/// A child has ended; what now?
#[derive(Debug)]
pub(crate) struct Exited {
    pub(crate) child: Arc<str>,
    pub(crate) role: Role,
    /// How often it was revived: each time it has a new restart history.
    pub(crate) revivals: u32,
    pub(crate) exit: Exit,
}

impl Message for Exited {
    type Result = Verdict;
}

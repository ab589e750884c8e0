//! The owner of children: supervision notifies it of restarts and ends.
//!
//! Answers "who learns that an actor was restarted or given up?": its owner, through one method. The owner counts, logs
//! and shows the event, and decides whether it can go on. Invariants:
//! 1. Each failure of a child is reported once, with what follows.
//! 2. A child is reported as given up when nothing of it exists any more.
//! 3. The owner is called on the thread of the children and must not block it.
//!
//! Read next: `supervisor.rs` and `start.rs`, which call it; `pipeline/owner.rs`, the informer as an owner.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::restart::{Exit, Role};
use informer_core::words::{QUOTED, one_line};

/// The owner of supervised children.
pub(crate) trait Owner: Send + Sync + 'static {
    /// The child of this name and role has failed, ended, or was revived.
    fn child_changed(&self, child: &Arc<str>, role: Role, event: ChildEvent<'_>);
}

/// What has happened to a child.
#[derive(Debug)]
pub(crate) enum ChildEvent<'a> {
    /// It has failed and starts again after this wait, with its group if its role says so.
    Restarts { exit: &'a Exit, after: Duration },
    /// It has ended and is not needed any more.
    Ended { exit: &'a Exit },
    /// It has failed and is not started again.
    GivenUp { reason: &'a Arc<str> },
    /// It was given up, and starts again now.
    Revived,
}

/// The text for how a child has ended.
pub(crate) struct Ended<'a>(pub(crate) &'a Exit);

impl fmt::Display for Ended<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Exit::Finished => f.write_str("has finished"),
            Exit::Asked => f.write_str("has ended, as it was asked to"),
            Exit::Failed(why) => write!(f, "has failed: {}", one_line(why, QUOTED)),
            Exit::Panicked(text) => write!(f, "has panicked: {}", one_line(text, QUOTED)),
            _ => f.write_str("has ended"),
        }
    }
}

//! What the actor of an election is told.
//!
//! | message | from | answer | bound |
//! |---|---|---|---|
//! | `Begin` | `LeaderElection::begin` | none | one in the life of an election |
//! | `ShutDown` | `LeaderElection::shutdown` | at once | one for each caller that waits |

use actix::Message;

/// A declared candidate takes part from here on.
#[derive(Debug)]
pub(super) struct Begin;

impl Message for Begin {
    type Result = ();
}

/// The term is over, and the lease is to be given back.
#[derive(Debug)]
pub(super) struct ShutDown;

impl Message for ShutDown {
    type Result = ();
}

//! What the actor of an election is told.
//!
//! | message | from | answer | bound |
//! |---|---|---|---|
//! | `ShutDown` | `LeaderElection::shutdown` | at once | one for each caller that waits |

use actix::Message;

/// The term is over, and the lease is to be given back.
#[derive(Debug)]
pub(super) struct ShutDown;

impl Message for ShutDown {
    type Result = ();
}

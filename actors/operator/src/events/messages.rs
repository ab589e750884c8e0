//! The messages to the actor of a recorder.
//!
//! | message | sender | answer | bound |
//! |---|---|---|---|
//! | `Look` | whoever emits or closes | none | one |
//! | `Flushed` | who waits for a flush | when nothing waits to be sent | one a waiting caller |
//!
//! The actor's death answers the waiting asks with `Closed`; their senders ask again. Read next: `actor.rs`.

use actix::Message;
use actix::dev::OneshotSender;

/// Something has changed: look whether there is a request to send.
pub(super) struct Look;

impl Message for Look {
    type Result = ();
}

/// Answered when nothing waits to be sent.
pub(super) struct Flushed(pub(super) OneshotSender<()>);

impl Message for Flushed {
    type Result = ();
}

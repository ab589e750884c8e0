//! The messages to the actor of a work queue.
//!
//! | message | sender | answer | bound |
//! |---|---|---|---|
//! | `Look` | whoever changes the content | none | one |
//! | `Next` | a worker that waits | an `Offer`, or none when the queue is over | one a worker |
//! | `Drained` | who waits for a drain | when the drain is over | one a waiting caller |
//!
//! The actor's death answers the waiting asks with `Closed`; their senders ask again. Read next: `actor.rs`.

use actix::Message;
use actix::dev::OneshotSender;

use super::item::Offer;
use super::{QueueKey, QueueNote};

/// Something has changed: look whether a key can be handed out.
pub(super) struct Look;

impl Message for Look {
    type Result = ();
}

/// A worker waits for a key.
pub(super) struct Next<K: QueueKey, P: QueueNote>(pub(super) OneshotSender<Option<Offer<K, P>>>);

impl<K: QueueKey, P: QueueNote> Message for Next<K, P> {
    type Result = ();
}

/// Answered when the drain is over.
pub(super) struct Drained(pub(super) OneshotSender<()>);

impl Message for Drained {
    type Result = ();
}

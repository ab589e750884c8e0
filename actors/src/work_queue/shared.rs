//! What handles, items and the actor of a work queue share: the content, and the actor's address.
//!
//! Answers "how does the actor learn that there is something to hand out?": by one `Look` that waits in its mailbox,
//! however much has changed. Invariants:
//! 1. At most one `Look` is in the mailbox, and one more for each restart. The actor takes the mark away before it looks,
//!    and when it starts: a change after that sends another one.
//! 2. When the actor has ended for good, adds are refused and every wait ends.
//!
//! Read next: `content.rs`; `actor.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix::Addr;
use informer_core::work_queue::WorkQueue;
use tokio_util::sync::CancellationToken;

use super::actor::QueueActor;
use super::content::Content;
use super::messages::Look;
use super::{QueueKey, QueueNote};

/// What the actor has, too.
pub(super) struct Inside<K, P> {
    pub(super) name: Arc<str>,
    pub(super) content: Content<K, P>,
    pub(super) is_told: AtomicBool,
    /// Cancelled when nothing of the actor exists any more.
    pub(super) over: CancellationToken,
}

impl<K: QueueKey, P: QueueNote> Inside<K, P> {
    /// Ends every wait: nothing is added or handed out any more.
    pub(super) fn end(&self) {
        self.discard(WorkQueue::force);
        self.over.cancel();
    }

    /// Shuts the queue down in this way, and discards what is not handed out any more: a part at a time, so that others get
    /// the lock in between. Returns how many keys were discarded.
    pub(super) fn discard(&self, how: impl FnOnce(&mut WorkQueue<K, P>)) -> usize {
        self.content.with(|queue, _, _| how(queue));
        let part = || self.content.with(|queue, _, _| queue.discard_some());
        std::iter::repeat_with(part).take_while(|count| *count > 0).sum()
    }
}

/// What handles and items have.
pub(super) struct Shared<K: QueueKey, P: QueueNote> {
    pub(super) inside: Arc<Inside<K, P>>,
    pub(super) address: Addr<QueueActor<K, P>>,
}

impl<K: QueueKey, P: QueueNote> Shared<K, P> {
    /// Tells the actor that something has changed.
    #[expect(
        clippy::disallowed_methods,
        reason = "bounded: one Look is in the mailbox at most, and one more for each restart"
    )]
    pub(super) fn tell(&self) {
        if !self.inside.is_told.swap(true, Ordering::AcqRel) {
            self.address.do_send(Look);
        }
    }
}

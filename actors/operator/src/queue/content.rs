//! What a work queue holds, outside of its actor: it outlives a panic of the actor.
//!
//! Answers "what is in the queue after something has panicked?", and, in the queue of a controller, what is known of its keys:
//! both change in one call. A key that is added a thousand times takes the memory of one. Invariants:
//! 1. The order and the clone of the keys, and the rate limiter, are the only foreign code under the lock. A panic of the
//!    rate limiter is caught (`limiter.rs`).
//! 2. A queue that is not sound after a panic is built anew from its keys.
//! 3. When the actor has ended for good, adds are refused and every wait ends.
//!
//! Read next: `actor.rs`, which takes keys out; `machine.rs`, which decides.

use std::sync::Arc;

use actix::Addr;

use crate::queue::machine::{Merge, QueueMachine};
use informer_core::reflector::Moment;
use tokio_util::sync::CancellationToken;

use super::limiter::CaughtLimiter;
use super::{QueueKey, QueueNote};
use informer_actors::inner::{Locked, Machine, Run as _, Runner};

/// What the actor has, too.
pub(super) struct Inside<K, P: Merge> {
    pub(super) name: Arc<str>,
    pub(super) content: Locked<Content<K, P>>,
    /// Cancelled when nothing of the actor exists any more.
    pub(super) over: CancellationToken,
}

/// What handles and items have.
pub(super) struct Shared<K: QueueKey, P: QueueNote> {
    pub(super) inside: Arc<Inside<K, P>>,
    pub(super) address: Addr<Runner<Inside<K, P>>>,
}

pub(super) struct Content<K, P: Merge> {
    pub(super) queue: QueueMachine<K, P>,
    pub(super) limiter: CaughtLimiter<K>,
}

impl<K: Ord + Clone, P: Merge> Machine for Content<K, P> {
    fn is_sound(&self) -> bool {
        self.queue.check().is_ok()
    }

    fn rebuild(&mut self, _: Moment) {
        self.queue = self.queue.rebuilt();
    }
}

impl<K: QueueKey, P: QueueNote> Inside<K, P> {
    /// Calls the queue.
    pub(super) fn with<R>(
        &self,
        call: impl FnOnce(&mut QueueMachine<K, P>, &mut CaughtLimiter<K>, Moment) -> R,
    ) -> R {
        self.content.with(|Content { queue, limiter }, moment| call(queue, limiter, moment))
    }

    /// Ends every wait: nothing is added or handed out any more.
    pub(super) fn end(&self) {
        self.discard(QueueMachine::force);
        self.over.cancel();
    }

    /// Shuts the queue down in this way, and discards what is not handed out any more: a part at a time, so that others get
    /// the lock in between. Returns how many keys were discarded.
    pub(super) fn discard(&self, how: impl FnOnce(&mut QueueMachine<K, P>)) -> usize {
        self.with(|queue, _, _| how(queue));
        let part = || self.with(|queue, _, _| queue.discard_some());
        std::iter::repeat_with(part).take_while(|count| *count > 0).sum()
    }
}

impl<K: QueueKey, P: QueueNote> Shared<K, P> {
    /// Tells the actor that something has changed.
    pub(super) fn tell(&self) {
        self.inside.tell(&self.address);
    }
}

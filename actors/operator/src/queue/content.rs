//! What a work queue holds, outside of its actor, so that it outlives a panic of the actor. A controller's
//! queue also holds what is known of the keys: both change in one call.
//!
//! Foreign code under the lock is only the order and the clone of keys, and the rate limiter, whose panics
//! are caught. A queue that is not sound after a panic is built again from its keys.

use std::sync::Arc;

use actix::Addr;

use crate::queue::machine::{Merge, QueueMachine};
use informer_core::reflector::Moment;
use tokio_util::sync::CancellationToken;

use super::limiter::CaughtLimiter;
use super::{QueueKey, QueueNote};
use informer_actors::inner::{Locked, Machine, Run as _, Runner};

pub(super) struct Inside<K, P: Merge> {
    pub(super) name: Arc<str>,
    pub(super) content: Locked<Content<K, P>>,
    /// Cancelled when nothing of the actor exists any more.
    pub(super) over: CancellationToken,
}

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
    pub(super) fn with<R>(
        &self,
        call: impl FnOnce(&mut QueueMachine<K, P>, &mut CaughtLimiter<K>, Moment) -> R,
    ) -> R {
        self.content.with(|Content { queue, limiter }, moment| call(queue, limiter, moment))
    }

    pub(super) fn end(&self) {
        self.discard(QueueMachine::force);
        self.over.cancel();
    }

    /// Discards a part at a time, so that others get the lock in between.
    pub(super) fn discard(&self, how: impl FnOnce(&mut QueueMachine<K, P>)) -> usize {
        self.with(|queue, _, _| how(queue));
        let part = || self.with(|queue, _, _| queue.discard_some());
        std::iter::repeat_with(part).take_while(|count| *count > 0).sum()
    }
}

impl<K: QueueKey, P: QueueNote> Shared<K, P> {
    pub(super) fn tell(&self) {
        self.inside.tell(&self.address);
    }
}

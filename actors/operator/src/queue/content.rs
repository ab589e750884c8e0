//! What a work queue holds, outside of its actor: it outlives a panic of the actor.
//!
//! Answers "what is in the queue after something has panicked?". Adds and returns change the content at once, from any
//! thread, so nothing that was added is in a mailbox that a panic could take it from, and a key that is added a thousand
//! times takes the memory of one. Invariants:
//! 1. The lock is held for one call of the machine. The order and the clone of the keys, and the rate limiter, are the only
//!    foreign code under it. A panic of the rate limiter is caught (`limiter.rs`).
//! 2. If such a call panics, the next one finds the queue marked. It is used on only if its check holds; else it is
//!    built anew from its keys. If that panics, the queue stays as it is, and the next call tries again.
//! 3. When the actor has ended for good, adds are refused and every wait ends.
//!
//! Read next: `actor.rs`, which takes keys out; `queue/machine.rs`, which decides.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::queue::machine::{Merge, WorkQueue};
use informer_core::reflector::Moment;
use tokio_util::sync::CancellationToken;

use super::limiter::{CaughtLimiter, Limiter};
use super::{QueueKey, QueueNote};
use informer_actors::inner::{Clock, RandomNumbers, locked};

/// What the actor has, too.
pub(super) struct Inside<K, P> {
    pub(super) name: Arc<str>,
    pub(super) content: Content<K, P>,
    pub(super) is_told: AtomicBool,
    /// Cancelled when nothing of the actor exists any more.
    pub(super) over: CancellationToken,
}

pub(super) struct Content<K, P> {
    clock: Clock,
    inner: Mutex<Inner<K, P>>,
}

struct Inner<K, P> {
    queue: WorkQueue<K, P>,
    limiter: CaughtLimiter<K>,
    chance: RandomNumbers,
    /// A call was begun and has not returned.
    is_changing: bool,
    rebuilt: u64,
}

impl<K: Ord + Clone, P: Merge> Content<K, P> {
    pub(super) fn new(
        queue: WorkQueue<K, P>,
        limiter: Limiter<K>,
        (clock, chance): (Clock, RandomNumbers),
    ) -> Self {
        let limiter = CaughtLimiter::new(limiter);
        Self { clock, inner: Mutex::new(Inner { queue, limiter, chance, is_changing: false, rebuilt: 0 }) }
    }

    /// Calls the machine.
    pub(super) fn with<R>(
        &self,
        call: impl FnOnce(&mut WorkQueue<K, P>, &mut CaughtLimiter<K>, Moment) -> R,
    ) -> R {
        let mut inner = locked(&self.inner);
        let Inner { queue, limiter, chance, is_changing, rebuilt } = &mut *inner;
        if *is_changing && queue.check().is_err() {
            let anew = queue.rebuilt();
            *queue = anew;
            *rebuilt += 1;
        }
        *is_changing = true;
        let result = call(queue, limiter, chance.moment(&self.clock));
        *is_changing = false;
        result
    }

    /// How often the queue was built anew from its keys.
    pub(super) fn rebuilt(&self) -> u64 {
        locked(&self.inner).rebuilt
    }

    /// How often the rate limiter has panicked.
    pub(super) fn limiter_panics(&self) -> u64 {
        locked(&self.inner).limiter.panics()
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn next_due(&self) -> Option<Duration> {
        locked(&self.inner).queue.next_due()
    }
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

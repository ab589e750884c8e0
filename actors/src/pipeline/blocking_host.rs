//! Blocking closures: subscribers that may sleep, wait for a lock or do file IO in their callback.
//!
//! Answers "where does a blocking closure run?": on the runtime's callback pool, a window of events at a time. The
//! Listener records events meanwhile, and hands over the next window when this one has been handled. Invariants:
//! 1. Events come in order, one call at a time. A subscription uses at most one thread, and none while it is idle.
//! 2. A panic is counted and logged with the event's key. That event is skipped; the next one is delivered.
//! 3. After the subscription's end no further call starts; the closure is dropped on the pool, after its last call.
//!
//! Read next: `runtime/callbacks.rs`, the pool; `callback_host.rs`, async closures.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::pipeline::callback_host::{count_call, count_panic, inside};
use crate::pipeline::messages::{Body, Notify};
use crate::pipeline::subscription_state::SubscriptionState;
use crate::runtime::Clock;

/// A closure and the state of its subscription. Its strand reports that the closure is dropped: a shutdown waits for
/// that.
pub(crate) struct BlockingHost<S: Body> {
    closure: Box<dyn FnMut(Notify<S>) + Send>,
    state: SubscriptionState,
    clock: Clock,
}

impl<S: Body> BlockingHost<S> {
    /// The closure of this subscription.
    pub(crate) fn new(
        closure: impl FnMut(Notify<S>) + Send + 'static,
        state: SubscriptionState,
        clock: Clock,
    ) -> Self {
        Self { closure: Box::new(closure), state, clock }
    }

    /// Calls the closure with each event, unless the subscription ends before.
    pub(crate) fn handle(&mut self, window: Vec<Notify<S>>) {
        let mut began = self.clock.now();
        for notify in window {
            if self.state.has_ended() {
                return;
            }
            let key = notify.key().clone();
            let limit = self.state.times().callback_limit;
            if limit.is_some() {
                self.state.begin_call(&key, began);
            }
            let call = AssertUnwindSafe(|| inside(&self.state, || (self.closure)(notify)));
            let called = catch_unwind(call);
            if let Some(limit) = limit
                && let Some(key) = self.state.end_call(limit, self.clock.now())
            {
                let (informer, subscription) = (&self.state.label().owner, self.state.name());
                tracing::warn!(%informer, %subscription, %key, "a blocking callback of {subscription} took longer than its limit of {limit:?} on {key}");
            }
            began = count_call(&self.state, &self.clock, began);
            if let Err(panic) = called {
                count_panic(&self.state, &key, panic);
            }
        }
    }
}

impl<S: Body> fmt::Debug for BlockingHost<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingHost").field("state", &self.state).finish_non_exhaustive()
    }
}

//! Closures that block, as subscribers: they may sleep, wait for a lock or do file IO.
//!
//! Answers "how is a closure that blocks its thread subscribed?"; how and where it is called is
//! `pipeline/blocking_host.rs`. Read next: `callback.rs`, async closures.

use crate::informer::Informer;
use crate::pipeline::blocking_host::BlockingHost;
use crate::pipeline::listener::Delivery;
use crate::pipeline::messages::{Body, Notify};
use crate::runtime::PooledValue;
use crate::subscription::{SubscribeError, SubscribeOptions, Subscription};

impl<S: Body> Informer<S> {
    /// Subscribes a closure that may block its thread: called for each event, in order, one at a time, on a thread of
    /// the callback pool. A closure that never returns keeps one thread and delays no other. A panic skips that event,
    /// is counted and logged. A call cannot be cancelled: a shutdown reports at its limit that it is still running.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn for_each_blocking(
        &self,
        closure: impl FnMut(Notify<S>) + Send + 'static,
    ) -> Result<Subscription<S>, SubscribeError> {
        self.for_each_blocking_with(SubscribeOptions::new(), closure)
    }

    /// As [`Self::for_each_blocking`], with a name, a resync period or another policy.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn for_each_blocking_with(
        &self,
        options: SubscribeOptions<S>,
        closure: impl FnMut(Notify<S>) + Send + 'static,
    ) -> Result<Subscription<S>, SubscribeError> {
        let (pool, clock) = (self.runtime().0.blocking.clone(), self.runtime().0.clock.clone());
        self.start_listener(options, "blocking", move |state| {
            let host = BlockingHost::new(closure, state.clone(), clock);
            Delivery::Blocking(PooledValue::new(pool, host, state.enter()))
        })
    }
}

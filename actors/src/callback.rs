//! Async closures as subscribers.
//!
//! Answers "how is a closure that awaits subscribed?"; how and where it is called is `pipeline/callback_host.rs`.
//! Read next: `blocking.rs`, closures that block.

use std::future::Future;

use crate::informer::Informer;
use crate::pipeline::callback_host::CallbackHost;
use crate::pipeline::listener::Delivery;
use crate::pipeline::messages::{Body, Notify};
use crate::runtime::OnArbiter;
use crate::subscription::{SubscribeError, SubscribeOptions, Subscription};

impl<S: Body> Informer<S> {
    /// Subscribes an async closure: called for each event, one at a time, on the callbacks' arbiter. It must not
    /// block the thread. A panic skips that event, is counted and logged.
    ///
    /// An object that is created and deleted at once is delivered, too: both events to a closure that keeps up, and
    /// the last such pair of each key to one that is behind. An object that is created and deleted while the watch is
    /// interrupted is not delivered: the list that closes the gap shows only what is there. So a closure that creates
    /// objects and relies on their deletions must also look from time to time whether they are there, for example at
    /// each resync.
    ///
    /// After the subscription's end no further call begins. A call that has begun may go on for
    /// [`CALL_GRACE`](crate::subscription::CALL_GRACE), or until the limit of a shutdown; then its future is dropped.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn for_each<F, Fut>(&self, closure: F) -> Result<Subscription<S>, SubscribeError>
    where
        F: FnMut(Notify<S>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        self.for_each_with(SubscribeOptions::new(), closure)
    }

    /// As [`Self::for_each`], with a name, a resync period or another policy.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn for_each_with<F, Fut>(
        &self,
        options: SubscribeOptions<S>,
        closure: F,
    ) -> Result<Subscription<S>, SubscribeError>
    where
        F: FnMut(Notify<S>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let arbiter = self.runtime().callback_arbiter();
        self.start_listener(options, "closure", move |state| {
            Delivery::Async(OnArbiter::new(arbiter, CallbackHost::new(closure, state)))
        })
    }
}

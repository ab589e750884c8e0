//! Async closures as subscribers.
//!
//! Answers "how is a closure that awaits subscribed?"; how and where it is called is `pipeline/callback_host.rs`.
//! Read next: `blocking.rs`, closures that block.

use std::future::Future;

use futures_util::FutureExt;

use crate::informer::Informer;
use crate::pipeline::callback_host::{Callback, CallbackHost};
use crate::pipeline::listener::Delivery;
use crate::pipeline::messages::{Body, Notify};
use crate::runtime::Lent;
use crate::subscription::{SubscribeError, SubscribeOptions, Subscription};

impl<S: Body> Informer<S> {
    /// Subscribes an async closure: called for each event, one at a time, on the callbacks' arbiter. It must not
    /// block the thread. A panic skips that event, is counted and logged.
    ///
    /// An object that is created and deleted at once is told, too: both events to a closure that keeps up, the last
    /// such life of each object to one that is behind. What came and went while the watch was interrupted is told to
    /// nobody: the list that closes the gap shows only what is there. So a closure that makes objects and relies on
    /// hearing of their end also has to look from time to time whether they are there, for example at each resync.
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
        options: SubscribeOptions,
        mut closure: F,
    ) -> Result<Subscription<S>, SubscribeError>
    where
        F: FnMut(Notify<S>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let arbiter = self.runtime().callback_arbiter();
        self.seat_listener(options, "closure", move |seat| {
            let callback: Callback<S> = Box::new(move |notify| closure(notify).boxed_local());
            Delivery::Async(Lent::new(arbiter, CallbackHost::new(callback, seat)))
        })
    }
}

//! Async closures as subscribers.
//!
//! Answers "how is a closure that awaits subscribed?"; how and where it is called is `pipeline/callback_host.rs`.

use std::future::Future;

use crate::informer::Informer;
use crate::pipeline::blocking_host::{BlockingClosure, BlockingHost};
use crate::pipeline::callback_host::{CallbackHost, InBatches};
use crate::pipeline::listener::Delivery;
use crate::pipeline::messages::{Body, Notify};
use crate::runtime::{OnArbiter, PooledValue};
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

    /// Subscribes an async closure to batches: it is called with all events that wait, in order, at most 64, as one
    /// vector that is never empty. While a call runs, what comes waits, by the policy; so the slower the closure, the
    /// larger its batches. A panic skips its whole batch, and is logged with the key of the first event. All else is as
    /// for [`Self::for_each`].
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// # #[cfg(feature = "testing")]
    /// # actix_informer::runtime::Runtime::simulated(1).run(|runtime| async move {
    /// # let server = actix_informer::testing::Server::<String>::new();
    /// # server.apply("default/one", "1".to_owned());
    /// # let texts = actix_informer::informer::Informer::builder(&runtime, "texts");
    /// # let texts = texts.source(move || server.clone()).start().expect("the spec is sound");
    /// let subscription = texts.for_each_batch(|events| async move {
    ///     println!("{} events in one transaction", events.len());
    /// })?;
    /// subscription.synced().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).expect("it is delivered");
    /// ```
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn for_each_batch<F, Fut>(&self, closure: F) -> Result<Subscription<S>, SubscribeError>
    where
        F: FnMut(Vec<Notify<S>>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        self.for_each_batch_with(SubscribeOptions::new(), closure)
    }

    /// As [`Self::for_each_batch`], with options; [`SubscribeOptions::window`] is the size of the largest batch.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn for_each_batch_with<F, Fut>(
        &self,
        options: SubscribeOptions<S>,
        closure: F,
    ) -> Result<Subscription<S>, SubscribeError>
    where
        F: FnMut(Vec<Notify<S>>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let arbiter = self.runtime().callback_arbiter();
        self.start_listener(options, "batches", move |state| {
            Delivery::Async(OnArbiter::new(arbiter, CallbackHost::new(InBatches(closure), state)))
        })
    }
}

// Closures that block, as subscribers: they may sleep, wait for a lock or do file IO.
//
// How and where it is called is in `pipeline/blocking_host.rs`.

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
        self.start_blocking(options, "blocking", BlockingClosure::Each(Box::new(closure)))
    }

    /// Subscribes a closure that may block its thread to batches: it is called with all events that wait, in order, at most
    /// 64, as one vector that is never empty. While a call runs, what comes waits, by the policy; so the slower the closure,
    /// the larger its batches. A panic skips its whole batch, and is logged with the key of the first event. All else is as
    /// for [`Self::for_each_blocking`].
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// # #[cfg(feature = "testing")]
    /// # actix_informer::runtime::Runtime::simulated(1).run(|runtime| async move {
    /// # let server = actix_informer::testing::Server::<String>::new();
    /// # server.apply("default/one", "1".to_owned());
    /// # let texts = actix_informer::informer::Informer::builder(&runtime, "texts");
    /// # let texts = texts.source(move || server.clone()).start().expect("the spec is sound");
    /// let subscription = texts.for_each_blocking_batch(|events| {
    ///     println!("{} events in one transaction of a database", events.len());
    /// })?;
    /// subscription.synced().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).expect("it is delivered");
    /// ```
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn for_each_blocking_batch(
        &self,
        closure: impl FnMut(Vec<Notify<S>>) + Send + 'static,
    ) -> Result<Subscription<S>, SubscribeError> {
        self.for_each_blocking_batch_with(SubscribeOptions::new(), closure)
    }

    /// As [`Self::for_each_blocking_batch`], with options; [`SubscribeOptions::window`] is the size of the largest batch.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn for_each_blocking_batch_with(
        &self,
        options: SubscribeOptions<S>,
        closure: impl FnMut(Vec<Notify<S>>) + Send + 'static,
    ) -> Result<Subscription<S>, SubscribeError> {
        self.start_blocking(options, "blocking-batches", BlockingClosure::Batches(Box::new(closure)))
    }

    fn start_blocking(
        &self,
        options: SubscribeOptions<S>,
        kind: &str,
        closure: BlockingClosure<S>,
    ) -> Result<Subscription<S>, SubscribeError> {
        let (pool, clock) = (self.runtime().0.blocking.clone(), self.runtime().0.clock.clone());
        self.start_listener(options, kind, move |state| {
            let host = BlockingHost::new(closure, state.clone(), clock);
            Delivery::Blocking(PooledValue::new(pool, host, state.enter()))
        })
    }
}

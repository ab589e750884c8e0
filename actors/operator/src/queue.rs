//! A work queue: keys that wait once each, and are handed out to one worker at a time.
//!
//! Handles and items change the content directly; one supervised actor hands keys to the waiting workers. A
//! key that was added is handed out, also if the actor dies, and never to two workers at once. Only `next`
//! and `drain` wait, and every wait ends when the queue does. The numbers of keys and of waiting callers
//! bound the memory.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use crate::queue::machine::LaneOrder;
use actix::Recipient;
use informer_core::meta::ObjectKey;
use informer_core::reflector::Moment;

pub use crate::queue::machine::{
    Added, Bucket, ExponentialPerKey, FastSlow, MOST_PERIODS, MaxOf, MaxWait, Merge, Priority, QueueFigures,
    RateLimiter,
};
pub use content::{Enqueue, WAIT_AFTER_PANIC};
pub use item::{Handing, WorkItem};
pub use report::QueueReport;
pub(crate) use report::RegisteredQueue;

use actor::{Drained, Next};
use content::{CaughtLimiter, Limiter, Shared};
use informer_actors::inner::{ArbiterHandle, Closed, ask_with, within};
use informer_actors::runtime::Runtime;
use item::Offer;

mod actor;
mod content;
mod item;
pub mod machine;
mod report;
mod start;
#[cfg(test)]
mod tests;

/// The most workers of a controller, or of [`WorkQueue::hand_to`]: each is a task that waits for a key.
pub const MOST_WORKERS: usize = 4_096;

/// What a key has to be: cheap to clone, ordered, and sent between threads. Every such type is one.
///
/// Comparing, cloning and dropping keys must not use the queue: it happens while the queue is locked.
pub trait QueueKey: Ord + Clone + Send + 'static {}

impl<K: Ord + Clone + Send + 'static> QueueKey for K {}

/// What is noted of a key, and handed out with it. Nothing, but in the queues of controllers.
#[doc(hidden)]
pub trait QueueNote: Merge + Send + Sync + 'static {}

impl<P: Merge + Send + Sync + 'static> QueueNote for P {}

/// Not everything was done when the time was up, or when the queue ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("work queue {queue}: not drained: {waiting} keys wait, {processing} are being processed")]
#[non_exhaustive]
pub struct NotDrained {
    /// The queue.
    pub queue: Arc<str>,
    /// Keys that wait.
    pub waiting: usize,
    /// Keys that were handed out and have not come back.
    pub processing: usize,
}

/// A queue of keys; the module's documentation describes it. Cloning is cheap. The queue ends when its last
/// handle and its last item are dropped.
///
/// ```
/// use actix_informer::runtime::Runtime;
/// use actix_informer::work_queue::WorkQueue;
/// # fn reconcile(_: &str) -> Result<(), ()> { Ok(()) }
/// # async fn work() -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = Runtime::threads().start()?;
/// let queue = WorkQueue::builder(&runtime, "pods").start();
/// queue.add("default/web-0");
/// queue.shut_down(); // what waits is still handed out
/// while let Some(item) = queue.next().await {
///     match reconcile(item.key()) {
///         Ok(()) => item.done(),
///         Err(()) => drop(item.retry()),
///     }
/// }
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct WorkQueue<K: QueueKey, P: QueueNote = ()> {
    shared: Arc<Shared<K, P>>,
    callbacks: ArbiterHandle,
}

/// The settings of a queue that is not started yet.
#[must_use = "a builder does nothing until it is started"]
pub struct WorkQueueBuilder<K: QueueKey> {
    runtime: Runtime,
    name: Arc<str>,
    lanes: LaneOrder<K>,
    limiter: Limiter<K>,
}

impl<K: QueueKey> WorkQueue<K> {
    /// The builder of a queue with this name, which is shown in logs and reports; if a live queue of the
    /// runtime has the same name, a number follows. After a failure a key waits for 5 ms, doubled with each
    /// further failure of it, at most 1,000 s, and each wait is shortened by up to a half at random. It does
    /// not wait for the failures of others. All keys are of one lane.
    pub fn builder(runtime: &Runtime, name: impl Into<Arc<str>>) -> WorkQueueBuilder<K> {
        WorkQueueBuilder {
            runtime: runtime.clone(),
            name: name.into(),
            lanes: |_, _| Ordering::Equal,
            limiter: Box::new(machine::default_limiter()),
        }
    }
}

impl<K: QueueKey, P: QueueNote> WorkQueue<K, P> {
    /// Adds a key with the usual priority. It waits once, however often it is added. Does not block.
    pub fn add(&self, key: K) -> Added {
        self.add_with(key, Priority::Normal)
    }

    /// As [`Self::add`], with a priority.
    pub fn add_with(&self, key: K, priority: Priority) -> Added {
        self.change(|queue, _, moment| queue.add(key, priority, moment.now))
    }

    /// Adds a key when nothing more has come for it in this time: each further call puts the add off again,
    /// the newest wins. A key for which something comes again and again is put off for [`MOST_PERIODS`] such
    /// times at most. One that waits already is added now. Does not block.
    ///
    /// This is how the keys of objects that change often are debounced, without a copy of any object:
    ///
    /// ```
    /// use actix_informer::work_queue::WorkQueue;
    /// # use actix_informer::runtime::Runtime;
    /// # use std::time::Duration;
    /// # Runtime::simulated(1).run(|runtime| async move {
    /// let queue = WorkQueue::builder(&runtime, "pods").start();
    /// for _ in 0..3 {
    ///     queue.postpone("default/web-0", Duration::from_secs(5));
    ///     tokio::time::sleep(Duration::from_secs(4)).await;
    /// }
    /// let item = queue.next().await.expect("it is not shut down"); // five seconds after the last of them
    /// assert_eq!(runtime.now(), Duration::from_secs(13));
    /// item.done();
    /// # });
    /// ```
    pub fn postpone(&self, key: K, quiet: Duration) -> Added {
        self.change(|queue, _, moment| queue.postpone(key, quiet, Priority::Normal, moment.now))
    }

    /// Adds a key when this time has passed. Of several delayed adds of a key the earliest counts;
    /// [`Self::add`] does not take it away. Does not block.
    pub fn add_after(&self, key: K, delay: Duration) -> Added {
        self.change(|queue, _, moment| queue.add_after(key, delay, Priority::Normal, moment.now))
    }

    /// Counts a failure of a key that is not an item in hand, and adds it after the delay that the rate
    /// limiter says. `None` if the queue is shut down: the key is refused, and its failures are forgotten.
    /// Does not block.
    pub fn add_rate_limited(&self, key: K) -> Option<Duration> {
        self.change(|queue, limiter, moment| queue.add_rate_limited(key, Priority::Normal, limiter, moment))
    }

    /// Forgets the failures of a key.
    pub fn forget(&self, key: &K) {
        self.shared.inside.with(|_, limiter, _| limiter.forget(key));
    }

    /// The key that has been processed for the longest time, and for how long.
    pub fn longest_running(&self) -> Option<(K, Duration)> {
        self.shared.inside.with(|queue, _, moment| queue.longest_running(moment.now))
    }

    /// Waits for the next key; `None` when the queue is shut down and nothing will be handed out any more, or
    /// when it has ended. Callers get keys in the order in which they began to wait. Dropping the future
    /// loses no key.
    pub async fn next(&self) -> Option<WorkItem<K, P>> {
        self.offer().await?.accept()
    }

    async fn offer(&self) -> Option<Offer<K, P>> {
        let over = &self.shared.inside.over;
        loop {
            let answer = tokio::select! {
                biased;
                () = over.cancelled() => return None,
                answer = ask_with(&self.shared.address, Next) => answer,
            };
            match answer {
                Ok(offer) => return offer,
                // The actor died, and is restarted.
                Err(Closed) => tokio::task::yield_now().await,
            }
        }
    }

    /// Hands keys to an actor, at most `at_once` at the same time (1 to [`MOST_WORKERS`]). This ends when the
    /// returned value is dropped, the queue is over or the actor has stopped; that is seen at the next key,
    /// which waits again. The actor keeps the item until it is done with it; what counts is when its handler
    /// returns. Until then the queue and the actor's address are kept.
    pub fn hand_to(&self, worker: impl Into<Recipient<WorkItem<K, P>>>, at_once: usize) -> Handing {
        item::hand_to(self, &worker.into(), at_once, &self.callbacks)
    }

    /// Its name: the one it was given, or that with a number, if a live queue of the runtime had it.
    pub fn name(&self) -> &str {
        &self.shared.inside.name
    }

    /// How many keys wait.
    pub fn len(&self) -> usize {
        self.shared.inside.with(|queue, _, _| queue.len())
    }

    /// Whether no key waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is measured. O(keys that are being processed).
    pub fn figures(&self) -> QueueFigures {
        self.shared.inside.with(|queue, _, moment| queue.figures(moment.now))
    }

    /// How often the content was built again from its keys, after a panic in the order or the clone of keys.
    pub fn rebuilt(&self) -> u64 {
        self.shared.inside.content.rebuilt()
    }

    /// How often the rate limiter has panicked. A failure during which it panicked waits for
    /// [`WAIT_AFTER_PANIC`].
    pub fn limiter_panics(&self) -> u64 {
        self.shared.inside.with(|_, limiter, _| limiter.panics())
    }

    /// Refuses adds from here on, and returns at once. What waits is still handed out, delayed adds are
    /// discarded, and a drain that waits returns.
    pub fn shut_down(&self) {
        self.end(machine::QueueMachine::shut_down);
    }

    /// Refuses adds, and discards what waits; what is being processed goes on. Returns how many keys were
    /// discarded.
    pub fn force_shut_down(&self) -> usize {
        self.end(machine::QueueMachine::force)
    }

    fn end(&self, how: impl FnOnce(&mut machine::QueueMachine<K, P>)) -> usize {
        let discarded = self.shared.inside.discard(how);
        self.shared.tell();
        discarded
    }

    /// Refuses adds, and waits until everything that waits was handed out and has come back, or until
    /// [`Self::shut_down`] is called. After a shutdown it waits, too.
    ///
    /// # Errors
    /// When the time is up, or the queue has ended before: what is left.
    pub async fn drain(&self, limit: Duration) -> Result<(), NotDrained> {
        self.end(machine::QueueMachine::drain);
        if within(limit, self.drained()).await == Some(true) {
            return Ok(());
        }
        let inside = &self.shared.inside;
        // At a limit of zero the actor could not answer.
        if !inside.over.is_cancelled() && inside.with(|queue, _, _| queue.is_drain_over()) {
            return Ok(());
        }
        let QueueFigures { depth, processing, .. } = self.figures();
        let waiting = depth.iter().sum();
        Err(NotDrained { queue: Arc::clone(&self.shared.inside.name), waiting, processing })
    }

    /// False if the queue ended.
    async fn drained(&self) -> bool {
        let over = &self.shared.inside.over;
        loop {
            let answer = tokio::select! {
                biased;
                () = over.cancelled() => return false,
                answer = ask_with(&self.shared.address, Drained) => answer,
            };
            match answer {
                Ok(()) => return true,
                Err(Closed) => tokio::task::yield_now().await,
            }
        }
    }

    pub(crate) fn with<R>(
        &self,
        call: impl FnOnce(&mut machine::QueueMachine<K, P>, &mut CaughtLimiter<K>, Moment) -> R,
    ) -> R {
        self.shared.inside.with(call)
    }

    /// For a call after which a key may wait.
    pub(crate) fn change<R>(
        &self,
        call: impl FnOnce(&mut machine::QueueMachine<K, P>, &mut CaughtLimiter<K>, Moment) -> R,
    ) -> R {
        let result = self.with(call);
        self.tell();
        result
    }

    pub(crate) fn tell(&self) {
        self.shared.tell();
    }
}

impl WorkQueue<ObjectKey> {
    /// As [`Self::builder`], for keys of objects: namespaces take turns.
    pub fn of_objects(runtime: &Runtime, name: impl Into<Arc<str>>) -> WorkQueueBuilder<ObjectKey> {
        Self::builder(runtime, name).lanes(machine::namespace_order)
    }
}

impl<K: QueueKey> WorkQueueBuilder<K> {
    /// Keys that compare equal by this order are of one lane, and lanes take turns: a tenant with a million
    /// keys does not hold up one with a single key.
    pub fn lanes(mut self, order: LaneOrder<K>) -> Self {
        self.lanes = order;
        self
    }

    /// How long keys wait after a failure.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<K> + Send + 'static) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// Starts the queue's actor.
    pub fn start(self) -> WorkQueue<K> {
        self.noting(0)
    }

    /// `most`: of notes that take memory.
    pub(crate) fn noting<P: QueueNote>(self, most: usize) -> WorkQueue<K, P> {
        let callbacks = self.runtime.callback_arbiter();
        let Self { runtime, name, lanes, limiter } = self;
        let shared = start::start(&runtime, name, machine::QueueMachine::noting(lanes, most), limiter);
        WorkQueue { shared: Arc::new(shared), callbacks }
    }
}

informer_core::clone_of!([K: QueueKey, P: QueueNote] WorkQueue<K, P> { shared, callbacks });

informer_core::debug_as!([K: QueueKey, P: QueueNote] WorkQueue<K, P>, self, name = self.shared.inside.name);

informer_core::debug_as!([K: QueueKey] WorkQueueBuilder<K>, self, name = self.name);

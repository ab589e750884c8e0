//! The settings of a controller, and its start.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::controller::machine::MOST_WITH_CAUSES;
use crate::queue::machine::{RateLimiter, default_limiter};
use actix::Recipient;
use futures_util::stream::{BoxStream, Stream, StreamExt};
use informer_core::listener::ChangeFilter;
use informer_core::meta::{Object, ObjectKey};
use informer_core::off_arbiter::Freeing;
use tokio_util::sync::CancellationToken;

use super::feed::{mapped, primary};
use super::request::{Answer, Asked, Reconcile, Request};
use super::shared::{Fence, Limits, Shared};
use super::start::{Starter, anywhere, list, locally};
use super::status::Counters;
use super::trigger::{follow, repeat};
use super::watched::Feeds;
use super::watched::{Follows, Watched, number_in};
use super::{Controller, ControllerEnd, Handle};
use crate::queue::{MOST_WORKERS, WorkQueue};
use informer_actors::informer::{Body, Informer};
use informer_actors::inner::Named;
use informer_actors::subscription::{SubscribeError, SubscribeOptions};

type MakeFeed<S> = Box<dyn FnOnce(&Arc<Shared<S>>) -> Result<Box<dyn Follows>, SubscribeError> + Send>;

/// The settings of a controller. [`Self::reconcile`], [`Self::reconcile_local`] or [`Self::reconcile_by`]
/// sets what reconciles.
#[must_use = "a builder does nothing until a controller is started"]
pub struct ControllerBuilder<S: Body> {
    primary: Informer<S>,
    name: Arc<str>,
    options: SubscribeOptions<S>,
    watched: Vec<Box<dyn Watched>>,
    /// The numbers of the informers whose objects are owned.
    owned: Vec<usize>,
    feeds: Vec<MakeFeed<S>>,
    streams: Vec<BoxStream<'static, ObjectKey>>,
    every: Option<Duration>,
    limiter: Box<dyn RateLimiter<ObjectKey> + Send>,
    fence: Option<Fence>,
    limits: Limits,
}

/// A controller that is not started yet.
#[must_use = "it does nothing until it is started"]
pub struct ReadyController<S: Body> {
    builder: ControllerBuilder<S>,
    starter: Starter<S>,
}

/// Why a controller did not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("controller {controller:?}: {source}")]
#[non_exhaustive]
pub struct StartControllerError {
    /// Its name.
    pub controller: Arc<str>,
    /// Which informer cannot be subscribed to, and why.
    pub source: SubscribeError,
}

impl<S: Body> Controller<S> {
    /// The builder of a controller for the objects of this informer, with its runtime and its name. The
    /// defaults: one worker. After a failure a key waits 5 ms, doubled with each further failure of the key,
    /// at most 1,000 s; each wait is shortened by up to a half at random. Failures of other keys do not delay
    /// it.
    pub fn builder(primary: &Informer<S>) -> ControllerBuilder<S> {
        ControllerBuilder {
            primary: primary.clone(),
            name: primary.name().into(),
            options: SubscribeOptions::new(),
            watched: vec![Box::new(primary.clone())],
            owned: Vec::new(),
            feeds: Vec::new(),
            streams: Vec::new(),
            every: None,
            limiter: Box::new(default_limiter()),
            fence: None,
            limits: Limits {
                workers: 1,
                time_limit: None,
                write_wait: Duration::from_secs(5),
                stop_grace: Duration::from_secs(5),
                ignores_own_writes: false,
                quiet: Duration::ZERO,
            },
        }
    }
}

impl<S: Body> ControllerBuilder<S> {
    /// Its name in its status, in logs and spans, and the name of its queue. The name of the primary informer
    /// unless set.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// The informer whose objects are reconciled.
    pub const fn primary(&self) -> &Informer<S> {
        &self.primary
    }

    /// A change of an object of this other informer leads to a reconcile of the keys that the function
    /// returns. The function is called with the state before the change and the state after it. It runs on
    /// the informer's thread and must not block. If it panics, the panic is counted and that state leads to
    /// no key. Such a change also ends the rest of a key (`ReconcileError::until_changed`).
    ///
    /// The workers begin only when this informer is synced, too. Its cache must also show the writes that
    /// [`Request::written_as`] reports.
    #[doc(alias = "watches")]
    pub fn maps<T: Body, I>(
        self,
        informer: &Informer<T>,
        map: impl Fn(&Object<T>) -> I + Send + Sync + 'static,
    ) -> Self
    where
        I: IntoIterator<Item = ObjectKey>,
    {
        self.maps_with(informer, SubscribeOptions::new(), map)
    }

    /// As [`Self::maps`], with a filter; the name in the options is ignored.
    pub fn maps_with<T: Body, I>(
        self,
        informer: &Informer<T>,
        options: SubscribeOptions<T>,
        map: impl Fn(&Object<T>) -> I + Send + Sync + 'static,
    ) -> Self
    where
        I: IntoIterator<Item = ObjectKey>,
    {
        self.watch(informer, options, map, false)
    }

    /// As [`Self::maps_with`], for objects that the reconcile itself makes: a change of such an object does
    /// not end the rest of a key (`ReconcileError::until_changed`). The front door's `owns` uses owner references.
    pub fn owns_with<T: Body, I>(
        self,
        informer: &Informer<T>,
        options: SubscribeOptions<T>,
        owner: impl Fn(&Object<T>) -> I + Send + Sync + 'static,
    ) -> Self
    where
        I: IntoIterator<Item = ObjectKey>,
    {
        self.watch(informer, options, owner, true)
    }

    fn watch<T: Body, I>(
        mut self,
        informer: &Informer<T>,
        options: SubscribeOptions<T>,
        map: impl Fn(&Object<T>) -> I + Send + Sync + 'static,
        is_owned: bool,
    ) -> Self
    where
        I: IntoIterator<Item = ObjectKey>,
    {
        let number = number_in(informer, &self.watched).unwrap_or(self.watched.len());
        if number == self.watched.len() {
            self.watched.push(Box::new(informer.clone()));
        }
        if is_owned {
            self.owned.push(number);
        }
        let informer = informer.clone();
        self.feeds.push(Box::new(move |shared| {
            let map = move |object: &Object<T>| map(object).into_iter().collect();
            mapped(shared, &informer, options, (Box::new(map), is_owned))
        }));
        self
    }

    /// Also reconciles the keys of this stream. It is polled on the arbiter for callbacks until it ends, or
    /// until the controller takes nothing new. It is read as fast as it yields keys, since a key that waits
    /// already takes no more room.
    #[doc(alias = "reconcile_on")]
    pub fn stream(mut self, keys: impl Stream<Item = ObjectKey> + Send + 'static) -> Self {
        self.streams.push(keys.boxed());
        self
    }

    /// Reconciles each object of the primary cache again once in each period, with low priority, regardless
    /// of filters. A period of less than a second becomes a second. Never unless set.
    #[doc(alias("requeue", "resync"))]
    pub fn every(mut self, period: Duration) -> Self {
        self.every = Some(period.max(Duration::from_secs(1)));
        self
    }

    /// An update of a primary object leads to a reconcile only if it passes this filter, and each other
    /// filter that was set. An addition or a deletion always leads to a reconcile. If a filter panics, the
    /// update passes. Without a filter every update leads to a reconcile.
    #[doc(alias = "predicate")]
    pub fn filter(mut self, changes: ChangeFilter<S>) -> Self {
        self.options = self.options.changes(changes);
        self
    }

    /// A primary object leads to a reconcile only if this returns true for it before or after the change. A
    /// panic counts as true.
    #[doc(alias = "predicate")]
    pub fn only(mut self, passes: impl Fn(&Object<S>) -> bool + Send + Sync + 'static) -> Self {
        self.options = self.options.filter(passes);
        self
    }

    /// An event of an owned object leads to no reconcile if it shows exactly the state that the server
    /// returned for a write of the key's last reconcile, as reported by [`Request::written_as`]: the function
    /// has seen this state already. Any other state of the object leads to a reconcile, and so does its
    /// deletion. Events that come before the reconcile ends wait for its answers, for at most 1,024 objects;
    /// further events lead to another reconcile.
    ///
    /// Set this for a function that continues from the answers of its writes, not for one that makes an
    /// object, ends, and waits for its event. Without it, as in controller-runtime and kube-rs, each change
    /// that writes children is followed by one more reconcile, which finds everything in order.
    pub fn ignore_own_writes(mut self) -> Self {
        self.limits.ignores_own_writes = true;
        self
    }

    /// A key is reconciled when no event has come for it in this time. Each further event restarts the time,
    /// for at most [`MOST_PERIODS`](crate::queue::MOST_PERIODS) such times. So many changes of an object, and
    /// of what belongs to it, lead to one reconcile. First lists, resyncs, triggers, streams and the period
    /// of the controller are not delayed. No delay unless set.
    pub fn debounce(mut self, quiet: Duration) -> Self {
        self.limits.quiet = quiet;
        self
    }

    /// How many keys are reconciled at the same time: 1 to [`MOST_WORKERS`], each by a task. One unless set.
    #[doc(alias("MaxConcurrentReconciles", "concurrency"))]
    pub fn workers(mut self, workers: usize) -> Self {
        self.limits.workers = workers.clamp(1, MOST_WORKERS);
        self
    }

    /// How long one reconcile may take. At the limit its future is dropped, which counts as a failure. An
    /// actor cannot be stopped: at the limit its request's [`stopping`](Request::stopping) becomes ready, and
    /// its answer is still awaited. No limit unless set.
    #[doc(alias("ReconciliationTimeout", "timeout"))]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.limits.time_limit = Some(limit);
        self
    }

    /// How long a key waits until the caches show what its reconcile has written. 5 s unless set.
    pub fn write_wait(mut self, limit: Duration) -> Self {
        self.limits.write_wait = limit;
        self
    }

    /// How long reconciles may go on after the shutdown, before their futures are dropped. 5 s unless set.
    pub fn stop_grace(mut self, grace: Duration) -> Self {
        self.limits.stop_grace = grace;
        self
    }

    /// How long keys wait after failures. It is called while the queue is locked, and must not use the queue
    /// or the controller.
    #[doc(alias = "backoff")]
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<ObjectKey> + Send + 'static) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// Each request carries the number that this function returns. While it returns none, this program is not
    /// the leader, and no reconcile begins. It is called before each reconcile, and once a second while a key
    /// waits for a number. It must not block. A panic counts as none.
    #[doc(alias = "NeedLeaderElection")]
    pub fn fenced_by(mut self, fence: impl Fn() -> Option<u64> + Send + Sync + 'static) -> Self {
        self.fence = Some(Box::new(fence));
        self
    }

    /// Reconciles with this async function. It runs on the tokio runtime in which [`ReadyController::start`]
    /// is called, which needs its timer enabled. Without one, it runs on the arbiter for callbacks, where it
    /// must not block. When that runtime ends, the keys in progress wait again, and the status shows that no
    /// worker is left.
    pub fn reconcile<F>(
        self,
        function: impl Fn(Request<S>) -> F + Send + Sync + 'static,
    ) -> ReadyController<S>
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        ReadyController { builder: self, starter: anywhere(function, true) }
    }

    /// Reconciles with an async function whose futures need not be `Send`, on the arbiter for callbacks. It
    /// must not block.
    pub fn reconcile_local<F>(self, function: impl Fn(Request<S>) -> F + Send + 'static) -> ReadyController<S>
    where
        F: Future<Output = Answer> + 'static,
    {
        ReadyController { builder: self, starter: locally(function) }
    }

    /// Reconciles with an actor. It receives [`Reconcile`] for as many keys at the same time as there are
    /// workers. Once it has stopped, each attempt fails.
    pub fn reconcile_by(self, actor: impl Into<Recipient<Reconcile<S>>>) -> ReadyController<S> {
        let (actor, runtime) = (actor.into(), self.primary.runtime().clone());
        let function = move |request| Asked::new(&actor, request, &runtime);
        ReadyController { builder: self, starter: anywhere(function, false) }
    }
}

impl<S: Body> ReadyController<S> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.builder.name
    }

    /// Subscribes to its informers and starts its workers, which begin when all informers are synced. Returns
    /// at once.
    ///
    /// # Errors
    /// When one of the informers has stopped, or its options cannot be met.
    pub fn start(self) -> Result<Controller<S>, StartControllerError> {
        let Self { builder, starter } = self;
        let ControllerBuilder { primary: informer, name, options, feeds, streams, every, .. } = builder;
        let runtime = informer.runtime().clone();
        let queue = WorkQueue::of_objects(&runtime, Arc::clone(&name))
            .rate_limiter(builder.limiter)
            .noting(MOST_WITH_CAUSES);
        let (end, task) = ControllerEnd::new(&name);
        let shared = Arc::new(Shared {
            name: Arc::clone(&name),
            runtime: runtime.clone(),
            primary: informer,
            watched: builder.watched.into(),
            owned: builder.owned,
            queue,
            freeing: Freeing::whole(runtime.release()),
            counters: Counters::default(),
            fence: builder.fence,
            limits: builder.limits,
            no_intake: CancellationToken::new(),
            lost: CancellationToken::new(),
            stop: CancellationToken::new(),
            end,
            has_begun: AtomicBool::new(false),
        });
        let first: MakeFeed<S> = Box::new(move |shared| primary(shared, options));
        let feeds = std::iter::once(first).chain(feeds).map(|feed| feed(&shared));
        let feeds = feeds.collect::<Result<Vec<_>, _>>();
        let feeds = feeds.map_err(|source| StartControllerError { controller: name, source })?;
        starter(&shared, &task);
        for stream in streams {
            let held = (Arc::clone(&shared), task.clone());
            runtime.spawn_local(move || follow(held, stream));
        }
        if let Some(period) = every {
            let held = (Arc::clone(&shared), task.clone());
            runtime.spawn_local(move || repeat(held, period));
        }
        let registration = runtime.register(Named::Controller, &shared.name);
        let handle = Arc::new(Handle { shared, feeds: Feeds::new(feeds), registration });
        list(&handle);
        Ok(Controller(handle))
    }
}

informer_core::debug_as!([S: Body] ControllerBuilder<S>, self, name = self.name);

informer_core::debug_as!([S: Body] ReadyController<S>, self, name = self.builder.name);

//! Takes one key after the other and runs the reconcile function on it.
//!
//! 1. A taken key always comes back: with its result or, if the worker's future is dropped, as a failure.
//! 2. A panic of the function, of its future or of that future's drop is a failure of this key alone. After
//!    any other panic the worker goes on, too.
//! 3. At the time limit, and after the grace of a stop, the future is dropped. An actor cannot be dropped:
//!    its answer is awaited, and the key stays with it.
//! 4. A key whose writes are not seen yet comes back later; the worker goes on.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::controller::machine::{Begun, Concluded, Ended, Failure, Kept, Next, Writes};
use futures_util::FutureExt;
use informer_core::meta::{Object, ObjectKey};
use informer_core::path::Hop;
use informer_core::words::{Brief, QUOTED, one_line};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::Task;
use super::request::{Answer, Request};
use super::shared::{Shared, settle, unseen};
use crate::queue::WorkItem;
use informer_actors::informer::Body;
use informer_actors::inner::{Followed, Guarded, drop_payload, sleep};
use informer_core::words::panic_text;
use telling::Then;

mod telling;

/// From the caches to the queues of controllers.
const WRITTEN_COMES: Duration = Duration::from_secs(5);

/// Global: what a reconcile leaves behind may outlive its runtime.
static NEXT_SERIAL: AtomicU64 = AtomicU64::new(1);

pub(super) struct Call<C> {
    pub(super) function: C,
    pub(super) is_cancelled_by_drop: bool,
}

pub(super) struct Present<S: Body> {
    shared: Arc<Shared<S>>,
    task: Task,
}

impl<S: Body> Present<S> {
    pub(super) fn new(shared: &Arc<Shared<S>>, task: &Task) -> Self {
        shared.counters.workers.fetch_add(1, Ordering::Relaxed);
        Self { shared: Arc::clone(shared), task: task.clone() }
    }
}

impl<S: Body> Drop for Present<S> {
    fn drop(&mut self) {
        let left = self.shared.counters.workers.fetch_sub(1, Ordering::Relaxed) - 1;
        if left == 0 && !self.shared.is_draining() {
            let controller = &self.shared.name;
            tracing::error!(target: "actix_informer::controller", %controller, "controller {controller}: what ran its workers has ended; its keys wait, and are not reconciled");
        }
    }
}

pub(super) async fn work<S: Body, C, F>(present: Present<S>, call: Arc<Call<C>>)
where
    C: Fn(Request<S>) -> F,
    F: Future<Output = Answer>,
{
    let shared = &present.shared;
    if !shared.synced().await {
        return;
    }
    shared.has_begun.store(true, Ordering::Release);
    while let Some(item) = shared.queue.next().await {
        let key = item.key().clone();
        if let Err(panic) = AssertUnwindSafe(work_on(&present, &call, item)).catch_unwind().await {
            // Not the function's panic, which is caught at its call. The item came back by its drop.
            let (controller, panicked) = (&shared.name, one_line(panic_text(&*panic), QUOTED).to_string());
            tracing::error!(target: "actix_informer::controller", %controller, %key, "controller {controller}: a worker has panicked over {key}, which is tried again: {panicked}");
            shared.counters.panics.add(1);
            drop_payload(panic);
        }
    }
}

async fn work_on<S: Body, C, F>(present: &Present<S>, call: &Call<C>, item: WorkItem<ObjectKey, Kept<S>>)
where
    C: Fn(Request<S>) -> F,
    F: Future<Output = Answer>,
{
    let shared = &present.shared;
    let Ok(fence) = shared.number() else {
        if shared.is_draining() {
            // Nobody reconciles this key here.
            item.done();
        } else {
            item.unused();
            shared.leading().await;
        }
        return;
    };
    if shared.stop.is_cancelled() {
        item.done();
        return;
    }
    if let Some((run, request)) = Run::begin(present, item, fence) {
        let ended = run.reconcile(call, request).await;
        run.finish(ended);
    }
}

/// Its drop counts as a cancelled reconcile.
struct Run<S: Body> {
    shared: Arc<Shared<S>>,
    /// `None` when it is back.
    item: Option<WorkItem<ObjectKey, Kept<S>>>,
    key: ObjectKey,
    begun: Begun<S>,
    writes: Arc<Guarded<Writes>>,
    stopping: CancellationToken,
    span: tracing::Span,
    /// The span of the change that has led to it.
    change: Option<Arc<tracing::Span>>,
    attempt: u32,
    began: Duration,
    took: OnceLock<Duration>,
    why: OnceLock<Arc<str>>,
    _task: Task,
}

impl<S: Body> Run<S> {
    /// `None` if the key rests.
    fn begin(
        Present { shared, task }: &Present<S>,
        mut item: WorkItem<ObjectKey, Kept<S>>,
        fence: Option<u64>,
    ) -> Option<(Self, Request<S>)> {
        let key = item.key().clone();
        // Before the cache is read, which then shows what came until now.
        let mut begun = item.begin(|book, key, noted| book.handle_begin(key, noted));
        let object = shared.primary.cached(&key);
        begun.look(object.as_ref().map(Object::cached_meta));
        if begun.rests() {
            let ending = (Ended::UntilChanged, &begun, None);
            item.back(|book, key, limiter, moment| book.handle_end(key, ending, limiter, moment));
            shared.free(begun.release());
            return None;
        }
        let causes = begun.causes.clone();
        let id = shared.counters.reconciles.add(1) + 1;
        let serial = NEXT_SERIAL.fetch_add(1, Ordering::Relaxed);
        let controller = &*shared.name;
        let change = shared.runtime.paths().take_span(&shared.name, &key);
        let caused_by = change.as_ref().and_then(|change| change.id());
        let span = tracing::info_span!(target: "actix_informer::controller", parent: caused_by, "reconcile", controller, id, %key, cause = %causes);
        let (writes, stopping) = (Arc::<Guarded<Writes>>::default(), shared.stop.child_token());
        let (attempt, began) = (item.failures(), shared.runtime.now());
        let request = Request {
            controller: Arc::clone(&shared.name),
            key: key.clone(),
            object,
            deleted: begun.deleted().cloned(),
            left: begun.left().cloned(),
            causes,
            attempt,
            fence,
            id,
            serial,
            stopping: stopping.clone(),
            writes: Arc::clone(&writes),
            watched: Arc::clone(&shared.watched),
            paths: shared.runtime.paths().clone(),
            change: change.clone(),
            task: task.clone(),
        };
        let (shared, item) = (Arc::clone(shared), Some(item));
        let (took, why, _task) = (OnceLock::new(), OnceLock::new(), task.clone());
        shared.mark_work(Hop::KeyTaken, &key, None);
        // From here on the run, or its drop, takes it back.
        shared.counters.active.fetch_add(1, Ordering::Relaxed);
        let run = Self {
            shared,
            item,
            key,
            begun,
            writes,
            stopping,
            span,
            change,
            attempt,
            began,
            took,
            why,
            _task,
        };
        Some((run, request))
    }

    async fn reconcile<C, F>(&self, call: &Call<C>, request: Request<S>) -> Ended
    where
        C: Fn(Request<S>) -> F,
        F: Future<Output = Answer>,
    {
        let made = catch_unwind(AssertUnwindSafe(|| self.span.in_scope(|| (call.function)(request))));
        let future = match made {
            Ok(future) => future,
            Err(panic) => return self.panicked(panic),
        };
        let future = AssertUnwindSafe(future.instrument(self.span.clone())).catch_unwind();
        let mut running = pin!(Some(future));
        let ended = {
            let Some(mut future) = running.as_mut().as_pin_mut() else { return Ended::Cancelled };
            let answered = tokio::select! {
                biased;
                answer = future.as_mut() => Ok(answer),
                ended = self.overdue() => Err(ended),
            };
            match answered {
                Ok(answer) => self.answered(answer),
                Err(ended) if call.is_cancelled_by_drop => ended,
                Err(ended) => {
                    self.stopping.cancel();
                    self.count_end(ended);
                    drop(future.await);
                    return ended;
                }
            }
        };
        let is_in_order = matches!(ended, Ended::With(_));
        if !is_in_order {
            self.count_end(ended);
        }
        // The drop of a future is user code: only after it has the reconcile ended in order.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| running.set(None))) {
            return self.panicked(panic);
        }
        if is_in_order {
            self.count_end(ended);
        }
        ended
    }

    async fn overdue(&self) -> Ended {
        let limits = &self.shared.limits;
        let stopped = async {
            self.shared.stop.cancelled().await;
            sleep(limits.stop_grace).await;
        };
        tokio::select! {
            biased;
            () = sleep(limits.time_limit.unwrap_or(Duration::MAX)) => Ended::TimedOut,
            () = stopped => Ended::Cancelled,
        }
    }

    fn answered(&self, answer: std::thread::Result<Answer>) -> Ended {
        match answer {
            Ok(Ok(outcome)) => Ended::With(outcome),
            Ok(Err(error)) => {
                let ended = error.ended();
                self.failed(&error.to_string());
                ended
            }
            Err(panic) => self.panicked(panic),
        }
    }

    fn panicked(&self, panic: Box<dyn Any + Send>) -> Ended {
        self.failed(&format!("it panicked: {}", panic_text(&*panic)));
        drop_payload(panic);
        self.shared.counters.panics.add(1);
        Ended::Panicked
    }

    /// The first reason counts.
    fn failed(&self, why: &str) {
        let why: Arc<str> = one_line(why, QUOTED).to_string().into();
        let failure = Failure { key: self.key.clone(), at: self.shared.runtime.now(), why: Arc::clone(&why) };
        self.shared.queue.with(|book, _, _| book.tally.last_failure = Some(failure));
        let _ = self.why.set(why);
    }

    fn count_end(&self, ended: Ended) {
        let counters = &self.shared.counters;
        match ended {
            Ended::With(_) => {
                let is_again = matches!(ended.next(), Next::After(_));
                let counter = if is_again { &counters.requeued } else { &counters.in_order };
                counter.add(1);
            }
            Ended::Failed => drop(counters.errors.add(1)),
            Ended::Terminal | Ended::UntilChanged => drop(counters.terminal.add(1)),
            Ended::TimedOut => {
                counters.timeouts.add(1);
                let limit = self.shared.limits.time_limit.unwrap_or_default();
                self.failed(&format!("it has not ended within its limit of {}", Brief(limit)));
            }
            Ended::Panicked | Ended::Cancelled => {}
        }
    }

    fn finish(self, ended: Ended) {
        let took = self.shared.runtime.now().saturating_sub(self.began);
        let _ = self.took.set(took);
        self.shared.counters.took.with(|all| all.record(took));
        if !matches!(ended, Ended::With(_) | Ended::Cancelled) {
            self.shared.counters.failed.add(1);
        }
        self.shared.counters.active.fetch_sub(1, Ordering::Relaxed);
        self.shared.mark_work(Hop::Reconciled, &self.key, Some(ended.name()));
        let writes = self.writes.with(std::mem::take);
        self.shared.answered(&self.key, &writes);
        let unseen = if writes.is_empty() { Writes::default() } else { unseen(&self.shared, writes) };
        if unseen.is_empty() {
            self.end(ended);
            return;
        }
        let runtime = self.shared.runtime.clone();
        runtime.spawn_local(move || async move {
            settle(&self.shared, &self.key, unseen).await;
            self.end(ended);
        });
    }

    fn end(mut self, ended: Ended) {
        self.give_back(ended);
    }

    fn give_back(&mut self, ended: Ended) {
        let Some(mut item) = self.item.take() else { return };
        if ended == Ended::Cancelled {
            self.shared.counters.cancelled.add(1);
        }
        self.shared.mark_work(Hop::Seen, &self.key, None);
        self.end_change(matches!(ended.next(), Next::Retry));
        let ending = (ended, &self.begun, self.why.get());
        let back = item.back(|book, key, limiter, moment| book.handle_end(key, ending, limiter, moment));
        self.shared.free(self.begun.release());
        let Some(Concluded { retry, telling, released, .. }) = back else { return };
        self.shared.free(released);
        let then = match ended.next() {
            Next::Done | Next::After(_) => Then::InOrder,
            Next::Rest => Then::Rests,
            Next::Retry => Then::TriedAgain(retry),
        };
        self.log(telling, &then);
    }
}

impl<S: Body> Run<S> {
    /// A retry belongs to the same change. What was written is in the caches, and comes to the controllers
    /// now.
    fn end_change(&mut self, is_retried: bool) {
        let Some(change) = self.change.take() else { return };
        let paths = self.shared.runtime.paths().clone();
        if is_retried {
            paths.spans().put_back(&self.shared.name, &self.key, Arc::clone(&change));
        }
        if paths.spans().has_written(&change) {
            self.shared.runtime.spawn_local(move || async move {
                sleep(WRITTEN_COMES).await;
                paths.spans().forget_written(&change);
            });
        }
    }
}

impl<S: Body> Drop for Run<S> {
    fn drop(&mut self) {
        if self.took.get().is_none() {
            self.shared.counters.active.fetch_sub(1, Ordering::Relaxed);
        }
        self.give_back(Ended::Cancelled);
    }
}

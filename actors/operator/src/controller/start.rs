//! How a controller starts: its subscriptions, and its workers on the tokio runtime of its caller or with us.
//!
//! Answers "on which thread does the reconcile function run?". Invariants:
//! 1. Everything is subscribed to before the first worker begins.
//! 2. Futures that are `Send` run on the tokio runtime in which `start` was called; without one, and in simulation, on
//!    our callbacks' arbiter, as others do.
//!
//! Read next: `worker.rs`.

use std::sync::{Arc, Weak};

use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use super::end::Task;
use super::request::{Answer, Request};
use super::shared::Shared;
use super::worker::{Call, Present, work};
use super::{ControllerStatus, Handle};
use informer_actors::informer::Body;
use informer_actors::inner::{Label, Registrant};

/// Starts the workers of a controller.
pub(super) type Starter<S> = Box<dyn FnOnce(&Arc<Shared<S>>, &Task) + Send>;

/// Workers of futures that are `Send`.
pub(super) fn anywhere<S, C, F>(function: C, is_cancelled_by_drop: bool) -> Starter<S>
where
    S: Body,
    C: Fn(Request<S>) -> F + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    Box::new(move |shared, task| {
        let call = Arc::new(Call { function, is_cancelled_by_drop });
        let foreign = tokio::runtime::Handle::try_current().ok().filter(|_| !shared.runtime.is_simulated());
        for _ in 0..shared.limits.workers {
            let (present, call) = (Present::new(shared, task), Arc::clone(&call));
            match &foreign {
                Some(handle) => drop(handle.spawn(work(present, call))),
                None => with_us(shared, move || Box::pin(work(present, call))),
            }
        }
    })
}

/// Workers of futures that stay on one thread.
pub(super) fn locally<S, C, F>(function: C) -> Starter<S>
where
    S: Body,
    C: Fn(Request<S>) -> F + Send + 'static,
    F: Future<Output = Answer> + 'static,
{
    Box::new(move |shared, task| {
        let presents: Vec<_> = (0..shared.limits.workers).map(|_| Present::new(shared, task)).collect();
        with_us(shared, move || {
            let call = Arc::new(Call { function, is_cancelled_by_drop: true });
            // Only a worker that was woken is polled: each has a reconcile's whole future in it.
            let workers = presents.into_iter().map(|present| work(present, Arc::clone(&call)));
            let workers: FuturesUnordered<_> = workers.collect();
            Box::pin(workers.for_each(|()| std::future::ready(())))
        });
    })
}

/// Runs this on our callbacks' arbiter, under the name of the controller.
fn with_us<S: Body>(shared: &Shared<S>, make: impl FnOnce() -> LocalBoxFuture<'static, ()> + Send + 'static) {
    let label = Arc::new(Label { owner: Arc::clone(&shared.name), kind: "", name: "reconcile".into() });
    let arbiter = shared.runtime.callback_arbiter();
    shared.runtime.spawn_local(move || async move {
        let labelled = arbiter.label(label);
        labelled.run(make()).await;
    });
}

// A controller in the report of its runtime, and its stop when the runtime ends first.
//
// A controller is listed as long as it has a handle; being listed keeps nothing running.

/// A controller of any kind, as its runtime knows it.
pub(crate) struct RegisteredController(Weak<dyn Reported>);

impl RegisteredController {
    /// How it is doing; `None` when its last handle was dropped.
    pub(crate) fn status(&self) -> Option<ControllerStatus> {
        self.0.upgrade().map(|controller| controller.status())
    }
}

/// Lists this controller until its last handle is dropped.
pub(super) fn list<S: Body>(handle: &Arc<Handle<S>>) {
    let weak = Arc::downgrade(handle);
    if let Some(registration) = &handle.registration {
        registration.list(Arc::new(RegisteredController(weak)));
    }
}

impl Registrant for RegisteredController {
    fn stop(&self) {
        if let Some(controller) = self.0.upgrade() {
            controller.stop();
        }
    }

    fn abandon(&self) {}

    fn over(&self) -> CancellationToken {
        // The threads of the runtime are waited for by the runtime. What runs on the program's own tokio runtime is not:
        // it may need the thread that waits here. `Controller::ended` waits for it.
        let over = CancellationToken::new();
        over.cancel();
        over
    }
}

/// What a runtime needs of a controller, whatever its objects are.
trait Reported: Send + Sync {
    fn status(&self) -> ControllerStatus;
    fn stop(&self);
}

impl<S: Body> Reported for Handle<S> {
    fn status(&self) -> ControllerStatus {
        self.shared.status(&self.feeds)
    }

    fn stop(&self) {
        self.shared.shut_down(&self.feeds);
    }
}

//! Starts a controller: first all subscriptions, then the workers. `Send` futures run on the tokio runtime in
//! which `start` was called; without one, and in simulation, on the arbiter for callbacks.

use std::sync::{Arc, Weak};

use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use super::any::Erased;
use super::request::{Answer, Request};
use super::shared::Shared;
use super::worker::{Call, Present, work};
use super::{ControllerStatus, Handle, Task};
use informer_actors::informer::Body;
use informer_actors::inner::{Label, Registrant};

pub(super) type Starter<S> = Box<dyn FnOnce(&Arc<Shared<S>>, &Task) + Send>;

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
            // Only a woken worker is polled: each holds the whole future of a reconcile.
            let workers = presents.into_iter().map(|present| work(present, Arc::clone(&call)));
            let workers: FuturesUnordered<_> = workers.collect();
            Box::pin(workers.for_each(|()| std::future::ready(())))
        });
    })
}

fn with_us<S: Body>(shared: &Shared<S>, make: impl FnOnce() -> LocalBoxFuture<'static, ()> + Send + 'static) {
    let label = Arc::new(Label::new(Arc::clone(&shared.name), "reconcile".into()));
    let arbiter = shared.runtime.callback_arbiter();
    shared.runtime.spawn_local(move || async move {
        let labelled = arbiter.label(label);
        labelled.run(make()).await;
    });
}

// Being listed keeps no controller running.

pub(crate) struct RegisteredController(Weak<dyn Erased>);

impl RegisteredController {
    pub(crate) fn status(&self) -> Option<ControllerStatus> {
        self.0.upgrade().map(|controller| controller.status())
    }
}

pub(super) fn list<S: Body>(handle: &Arc<Handle<S>>) {
    let weak = Arc::downgrade(handle);
    if let Some(registration) = &handle.registration {
        registration.list(Arc::new(RegisteredController(weak)));
    }
}

impl Registrant for RegisteredController {
    fn stop(&self) {
        if let Some(controller) = self.0.upgrade() {
            controller.shut_down();
        }
    }

    fn abandon(&self) {}

    fn over(&self) -> CancellationToken {
        // The runtime cannot wait for the program's tokio runtime, which may need this thread;
        // `Controller::ended` does.
        let over = CancellationToken::new();
        over.cancel();
        over
    }
}

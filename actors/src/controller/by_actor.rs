//! The answer of an actor that reconciles.
//!
//! Answers "when has an actor ended its work on a request?": when it has answered. Invariants:
//! 1. If the wait is dropped, since what ran the worker has ended, the answer is waited for with us: until then the
//!    controller has not ended.
//! 2. An actor that has stopped, or whose handler has panicked, is a failure.
//!
//! Read next: `worker.rs`, which waits; `end.rs`.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix::Recipient;
use actix::dev::RecipientRequest;

use super::end::Task;
use super::request::{Reconcile, ReconcileError, Request};
use super::worker::Answer;
use crate::pipeline::messages::Body;
use crate::runtime::Runtime;

/// The answer on its way.
type Waiting<S> = Pin<Box<RecipientRequest<Reconcile<S>>>>;

/// The wait for the answer to one request.
pub(super) struct Asked<S: Body> {
    /// None when it has come.
    waits: Option<(Waiting<S>, Task)>,
    runtime: Runtime,
}

impl<S: Body> Asked<S> {
    pub(super) fn new(actor: &Recipient<Reconcile<S>>, request: Request<S>, runtime: &Runtime) -> Self {
        let task = request.task.clone();
        let answer = Box::pin(actor.send(Reconcile(request)));
        Self { waits: Some((answer, task)), runtime: runtime.clone() }
    }
}

impl<S: Body> Future for Asked<S> {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let gone = || ReconcileError::from("the actor that reconciles has stopped, or has panicked");
        let Some((answer, _)) = &mut self.waits else { return Poll::Ready(Err(gone())) };
        let answer = ready!(answer.as_mut().poll(cx));
        self.waits = None;
        Poll::Ready(answer.unwrap_or_else(|_| Err(gone())))
    }
}

impl<S: Body> Drop for Asked<S> {
    fn drop(&mut self) {
        if let Some((answer, task)) = self.waits.take() {
            self.runtime.spawn_local(move || async move {
                drop(answer.await);
                drop(task);
            });
        }
    }
}

//! Asks: messages between our actors under back-pressure.
//!
//! A sender has one ask in flight. Every ask ends: with the answer, or with [`Closed`] when the receiver died,
//! restarted or dropped the reply. A reply for later is in the actor's state ([`ReplySlot`]), which a restart drops.
//! The drop of an ask cancels it: its message may never be handled.

use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use actix::dev::{MessageResponse, OneshotSender, ToEnvelope};
use actix::{Actor, Addr, Handler, Message};
use futures_util::poll;
use tokio::sync::oneshot;

/// The receiver will not answer: it died, restarted or stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the receiving actor is gone or was restarted")]
pub struct Closed;

/// Sends `message` and waits for its answer. The mailbox stays bounded only if each sender awaits one ask at
/// a time.
pub fn ask<A, M>(to: &Addr<A>, message: M) -> impl Future<Output = Result<M::Result, Closed>> + use<A, M>
where
    A: Actor + Handler<M>,
    A::Context: ToEnvelope<A, M>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    let request = to.send(message);
    async move { request.await.map_err(|_| Closed) }
}

/// As [`ask`], with the sender of the answer inside the message: for many senders that mostly wait.
#[expect(clippy::disallowed_methods, reason = "bounded: an asker awaits one answer at a time")]
pub fn ask_with<A, M, T>(to: &Addr<A>, message: impl FnOnce(OneshotSender<T>) -> M) -> Asked<T>
where
    A: Actor + Handler<M>,
    A::Context: ToEnvelope<A, M>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    let (sender, answer) = oneshot::channel();
    to.do_send(message(sender));
    Asked(answer)
}

/// A sender to put into a message, and the future of its answer.
pub fn answer<T>() -> (OneshotSender<T>, Asked<T>) {
    let (sender, answer) = oneshot::channel();
    (sender, Asked(answer))
}

/// The future of an answer.
pub struct Asked<T>(oneshot::Receiver<T>);

impl<T> Future for Asked<T> {
    type Output = Result<T, Closed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map_err(|_| Closed)
    }
}

informer_core::debug_as!([T] Asked<T>, self);

/// Not before the actor's next turn: an answer of another thread may arrive while the ask is being sent. An actor
/// that continues at once and asks again would occupy its arbiter.
pub(crate) async fn in_a_later_turn<F: Future>(answer: F) -> F::Output {
    let mut answer = pin!(answer);
    match poll!(answer.as_mut()) {
        Poll::Pending => answer.await,
        Poll::Ready(output) => {
            tokio::task::yield_now().await;
            output
        }
    }
}

/// Its drop answers with [`Closed`].
pub(crate) struct ReplySlot<T>(Rc<RefCell<Option<OneshotSender<T>>>>);

impl<T> ReplySlot<T> {
    pub(crate) fn new() -> (Self, Reply<T>) {
        let shared = Rc::new(RefCell::new(None));
        (Self(Rc::clone(&shared)), Reply::Later(shared))
    }

    pub(crate) fn answer(self, value: T) {
        if let Some(sender) = self.0.borrow_mut().take() {
            drop(sender.send(value));
        }
    }
}

pub(crate) enum Reply<T> {
    Now(T),
    Later(Rc<RefCell<Option<OneshotSender<T>>>>),
}

impl<A, M, T> MessageResponse<A, M> for Reply<T>
where
    A: Actor,
    M: Message<Result = T>,
{
    fn handle(self, _ctx: &mut A::Context, sender: Option<OneshotSender<T>>) {
        match (self, sender) {
            (Self::Now(value), Some(sender)) => drop(sender.send(value)),
            (Self::Now(_), None) => {}
            (Self::Later(slot), sender) => *slot.borrow_mut() = sender,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use futures_util::poll;

    use super::in_a_later_turn;

    #[tokio::test]
    async fn an_answer_that_is_there_at_once_comes_after_others_have_had_a_turn() {
        let mut answer = Box::pin(in_a_later_turn(ready(7)));
        assert!(poll!(answer.as_mut()).is_pending());
        assert_eq!(answer.await, 7);
    }
}

//! The only ways in which one of our actors sends to another under back-pressure.
//!
//! Answers "how is a message sent so that the sender cannot outrun the receiver?": by asking. The sender has one ask
//! in flight and goes on when it is answered; the receiver answers when it has room, or data. Invariants:
//! 1. An ask ends: with the answer, or with [`Closed`] when the receiver died, was restarted, or dropped the reply.
//! 2. A reply that is owed lives in the actor's state ([`ReplySlot`]), which a restart throws away.
//! 3. An ask that is dropped unanswered may never be handled: it is a cancellation, not a fire-and-forget.
//!
//! Read next: `messages.rs`, what is sent.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix::dev::{MessageResponse, OneshotSender, ToEnvelope};
use actix::{Actor, Addr, Handler, Message, Recipient};
use tokio::sync::oneshot;

/// The receiver will not answer: it died, was restarted, or has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the receiving actor is gone or was restarted")]
pub(crate) struct Closed;

/// Sends `message` and waits for its answer. The mailbox bound holds as long as each sender awaits one ask at a time.
pub(crate) fn ask<A, M>(
    to: &Addr<A>,
    message: M,
) -> impl Future<Output = Result<M::Result, Closed>> + use<A, M>
where
    A: Actor + Handler<M>,
    A::Context: ToEnvelope<A, M>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    let request = to.send(message);
    async move { request.await.map_err(|_| Closed) }
}

/// As [`ask`], for an asker that must not know whom it asks.
pub(crate) fn ask_any<M>(
    to: &Recipient<M>,
    message: M,
) -> impl Future<Output = Result<M::Result, Closed>> + use<M>
where
    M: Message + Send + 'static,
    M::Result: Send,
{
    let request = to.send(message);
    async move { request.await.map_err(|_| Closed) }
}

/// As [`ask`], with the way back in the message: for askers that are many and mostly wait.
#[expect(clippy::disallowed_methods, reason = "bounded: an asker awaits one answer at a time")]
pub(crate) fn ask_with<A, M, T>(to: &Addr<A>, message: impl FnOnce(OneshotSender<T>) -> M) -> Asked<T>
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

/// An answer that is awaited.
pub(crate) struct Asked<T>(oneshot::Receiver<T>);

impl<T> Future for Asked<T> {
    type Output = Result<T, Closed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map_err(|_| Closed)
    }
}

/// A reply that an actor owes and keeps in its state. Dropping it answers the asker with [`Closed`].
pub(crate) struct ReplySlot<T>(Rc<RefCell<Option<OneshotSender<T>>>>);

impl<T> ReplySlot<T> {
    /// A slot to keep, and the response to return from the handler.
    pub(crate) fn new() -> (Self, Reply<T>) {
        let shared = Rc::new(RefCell::new(None));
        (Self(Rc::clone(&shared)), Reply::Later(shared))
    }

    /// Answers; an asker that has gone is no failure.
    pub(crate) fn answer(self, value: T) {
        if let Some(sender) = self.0.borrow_mut().take() {
            drop(sender.send(value));
        }
    }
}

impl<T> fmt::Debug for ReplySlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplySlot")
    }
}

/// What a handler returns: the answer, or the promise that a [`ReplySlot`] keeps.
pub(crate) enum Reply<T> {
    /// Answered in this turn.
    Now(T),
    /// Answered later, through the slot.
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

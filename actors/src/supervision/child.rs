//! A supervised actor: how it is built anew, its mailbox, and how its end is reported.
//!
//! Answers "what must an actor provide, so that a guard can restart it?". Read next: `guard.rs`.

use actix::dev::channel::{AddressReceiver, channel};
use actix::{Actor, Addr, Context, Supervised};
use informer_core::restart::Verdict;

/// How many messages a mailbox takes before its senders wait. Each of our senders has one ask in flight.
const MAILBOX: usize = 64;

/// An actor that can be built anew from its spec, at any time.
pub(crate) trait Child: Actor<Context = Context<Self>> + Supervised {
    /// All that it is built from. It holds no state of the running actor.
    type Spec: Clone + Send + 'static;

    /// Builds a new actor.
    fn build(spec: &Self::Spec) -> Self;
}

/// An address and its mailbox. Both exist before the actor does; messages sent early wait there.
pub(crate) struct Mailbox<A: Actor>(pub(crate) Addr<A>, pub(crate) AddressReceiver<A>);

impl<A: Actor> Mailbox<A> {
    pub(crate) fn new() -> Self {
        Self::with_room(MAILBOX)
    }

    /// A mailbox that takes so many messages before its senders wait.
    pub(crate) fn with_room(messages: usize) -> Self {
        let (sender, inbox) = channel(messages);
        Self(Addr::new(sender), inbox)
    }
}

/// Reports the end of one child, once: with the last verdict, or with none if this is dropped before.
pub(crate) struct OnEnd<F: FnOnce(Option<Verdict>)>(Option<F>);

impl<F: FnOnce(Option<Verdict>)> OnEnd<F> {
    pub(crate) fn new(ended: F) -> Self {
        Self(Some(ended))
    }

    pub(crate) fn call(mut self, verdict: Verdict) {
        if let Some(ended) = self.0.take() {
            ended(Some(verdict));
        }
    }
}

impl<F: FnOnce(Option<Verdict>)> Drop for OnEnd<F> {
    fn drop(&mut self) {
        if let Some(ended) = self.0.take() {
            ended(None);
        }
    }
}

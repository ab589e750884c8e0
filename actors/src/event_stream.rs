//! A subscription as a stream.
//!
//! Answers "how is a subscriber served that asks instead of being told?": each ask takes a window from the Listener,
//! and says that the window before has been handled. What is owed waits there, by its policy. Invariants:
//! 1. One ask in flight, made only when the stream is polled and has nothing left to give.
//! 2. It ends when the subscription does; dropping it unsubscribes.
//!
//! Read next: `listener.rs`, which answers.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;

use crate::mailbox::{Asked, Closed, ask_with};
use crate::messages::{Body, Notify, Take};
use crate::subscription::Subscription;

/// A subscription as a stream. It ends when the subscription does; dropping it unsubscribes.
///
/// Synced once the item after the last initial one is asked for.
#[must_use = "a stream does nothing until it is polled"]
pub struct Events<S: Body> {
    subscription: Subscription<S>,
    taken: VecDeque<Notify<S>>,
    asking: Option<Asked<Vec<Notify<S>>>>,
}

impl<S: Body> Events<S> {
    pub(crate) fn new(subscription: Subscription<S>) -> Self {
        Self { subscription, taken: VecDeque::new(), asking: None }
    }

    /// The subscription behind it.
    pub fn subscription(&self) -> &Subscription<S> {
        &self.subscription
    }
}

impl<S: Body> Stream for Events<S> {
    type Item = Notify<S>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Notify<S>>> {
        loop {
            if let Some(notify) = self.taken.pop_front() {
                return Poll::Ready(Some(notify));
            }
            let this = &mut *self;
            // What waits for events holds no room for them.
            this.taken = VecDeque::new();
            let listener = this.subscription.listener();
            let asking = this.asking.get_or_insert_with(|| ask_with(listener, Take));
            let answer = ready!(Pin::new(asking).poll(cx));
            this.asking = None;
            match answer {
                Ok(taken) => this.taken = taken.into(),
                Err(Closed) => return Poll::Ready(None),
            }
        }
    }
}

impl<S: Body> fmt::Debug for Events<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("subscription", &self.subscription).finish_non_exhaustive()
    }
}

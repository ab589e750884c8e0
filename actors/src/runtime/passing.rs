//! The way from a source to the one receiver of what it brings: objects that the store does not keep.
//!
//! 1. What a part of an answer has brought is sent before the store gets it, and the source reads nothing more until
//!    there is room: two parts wait here, and behind them what came with the rest.
//! 2. The store keeps the same objects without bodies: their keys, uids and versions.
//! 3. Everything is sent at least once, in the order of the store: `informer_core::passing` decides what.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::future::BoxFuture;
use informer_core::meta::Object;
use informer_core::passing::{Ahead, PassedPart};
use tokio::sync::mpsc;

use super::locked::Guarded;

/// Parts that wait for their receiver.
const WAITING: usize = 2;

/// The body of an object that is passed on: there where it is passed on, and not in the store.
pub struct Passed<B>(Option<Box<B>>);

impl<B> Passed<B> {
    /// The body of an object that has just come.
    pub fn new(body: B) -> Self {
        Self(Some(Box::new(body)))
    }

    /// `None` in the store, and where only a list has shown that an object is gone.
    pub fn body(&self) -> Option<&B> {
        self.0.as_deref()
    }
}

impl<B> fmt::Debug for Passed<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Passed(a body)" } else { "Passed(no body)" })
    }
}

/// Where a source passes on what it brings: see [`passing`]. It is of one informer: another one is refused.
pub struct PassTo<B>(Arc<Way<B>>);

type Parts<B> = Vec<PassedPart<Passed<B>>>;

struct Way<B> {
    is_claimed: AtomicBool,
    /// `None` when the informer has stopped.
    sender: Guarded<Option<mpsc::Sender<Parts<B>>>>,
    ahead: Guarded<Ahead<Passed<B>>>,
}

/// What is passed on, as it comes: a stream of what came at once, at most 100 changes, never empty. It ends when the
/// informer stops.
///
/// While it is not read, the source waits: nothing is lost, and nothing is read from the server. Read it from the start,
/// in a task that waits for nothing of this informer: the first list is not whole before the receiver has it.
pub struct PassedParts<B>(mpsc::Receiver<Parts<B>>);

/// A way from one informer to one receiver.
///
/// ```
/// # use informer_actors::face as actix_informer;
/// use actix_informer::source::{PassTo, PassedParts, passing};
///
/// let (to, parts): (PassTo<String>, PassedParts<String>) = passing();
/// # drop((to, parts));
/// ```
pub fn passing<B>() -> (PassTo<B>, PassedParts<B>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let way = Way {
        is_claimed: AtomicBool::new(false),
        sender: Guarded::new(Some(sender)),
        ahead: Guarded::new(Ahead::new()),
    };
    (PassTo(Arc::new(way)), PassedParts(receiver))
}

/// The receiver was dropped, or the informer has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing more to say")]
pub struct ReceiverGone;

/// How a source passes on objects of this body.
#[doc(hidden)]
pub trait PassesOn<S>: Send + Sync {
    /// The same object as the store keeps it; `None` if it has no body.
    fn without_body(&self, object: &Object<S>) -> Option<Object<S>>;

    /// Ready when there is room.
    fn send(&self, parts: Vec<PassedPart<S>>) -> BoxFuture<'static, Result<(), ReceiverGone>>;

    /// False if it is the way of another informer.
    fn claim(&self) -> bool;

    fn is_gone(&self) -> bool;

    /// The informer has stopped.
    fn close(&self);

    fn ahead(&self) -> &Guarded<Ahead<S>>;
}

impl<B: Send + Sync + 'static> PassesOn<Passed<B>> for PassTo<B> {
    fn without_body(&self, object: &Object<Passed<B>>) -> Option<Object<Passed<B>>> {
        object.body().body()?;
        Some(Object::new(object.cached_meta().clone(), Passed(None)))
    }

    fn send(&self, parts: Parts<B>) -> BoxFuture<'static, Result<(), ReceiverGone>> {
        let sender = self.0.sender.with(|sender| sender.clone());
        Box::pin(async move {
            let sender = sender.ok_or(ReceiverGone)?;
            sender.send(parts).await.map_err(|_| ReceiverGone)
        })
    }

    fn claim(&self) -> bool {
        !self.0.is_claimed.swap(true, Ordering::AcqRel)
    }

    fn is_gone(&self) -> bool {
        self.0.sender.with(|sender| sender.as_ref().is_none_or(mpsc::Sender::is_closed))
    }

    fn close(&self) {
        drop(self.0.sender.with(Option::take));
        self.0.ahead.with(|ahead| *ahead = Ahead::new());
    }

    fn ahead(&self) -> &Guarded<Ahead<Passed<B>>> {
        &self.0.ahead
    }
}

impl<B> Stream for PassedParts<B> {
    type Item = Vec<PassedPart<Passed<B>>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}

informer_core::clone_of!([B] PassTo<B>);
informer_core::debug_as!([B] PassTo<B>, self, is_open = self.0.sender.with(|sender| sender.is_some()));
informer_core::debug_as!([B] PassedParts<B>, self, waiting = self.0.len());

//! The way from a source to the one receiver of what it brings: objects that the store does not keep.
//!
//! 1. What a part of an answer has brought is sent before the store gets it, and the source reads nothing more until
//!    there is room: two parts wait at most.
//! 2. The store keeps the same objects without bodies: their keys, uids and versions.
//! 3. Everything is sent at least once, in the order of the source. What the store does not have when an actor is
//!    restarted comes again.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::future::BoxFuture;
use informer_core::meta::{Object, ResourceVersion, Undecodable};
use tokio::sync::mpsc;

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

/// What a source has brought. `S` is the body: a [`Passed`].
#[derive(Debug)]
#[non_exhaustive]
pub enum PassedPart<S> {
    /// The object is there, in this state. It may come again.
    Applied(Object<S>),
    /// The object of this uid is gone. It has a body if the server has sent its last state.
    Deleted(Object<S>),
    /// An object is there that does not decode.
    Undecodable(Undecodable),
    /// An object is gone whose last state does not decode.
    DeletedUndecodable(Undecodable),
    /// A whole list of this version has been passed on, and before it what is gone since the list before. What a
    /// receiver has from before the first list of an informer, and was not passed on, is gone, too.
    Listed(ResourceVersion),
}

/// Where a source passes on what it brings: see [`passing`].
pub struct PassTo<B>(mpsc::Sender<Vec<PassedPart<Passed<B>>>>);

/// What is passed on, as it comes: a stream of what came at once, never empty. It ends when the informer has ended and
/// its description is dropped.
///
/// While it is not read, the source waits: nothing is lost, and nothing is read from the server.
pub struct PassedParts<B>(mpsc::Receiver<Vec<PassedPart<Passed<B>>>>);

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
    (PassTo(sender), PassedParts(receiver))
}

/// The receiver was dropped.
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
    fn send(&self, parts: Vec<PassedPart<S>>) -> BoxFuture<'_, Result<(), ReceiverGone>>;
}

impl<B: Send + Sync + 'static> PassesOn<Passed<B>> for PassTo<B> {
    fn without_body(&self, object: &Object<Passed<B>>) -> Option<Object<Passed<B>>> {
        object.body().body()?;
        Some(Object::new(object.cached_meta().clone(), Passed(None)))
    }

    fn send(&self, parts: Vec<PassedPart<Passed<B>>>) -> BoxFuture<'_, Result<(), ReceiverGone>> {
        Box::pin(async { self.0.send(parts).await.map_err(|_| ReceiverGone) })
    }
}

impl<B> Stream for PassedParts<B> {
    type Item = Vec<PassedPart<Passed<B>>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}

informer_core::clone_of!([B] PassTo<B>);
informer_core::debug_as!([B] PassTo<B>, self, is_full = self.0.capacity() == 0);
informer_core::debug_as!([B] PassedParts<B>, self, waiting = self.0.len());

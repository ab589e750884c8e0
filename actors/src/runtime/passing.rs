//! The way from a source to the one receiver of what it brings: objects that the store does not keep.
//!
//! 1. What a part of an answer has brought is sent before the store gets it, and the source reads nothing more until
//!    there is room: two parts wait here, and behind them what came with the rest.
//! 2. The store keeps the same objects without bodies: their keys, uids and versions.
//! 3. Everything is sent at least once, in the order of the store. What the store does not have when an actor is restarted
//!    may come again.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::future::BoxFuture;
use informer_core::meta::{Object, ObjectKey, ResourceVersion, Undecodable};
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
    /// A whole list of this version has been passed on, and before it what is gone of what was passed on earlier. What a
    /// receiver has from before the informer began, and was not passed on until its first list, is gone, too.
    Listed(ResourceVersion),
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

/// What the receiver has, and the store not yet: what of a list was passed on that is not whole, and what is still on its
/// way to the store. By it nothing is passed on twice after a list that failed, and what is gone since is told.
#[doc(hidden)]
pub struct Ahead<S> {
    /// Of a key, an object and an undecodable state: that leaves the receiver with the object that it had.
    held: BTreeMap<(ObjectKey, bool), Held<S>>,
    /// The last one that was looked at.
    looked: Option<(ObjectKey, bool)>,
    /// Of everything that was sent since the server was last restored.
    newest: Option<ResourceVersion>,
    /// A list after a rewind was sent, and is not published.
    is_rewound: bool,
}

/// What the receiver has of one key.
#[doc(hidden)]
#[expect(clippy::exhaustive_enums, reason = "it decodes or not")]
pub enum Held<S> {
    Object(Object<S>),
    /// Of before a rewind: its present state does not decode. Any state of it is newer.
    Former(Object<S>),
    Unread(Undecodable),
}

impl<S> Held<S> {
    pub(crate) fn key(&self) -> &ObjectKey {
        match self {
            Self::Object(object) | Self::Former(object) => object.key(),
            Self::Unread(undecodable) => &undecodable.key,
        }
    }

    pub(crate) fn version(&self) -> &ResourceVersion {
        match self {
            Self::Object(object) | Self::Former(object) => object.version(),
            Self::Unread(undecodable) => &undecodable.version,
        }
    }

    /// Its place.
    pub(crate) fn place(&self) -> (ObjectKey, bool) {
        (self.key().clone(), matches!(self, Self::Unread(_)))
    }
}

impl<S> Ahead<S> {
    const fn new() -> Self {
        Self { held: BTreeMap::new(), looked: None, newest: None, is_rewound: false }
    }

    pub(crate) fn object(&self, key: &ObjectKey) -> Option<Held<S>> {
        self.held.get(&(key.clone(), false)).cloned()
    }

    pub(crate) fn unread(&self, key: &ObjectKey) -> Option<ResourceVersion> {
        self.held.get(&(key.clone(), true)).map(|held| held.version().clone())
    }

    /// The newest version that was sent: a server that answers with an older one was restored.
    pub(crate) fn newest(&self) -> Option<ResourceVersion> {
        self.newest.clone()
    }

    pub(crate) fn is_rewound(&self) -> bool {
        self.is_rewound
    }

    /// The list is published.
    pub(crate) fn end_rewind(&mut self) {
        self.is_rewound = false;
    }

    /// Everything up to this version was sent; `is_rewind` for a list after a rewind.
    pub(crate) fn reach(&mut self, version: &ResourceVersion, is_rewind: bool) {
        self.is_rewound |= is_rewind;
        if is_rewind || self.newest.as_ref().is_none_or(|newest| newest < version) {
            self.newest = Some(version.clone());
        }
    }

    pub(crate) fn note(&mut self, held: Held<S>) {
        if let Held::Object(object) = &held {
            self.held.remove(&(object.key().clone(), true));
        }
        self.held.insert(held.place(), held);
    }

    /// What is published.
    pub(crate) fn settle(&mut self, published: &Held<S>) {
        self.held.remove(&published.place());
    }

    /// What is gone; of an object only this life of it.
    pub(crate) fn forget(&mut self, gone: &Held<S>) {
        let (place, unread) = ((gone.key().clone(), false), (gone.key().clone(), true));
        let is_gone = match (self.held.get(&place), gone) {
            (Some(Held::Object(has) | Held::Former(has)), Held::Object(gone) | Held::Former(gone)) => {
                has.is_same_life_as(gone)
            }
            _ => true,
        };
        if is_gone {
            self.held.remove(&place);
        }
        if self.held.get(&unread).is_some_and(|unread| unread.version() <= gone.version()) {
            self.held.remove(&unread);
        }
    }

    /// At most this many, behind this place.
    pub(crate) fn behind(&self, place: Option<&(ObjectKey, bool)>, most: usize) -> Vec<Held<S>> {
        let from = place.map_or(Bound::Unbounded, Bound::Excluded);
        self.held.range((from, Bound::Unbounded)).take(most).map(|(_, held)| held.clone()).collect()
    }

    /// The next ones to look at, each in its turn.
    pub(crate) fn next_looked(&mut self, most: usize) -> Vec<Held<S>> {
        let found = self.behind(self.looked.as_ref(), most);
        self.looked = found.last().map(Held::place);
        found
    }
}

impl<S> Clone for Held<S> {
    fn clone(&self) -> Self {
        match self {
            Self::Object(object) => Self::Object(object.clone()),
            Self::Former(object) => Self::Former(object.clone()),
            Self::Unread(undecodable) => Self::Unread(undecodable.clone()),
        }
    }
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
informer_core::debug_as!([S] Ahead<S>, self, objects = self.held.len());
informer_core::debug_as!([S] Held<S>, self, key = self.key());
informer_core::debug_as!([B] PassTo<B>, self, is_open = self.0.sender.with(|sender| sender.is_some()));
informer_core::debug_as!([B] PassedParts<B>, self, waiting = self.0.len());

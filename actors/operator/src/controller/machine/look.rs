//! What a reconcile knows of its key, from its begin to its end.
//!
//! Answers "has it anything to do, and which last state is it given?" by what its cache shows, which is looked at after its begin
//! and without a lock. Read next: `book.rs`, which begins and ends it.

use std::sync::Arc;
use std::time::Duration;

use super::kept::State;
use super::{Causes, Ended, Next, Telling};
use informer_core::meta::{Meta, Object};

/// With what a reconcile begins, before its cache is looked at.
#[derive(Debug)]
pub struct Begun<S> {
    pub(super) causes: Causes,
    pub(super) last: Option<Object<S>>,
    pub(super) has_left: bool,
    /// In which state its object has failed terminally, if the key rested.
    pub(super) rest: Option<State>,
}

/// What a reconcile knows when its cache was looked at.
#[derive(Debug)]
pub struct Look<S> {
    /// Whether the key rests: there is nothing to do.
    pub rests: bool,
    pub(super) state: Option<State>,
    /// The last state of its object, also one that is not given.
    pub(super) last: Option<Object<S>>,
    pub(super) is_given: bool,
    has_left: bool,
}

/// How a reconcile has ended that knew this, and why it has failed, if it has.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "what ends a reconcile must say all of it")]
pub struct Ending<'a, S> {
    /// How.
    pub ended: Ended,
    /// What it knew.
    pub look: &'a Look<S>,
    /// Why it has failed.
    pub why: Option<&'a Arc<str>>,
}

/// What follows from the end of a reconcile.
#[derive(Debug)]
#[non_exhaustive]
pub struct Concluded<S> {
    /// What becomes of the key.
    pub next: Next,
    /// After which delay it is tried again, if it is.
    pub retry: Option<Duration>,
    /// How its failure is told.
    pub telling: Telling,
    /// As [`Arrived::released`](super::Arrived::released).
    pub released: Option<Object<S>>,
}

impl<S> Begun<S> {
    /// The cache has this of its object now. Gives why it is reconciled, and what it knows.
    pub fn look(self, cached: Option<&Meta>) -> (Causes, Look<S>) {
        let Self { causes, last, has_left, rest } = self;
        let state = cached.map(State::of);
        // What happened between the look at the cache and the begin of the last reconcile shows only here.
        let rests = rest.is_some() && rest == state;
        // A state that the cache still shows is not given as gone: the next reconcile finds it gone in both. Nor is one of a
        // life that the cache shows, in whatever state. Where there are no uids, a newer state is another life.
        let is_gone = |last: &Object<S>| {
            cached.is_none_or(|now| match (&now.uid, last.object_uid()) {
                (Some(now), Some(last)) => now != last,
                _ => now.version > *last.version(),
            })
        };
        let is_given = !rests && last.as_ref().is_some_and(is_gone);
        // A name has one life at a time: where the cache shows another one, that of the last state has ended.
        let has_left = has_left && cached.is_none();
        (causes, Look { rests, state, last, is_given, has_left })
    }
}

impl<S> Look<S> {
    /// The last state of the object of this key that is gone, if its end has not been reconciled yet.
    pub fn deleted(&self) -> Option<&Object<S>> {
        self.last.as_ref().filter(|_| self.is_given && !self.has_left)
    }

    /// The same of one that is not followed any more, and may live on. Never both.
    pub fn left(&self) -> Option<&Object<S>> {
        self.last.as_ref().filter(|_| self.is_given && self.has_left)
    }

    /// As [`Arrived::released`](super::Arrived::released), when the reconcile has ended.
    pub fn release(&mut self) -> Option<Object<S>> {
        self.last.take()
    }
}

//! The waits of a lister: until a source has reached a version, or the cache has a write.
//!
//! Answers "is my own write there yet?". Each is a call of `waiting::wait`. Invariants:
//! 1. A wait for a write is for what follows its key now: a source that is removed meanwhile is not waited for any more,
//!    and one that is added is.
//! 2. Of a fake nothing is waited for: nobody brings what it has not reached.
//!
//! Read next: `waiting.rs`, the wait; `pipeline/published.rs`, what wakes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::select_all;
use informer_core::meta::{Meta, Object, ResourceVersion, SourceId};

use super::{Below, Lister, NotReached, Origin, WaitForError};
use crate::informer::Informer;
use crate::pipeline::messages::Body;
use crate::wait_error::{Looked, Undecided, wait};

impl<S: Body> Lister<S> {
    /// Waits until the only source has reached `version`: by event, bookmark or list. With the version in the server's
    /// answer to a write, a program reads its own writes.
    ///
    /// Two things to know about that:
    /// - A write to an object that the informer's namespace or selectors leave out brings no event. Then only a later
    ///   event, a bookmark (about once a minute) or a renewed watch (up to 90 s) reaches its version: give such waits
    ///   that time, or do not wait for them.
    /// - Ok means that the store is at least as new as the write, not that it still holds what was written. Another
    ///   client may have changed or deleted the object since, and a list shows only the result. Look with
    ///   [`Self::get`].
    ///
    /// # Errors
    /// At the deadline, with the version reached; when the informer stops; when there are several sources.
    pub async fn wait_for(&self, version: &ResourceVersion, limit: Duration) -> Result<(), WaitForError> {
        match self.sources().as_slice() {
            [only] => self.wait_for_source(only, version, limit).await,
            several => Err(WaitForError::SeveralSources {
                informer: self.informer_name(),
                sources: several.iter().cloned().collect(),
            }),
        }
    }

    /// As [`Self::wait_for`], for one source of several.
    ///
    /// # Errors
    /// As there, and when no source has this name, or it is removed meanwhile.
    pub async fn wait_for_source(
        &self,
        source: &SourceId,
        version: &ResourceVersion,
        limit: Duration,
    ) -> Result<(), WaitForError> {
        let look = || {
            let woken = self.published.reaching(source, version);
            if self.is_gone(source) {
                let (informer, name) = (self.informer_name(), source.as_str().into());
                return Looked::Decided(Err(WaitForError::UnknownSource { informer, name }));
            }
            if self.has_reached(source, version) { Looked::Decided(Ok(())) } else { Looked::NotYet(woken) }
        };
        let reached = wait(self.end(), self.limit(limit), look).await;
        reached.unwrap_or_else(|undecided| Err(self.undecided(undecided, source, version, limit)))
    }

    /// Waits until the cache has what a write of ours has returned, or something newer: until the object of its key is at
    /// its version or above, or every source that follows the key is. It needs no name of a source. When the sources of
    /// the key change meanwhile, it waits for those that there are then.
    ///
    /// Of a plain body the front door's `meta_of` gives the argument. What is said at [`Self::wait_for`] holds here, too.
    ///
    /// # Errors
    /// At the deadline, with one of the sources and the version it has reached; when the informer stops; and
    /// [`WaitForError::NotFollowed`] if no source covers the key, at the beginning or any more.
    pub async fn wait_for_write(&self, written: &Meta, limit: Duration) -> Result<(), WaitForError> {
        let Meta { key, version, .. } = written;
        let mut missing = SourceId::default();
        let look = || {
            // What wakes it, before the looks: the object moves, or one of the sources does.
            let known = self.published.get(key).map(|object| object.version().clone());
            let moved = self.published.changing(key, known);
            let sources = self.sources_of(key);
            let mut woken = Vec::with_capacity(1 + sources.len());
            woken.push(moved);
            woken.extend(sources.iter().map(|source| self.published.reaching(source, version)));
            if sources.is_empty() {
                let (informer, key) = (self.informer_name(), key.clone());
                return Looked::Decided(Err(WaitForError::NotFollowed { informer, key }));
            }
            let cached = self.published.get(key);
            let is_cached = cached.as_ref().map(Object::version).is_some_and(|cached| cached >= version);
            match sources.iter().find(|source| !self.has_reached(source, version)) {
                Some(behind) if !is_cached => missing.clone_from(behind),
                _ => return Looked::Decided(Ok(())),
            }
            // Of a source that has reached the version the wait would be over at once.
            let waiting = woken.into_iter().enumerate().filter(|(at, _)| {
                at.checked_sub(1).is_none_or(|at| !self.has_reached(&sources[at], version))
            });
            Looked::NotYet(select_all(waiting.map(|(_, woken)| woken).collect::<Vec<_>>()).map(drop))
        };
        let reached = wait(self.end(), self.limit(limit), look).await;
        reached.unwrap_or_else(|undecided| Err(self.undecided(undecided, &missing, version, limit)))
    }

    /// Why a wait has ended without a decision.
    fn undecided(
        &self,
        undecided: Undecided,
        source: &SourceId,
        wanted: &ResourceVersion,
        limit: Duration,
    ) -> WaitForError {
        let (stuck, waited) = match &self.origin {
            Origin::Running(_) if undecided == Undecided::Ended => {
                return WaitForError::Stopped { informer: self.informer_name(), wanted: wanted.clone() };
            }
            Origin::Running(keep) => (keep.pipeline.shared.board.stuck(), limit),
            Origin::Fake(_) => (None, Duration::ZERO),
        };
        WaitForError::Deadline(Box::new(NotReached {
            informer: self.informer_name(),
            source: source.clone(),
            waited,
            wanted: wanted.clone(),
            reached: self.published.snapshot().version(source).cloned(),
            stuck,
        }))
    }

    fn has_reached(&self, source: &SourceId, version: &ResourceVersion) -> bool {
        self.published.snapshot().version(source).is_some_and(|reached| *reached >= *version)
    }

    /// Whether the informer has no such source. A fake has all of them.
    fn is_gone(&self, source: &SourceId) -> bool {
        match &self.origin {
            Origin::Running(keep) => !keep.pipeline.shared.sources.contains(source),
            Origin::Fake(_) => false,
        }
    }

    /// The limit; a wait on a fake needs none, and no clock.
    fn limit(&self, limit: Duration) -> Duration {
        if matches!(self.origin, Origin::Running(_)) { limit } else { Duration::MAX }
    }

    /// The end of the informer. A fake brings nothing any more: it has ended before the first wait.
    fn end(&self) -> impl Future<Output = ()> {
        let stop = match &self.origin {
            Origin::Running(keep) => Some(&keep.ending.stop),
            Origin::Fake(_) => None,
        };
        async move {
            if let Some(stop) = stop {
                stop.cancelled().await;
            }
        }
    }
}

// How old the data of a source is.
//
// A source that is followed is heard with every event, bookmark and part of a list; a server sends a bookmark about
// once a minute to an idle watch. Invariants:
// 1. An age is the time since the source last said something, by the clock of the runtime. It grows while the source
// is away, and its objects stay.
// 2. Reading it asks nobody and visits no object: it costs one look-up by the source's name.

impl<S: Body> Informer<S> {
    /// How long ago this source last said something: an event, a bookmark or a part of a list. `None`
    /// if there is no such source, or it has never said anything. While the source is streaming it is usually below the
    /// time between two bookmarks, a minute; while it is away it grows.
    ///
    /// Costs a look-up in a map of the informer's sources; never blocks for long.
    pub fn age(&self, source: &SourceId) -> Option<Duration> {
        let heard = self.0.pipeline.shared.board.of_source(source, |status| status.last_frame_at)??;
        Some(self.runtime().now().saturating_sub(heard))
    }
}

impl<S: Body> Lister<S> {
    /// How long ago the source of this name last said something: how old its objects in the cache may be. An object
    /// names its source ([`Object::source`](informer_core::meta::Object::source)). As [`Informer::age`].
    pub fn age(&self, source: &SourceId) -> Option<Duration> {
        Informer(Arc::clone(self.keep()?)).age(source)
    }
}

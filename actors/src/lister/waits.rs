//! The waits of a lister, and the age of a source's data.
//!
//! A wait for a write follows the sources that its key has at the moment. A wait on a fake ends at once: no source
//! brings more.

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
    /// Waits until the only source has reached `version`, by event, bookmark or list. With the version in the
    /// server's answer to a write, a program reads its own writes.
    ///
    /// Two things to know:
    /// - A write to an object that the informer's namespace or selectors exclude brings no event. Then only a
    ///   later event, a bookmark (about once a minute) or a renewed watch (up to 90 s) reaches its version:
    ///   allow such waits that time, or do not use them.
    /// - Ok means that the store is at least as new as the write, not that it still holds what was written.
    ///   Another client may have changed or deleted the object since, and a list shows only the result. Check
    ///   with [`Self::get`].
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
    /// As [`Self::wait_for`], and when no source has this name, or it is removed during the wait.
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

    /// Waits until the cache has what our write returned, or something newer: until the object of this key,
    /// or every source that follows the key, has at least this version. No source needs to be named. If the
    /// sources of the key change during the wait, it continues with the new ones.
    ///
    /// For a plain body, `meta_of` of `actix-informer` returns the argument. The notes at [`Self::wait_for`]
    /// also apply here.
    ///
    /// # Errors
    /// At the deadline, with one of the sources and the version it has reached; when the informer stops; and
    /// [`WaitForError::NotFollowed`] if no source covers the key, at the beginning or later.
    pub async fn wait_for_write(&self, written: &Meta, limit: Duration) -> Result<(), WaitForError> {
        let Meta { key, version, .. } = written;
        let mut missing = SourceId::default();
        let look = || {
            // Registered before the checks: a change of the object, or of a source.
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
            // For a source that has reached the version, this wait would end at once.
            let waiting = woken.into_iter().enumerate().filter(|(at, _)| {
                at.checked_sub(1).is_none_or(|at| !self.has_reached(&sources[at], version))
            });
            Looked::NotYet(select_all(waiting.map(|(_, woken)| woken).collect::<Vec<_>>()).map(drop))
        };
        let reached = wait(self.end(), self.limit(limit), look).await;
        reached.unwrap_or_else(|undecided| Err(self.undecided(undecided, &missing, version, limit)))
    }

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

    /// Whether the informer has no such source. A fake has every source.
    fn is_gone(&self, source: &SourceId) -> bool {
        match &self.origin {
            Origin::Running(keep) => !keep.pipeline.shared.sources.contains(source),
            Origin::Fake(_) => false,
        }
    }

    /// A fake needs no limit and no clock.
    fn limit(&self, limit: Duration) -> Duration {
        if matches!(self.origin, Origin::Running(_)) { limit } else { Duration::MAX }
    }

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

// The age of a source's data: the time since it last said something. A server sends an idle watch a bookmark about
// once a minute.

impl<S: Body> Informer<S> {
    /// How long ago this source last said something: an event, a bookmark or a part of a list. `None` if
    /// there is no such source, or it has never said anything. While the source is streaming, the age is
    /// usually below the time between two bookmarks, a minute. While it is disconnected, the age grows and
    /// its objects stay.
    ///
    /// Costs one look-up in a map of the informer's sources; never blocks for long.
    pub fn age(&self, source: &SourceId) -> Option<Duration> {
        let heard = self.0.pipeline.shared.board.of_source(source, |status| status.last_frame_at)??;
        Some(self.runtime().now().saturating_sub(heard))
    }
}

impl<S: Body> Lister<S> {
    /// How long ago the source of this name last said something, and so how old its cached objects may be. An
    /// object names its source ([`Object::source`](informer_core::meta::Object::source)). As
    /// [`Informer::age`].
    pub fn age(&self, source: &SourceId) -> Option<Duration> {
        Informer(Arc::clone(self.keep()?)).age(source)
    }
}

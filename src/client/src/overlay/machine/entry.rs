//! One answer that waits for the watch.
//!
//! Answers "has the cache reached this answer, and which of two answers of one key counts?". The version of a source is
//! that up to which everything is applied; of several sources that may follow the key, the oldest one. Invariants:
//! 1. A written state counts until the source, or the key in the cache, is at its version or above.
//! 2. A deleted life counts until the cache has another one whose version is above the newest known one of the deleted
//!    life, or until the key is absent although the source has reached that version.
//! 3. Of two answers the later one counts, in whatever order they come: that of the higher version, and the deletion of a
//!    life before every state of that life. Without uids, a deletion that comes later counts.
//!
//! A life that leaves what the informer selects is absent from the cache, as a deleted one is.

use std::time::Duration;

use informer_core::meta::{Object, ObjectKey, ResourceVersion, SourceId, Uid};
use informer_core::snapshot::Snapshot;

/// What a write has returned.
pub(crate) enum State<S> {
    /// This object.
    Written(Object<S>),
    /// An object of this version and uid that the informer does not select.
    Left(ResourceVersion, Option<Uid>),
    /// That this life is gone; the newest version that is known of it.
    Deleted(ResourceVersion, Option<Uid>),
}

/// What the cache says of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// It still counts.
    Holds,
    /// The cache has it, or something newer.
    Reached,
    /// Its source went back, or is gone.
    Rewound,
}

pub(super) struct Entry<S> {
    state: State<S>,
    /// Those that may follow the key.
    sources: Box<[SourceId]>,
    until: Duration,
    /// The rewinds of the cache at the first look, and the newest version that the sources had reached at any look.
    seen: Option<(u32, Option<ResourceVersion>)>,
}

impl<S> Entry<S> {
    pub(super) fn new(state: State<S>, sources: &[SourceId], until: Duration) -> Self {
        Self { state, sources: sources.into(), until, seen: None }
    }

    /// What was written, unless nothing is to be seen of it.
    pub(super) fn written(&self) -> Option<&Object<S>> {
        match &self.state {
            State::Written(object) => Some(object),
            State::Left(..) | State::Deleted(..) => None,
        }
    }

    pub(super) fn into_state(self) -> State<S> {
        self.state
    }

    /// Whether its time is over.
    pub(super) fn is_over(&self, now: Duration) -> bool {
        now >= self.until && self.until < Duration::MAX
    }

    /// Whether it counts, given the cache. Caches must be looked at in the order in which they were published.
    pub(super) fn look(&mut self, key: &ObjectKey, cache: &Snapshot<S>) -> Look {
        // `None` is the smallest.
        let reached = self.sources.iter().map(|source| cache.version(source)).min().flatten();
        let (rewinds, newest) = self.seen.get_or_insert_with(|| (cache.rewinds(), None));
        let went_back = newest.as_ref() > reached;
        if went_back && (reached.is_none() || cache.rewinds() > *rewinds) {
            return Look::Rewound;
        }
        if !went_back {
            *newest = reached.cloned();
        }
        let cached = cache.get(key);
        let has_reached = |version: &ResourceVersion| reached.is_some_and(|reached| reached >= version);
        let is_reached = match &self.state {
            State::Written(object) => has_reached(object.version()) || is_at(cached, object.version()),
            State::Left(version, _) => has_reached(version) || is_at(cached, version),
            State::Deleted(last, uid) => match cached {
                Some(object) if uid.is_some() && object.object_uid() == uid.as_ref() => false,
                Some(object) => object.version() > last,
                None => has_reached(last),
            },
        };
        if is_reached { Look::Reached } else { Look::Holds }
    }

    /// Whether it counts in place of one that is there. A deletion learns from that one how new its life was.
    pub(super) fn follows(&mut self, known: &Self) -> bool {
        let is_same_life = self.state.uid() == known.state.uid();
        let known_version = known.state.version();
        match (&mut self.state, &known.state) {
            (State::Deleted(..), State::Deleted(..)) if is_same_life => false,
            (State::Deleted(last, _), _) if is_same_life => {
                if *last < *known_version {
                    *last = known_version.clone();
                }
                true
            }
            (_, State::Deleted(_, Some(_))) if is_same_life => false,
            (state, _) => state.version() > known_version,
        }
    }
}

fn is_at<S>(cached: Option<&Object<S>>, version: &ResourceVersion) -> bool {
    cached.is_some_and(|object| object.version() >= version)
}

impl<S> State<S> {
    fn version(&self) -> &ResourceVersion {
        match self {
            Self::Written(object) => object.version(),
            Self::Left(version, _) | Self::Deleted(version, _) => version,
        }
    }

    fn uid(&self) -> Option<&Uid> {
        match self {
            Self::Written(object) => object.object_uid(),
            Self::Left(_, uid) | Self::Deleted(_, uid) => uid.as_ref(),
        }
    }
}

//! One answer that waits for the watch. If several sources may follow the key, the oldest of their versions
//! counts.
//!
//! 1. A deleted life counts until the cache has another life above its newest known version, or until the key
//!    is absent and the source has reached that version.
//! 2. Answers may come in any order: the higher version wins, and a life's deletion wins over its states.
//!    Without uids, a later deletion wins.
//!
//! The cache has neither a deleted life nor one that left the informer's selection.

use std::time::Duration;

use informer_core::meta::{Object, ObjectKey, ResourceVersion, SourceId, Uid};
use informer_core::snapshot::Snapshot;

pub(crate) enum State<S> {
    Written(Object<S>),
    /// An object that the informer does not select.
    Left(ResourceVersion, Option<Uid>),
    /// With its newest known version.
    Deleted(ResourceVersion, Option<Uid>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Holds,
    Reached,
    /// Its source was rewound or removed.
    Rewound,
}

pub(super) struct Entry<S> {
    state: State<S>,
    sources: Box<[SourceId]>,
    until: Duration,
    /// The cache's rewinds at the first look, and the newest version that all sources have reached.
    seen: Option<(u32, Option<ResourceVersion>)>,
}

impl<S> Entry<S> {
    pub(super) fn new(state: State<S>, sources: &[SourceId], until: Duration) -> Self {
        Self { state, sources: sources.into(), until, seen: None }
    }

    pub(super) fn written(&self) -> Option<&Object<S>> {
        match &self.state {
            State::Written(object) => Some(object),
            State::Left(..) | State::Deleted(..) => None,
        }
    }

    pub(super) fn into_state(self) -> State<S> {
        self.state
    }

    pub(super) fn is_over(&self, now: Duration) -> bool {
        now >= self.until && self.until < Duration::MAX
    }

    /// Caches must be given in the order in which they were published.
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

    /// Whether it replaces `known`. A deletion takes over the newer version of its life.
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

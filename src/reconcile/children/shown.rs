//! What a cache shows of a child.
//!
//! Answers "which informers can say that a child is as it was applied?" One that keeps whole objects, and one that keeps
//! which object controls each of them and at which version it is. Read next: `memory.rs`, which decides.

use std::sync::Arc;

use informer_actors::informer::Lister;
use informer_core::meta::{Object, ObjectKey, ResourceVersion, Uid};
use serde_json::Value;

use super::kinds::{Cached, CachedControllers, ChildKind};
use super::{Applied, ChildBody};
use crate::representation::{Controlled, ControllerOf, ControllerRef};

/// The cache of one kind of children.
pub(super) enum Cache<'a, K: ChildBody> {
    Whole(&'a Lister<K>),
    Controllers(&'a Lister<ControllerOf<K>>),
}

/// A child as the cache shows it.
pub(super) enum Shown<K> {
    Whole(Object<K>),
    Controller(Object<ControllerOf<K>>),
}

impl<'a, K: ChildBody> Cache<'a, K> {
    /// The first cache of this kind, if there is one.
    pub(super) fn among(kinds: &'a [Arc<dyn ChildKind>]) -> Option<Self> {
        kinds.iter().map(|kind| kind.as_any()).find_map(|kind| {
            let whole = kind.downcast_ref::<Cached<K>>().map(|cached| Self::Whole(&cached.0));
            whole.or_else(|| Some(Self::Controllers(&kind.downcast_ref::<CachedControllers<K>>()?.0)))
        })
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<Shown<K>> {
        match self {
            Self::Whole(lister) => lister.get(key).map(Shown::Whole),
            Self::Controllers(lister) => lister.get(key).map(Shown::Controller),
        }
    }

    /// Whether it can show the fields of a child.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Self::Whole(_))
    }
}

impl<K: ChildBody> Shown<K> {
    pub(super) fn controller(&self) -> Option<ControllerRef<'_>> {
        match self {
            Self::Whole(object) => object.body().controller(),
            Self::Controller(object) => object.body().controller(),
        }
    }

    pub(super) fn uid(&self) -> Option<&Uid> {
        match self {
            Self::Whole(object) => object.object_uid(),
            Self::Controller(object) => object.object_uid(),
        }
    }

    pub(super) fn version(&self) -> &ResourceVersion {
        match self {
            Self::Whole(object) => object.version(),
            Self::Controller(object) => object.version(),
        }
    }

    /// The whole object as JSON, if the cache keeps it.
    pub(super) fn json(&self) -> Option<Value> {
        match self {
            Self::Whole(object) => serde_json::to_value(object.body()).ok(),
            Self::Controller(_) => None,
        }
    }

    /// It was not sent, since this is how it was applied before.
    pub(super) fn unchanged(self, given: K) -> Applied<K> {
        match self {
            Self::Whole(object) => Applied::Unchanged(object),
            Self::Controller(_) => Applied::AsGiven(Box::new(given)),
        }
    }
}

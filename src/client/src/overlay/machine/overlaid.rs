//! A cache with the results of our own writes. It reads like a snapshot: key, namespace, index and selector
//! agree. The versions of the sources are the cache's.

use std::collections::BTreeMap;
use std::ops::Deref;

use informer_core::index::AnyIndex;
use informer_core::meta::{Object, ObjectKey};
use informer_core::snapshot::Snapshot;

/// A state of one key, and where it comes from.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a state is one of the cache or one of a write of ours")]
pub enum Shown<S> {
    /// The cache has it: a list or a watch brought it.
    Cached(Object<S>),
    /// A write of ours has returned it, and the cache does not have it yet.
    Written(Object<S>),
}

impl<S> Shown<S> {
    /// Whether the cache does not have it yet.
    pub fn is_written(&self) -> bool {
        matches!(self, Self::Written(_))
    }

    /// The object alone.
    pub fn into_object(self) -> Object<S> {
        match self {
            Self::Cached(object) | Self::Written(object) => object,
        }
    }
}

impl<S> Deref for Shown<S> {
    type Target = Object<S>;

    fn deref(&self) -> &Object<S> {
        match self {
            Self::Cached(object) | Self::Written(object) => object,
        }
    }
}

/// A snapshot of a cache with the answers to writes of our own laid over it; reads like a [`Snapshot`].
///
/// It has only those indices of the cache whose functions were given: reading another one is an error.
pub struct Overlaid<S> {
    shown: Snapshot<S>,
    cache: Snapshot<S>,
    laid: BTreeMap<ObjectKey, Option<Object<S>>>,
}

impl<S> Overlaid<S> {
    /// If an index function fails, its object is not in that index; the store reports it later.
    pub(crate) fn new(
        cache: Snapshot<S>,
        laid: BTreeMap<ObjectKey, Option<Object<S>>>,
        indices: &[AnyIndex<S>],
    ) -> Self {
        let shown = if laid.is_empty() { cache.clone() } else { cache.with_states(&laid, indices) };
        Self { shown, cache, laid }
    }

    /// Whether the object of this key is an answer that the cache does not have yet.
    pub fn is_written(&self, key: &ObjectKey) -> bool {
        self.laid.get(key).is_some_and(Option::is_some)
    }

    /// The objects that the cache does not have yet, in key order.
    pub fn written(&self) -> impl Iterator<Item = &Object<S>> {
        self.laid.values().flatten()
    }

    /// The keys of hidden objects, in order: we have deleted them, or changed them so that the informer does
    /// not select them.
    pub fn hidden(&self) -> impl Iterator<Item = &ObjectKey> {
        self.laid.iter().filter(|(_, written)| written.is_none()).map(|(key, _)| key)
    }

    /// The cache below.
    pub fn cache(&self) -> &Snapshot<S> {
        &self.cache
    }
}

impl<S> Deref for Overlaid<S> {
    type Target = Snapshot<S>;

    fn deref(&self) -> &Snapshot<S> {
        &self.shown
    }
}

informer_core::clone_of!([S] Overlaid<S> { shown, cache, laid });

informer_core::debug_as!([S] Overlaid<S>, self, cache = self.cache, laid = self.laid.keys());

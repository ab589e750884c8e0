//! A cache with the answers to writes of our own laid over it.
//!
//! Answers "what does a reader see, and what of it does the cache not have yet?". Invariants:
//! 1. It reads like a snapshot, by key, namespace, index and selector; all of them agree with each other.
//! 2. What was laid over is named: nothing that the watch has not brought passes for something that it has.
//! 3. The versions of the sources are those of the cache.
//!
//! Read next: `informer_core::snapshot`.

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
/// An index that the cache builds, and whose function was not given, is missing in it: reading it is an error.
pub struct Overlaid<S> {
    shown: Snapshot<S>,
    cache: Snapshot<S>,
    laid: BTreeMap<ObjectKey, Option<Object<S>>>,
}

impl<S> Overlaid<S> {
    /// Lays over a cache what the machine gives. An index function that fails leaves its object out of that index, as in
    /// the store; the store reports it when the watch brings the object.
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

    /// The objects that are answers which the cache does not have yet, in key order.
    pub fn written(&self) -> impl Iterator<Item = &Object<S>> {
        self.laid.values().flatten()
    }

    /// The keys whose objects are hidden, because we have deleted them or have changed them so that the informer does not
    /// select them; in order.
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

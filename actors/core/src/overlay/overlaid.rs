//! A cache with the answers to writes of our own laid over it.
//!
//! Answers "what does a reader see, and what of it does the cache not have yet?". Invariants:
//! 1. It reads like a snapshot, by key, namespace, index and selector; all of them agree with each other.
//! 2. What was laid over is named: nothing that the watch has not brought passes for something that it has.
//! 3. The versions of the sources are those of the cache.
//!
//! Read next: `../snapshot.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use super::entry::State;
use crate::index::AnyIndex;
use crate::meta::{Object, ObjectKey};
use crate::snapshot::Snapshot;

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
    written: BTreeSet<ObjectKey>,
    hidden: BTreeSet<ObjectKey>,
}

impl<S> Overlaid<S> {
    /// Whether the object of this key is an answer that the cache does not have yet.
    pub fn is_written(&self, key: &ObjectKey) -> bool {
        self.written.contains(key)
    }

    /// The objects that are answers which the cache does not have yet, in key order.
    pub fn written(&self) -> impl Iterator<Item = &Object<S>> {
        self.written.iter().filter_map(|key| self.shown.get(key))
    }

    /// The keys whose objects are hidden, because we have deleted them or have changed them so that the informer does not
    /// select them; in order.
    pub fn hidden(&self) -> impl Iterator<Item = &ObjectKey> {
        self.hidden.iter()
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

crate::clone_of!([S] Overlaid<S> { shown, cache, written, hidden });

crate::debug_as!([S] Overlaid<S>, self, cache = self.cache, written = self.written, hidden = self.hidden);

/// Lays states over a cache. An index function that fails leaves its object out of that index, as in the store; the store
/// reports it when the watch brings the object.
pub(super) fn lay_over<S>(
    cache: &Snapshot<S>,
    states: BTreeMap<ObjectKey, State<S>>,
    indices: &[AnyIndex<S>],
) -> Overlaid<S> {
    let (mut written, mut hidden) = (BTreeSet::new(), BTreeSet::new());
    if states.is_empty() {
        return Overlaid { shown: cache.clone(), cache: cache.clone(), written, hidden };
    }
    let mut frame = cache.frame().clone();
    let known = |name: &str| indices.iter().find(|index| &**index.name() == name);
    let mut tables = std::mem::take(frame.indices_mut());
    tables.retain(|table| known(table.name()).is_some());
    for (key, state) in states {
        if let State::Written(object) = state {
            for table in &mut tables {
                let name = table.name().clone();
                let _failed = known(&name).map(|index| index.update(table, &object));
            }
            frame.insert(object);
            written.insert(key);
        } else {
            tables.iter_mut().for_each(|table| table.forget(&key));
            frame.remove(&key);
            hidden.insert(key);
        }
    }
    *frame.indices_mut() = tables;
    Overlaid { shown: cache.with(frame), cache: cache.clone(), written, hidden }
}

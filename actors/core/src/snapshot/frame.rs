//! What a snapshot is made of: the objects, and what belongs to them.
//!
//! Answers "how far is each source, which indices are there, what could not be read?"; the objects themselves are in
//! `objects.rs`, and what should be in here is decided by `indexer.rs`. Cloning a frame is O(indices + sources). Invariants:
//! 1. Each set-aside entry lies under its own key, and under its source in `set_aside_by_source`.
//! 2. `versions` is sorted by source, one entry per source; `ahead` names a source only beyond its version.

use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::objects::{Objects, Put};
use crate::index::{Index, UnknownIndex};
use crate::meta::{Object, ObjectKey, ResourceVersion, SourceId};
use crate::set_aside::SetAside;

pub(crate) struct Frame<S> {
    objects: Objects<S>,
    versions: Vec<(SourceId, ResourceVersion)>,
    /// The newest version of which something is in here, for sources of which not all up to there is.
    ahead: Vec<(SourceId, ResourceVersion)>,
    indices: Vec<Index>,
    set_aside: OrdMap<ObjectKey, Aside>,
    set_aside_by_source: OrdSet<(SourceId, ObjectKey)>,
    replaces: u64,
}

/// A set-aside entry, whose source put it there, and in which of the frame's Replaces.
#[derive(Clone)]
pub(crate) struct Aside {
    pub(crate) source: SourceId,
    pub(crate) round: u64,
    pub(crate) told: SetAside,
}

impl Aside {
    pub(crate) fn told(&self) -> &SetAside {
        &self.told
    }
}

impl<S> Frame<S> {
    pub(crate) fn objects(&self) -> &Objects<S> {
        &self.objects
    }

    pub(crate) fn objects_mut(&mut self) -> &mut Objects<S> {
        &mut self.objects
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Object<S>> {
        Some(self.objects.held(key)?.object())
    }

    /// The objects alone, without versions, indices and set-aside entries. O(1).
    pub(crate) fn objects_only(&self) -> Self {
        Self { objects: self.objects.clone(), ..Self::default() }
    }

    /// Puts in an object that its own source brings, and hands back the one that was there.
    pub(crate) fn insert(&mut self, object: Object<S>) -> Option<Object<S>> {
        match self.objects.put(object.source(), &object, |_| true) {
            Put::Replaced(old) => Some(old),
            Put::New | Put::Kept(_) => None,
        }
    }

    #[cfg(test)]
    pub(crate) fn count_rewind(&mut self) {
        self.objects.count_rewind();
    }

    #[cfg(test)]
    pub(crate) fn insert_rewound(&mut self, object: Object<S>) {
        self.objects.put_rewound(object.source(), &object);
    }

    /// Takes the object of a key out, whoever holds it.
    pub(crate) fn remove(&mut self, key: &ObjectKey) -> Option<Object<S>> {
        self.objects.remove(key)
    }

    pub(crate) fn version(&self, source: &SourceId) -> Option<&ResourceVersion> {
        let at = self.position(source).ok()?;
        Some(&self.versions[at].1)
    }

    pub(crate) fn versions(&self) -> &[(SourceId, ResourceVersion)] {
        &self.versions
    }

    /// Moves a source forward; a version below the one reached changes nothing.
    pub(crate) fn reach(&mut self, source: &SourceId, version: &ResourceVersion) {
        match self.position(source) {
            Ok(at) if self.versions[at].1 < *version => self.versions[at].1 = version.clone(),
            Ok(_) => {}
            Err(at) => self.versions.insert(at, (source.clone(), version.clone())),
        }
        if !self.ahead.is_empty() {
            self.ahead.retain(|(known, ahead)| known != source || ahead > version);
        }
    }

    /// Something of this version is in here, and not yet all up to it.
    pub(crate) fn run_ahead(&mut self, source: &SourceId, version: &ResourceVersion) {
        if self.newest(source).is_some_and(|newest| newest >= version) {
            return;
        }
        self.ahead.retain(|(known, _)| known != source);
        self.ahead.push((source.clone(), version.clone()));
    }

    /// The newest version of which something is in here.
    pub(crate) fn newest(&self, source: &SourceId) -> Option<&ResourceVersion> {
        let ahead = self.ahead.iter().find(|(known, _)| known == source);
        ahead.map(|(_, version)| version).or_else(|| self.version(source))
    }

    /// Puts a source at a version, forward or back.
    pub(crate) fn set_version(&mut self, source: SourceId, version: ResourceVersion) {
        self.ahead.retain(|(known, _)| *known != source);
        match self.position(&source) {
            Ok(at) => self.versions[at].1 = version,
            Err(at) => self.versions.insert(at, (source, version)),
        }
    }

    /// A source is gone: its version, and how far it had run ahead.
    pub(crate) fn forget_source(&mut self, source: &SourceId) {
        self.versions.retain(|(known, _)| known != source);
        self.ahead.retain(|(known, _)| known != source);
    }

    fn position(&self, source: &SourceId) -> Result<usize, usize> {
        self.versions.binary_search_by(|(known, _)| known.cmp(source))
    }

    pub(crate) fn indices(&self) -> &[Index] {
        &self.indices
    }

    pub(crate) fn indices_mut(&mut self) -> &mut Vec<Index> {
        &mut self.indices
    }

    pub(crate) fn index(&self, name: &str) -> Result<&Index, UnknownIndex> {
        let index = self.indices.iter().find(|index| &**index.name() == name);
        index.ok_or_else(|| UnknownIndex(name.to_owned()))
    }

    pub(crate) fn add_empty_indices(&mut self, names: impl IntoIterator<Item = Arc<str>>) {
        debug_assert_eq!(self.len(), 0, "an empty index is whole only without objects");
        for name in names {
            if self.index(&name).is_err() {
                self.indices.push(Index::new(name));
            }
        }
    }

    pub(crate) fn set_aside(&self) -> &OrdMap<ObjectKey, Aside> {
        &self.set_aside
    }

    /// The keys that a source has set aside, after this one or all of them.
    pub(crate) fn set_aside_by(
        &self,
        source: &SourceId,
        after: Option<&ObjectKey>,
    ) -> impl Iterator<Item = &ObjectKey> {
        // No key is before the one with an empty name.
        let from = after.cloned().unwrap_or_else(|| ObjectKey::cluster(""));
        let entries =
            self.set_aside_by_source.range((Bound::Excluded((source.clone(), from)), Bound::Unbounded));
        entries.take_while(move |(of, _)| of == source).map(|(_, key)| key)
    }

    pub(crate) fn insert_set_aside(&mut self, entry: Aside) {
        let key = entry.told.key.clone();
        self.remove_set_aside(&key);
        self.set_aside_by_source.insert((entry.source.clone(), key.clone()));
        self.set_aside.insert(key, entry);
    }

    pub(crate) fn remove_set_aside(&mut self, key: &ObjectKey) {
        if let Some(entry) = self.set_aside.remove(key) {
            self.set_aside_by_source.remove(&(entry.source, key.clone()));
        }
    }

    /// How many Replaces went into this frame; tells the set-aside entries of the newest one from older ones.
    pub(crate) fn replaces(&self) -> u64 {
        self.replaces
    }

    pub(crate) fn set_replaces(&mut self, replaces: u64) {
        self.replaces = replaces;
    }
}

impl<S> Clone for Frame<S> {
    fn clone(&self) -> Self {
        Self {
            objects: self.objects.clone(),
            versions: self.versions.clone(),
            ahead: self.ahead.clone(),
            indices: self.indices.clone(),
            set_aside: self.set_aside.clone(),
            set_aside_by_source: self.set_aside_by_source.clone(),
            replaces: self.replaces,
        }
    }
}

impl<S> Default for Frame<S> {
    fn default() -> Self {
        Self {
            objects: Objects::default(),
            versions: Vec::new(),
            ahead: Vec::new(),
            indices: Vec::new(),
            set_aside: OrdMap::new(),
            set_aside_by_source: OrdSet::new(),
            replaces: 0,
        }
    }
}

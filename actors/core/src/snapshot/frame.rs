//! The content of a snapshot: objects, versions of the sources, indices and undecodable objects.
//!
//! Answers "which version has each source reached, which indices are there, which objects could not be decoded?". The
//! objects themselves are in `objects.rs`; `indexer.rs` decides what a frame contains. Cloning a frame is
//! O(indices). Invariants:
//! 1. Each undecodable entry is stored under its own key, and under each of its sources in `undecodable_by_source`. It has
//!    at least one.
//! 2. `ahead` has a source only at a version above that in `versions`.

use super::behind::Behind;
use super::objects::{Objects, Put};
use super::versions::SourceVersions;
use crate::index::{NamedTable, UnknownIndex};
use crate::meta::{Object, ObjectKey, ResourceVersion, SourceId, Undecodable};
use crate::tree::{Key, SortedMap, SortedSet};

pub(crate) struct Frame<S> {
    objects: Objects<S>,
    versions: SourceVersions,
    /// The newest version of which any part is applied, for sources of which not all parts up to it are applied.
    ahead: SourceVersions,
    indices: Vec<NamedTable>,
    undecodable: SortedMap<ObjectKey, UndecodableEntry>,
    undecodable_by_source: SortedSet<(SourceId, ObjectKey)>,
    replaces: u64,
    /// What sources have yet to bring that others have told.
    behind: SortedMap<SourceId, Behind<S>>,
    /// Sources that have yet to notice that their server went back, as another one that follows the same objects has.
    outdated: SortedSet<SourceId>,
}

/// An undecodable entry, the sources that hold it, and the number of the frame's Replaces when it became undecodable.
#[derive(Clone)]
pub(crate) struct UndecodableEntry {
    sources: Vec<SourceId>,
    /// The source that has brought this state.
    by: SourceId,
    pub(crate) round: u64,
    pub(crate) object: Undecodable,
}

impl UndecodableEntry {
    pub(crate) fn object(&self) -> &Undecodable {
        &self.object
    }

    pub(crate) fn by(&self) -> &SourceId {
        &self.by
    }

    pub(crate) fn is_held_by(&self, source: &SourceId) -> bool {
        self.sources.contains(source)
    }

    /// Whether what this source tells as deleted at this version is no older state of what it has brought itself.
    pub(crate) fn ends_with(&self, source: &SourceId, version: &ResourceVersion) -> bool {
        self.object.version <= *version || self.by != *source
    }

    pub(crate) fn is_held_by_others(&self, source: &SourceId) -> bool {
        self.sources.iter().any(|holder| holder != source)
    }
}

impl Key for SourceId {
    type Query = Self;

    fn query(&self) -> &Self {
        self
    }
}

impl Key for (SourceId, ObjectKey) {
    type Query = Self;

    fn query(&self) -> &Self {
        self
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

    /// The objects alone, without versions, indices and undecodable entries. O(1).
    pub(crate) fn objects_only(&self) -> Self {
        Self { objects: self.objects.clone(), ..Self::default() }
    }

    /// Stores an object that its own source brings, and gives back the one before.
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

    /// Removes the object of a key, whichever sources hold it.
    pub(crate) fn remove(&mut self, key: &ObjectKey) -> Option<Object<S>> {
        self.objects.remove(key)
    }

    pub(crate) fn version(&self, source: &SourceId) -> Option<&ResourceVersion> {
        self.versions.get(source)
    }

    pub(crate) fn versions(&self) -> &SourceVersions {
        &self.versions
    }

    /// Moves a source forward; a version below the one reached changes nothing.
    pub(crate) fn reach(&mut self, source: &SourceId, version: &ResourceVersion) {
        if self.versions.get(source).is_none_or(|reached| reached < version) {
            self.versions.set(source, version);
        }
        if self.ahead.get(source).is_some_and(|ahead| ahead <= version) {
            self.ahead.remove(source);
        }
    }

    /// A part of this version is applied, but not yet all parts up to it.
    pub(crate) fn run_ahead(&mut self, source: &SourceId, version: &ResourceVersion) {
        if self.newest(source).is_some_and(|newest| newest >= version) {
            return;
        }
        self.ahead.set(source, version);
    }

    /// The newest version of which any part is applied.
    pub(crate) fn newest(&self, source: &SourceId) -> Option<&ResourceVersion> {
        self.ahead.get(source).or_else(|| self.version(source))
    }

    /// Sets a source's version, forward or back.
    pub(crate) fn set_version(&mut self, source: &SourceId, version: &ResourceVersion) {
        self.ahead.remove(source);
        self.versions.set(source, version);
    }

    /// Removes the versions of a source, and what it had yet to bring.
    pub(crate) fn forget_source(&mut self, source: &SourceId) {
        self.versions.remove(source);
        self.ahead.remove(source);
        self.behind.remove(source);
        self.outdated.remove(source);
    }

    pub(crate) fn indices(&self) -> &[NamedTable] {
        &self.indices
    }

    pub(crate) fn indices_mut(&mut self) -> &mut Vec<NamedTable> {
        &mut self.indices
    }

    pub(crate) fn index(&self, name: &str) -> Result<&NamedTable, UnknownIndex> {
        let index = self.indices.iter().find(|index| &**index.name() == name);
        index.ok_or_else(|| UnknownIndex(name.to_owned()))
    }

    pub(crate) fn add_empty_indices(&mut self, tables: impl IntoIterator<Item = NamedTable>) {
        debug_assert_eq!(self.len(), 0, "an empty index is whole only without objects");
        for table in tables {
            if self.index(table.name()).is_err() {
                self.indices.push(table);
            }
        }
    }

    pub(crate) fn undecodable(&self) -> &SortedMap<ObjectKey, UndecodableEntry> {
        &self.undecodable
    }

    /// The undecodable keys of a source, after this one or all of them.
    pub(crate) fn undecodable_by(
        &self,
        source: &SourceId,
        after: Option<&ObjectKey>,
    ) -> impl Iterator<Item = &ObjectKey> {
        // The key with an empty name is the first of all.
        let from = after.cloned().unwrap_or_else(|| ObjectKey::cluster(""));
        let keys = self.undecodable_by_source.keys_after(&(source.clone(), from));
        keys.take_while(move |(of, _)| of == source).map(|(_, key)| key)
    }

    /// A source brings an undecodable object; those that hold the one before hold this one, too.
    pub(crate) fn insert_undecodable(&mut self, source: &SourceId, round: u64, object: Undecodable) {
        let known = self.undecodable.get(&object.key);
        let by =
            known.filter(|known| known.object.version == object.version).map_or(source, |known| &known.by);
        let (by, sources) = (by.clone(), known.map_or_else(Vec::new, |known| known.sources.clone()));
        let key = object.key.clone();
        self.undecodable.insert(key.clone(), UndecodableEntry { sources, by, round, object });
        self.hold_undecodable(&key, source);
    }

    /// A source holds the undecodable entry of this key, if there is one.
    pub(crate) fn hold_undecodable(&mut self, key: &ObjectKey, source: &SourceId) {
        let Some(entry) = self.undecodable.get(key).filter(|entry| !entry.is_held_by(source)) else { return };
        let mut entry = entry.clone();
        entry.sources.push(source.clone());
        self.undecodable_by_source.insert((source.clone(), key.clone()), ());
        self.undecodable.insert(key.clone(), entry);
    }

    /// A source does not hold the undecodable entry of this key any more. The entry goes with its last source.
    pub(crate) fn release_undecodable(&mut self, key: &ObjectKey, source: &SourceId) {
        let Some(mut entry) = self.undecodable.get(key).cloned() else { return };
        self.undecodable_by_source.remove(&(source.clone(), key.clone()));
        entry.sources.retain(|holder| holder != source);
        if entry.sources.is_empty() {
            self.undecodable.remove(key);
        } else {
            self.undecodable.insert(key.clone(), entry);
        }
    }

    /// The undecodable entry of this key is over for all sources.
    pub(crate) fn remove_undecodable(&mut self, key: &ObjectKey) {
        for source in self.undecodable.remove(key).into_iter().flat_map(|entry| entry.sources) {
            self.undecodable_by_source.remove(&(source, key.clone()));
        }
    }

    /// How many Replaces were applied to this frame. It separates the undecodable entries of the newest one from
    /// others.
    pub(crate) fn replaces(&self) -> u64 {
        self.replaces
    }

    pub(crate) fn set_replaces(&mut self, replaces: u64) {
        self.replaces = replaces;
    }
}

/// What sources have yet to bring.
impl<S> Frame<S> {
    pub(crate) fn behind(&self) -> &SortedMap<SourceId, Behind<S>> {
        &self.behind
    }

    pub(crate) fn behind_mut(&mut self, source: &SourceId) -> Option<&mut Behind<S>> {
        self.behind.get_mut(source)
    }

    /// The version at which another source told this key before this source.
    pub(crate) fn told(&self, source: &SourceId, key: &ObjectKey) -> Option<&ResourceVersion> {
        self.behind.get(source)?.version(key)
    }

    /// Keeps for this source what another one told. What was kept for it in an earlier round is forgotten; a hand-over that
    /// begins later counts its rounds from zero, and forgets nothing.
    pub(crate) fn tell(&mut self, source: &SourceId, round: u64, key: &ObjectKey, version: &ResourceVersion) {
        if self.behind.get(source).is_none_or(|behind| behind.round < round) {
            self.behind.insert(source.clone(), Behind::new(round, version.clone()));
        }
        if let Some(behind) = self.behind.get_mut(source) {
            behind.tell(key, version);
        }
    }

    /// The source has brought what was told of this key.
    pub(crate) fn confirm(&mut self, source: &SourceId, key: &ObjectKey) {
        let Some(behind) = self.behind.get_mut(source) else { return };
        behind.confirm(key);
        if behind.is_over() {
            self.behind.remove(source);
        }
    }

    /// The source lists anew what it brought.
    pub(crate) fn drop_brought(&mut self, source: &SourceId) {
        if let Some(behind) = self.behind.get_mut(source) {
            behind.brought = SortedMap::new();
        }
    }

    /// The source has listed at this version: nothing is left of what was told up to it.
    pub(crate) fn list_behind(&mut self, source: &SourceId, version: &ResourceVersion) {
        if self.behind.get(source).is_some_and(|behind| behind.until <= *version) {
            self.behind.remove(source);
        }
    }

    /// Whether what this source has brought is of a former history of its server.
    pub(crate) fn is_outdated(&self, source: &SourceId) -> bool {
        self.has_outdated() && self.outdated.get(source).is_some()
    }

    pub(crate) fn has_outdated(&self) -> bool {
        !self.outdated.is_empty()
    }

    /// What this source has brought is of a former history.
    pub(crate) fn outdate(&mut self, source: &SourceId) {
        self.outdated.insert(source.clone(), ());
    }

    /// The source lists anew; whether it was outdated.
    pub(crate) fn end_outdated(&mut self, source: &SourceId) -> bool {
        self.outdated.remove(source).is_some()
    }

    /// Nothing of what was told counts any more.
    pub(crate) fn forget_behind(&mut self, source: &SourceId) {
        self.behind.remove(source);
    }
}

crate::clone_of!([S] Frame<S> {
    objects, versions, ahead, indices, undecodable, undecodable_by_source, replaces, behind, outdated
});

impl<S> Default for Frame<S> {
    fn default() -> Self {
        Self {
            objects: Objects::default(),
            versions: SourceVersions::default(),
            ahead: SourceVersions::default(),
            indices: Vec::new(),
            undecodable: SortedMap::new(),
            undecodable_by_source: SortedSet::new(),
            replaces: 0,
            behind: SortedMap::new(),
            outdated: SortedSet::new(),
        }
    }
}

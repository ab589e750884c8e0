//! The content of a snapshot. A clone is O(indices). Each undecodable entry has at least one source, and is under
//! each in `undecodable_by_source`.

use super::behind::Behind;
use super::objects::{Objects, Put};
use super::versions::SourceVersions;
use crate::index::{NamedTable, UnknownIndex};
use crate::meta::{Object, ObjectKey, ResourceVersion, SourceId, Undecodable};
use crate::tree::{Key, SortedMap, SortedSet};

pub(crate) struct Frame<S> {
    objects: Objects<S>,
    versions: SourceVersions,
    /// The newest version of any applied part, where it is above that in `versions`.
    ahead: SourceVersions,
    indices: Vec<NamedTable>,
    undecodable: SortedMap<ObjectKey, UndecodableEntry>,
    undecodable_by_source: SortedSet<(SourceId, ObjectKey)>,
    replaces: u64,
    behind: SortedMap<SourceId, Behind<S>>,
    /// Sources that have not noticed a rewind that another one has noticed.
    outdated: SortedSet<SourceId>,
}

#[derive(Clone)]
pub(crate) struct UndecodableEntry {
    sources: Vec<SourceId>,
    by: SourceId,
    /// The frame's count of Replaces when the key became undecodable.
    pub(crate) round: u64,
    /// It is about the stored body.
    pub(crate) is_late: bool,
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

    /// Whether a deletion by this source is not older than a state that it brought itself.
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

    /// O(1).
    pub(crate) fn objects_only(&self) -> Self {
        Self { objects: self.objects.clone(), ..Self::default() }
    }

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

    pub(crate) fn remove(&mut self, key: &ObjectKey) -> Option<Object<S>> {
        self.objects.remove(key)
    }

    pub(crate) fn version(&self, source: &SourceId) -> Option<&ResourceVersion> {
        self.versions.get(source)
    }

    pub(crate) fn versions(&self) -> &SourceVersions {
        &self.versions
    }

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

    pub(crate) fn newest(&self, source: &SourceId) -> Option<&ResourceVersion> {
        self.ahead.get(source).or_else(|| self.version(source))
    }

    pub(crate) fn set_version(&mut self, source: &SourceId, version: &ResourceVersion) {
        self.ahead.remove(source);
        self.versions.set(source, version);
    }

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

    /// Sources that hold the entry before hold this one too.
    pub(crate) fn insert_undecodable(&mut self, source: &SourceId, round: u64, object: Undecodable) {
        let known = self.undecodable.get(&object.key);
        let by =
            known.filter(|known| known.object.version == object.version).map_or(source, |known| &known.by);
        let (by, sources) = (by.clone(), known.map_or_else(Vec::new, |known| known.sources.clone()));
        let key = object.key.clone();
        self.undecodable.insert(key.clone(), UndecodableEntry { sources, by, round, is_late: false, object });
        self.hold_undecodable(&key, source);
    }

    /// It is about the stored object, which `by` has brought.
    pub(crate) fn insert_late(&mut self, by: &SourceId, holders: &[SourceId], object: Undecodable) {
        let (key, round) = (object.key.clone(), self.replaces);
        self.remove_undecodable(&key);
        let entry = UndecodableEntry { sources: Vec::new(), by: by.clone(), round, is_late: true, object };
        self.undecodable.insert(key.clone(), entry);
        holders.iter().for_each(|holder| self.hold_undecodable(&key, holder));
    }

    pub(crate) fn hold_undecodable(&mut self, key: &ObjectKey, source: &SourceId) {
        let Some(entry) = self.undecodable.get(key).filter(|entry| !entry.is_held_by(source)) else { return };
        let mut entry = entry.clone();
        entry.sources.push(source.clone());
        self.undecodable_by_source.insert((source.clone(), key.clone()), ());
        self.undecodable.insert(key.clone(), entry);
    }

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

    pub(crate) fn remove_undecodable(&mut self, key: &ObjectKey) {
        for source in self.undecodable.remove(key).into_iter().flat_map(|entry| entry.sources) {
            self.undecodable_by_source.remove(&(source, key.clone()));
        }
    }

    pub(crate) fn replaces(&self) -> u64 {
        self.replaces
    }

    pub(crate) fn set_replaces(&mut self, replaces: u64) {
        self.replaces = replaces;
    }
}

impl<S> Frame<S> {
    pub(crate) fn behind(&self) -> &SortedMap<SourceId, Behind<S>> {
        &self.behind
    }

    pub(crate) fn behind_mut(&mut self, source: &SourceId) -> Option<&mut Behind<S>> {
        self.behind.get_mut(source)
    }

    pub(crate) fn told(&self, source: &SourceId, key: &ObjectKey) -> Option<&ResourceVersion> {
        self.behind.get(source)?.version(key)
    }

    /// Keeps what another source told to this one; drops what an earlier round kept. A later hand-over counts its
    /// rounds from zero, and drops nothing.
    pub(crate) fn tell(&mut self, source: &SourceId, round: u64, key: &ObjectKey, version: &ResourceVersion) {
        if self.behind.get(source).is_none_or(|behind| behind.round < round) {
            self.behind.insert(source.clone(), Behind::new(round, version.clone()));
        }
        if let Some(behind) = self.behind.get_mut(source) {
            behind.tell(key, version);
        }
    }

    pub(crate) fn confirm(&mut self, source: &SourceId, key: &ObjectKey) {
        let Some(behind) = self.behind.get_mut(source) else { return };
        behind.confirm(key);
        if behind.is_over() {
            self.behind.remove(source);
        }
    }

    pub(crate) fn drop_brought(&mut self, source: &SourceId) {
        if let Some(behind) = self.behind.get_mut(source) {
            behind.brought = SortedMap::new();
        }
    }

    pub(crate) fn list_behind(&mut self, source: &SourceId, version: &ResourceVersion) {
        if self.behind.get(source).is_some_and(|behind| behind.until <= *version) {
            self.behind.remove(source);
        }
    }

    /// Whether what it has brought is of a former history of its server.
    pub(crate) fn is_outdated(&self, source: &SourceId) -> bool {
        self.has_outdated() && self.outdated.get(source).is_some()
    }

    pub(crate) fn has_outdated(&self) -> bool {
        !self.outdated.is_empty()
    }

    pub(crate) fn outdate(&mut self, source: &SourceId) {
        self.outdated.insert(source.clone(), ());
    }

    pub(crate) fn end_outdated(&mut self, source: &SourceId) -> bool {
        self.outdated.remove(source).is_some()
    }

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

//! What a snapshot is made of: the persistent map of objects, and what belongs to it.
//!
//! Answers "where is it?" and "what does the map look like with this object in it?"; what should be in it is decided
//! by `indexer.rs`. Cloning a frame is O(indices + sources): nodes are shared until one side writes. Invariants:
//! 1. `len` is the number of objects; no namespace is kept without objects.
//! 2. Each object lies under its own key, each set-aside entry too.
//! 3. `versions` is sorted by source, one entry per source; `ahead` names a source only beyond its version.

use std::mem;
use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, ordmap};

use crate::delta::SetAside;
use crate::index::{Index, UnknownIndex};
use crate::meta::{Object, ObjectKey, ResourceVersion, SourceId};

pub(crate) struct Frame<S> {
    cluster: Names<S>,
    namespaces: OrdMap<Arc<str>, Names<S>>,
    len: usize,
    versions: Vec<(SourceId, ResourceVersion)>,
    /// The newest version of which something is in here, for sources of which not all up to there is.
    ahead: Vec<(SourceId, ResourceVersion)>,
    indices: Vec<Index>,
    set_aside: OrdMap<ObjectKey, Aside>,
    replaces: u64,
    rewinds: u32,
}

/// The objects of one namespace, by name.
pub(crate) struct Names<S>(OrdMap<Arc<str>, Held<S>>);

/// An object as a value of the map: equal if it shows the same state, which is what the map's diff compares.
pub(crate) struct Held<S> {
    object: Object<S>,
    /// The frame's count of rewinds when its source was last rewound, or when this life came in.
    rewinds: u32,
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
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Object<S>> {
        self.names(key.namespace())?.get(key.name())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Object<S>> {
        self.cluster.iter().chain(self.namespaces.values().flat_map(Names::iter))
    }

    /// The objects alone, without versions, indices and set-aside entries. O(1).
    pub(crate) fn objects_only(&self) -> Self {
        let (cluster, namespaces) = (self.cluster.clone(), self.namespaces.clone());
        Self { cluster, namespaces, len: self.len, rewinds: self.rewinds, ..Self::default() }
    }

    /// The objects after this key, or all of them.
    pub(crate) fn after<'a>(
        &'a self,
        key: Option<&ObjectKey>,
    ) -> impl Iterator<Item = &'a Object<S>> + use<'a, S> {
        let (rest, namespaces) = match key {
            None => (Some(self.cluster.after(None)), self.namespaces_after(None)),
            Some(key) => (
                self.names(key.namespace()).map(|names| names.after(Some(key.name()))),
                self.namespaces_after(key.namespace()),
            ),
        };
        rest.into_iter().flatten().chain(namespaces.flat_map(|(_, names)| names.iter()))
    }

    /// The objects of a namespace, `None` being that of cluster-scoped objects.
    pub(crate) fn names(&self, namespace: Option<&str>) -> Option<&Names<S>> {
        match namespace {
            None => Some(&self.cluster),
            Some(namespace) => self.namespaces.get(namespace),
        }
    }

    /// The namespaces after this one; all of them after `None`.
    pub(crate) fn namespaces_after(
        &self,
        namespace: Option<&str>,
    ) -> ordmap::RangedIter<'_, Arc<str>, Names<S>, imbl::shared_ptr::DefaultSharedPtr> {
        let from = namespace.map_or(Bound::Unbounded, Bound::Excluded);
        self.namespaces.range::<_, str>((from, Bound::Unbounded))
    }

    pub(crate) fn cluster(&self) -> &Names<S> {
        &self.cluster
    }

    pub(crate) fn namespaces(&self) -> &OrdMap<Arc<str>, Names<S>> {
        &self.namespaces
    }

    /// What is held under this key.
    pub(crate) fn held(&self, key: &ObjectKey) -> Option<&Held<S>> {
        self.names(key.namespace())?.0.get(key.name())
    }

    /// Puts an object under its key and hands back the one that was there. The same life keeps its count of rewinds.
    pub(crate) fn insert(&mut self, object: Object<S>) -> Option<Object<S>> {
        let known = self.held(object.key()).filter(|known| known.object.is_same_life_as(&object));
        let rewinds = known.map_or(self.rewinds, Held::rewinds);
        self.put(Held { object, rewinds })
    }

    /// Puts in an object that was listed after its source was rewound.
    pub(crate) fn insert_rewound(&mut self, object: Object<S>) -> Option<Object<S>> {
        self.put(Held { object, rewinds: self.rewinds })
    }

    fn put(&mut self, held: Held<S>) -> Option<Object<S>> {
        let name = Arc::clone(held.object.key().shared_name());
        let old = match held.object.key().shared_namespace().cloned() {
            None => self.cluster.0.insert(name, held),
            Some(namespace) => match self.namespaces.get_mut(&*namespace) {
                Some(names) => names.0.insert(name, held),
                None => {
                    let names = Names(OrdMap::unit(name, held));
                    self.namespaces.insert(namespace, names);
                    None
                }
            },
        };
        self.len += usize::from(old.is_none());
        old.map(|held| held.object)
    }

    /// A source is being rewound: what it lists now is stored by [`Self::insert_rewound`].
    pub(crate) fn count_rewind(&mut self) {
        self.rewinds += 1;
    }

    /// Puts an object in the place of the one under its key, which it gives back; without one nothing happens.
    /// Cheaper than [`Self::get`] and [`Self::insert`]: it walks down once. The map keeps the text of its key.
    pub(crate) fn replace(&mut self, object: &Object<S>) -> Option<Object<S>> {
        let rewinds = self.rewinds;
        let names = match object.key().namespace() {
            None => &mut self.cluster,
            Some(namespace) => self.namespaces.get_mut(namespace)?,
        };
        let held = names.0.get_mut(object.key().name())?;
        if !held.object.is_same_life_as(object) {
            held.rewinds = rewinds;
        }
        Some(mem::replace(&mut held.object, object.clone()))
    }

    /// Takes the object of a key out.
    pub(crate) fn remove(&mut self, key: &ObjectKey) -> Option<Object<S>> {
        self.get(key)?;
        let names = match key.namespace() {
            None => &mut self.cluster,
            Some(namespace) => self.namespaces.get_mut(namespace)?,
        };
        let old = names.0.remove(key.name())?;
        self.len -= 1;
        if let (true, Some(namespace)) = (names.0.is_empty(), key.namespace()) {
            self.namespaces.remove(namespace);
        }
        Some(old.object)
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
        debug_assert_eq!(self.len, 0, "an empty index is whole only without objects");
        for name in names {
            if self.index(&name).is_err() {
                self.indices.push(Index::new(name));
            }
        }
    }

    pub(crate) fn set_aside(&self) -> &OrdMap<ObjectKey, Aside> {
        &self.set_aside
    }

    pub(crate) fn set_aside_mut(&mut self) -> &mut OrdMap<ObjectKey, Aside> {
        &mut self.set_aside
    }

    /// How many Replaces went into this frame; tells the set-aside entries of the newest one from older ones.
    pub(crate) fn replaces(&self) -> u64 {
        self.replaces
    }

    pub(crate) fn set_replaces(&mut self, replaces: u64) {
        self.replaces = replaces;
    }
}

impl<S> Names<S> {
    pub(crate) fn get(&self, name: &str) -> Option<&Object<S>> {
        self.0.get(name).map(Held::object)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Object<S>> {
        self.0.values().map(Held::object)
    }

    /// The objects after this name, or all of them.
    pub(crate) fn after<'a>(
        &'a self,
        name: Option<&str>,
    ) -> impl Iterator<Item = &'a Object<S>> + use<'a, S> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        self.0.range::<_, str>((from, Bound::Unbounded)).map(|(_, held)| held.object())
    }

    /// What is held after this name, or all of it.
    pub(crate) fn held_after<'a>(
        &'a self,
        name: Option<&str>,
    ) -> impl Iterator<Item = &'a Held<S>> + use<'a, S> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        self.0.range::<_, str>((from, Bound::Unbounded)).map(|(_, held)| held)
    }

    /// The map, for its own diff.
    pub(crate) fn map(&self) -> &OrdMap<Arc<str>, Held<S>> {
        &self.0
    }

    /// Whether both are one tree, so that nothing in them can differ.
    pub(crate) fn is_shared_with(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl<S> Held<S> {
    pub(crate) fn object(&self) -> &Object<S> {
        &self.object
    }

    pub(crate) fn rewinds(&self) -> u32 {
        self.rewinds
    }
}

impl<S> PartialEq for Held<S> {
    fn eq(&self, other: &Self) -> bool {
        self.rewinds == other.rewinds
            && (self.object.ptr_eq(&other.object) || self.object.is_same_as(&other.object))
    }
}

/// Only a shared tree counts as equal: the map's diff then descends into every other pair, and not twice.
impl<S> PartialEq for Names<S> {
    fn eq(&self, other: &Self) -> bool {
        self.is_shared_with(other)
    }
}

impl<S> Clone for Held<S> {
    fn clone(&self) -> Self {
        Self { object: self.object.clone(), rewinds: self.rewinds }
    }
}

impl<S> Clone for Names<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> Default for Names<S> {
    fn default() -> Self {
        Self(OrdMap::new())
    }
}

impl<S> Clone for Frame<S> {
    fn clone(&self) -> Self {
        Self {
            cluster: self.cluster.clone(),
            namespaces: self.namespaces.clone(),
            len: self.len,
            versions: self.versions.clone(),
            ahead: self.ahead.clone(),
            indices: self.indices.clone(),
            set_aside: self.set_aside.clone(),
            replaces: self.replaces,
            rewinds: self.rewinds,
        }
    }
}

impl<S> Default for Frame<S> {
    fn default() -> Self {
        Self {
            cluster: Names::default(),
            namespaces: OrdMap::new(),
            len: 0,
            versions: Vec::new(),
            ahead: Vec::new(),
            indices: Vec::new(),
            set_aside: OrdMap::new(),
            replaces: 0,
            rewinds: 0,
        }
    }
}

//! A snapshot: the published, immutable state of an informer at one moment. Invariants:
//! 1. Snapshots share what did not change between them: an unchanged object is one allocation.
//! 2. No public type shows the persistent map (`tree.rs`).

use std::sync::Arc;

use crate::index::{AnyIndex, NamedTable, Table, UnknownIndex};
use crate::meta::{ClusterName, Object, ObjectKey, ResourceVersion, SourceId, Undecodable};
use crate::off_arbiter::{Freeing, OffArbiter, Release};
use crate::tree::Sources;

#[cfg(test)]
pub(crate) use behind::MOST_TOLD;
pub use diff::{DiffCursor, Difference};
pub(crate) use frame::{Frame, UndecodableEntry};
pub(crate) use holders::Held;
pub use lookup::Lookup;
pub(crate) use objects::Put;
pub use versions::SourceVersions;
#[cfg(test)]
pub(crate) use versions::looked_at;

mod behind;
mod diff;
#[cfg(test)]
pub(crate) mod fixture;
mod frame;
mod holders;
mod lookup;
mod objects;
mod versions;

/// All objects of an informer at one moment, with the version of each source and the indices.
///
/// Cloning copies one pointer, and no method blocks. A kept snapshot does not delay the informer, but keeps
/// its objects in memory.
pub struct Snapshot<S>(Arc<Kept<S>>);

/// A namespace that has objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Namespace<'a> {
    /// The cluster; `None` in an informer of one cluster.
    pub cluster: Option<&'a ClusterName>,
    /// Its name; `None` for the objects that are in no namespace.
    pub name: Option<&'a str>,
    /// How many objects it has.
    pub objects: usize,
}

/// What a snapshot points to, for a cell that publishes snapshots by exchanging one pointer:
/// [`Snapshot::into_kept`].
pub struct Kept<S>(OffArbiter<Frame<S>>);

impl<S> Kept<S> {
    /// The object of this key, as [`Snapshot::get`] returns it.
    pub fn get(&self, key: &ObjectKey) -> Option<&Object<S>> {
        self.0.get(key)
    }

    /// The object of this name, as [`Snapshot::named`] returns it.
    pub fn named(
        &self,
        cluster: Option<&ClusterName>,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<&Object<S>> {
        self.0.objects().named((cluster, namespace), name)
    }
}

impl<S> Snapshot<S> {
    /// A snapshot without objects, versions and indices.
    pub fn empty() -> Self {
        Self::publish(Frame::default())
    }

    /// An empty snapshot with these indices, so that reading an index before the first list is not an error.
    pub fn empty_with_indices(indices: impl IntoIterator<Item = AnyIndex<S>>) -> Self {
        let mut frame = Frame::default();
        frame.add_empty_indices(indices.into_iter().map(|index| index.empty()));
        Self::publish(frame)
    }

    /// The same snapshot, which is freed by `release` instead of where its last handle is dropped. So is
    /// every snapshot that the store makes from it.
    #[must_use]
    pub fn releasing_to(self, release: Arc<dyn Release>) -> Self
    where
        S: Send + Sync + 'static,
    {
        Self(Arc::new(Kept(Freeing::whole(release).keep(self.frame().clone()))))
    }

    pub(crate) fn publish(frame: Frame<S>) -> Self {
        Self(Arc::new(Kept(OffArbiter::in_place(frame))))
    }

    /// Freed like this one.
    pub(crate) fn with(&self, frame: Frame<S>) -> Self {
        Self(Arc::new(Kept(self.0.0.freeing().keep(frame))))
    }

    pub(crate) fn frame(&self) -> &Frame<S> {
        &self.0.0
    }

    /// The pointer that the snapshot is. O(1), allocates nothing; `Snapshot::from` is the way back.
    pub fn into_kept(self) -> Arc<Kept<S>> {
        self.0
    }

    /// How often its sources were rewound.
    #[doc(hidden)]
    pub fn rewinds(&self) -> u32 {
        self.frame().objects().rewinds()
    }

    /// The same snapshot with other states of these keys, `None` for none. Of the indices it has those whose
    /// functions are given; a function that fails leaves its object out.
    #[doc(hidden)]
    #[must_use]
    pub fn with_states<'a>(
        &self,
        states: impl IntoIterator<Item = (&'a ObjectKey, &'a Option<Object<S>>)>,
        indices: &[AnyIndex<S>],
    ) -> Self
    where
        S: 'a,
    {
        let mut frame = self.frame().clone();
        let given = |table: NamedTable| {
            let index = indices.iter().find(|index| index.name() == table.name())?;
            Some((index, table))
        };
        let mut tables: Vec<_> = std::mem::take(frame.indices_mut()).into_iter().filter_map(given).collect();
        for (key, state) in states {
            if let Some(object) = state {
                for (index, table) in &mut tables {
                    let _left_out = index.update(table, object);
                }
                frame.insert(object.clone());
            } else {
                tables.iter_mut().for_each(|(_, table)| table.forget(key));
                frame.remove(key);
            }
        }
        *frame.indices_mut() = tables.into_iter().map(|(_, table)| table).collect();
        self.with(frame)
    }

    /// How many objects there are. O(1).
    pub fn len(&self) -> usize {
        self.frame().len()
    }

    /// What its objects were on the wire together, in bytes. O(1).
    pub fn wire_bytes(&self) -> usize {
        self.frame().objects().wire_bytes()
    }

    /// Frees the snapshot here if this is its last handle, and not as [`Self::releasing_to`] says. For one whose
    /// successor differs in few objects: O(differences).
    pub fn free_here(self) {
        if let Some(kept) = Arc::into_inner(self.0) {
            drop(kept.0.into_inner());
        }
    }

    /// Notes that no newer snapshot shares its objects: the drop of its last handle hands all of them over to
    /// be freed, and as many bytes as [`Self::wire_bytes`] says. O(1).
    pub fn weigh_whole(&self) {
        self.0.0.weigh(self.wire_bytes());
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The object of this key. O(log n), allocates nothing.
    pub fn get(&self, key: &ObjectKey) -> Option<&Object<S>> {
        self.0.get(key)
    }

    /// The object of this name, with the cluster and the namespace if it has them. O(log n), allocates
    /// nothing, not even a key.
    pub fn named(
        &self,
        cluster: Option<&ClusterName>,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<&Object<S>> {
        self.0.named(cluster, namespace, name)
    }

    /// Whether there is an object of this key.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.get(key).is_some()
    }

    /// All objects in key order; allocates nothing per object.
    pub fn iter(&self) -> impl Iterator<Item = &Object<S>> {
        self.frame().objects().iter()
    }

    /// The objects behind this key, in key order; all for `None`. Begins in O(log n).
    pub fn objects_behind<'a>(
        &'a self,
        key: Option<&ObjectKey>,
    ) -> impl Iterator<Item = &'a Object<S>> + use<'a, S> {
        self.frame().objects().after(key, Sources::ALL).map(Held::object)
    }

    /// The keys of all objects, in order; allocates nothing per object.
    pub fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.iter().map(Object::key)
    }

    /// The namespaces that have objects, in order, each with the number of its objects; in an informer of
    /// several clusters, each namespace of each cluster. Objects without a namespace come as one entry
    /// without a name. Visits no object.
    pub fn namespaces(&self) -> impl Iterator<Item = Namespace<'_>> {
        self.frame().objects().scopes().iter().map(|scope| {
            let (cluster, name) = scope.key().scope();
            Namespace { cluster, name, objects: scope.names.len() }
        })
    }

    /// The objects of one namespace in the order of their names; visits no other object.
    pub fn namespace<'a>(&'a self, namespace: &str) -> impl Iterator<Item = &'a Object<S>> + use<'a, S> {
        self.frame().objects().namespace(namespace)
    }

    /// The objects of a cluster in key order; visits no other. Empty in an informer of one cluster, whose
    /// keys have no cluster name.
    pub fn cluster<'a>(&'a self, cluster: &ClusterName) -> impl Iterator<Item = &'a Object<S>> + use<'a, S> {
        self.frame().objects().in_cluster(cluster)
    }

    /// The objects of a namespace of one cluster in the order of their names; visits no other.
    pub fn namespace_in<'a>(
        &'a self,
        cluster: &ClusterName,
        namespace: &str,
    ) -> impl Iterator<Item = &'a Object<S>> + use<'a, S> {
        self.frame()
            .objects()
            .names_in((Some(cluster), Some(namespace)))
            .into_iter()
            .flat_map(|names| names.iter())
            .map(Held::object)
    }

    /// The objects that an index of texts holds under a value, each once, in key order; O(log n) each.
    ///
    /// # Errors
    /// [`UnknownIndex`] if there is no index of that name in this snapshot.
    pub fn by_index<'a>(
        &'a self,
        index: &str,
        value: &str,
    ) -> Result<impl Iterator<Item = &'a Object<S>> + use<'a, S>, UnknownIndex> {
        let members = self.texts(index)?.members(value);
        Ok(members.into_iter().flat_map(|members| members.keys()).filter_map(|key| {
            let object = self.get(key);
            debug_assert!(object.is_some(), "index holds {key}, the store does not");
            object
        }))
    }

    /// The values under which an index of texts holds at least one object, in order.
    ///
    /// # Errors
    /// [`UnknownIndex`] if there is no index of that name in this snapshot.
    pub fn index_values<'a>(
        &'a self,
        index: &str,
    ) -> Result<impl Iterator<Item = &'a str> + use<'a, S>, UnknownIndex> {
        Ok(self.texts(index)?.distinct_values().map(String::as_str))
    }

    fn texts(&self, index: &str) -> Result<&Table<String>, UnknownIndex> {
        self.frame().index(index)?.of().ok_or_else(|| UnknownIndex(index.to_owned()))
    }

    /// The names of the indices.
    pub fn index_names(&self) -> impl Iterator<Item = &str> {
        self.frame().indices().iter().map(|index| &**index.name())
    }

    /// The version that a source had reached: everything up to it is applied. `None` before its first part or
    /// list.
    pub fn version(&self, source: &SourceId) -> Option<&ResourceVersion> {
        self.frame().version(source)
    }

    /// The newest version of a source of which any part is applied. With the queue order `PerKey` it may be
    /// ahead of [`Self::version`], up to which *all* parts are applied; with `InOrder` both are the same.
    pub fn newest_version(&self, source: &SourceId) -> Option<&ResourceVersion> {
        self.frame().newest(source)
    }

    /// The version that this source has yet to reach: others have told before what it will bring up to there.
    /// `None`, except for a while after a source has taken over from another.
    pub fn awaited_version(&self, source: &SourceId) -> Option<&ResourceVersion> {
        self.frame().behind().get(source).map(|behind| &behind.until)
    }

    /// The version of each source, in the order of their names.
    pub fn versions(&self) -> &SourceVersions {
        self.frame().versions()
    }

    /// The objects whose newest version could not be decoded, in key order. [`Self::get`] returns the last
    /// version that decoded, if there is one.
    pub fn undecodable(&self) -> impl Iterator<Item = &Undecodable> {
        self.frame().undecodable().values().map(UndecodableEntry::object)
    }

    /// Why the newest version of this key could not be decoded; `None` if it could.
    pub fn undecodable_of(&self, key: &ObjectKey) -> Option<&Undecodable> {
        self.frame().undecodable().get(key).map(UndecodableEntry::object)
    }

    /// How many objects are undecodable. O(1).
    pub fn undecodable_len(&self) -> usize {
        self.frame().undecodable().len()
    }

    /// Whether both are the very same publish.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The differences from `self` to `newer`, in key order, lazily.
    ///
    /// A new life of a key is a deletion, then an addition. Equal life and version is not a difference,
    /// unless the source was rewound in between. Parts of the map that both share are skipped, so the cost
    /// depends on the changes between them and not on their size.
    pub fn diff<'a>(&'a self, newer: &'a Self) -> impl Iterator<Item = Difference<S>> + use<'a, S> {
        diff::differences(self, newer)
    }
}

impl<S> Snapshot<S> {
    /// Allocates nothing.
    pub(crate) fn differs_only_in(&self, newer: &Self, passes: impl Fn(&ObjectKey) -> bool) -> bool {
        let mut all_pass = true;
        diff::for_each(self, newer, |difference| all_pass &= passes(difference.key()));
        all_pass
    }
}

impl<S> From<Arc<Kept<S>>> for Snapshot<S> {
    fn from(kept: Arc<Kept<S>>) -> Self {
        Self(kept)
    }
}

crate::clone_of!([S] Snapshot<S>);

impl<S> Default for Snapshot<S> {
    fn default() -> Self {
        Self::empty()
    }
}

crate::debug_as!([S] Snapshot<S>, self,
    len = self.len(),
    versions = self.versions(),
    undecodable = self.undecodable_len()
);

crate::debug_as!([S] Kept<S>, self, len = self.0.len());

#[cfg(test)]
mod tests;

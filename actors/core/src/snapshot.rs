//! The published frame: everything an informer knows at one moment, never changing again.
//!
//! Answers "what is there?" for any number of readers at once: one object, one namespace, one index value, all of
//! it, and what differs from another moment. It never changes anything; `indexer.rs` makes new frames. Invariants:
//! 1. A snapshot is immutable: whatever is read from it, at any time, agrees with everything else read from it.
//! 2. Objects come in key order: those without namespace first, then namespace by namespace, name by name.
//! 3. Two snapshots share what did not change between them, and an unchanged object is the very same `Object`.
//! 4. No public type shows the persistent map below it (`snapshot/tree.rs`).
//!
//! Read next: `snapshot/diff.rs`, what differs; `indexer.rs`, the only writer.

use std::fmt;
use std::sync::Arc;

use crate::index::UnknownIndex;
use crate::meta::{ClusterName, Object, ObjectKey, ResourceVersion, SourceId};
use crate::off_arbiter::{Freeing, OffArbiter, Release};
use crate::set_aside::SetAside;

pub use diff::{DiffCursor, Difference};
pub(crate) use frame::{Aside, Frame};
pub(crate) use holders::Held;
pub(crate) use objects::Put;
pub(crate) use sources::Sources;

mod diff;
#[cfg(test)]
pub(crate) mod fixture;
mod frame;
mod holders;
mod objects;
mod sources;
mod tree;
mod walk;

/// All objects of an informer at one moment, with the version of each source and the indices.
///
/// Cloning copies one pointer; nothing blocks, and a kept snapshot delays nobody (it keeps its objects alive).
pub struct Snapshot<S>(Arc<OffArbiter<Frame<S>>>);

impl<S> Snapshot<S> {
    /// A snapshot without objects, versions and indices.
    pub fn empty() -> Self {
        Self::publish(Frame::default())
    }

    /// An empty snapshot that knows these indices, so that asking one before the first list is no error.
    pub fn empty_with_indices(names: impl IntoIterator<Item = Arc<str>>) -> Self {
        let mut frame = Frame::default();
        frame.add_empty_indices(names);
        Self::publish(frame)
    }

    /// The same, which is freed by `release` instead of where its last handle is dropped; so is every snapshot that
    /// follows from it.
    #[must_use]
    pub fn releasing_to(self, release: Arc<dyn Release>) -> Self
    where
        S: Send + Sync + 'static,
    {
        Self(Arc::new(Freeing::whole(release).keep(self.frame().clone())))
    }

    pub(crate) fn publish(frame: Frame<S>) -> Self {
        Self(Arc::new(OffArbiter::in_place(frame)))
    }

    /// Another frame, which is freed like this one.
    pub(crate) fn with(&self, frame: Frame<S>) -> Self {
        Self(Arc::new(self.0.freeing().keep(frame)))
    }

    pub(crate) fn frame(&self) -> &Frame<S> {
        &self.0
    }

    /// How many objects there are. O(1).
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The object of this key. O(log n), allocates nothing.
    pub fn get(&self, key: &ObjectKey) -> Option<&Object<S>> {
        self.0.get(key)
    }

    /// The object of this name, with the cluster and the namespace if it has them. O(log n), allocates nothing, not even
    /// a key.
    pub fn named(
        &self,
        cluster: Option<&ClusterName>,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<&Object<S>> {
        self.0.objects().named((cluster, namespace), name)
    }

    /// Whether there is an object of this key.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.get(key).is_some()
    }

    /// All objects in key order; allocates nothing per object.
    pub fn iter(&self) -> impl Iterator<Item = &Object<S>> {
        self.0.objects().iter()
    }

    /// The objects of one namespace in the order of their names; visits no other object.
    pub fn namespace<'a>(&'a self, namespace: &str) -> impl Iterator<Item = &'a Object<S>> + use<'a, S> {
        self.0.objects().namespace(namespace)
    }

    /// The objects of a cluster in key order; visits no other. None in an informer of one cluster, whose keys name none.
    pub fn cluster<'a>(&'a self, cluster: &ClusterName) -> impl Iterator<Item = &'a Object<S>> + use<'a, S> {
        self.0.objects().in_cluster(cluster)
    }

    /// The objects of a namespace of one cluster in the order of their names; visits no other.
    pub fn namespace_in<'a>(
        &'a self,
        cluster: &ClusterName,
        namespace: &str,
    ) -> impl Iterator<Item = &'a Object<S>> + use<'a, S> {
        self.0
            .objects()
            .names_in((Some(cluster), Some(namespace)))
            .into_iter()
            .flat_map(|names| names.iter())
            .map(Held::object)
    }

    /// The objects that an index holds under a value, each once, in key order; O(log n) each.
    ///
    /// # Errors
    /// [`UnknownIndex`] if there is no index of that name in this snapshot.
    pub fn by_index<'a>(
        &'a self,
        index: &str,
        value: &str,
    ) -> Result<impl Iterator<Item = &'a Object<S>> + use<'a, S>, UnknownIndex> {
        let members = self.0.index(index)?.members(value);
        Ok(members.filter_map(|key| {
            let object = self.get(key);
            debug_assert!(object.is_some(), "index holds {key}, the store does not");
            object
        }))
    }

    /// The values under which an index holds at least one object, in order.
    ///
    /// # Errors
    /// [`UnknownIndex`] if there is no index of that name in this snapshot.
    pub fn index_values<'a>(
        &'a self,
        index: &str,
    ) -> Result<impl Iterator<Item = &'a str> + use<'a, S>, UnknownIndex> {
        Ok(self.0.index(index)?.distinct_values())
    }

    /// The names of the indices.
    pub fn index_names(&self) -> impl Iterator<Item = &str> {
        self.0.indices().iter().map(|index| &**index.name())
    }

    /// The version that a source had reached: everything up to it is in here. `None` before its first part or list.
    pub fn version(&self, source: &SourceId) -> Option<&ResourceVersion> {
        self.0.version(source)
    }

    /// The newest version of which something is in here. Under the discipline `PerKey` it runs ahead of
    /// [`Self::version`], up to which *everything* is; under `InOrder` both are the same.
    pub fn newest_version(&self, source: &SourceId) -> Option<&ResourceVersion> {
        self.0.newest(source)
    }

    /// The version of each source, in the order of their names.
    pub fn versions(&self) -> &[(SourceId, ResourceVersion)] {
        self.0.versions()
    }

    /// The objects whose newest version could not be read, in key order. Their last good version, if there is
    /// one, is found with [`Self::get`].
    pub fn set_aside(&self) -> impl Iterator<Item = &SetAside> {
        self.0.set_aside().values().map(Aside::told)
    }

    /// Why the newest version of this key could not be read, if so.
    pub fn set_aside_of(&self, key: &ObjectKey) -> Option<&SetAside> {
        self.0.set_aside().get(key).map(Aside::told)
    }

    /// How many objects are set aside. O(1).
    pub fn set_aside_len(&self) -> usize {
        self.0.set_aside().len()
    }

    /// Whether both are the very same publish.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// What became different from `self` to `newer`, in key order, lazily.
    ///
    /// A new life of a key is a deletion, then an addition; equal life and version is no difference, unless its source
    /// was rewound in between. Parts that both share are skipped, so the cost is that of the changes between them, not
    /// that of their size.
    pub fn diff<'a>(&'a self, newer: &'a Self) -> impl Iterator<Item = Difference<S>> + use<'a, S> {
        diff::differences(self, newer)
    }
}

impl<S> Clone for Snapshot<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Default for Snapshot<S> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<S> fmt::Debug for Snapshot<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("len", &self.len())
            .field("versions", &self.versions())
            .field("set_aside", &self.set_aside_len())
            .finish()
    }
}

#[cfg(test)]
mod tests;

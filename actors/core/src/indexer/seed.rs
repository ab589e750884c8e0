//! A snapshot made of a list of objects, without a source.
//!
//! Answers "what would a reader see if these were all objects?" for tests of code that reads a cache, and for benchmarks.
//! Invariants:
//! 1. It is made by the store, so it is what an informer would publish after a watch that brought these objects.
//! 2. Of several states of one key the newest one is in it.
//!
//! Read next: `indexer.rs`.

use super::Store;
use crate::delta::WatchPart;
use crate::index::AnyIndex;
use crate::meta::Object;
use crate::snapshot::Snapshot;

impl<S> Snapshot<S> {
    /// A snapshot of these objects, with these indices. Each source has reached the newest version of its objects.
    /// O(n log n); the functions of the indices are called here.
    ///
    /// ```
    /// # use informer_core::face as actix_informer;
    /// use actix_informer::informer::Index;
    /// use actix_informer::object::{Meta, Object, ObjectKey, ResourceVersion, Snapshot, SourceId};
    ///
    /// let version = ResourceVersion::from_number(7).expect("not zero");
    /// let meta = Meta::new(ObjectKey::namespaced("shop", "web"), version, SourceId::default());
    /// let by_text = Index::<String>::new("text", |object| [object.body().clone()]);
    /// let snapshot = Snapshot::of([Object::new(meta, "red".to_owned())], [(&by_text).into()]);
    /// assert_eq!(by_text.get(&snapshot, "red")?.count(), 1);
    /// # Ok::<(), actix_informer::informer::UnknownIndex>(())
    /// ```
    pub fn of(
        objects: impl IntoIterator<Item = Object<S>>,
        indices: impl IntoIterator<Item = AnyIndex<S>>,
    ) -> Self {
        let parts: Vec<_> =
            objects.into_iter().map(|object| (object.source().clone(), WatchPart::Applied(object))).collect();
        Store::new(Self::empty(), indices.into_iter().collect()).apply_parts(parts).snapshot
    }
}

#[cfg(test)]
mod tests {
    use crate::index::Index;
    use crate::meta::SourceId;
    use crate::snapshot::Snapshot;
    use crate::snapshot::fixture::{key, version, worded, written};

    #[test]
    fn a_snapshot_of_objects_has_the_newest_state_of_each_in_key_order_with_versions_and_indices() {
        let by_word = Index::<String>::new("word", |object| [object.body().clone()]);
        let objects = [worded("b/x", 7, "new"), worded("a/y", 3, "other"), worded("b/x", 5, "old")];
        let snapshot = Snapshot::of(objects, [(&by_word).into()]);
        assert_eq!(snapshot.iter().map(written).collect::<Vec<_>>(), ["a/y u1@3", "b/x u1@7"]);
        assert_eq!(snapshot.version(&SourceId::default()), Some(&version(7)));
        let keys: Vec<_> = by_word.keys(&snapshot, "new").expect("it has the index").collect();
        assert_eq!(keys, [&key("b/x")]);
        assert_eq!(by_word.count(&snapshot, "old"), Ok(0));
    }
}

//! Reading an index of a snapshot by its handle.
//!
//! Answers "which objects have this value?", for one value or a range of them. Invariants:
//! 1. A handle reads only the index that it describes: of this name, and with values of its type.
//! 2. What a snapshot gives agrees with its objects, whatever is published meanwhile.
//!
//! Read next: `lookup.rs` for several indices at once.

use std::borrow::Borrow;
use std::ops::RangeBounds;

use super::Snapshot;
use crate::index::{Index, Table, UnknownIndex};
use crate::meta::{Object, ObjectKey};

impl<S, V: Ord + Send + Sync + 'static> Index<S, V> {
    /// The objects with this value, each once, in key order. O(log n) each; allocates nothing.
    ///
    /// # Errors
    /// [`UnknownIndex`] if the snapshot has no such index: its informer does not know this handle, or has not finished
    /// to build it.
    pub fn get<'a, Q: ?Sized + Ord>(
        &self,
        snapshot: &'a Snapshot<S>,
        value: &Q,
    ) -> Result<impl Iterator<Item = &'a Object<S>> + use<'a, S, V, Q>, UnknownIndex>
    where
        V: Borrow<Q>,
    {
        Ok(self.keys(snapshot, value)?.filter_map(|key| {
            let object = snapshot.get(key);
            debug_assert!(object.is_some(), "index holds {key}, the store does not");
            object
        }))
    }

    /// The keys of the objects with this value, in order. No object is looked up.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn keys<'a, Q: ?Sized + Ord>(
        &self,
        snapshot: &'a Snapshot<S>,
        value: &Q,
    ) -> Result<impl Iterator<Item = &'a ObjectKey> + use<'a, S, V, Q>, UnknownIndex>
    where
        V: Borrow<Q>,
    {
        Ok(self.table(snapshot)?.members(value).into_iter().flat_map(|members| members.keys()))
    }

    /// How many objects have this value. O(log n).
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn count<Q: ?Sized + Ord>(&self, snapshot: &Snapshot<S>, value: &Q) -> Result<usize, UnknownIndex>
    where
        V: Borrow<Q>,
    {
        Ok(self.table(snapshot)?.members(value).map_or(0, |members| members.len()))
    }

    /// The values that at least one object has, in order.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn values<'a>(
        &self,
        snapshot: &'a Snapshot<S>,
    ) -> Result<impl Iterator<Item = &'a V> + use<'a, S, V>, UnknownIndex> {
        Ok(self.table(snapshot)?.distinct_values())
    }

    /// The values in a range and the keys of the objects that have them, in the order of the values. A key with several
    /// values in the range comes with each.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn range<'a, R: RangeBounds<V> + 'a>(
        &self,
        snapshot: &'a Snapshot<S>,
        range: R,
    ) -> Result<impl Iterator<Item = (&'a V, &'a ObjectKey)> + use<'a, S, V, R>, UnknownIndex> {
        let values = self.table(snapshot)?.range(range);
        Ok(values.flat_map(|(value, members)| members.keys().map(move |key| (value, key))))
    }

    pub(super) fn table<'a>(&self, snapshot: &'a Snapshot<S>) -> Result<&'a Table<V>, UnknownIndex> {
        let table = snapshot.frame().index(self.name())?.of();
        table.ok_or_else(|| UnknownIndex(self.name().to_string()))
    }
}

//! The content of an index: keys by value, and values by key. An entry without members is removed.

use std::any::Any;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::meta::ObjectKey;
use crate::tree::{Key, SortedMap, SortedSet};

/// Stored once for all keys that have it.
pub(super) struct Value<V>(Arc<V>);

crate::clone_of!([V] Value<V>);

impl<V: Ord + 'static> Key for Value<V> {
    type Query = V;

    fn query(&self) -> &V {
        &self.0
    }
}

impl Key for Arc<str> {
    type Query = str;

    fn query(&self) -> &str {
        self
    }
}

impl Key for ObjectKey {
    type Query = Self;

    fn query(&self) -> &Self {
        self
    }
}

pub(crate) struct Table<V: Ord + 'static> {
    members: SortedMap<Value<V>, SortedSet<ObjectKey>>,
    values: SortedMap<ObjectKey, Arc<[Value<V>]>>,
}

impl<V: Ord + 'static> Table<V> {
    pub(super) fn new() -> Self {
        Self { members: SortedMap::new(), values: SortedMap::new() }
    }

    pub(crate) fn members<Q: ?Sized + Ord>(&self, value: &Q) -> Option<&SortedSet<ObjectKey>>
    where
        V: Borrow<Q>,
    {
        self.members.get_by(|stored| order(stored, value))
    }

    pub(crate) fn distinct_values(&self) -> impl Iterator<Item = &V> {
        self.members.keys().map(|value| &*value.0)
    }

    pub(crate) fn range<'a>(
        &'a self,
        range: impl RangeBounds<V> + 'a,
    ) -> impl Iterator<Item = (&'a V, &'a SortedSet<ObjectKey>)> {
        let (at, after) = match range.start_bound() {
            Bound::Unbounded => (None, self.members.entries_after(None)),
            Bound::Excluded(from) => (None, self.members.entries_after(Some(from))),
            Bound::Included(from) => (self.members.entry(from), self.members.entries_after(Some(from))),
        };
        let all = at.into_iter().chain(after).map(|(value, members)| (&*value.0, members));
        all.take_while(move |(value, _)| match range.end_bound() {
            Bound::Unbounded => true,
            Bound::Included(to) => *value <= to,
            Bound::Excluded(to) => *value < to,
        })
    }

    /// `values` are in order, each once. Changes only the entries that the key joins or leaves.
    pub(super) fn set(&mut self, key: &ObjectKey, values: Vec<V>) {
        let before = self.values.get(key).cloned().unwrap_or_default();
        if before.iter().map(|value| &*value.0).eq(values.iter()) {
            return;
        }
        for value in before.iter() {
            if values.binary_search_by(|new| new.cmp(&value.0)).is_err() {
                self.leave(&value.0, key);
            }
        }
        let after: Arc<[Value<V>]> = values.into_iter().map(|value| self.join(value, key)).collect();
        if after.is_empty() {
            self.values.remove(key);
        } else {
            self.values.insert(key.clone(), after);
        }
    }

    /// Returns the entry's own value, so that each is stored once.
    fn join(&mut self, value: V, key: &ObjectKey) -> Value<V> {
        if let Some((known, members)) = self.members.entry(&value) {
            let (known, is_member) = (known.clone(), members.contains(key));
            if let Some(members) = self.members.get_mut(&value).filter(|_| !is_member) {
                members.insert(key.clone(), ());
            }
            return known;
        }
        let (value, mut members) = (Value(Arc::new(value)), SortedSet::new());
        members.insert(key.clone(), ());
        self.members.insert(value.clone(), members);
        value
    }

    fn leave(&mut self, value: &V, key: &ObjectKey) {
        let Some(members) = self.members.get_mut(value) else {
            return;
        };
        members.remove(key);
        if members.is_empty() {
            self.members.remove(value);
        }
    }

    #[cfg(test)]
    pub(crate) fn shares_all_with(&self, other: &Self) -> bool {
        self.members.is_shared_with(&other.members) && self.values.is_shared_with(&other.values)
    }
}

crate::clone_of!([V: Ord + 'static] Table<V> { members, values });

fn order<V: Borrow<Q>, Q: ?Sized + Ord>(stored: &Value<V>, value: &Q) -> Ordering {
    Borrow::<Q>::borrow(&*stored.0).cmp(value)
}

pub(crate) trait AnyTable: Any + Send + Sync {
    fn forget(&mut self, key: &ObjectKey);

    fn copied(&self) -> Arc<dyn AnyTable>;
}

impl<V: Ord + Send + Sync + 'static> AnyTable for Table<V> {
    fn forget(&mut self, key: &ObjectKey) {
        self.set(key, Vec::new());
    }

    fn copied(&self) -> Arc<dyn AnyTable> {
        Arc::new(self.clone())
    }
}

#[derive(Clone)]
pub(crate) struct NamedTable {
    name: Arc<str>,
    table: Arc<dyn AnyTable>,
}

impl NamedTable {
    pub(super) fn new<V: Ord + Send + Sync + 'static>(name: Arc<str>) -> Self {
        Self { name, table: Arc::new(Table::<V>::new()) }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// `None` if its values are of another type.
    pub(crate) fn of<V: Ord + 'static>(&self) -> Option<&Table<V>> {
        let table: &dyn Any = &*self.table;
        table.downcast_ref()
    }

    pub(super) fn of_mut<V: Ord + 'static>(&mut self) -> Option<&mut Table<V>> {
        let table: &mut dyn Any = self.own()?;
        table.downcast_mut()
    }

    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        if let Some(table) = self.own() {
            table.forget(key);
        }
    }

    fn own(&mut self) -> Option<&mut dyn AnyTable> {
        if Arc::get_mut(&mut self.table).is_none() {
            self.table = self.table.copied();
        }
        Arc::get_mut(&mut self.table)
    }
}

//! Persistent sorted maps and sets: a [`Tree`] of keys and values. A clone copies one pointer.

use std::cmp::Ordering;

use super::{Item, Sources, Tree};

pub(crate) trait Key: Clone {
    type Query: Ord + ?Sized + 'static;

    fn query(&self) -> &Self::Query;
}

pub(crate) struct SortedMap<K: Key, V: Clone>(Tree<Entry<K, V>>);

pub(crate) type SortedSet<K> = SortedMap<K, ()>;

#[derive(Clone)]
struct Entry<K, V> {
    key: K,
    value: V,
}

impl<K: Key, V: Clone> Item for Entry<K, V> {
    type Name = K;
    type Query<'q> = &'q K::Query;

    fn name(&self) -> &K {
        &self.key
    }

    fn order(name: &K, query: &K::Query) -> Ordering {
        name.query().cmp(query)
    }

    fn compare(one: &Self, other: &Self) -> Ordering {
        one.key.query().cmp(other.key.query())
    }

    fn sources(&self) -> Sources {
        Sources::ALL
    }
}

impl<K: Key, V: Clone> SortedMap<K, V> {
    pub(crate) fn new() -> Self {
        Self(Tree::default())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, key: &K::Query) -> Option<&V> {
        Some(self.entry(key)?.1)
    }

    /// `order` returns `Equal` for the key, and must order keys as the map does.
    pub(crate) fn get_by(&self, order: impl Fn(&K) -> Ordering) -> Option<&V> {
        let path = self.0.find_by(order);
        self.0.item(&path).map(|entry| &entry.value)
    }

    pub(crate) fn contains(&self, key: &K::Query) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn entry(&self, key: &K::Query) -> Option<(&K, &V)> {
        self.0.get(key).map(|entry| (&entry.key, &entry.value))
    }

    pub(crate) fn get_mut(&mut self, key: &K::Query) -> Option<&mut V> {
        let path = self.0.find(key);
        self.0.item_mut(&path, Sources::ALL).map(|entry| &mut entry.value)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        let path = self.0.find(key.query());
        match self.0.item_mut(&path, Sources::ALL) {
            Some(entry) => entry.value = value,
            None => self.0.insert_at(&path, Entry { key, value }),
        }
    }

    pub(crate) fn remove(&mut self, key: &K::Query) -> Option<V> {
        let path = self.0.find(key);
        self.0.remove_at(&path).map(|entry| entry.value)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|entry| &entry.key)
    }

    /// `None`: all.
    pub(crate) fn entries_after<'a>(
        &'a self,
        key: Option<&K::Query>,
    ) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V> {
        self.0.after(key, Sources::ALL).map(|entry| (&entry.key, &entry.value))
    }

    pub(crate) fn keys_after<'a>(&'a self, key: &K::Query) -> impl Iterator<Item = &'a K> + use<'a, K, V> {
        self.0.after(Some(key), Sources::ALL).map(|entry| &entry.key)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|entry| &entry.value)
    }

    #[cfg(test)]
    pub(crate) fn is_shared_with(&self, other: &Self) -> bool {
        self.0.is_shared_with(&other.0)
    }
}

crate::clone_of!([K: Key, V: Clone] SortedMap<K, V>);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::SortedMap;

    #[test]
    fn a_clone_keeps_what_it_had_and_keys_come_in_order_after_any_text() {
        let mut map: SortedMap<Arc<str>, usize> = SortedMap::new();
        (0..200).rev().for_each(|n| map.insert(format!("{n:03}").into(), n));
        let before = map.clone();
        map.insert("007".into(), 0);
        assert_eq!(map.get_mut("008").map(|value| std::mem::replace(value, 1)), Some(8));
        assert_eq!((map.remove("009"), map.remove("009"), map.len()), (Some(9), None, 199));
        assert!(before.values().copied().eq(0..200) && !before.is_shared_with(&map));
        let after: Vec<&str> = map.keys_after("006x").map(|key| &**key).take(3).collect();
        assert_eq!(after, ["007", "008", "010"]);
        assert_eq!((map.get("007"), map.get("008"), map.contains("009")), (Some(&0), Some(&1), false));
    }
}

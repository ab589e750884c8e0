//! Look-ups in indices of a snapshot, one or several at once. An intersection walks the smallest set and searches its
//! keys in the others: its size times O(log n).

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::ops::RangeBounds;
use std::sync::Arc;

use super::Snapshot;
use crate::index::{Index, Table, UnknownIndex};
use crate::meta::{Object, ObjectKey};
use crate::tree::SortedSet;

/// Index look-ups that are combined: [`Index::is`] is one, [`Self::and`] and [`Self::or`] join them.
///
/// ```
/// # use informer_core::face as actix_informer;
/// use actix_informer::informer::Index;
/// use actix_informer::object::Snapshot;
///
/// let by_word = Index::<String>::new("word", |object| object.split(' ').map(str::to_owned).collect::<Vec<_>>());
/// let by_length = Index::<String, usize>::new("length", |object| [object.len()]);
/// let snapshot = Snapshot::<String>::empty_with_indices([(&by_word).into(), (&by_length).into()]);
/// let short_and_red = by_length.is(&3).and(by_word.is("red"));
/// assert_eq!(short_and_red.get(&snapshot)?.count(), 0);
/// # Ok::<(), actix_informer::informer::UnknownIndex>(())
/// ```
pub struct Lookup<S>(Node<S>);

enum Node<S> {
    One(Find<S>),
    All(Vec<Self>),
    Any(Vec<Self>),
}

type Find<S> = Arc<
    dyn for<'a> Fn(&'a Snapshot<S>) -> Result<Option<&'a SortedSet<ObjectKey>>, UnknownIndex> + Send + Sync,
>;

impl<S: 'static, V: Ord + Send + Sync + 'static> Index<S, V> {
    /// The objects with this value, as a look-up that others can be joined to.
    pub fn is<Q: ?Sized + ToOwned<Owned = V>>(&self, value: &Q) -> Lookup<S> {
        let (index, value) = (self.clone(), value.to_owned());
        Lookup(Node::One(Arc::new(move |snapshot| Ok(index.table(snapshot)?.members(&value)))))
    }
}

impl<S> Lookup<S> {
    /// The objects of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(Node::All(match self.0 {
            Node::All(mut all) => {
                all.push(other.0);
                all
            }
            one => vec![one, other.0],
        }))
    }

    /// The objects of either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(Node::Any(match self.0 {
            Node::Any(mut any) => {
                any.push(other.0);
                any
            }
            one => vec![one, other.0],
        }))
    }

    /// The objects of a snapshot that it selects, in key order.
    ///
    /// # Errors
    /// [`UnknownIndex`] if the snapshot lacks one of the indices.
    pub fn get<'a>(
        &self,
        snapshot: &'a Snapshot<S>,
    ) -> Result<impl Iterator<Item = &'a Object<S>> + use<'a, S>, UnknownIndex> {
        Ok(self.keys(snapshot)?.filter_map(|key| snapshot.get(key)))
    }

    /// The keys of the objects that it selects, in order. No object is looked up.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn keys<'a>(
        &self,
        snapshot: &'a Snapshot<S>,
    ) -> Result<impl Iterator<Item = &'a ObjectKey> + use<'a, S>, UnknownIndex> {
        Ok(self.0.found(snapshot)?.into_keys())
    }
}

impl<S> Node<S> {
    fn found<'a>(&self, snapshot: &'a Snapshot<S>) -> Result<Found<'a>, UnknownIndex> {
        let all =
            |nodes: &[Self]| nodes.iter().map(|node| node.found(snapshot)).collect::<Result<Vec<_>, _>>();
        Ok(match self {
            Self::One(find) => Found::Set(find(snapshot)?),
            Self::All(nodes) => Found::All(all(nodes)?),
            Self::Any(nodes) => Found::Any(all(nodes)?),
        })
    }
}

enum Found<'a> {
    Set(Option<&'a SortedSet<ObjectKey>>),
    All(Vec<Self>),
    Any(Vec<Self>),
}

impl<'a> Found<'a> {
    /// The most keys that it may have.
    fn bound(&self) -> usize {
        match self {
            Self::Set(set) => set.map_or(0, SortedSet::len),
            Self::All(all) => all.iter().map(Self::bound).min().unwrap_or(0),
            Self::Any(any) => any.iter().map(Self::bound).sum(),
        }
    }

    fn contains(&self, key: &ObjectKey) -> bool {
        match self {
            Self::Set(set) => set.is_some_and(|set| set.contains(key)),
            Self::All(all) => all.iter().all(|one| one.contains(key)),
            Self::Any(any) => any.iter().any(|one| one.contains(key)),
        }
    }

    fn into_keys(self) -> Box<dyn Iterator<Item = &'a ObjectKey> + 'a> {
        match self {
            Self::Set(set) => Box::new(set.into_iter().flat_map(SortedSet::keys)),
            Self::Any(any) => {
                let keys: BTreeSet<_> = any.into_iter().flat_map(Self::into_keys).collect();
                Box::new(keys.into_iter())
            }
            Self::All(mut all) => {
                let smallest = (0..all.len()).min_by_key(|at| all[*at].bound());
                let Some(smallest) = smallest.map(|at| all.swap_remove(at)) else {
                    return Box::new(std::iter::empty());
                };
                Box::new(smallest.into_keys().filter(move |key| all.iter().all(|one| one.contains(key))))
            }
        }
    }
}

crate::clone_of!([S] Lookup<S>);

impl<S> Clone for Node<S> {
    fn clone(&self) -> Self {
        match self {
            Self::One(find) => Self::One(Arc::clone(find)),
            Self::All(all) => Self::All(all.clone()),
            Self::Any(any) => Self::Any(any.clone()),
        }
    }
}

crate::debug_as!([S] Lookup<S>, self);

impl<S, V: Ord + Send + Sync + 'static> Index<S, V> {
    /// The objects with this value, each once, in key order. O(log n) each; allocates nothing.
    ///
    /// # Errors
    /// [`UnknownIndex`] if the snapshot has no such index: its informer does not know this handle, or has not
    /// finished to build it.
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

    /// The values in a range and the keys of the objects that have them, in the order of the values. A key
    /// with several values in the range comes with each.
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

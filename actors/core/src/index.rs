//! Secondary indices: which objects have a given value, by a user's function.
//!
//! Answers "which keys have this value?"; a snapshot looks the objects up. User code runs under `catch_unwind`, and its
//! failure is returned. Invariants:
//! 1. An object is in the index under exactly the values of its newest state, each once; under none if the
//!    function failed for that state.
//! 2. An entry changes only when an object's values change; an entry without members is removed.
//! 3. Members are keys, so an update with equal values does not change the index.
//!
//! Read next: `indexer.rs`, which updates the indices.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::meta::{Object, ObjectKey};
use crate::tree::{Key, SortedMap, SortedSet};

/// The user's function: the values under which an object is found. Runs once per stored version of an object, on
/// the informer's thread, and so must not block.
pub type IndexFn<S> = Arc<dyn Fn(&Object<S>) -> Result<Vec<String>, IndexError> + Send + Sync>;

/// A named index. Cloning copies two pointers.
pub struct IndexSpec<S> {
    /// The name by which it is asked.
    pub name: Arc<str>,
    /// The function that gives an object's values.
    pub values: IndexFn<S>,
}

impl<S> IndexSpec<S> {
    /// An index by a function that cannot fail.
    ///
    /// ```
    /// use informer_core::index::IndexSpec;
    /// let by_body = IndexSpec::<String>::new("body", |object| vec![object.body().clone()]);
    /// assert_eq!(&*by_body.name, "body");
    /// ```
    pub fn new(
        name: impl Into<Arc<str>>,
        values: impl Fn(&Object<S>) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        Self::fallible(name, move |object| Ok(values(object)))
    }

    /// An index by a function that can fail. After a failure that object has no entry; nothing else changes.
    pub fn fallible(
        name: impl Into<Arc<str>>,
        values: impl Fn(&Object<S>) -> Result<Vec<String>, IndexError> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), values: Arc::new(values) }
    }

    /// The values of an object; a panic of the function is an error like any other.
    pub(crate) fn values_of(&self, object: &Object<S>) -> Result<Vec<String>, IndexError> {
        catch_unwind(AssertUnwindSafe(|| (self.values)(object)))
            .unwrap_or_else(|panic| Err(IndexError::new(format!("panicked: {}", panic_text(&*panic)))))
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

impl<S> Clone for IndexSpec<S> {
    fn clone(&self) -> Self {
        Self { name: Arc::clone(&self.name), values: Arc::clone(&self.values) }
    }
}

impl<S> fmt::Debug for IndexSpec<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexSpec").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why an index function gave no values for an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IndexError(Arc<str>);

impl IndexError {
    /// An error with the function's message.
    pub fn new(message: impl Into<Arc<str>>) -> Self {
        Self(message.into())
    }
}

/// There is no index of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no index is named {0:?}")]
pub struct UnknownIndex(pub String);

/// There is already an index of that name; it is not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an index named {0:?} exists")]
pub struct IndexExists(pub String);

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

/// The content of an index: members by value, and values by member. Cloning is O(1).
#[derive(Clone)]
pub(crate) struct Index {
    name: Arc<str>,
    members: SortedMap<Arc<str>, SortedSet<ObjectKey>>,
    values: SortedMap<ObjectKey, Arc<[Arc<str>]>>,
}

impl Index {
    pub(crate) fn new(name: Arc<str>) -> Self {
        Self { name, members: SortedMap::new(), values: SortedMap::new() }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The keys under a value, in order.
    pub(crate) fn members<'a>(&'a self, value: &str) -> impl Iterator<Item = &'a ObjectKey> + use<'a> {
        self.members.get(value).into_iter().flat_map(SortedSet::keys)
    }

    /// The values that have members, in order.
    pub(crate) fn distinct_values(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(|value| &**value)
    }

    /// Sets the values of a key; changes only the entries that the key joins or leaves.
    pub(crate) fn set(&mut self, key: &ObjectKey, mut values: Vec<String>) {
        values.sort_unstable();
        values.dedup();
        let before = self.values.get(key).cloned().unwrap_or_default();
        if before.iter().map(|value| &**value).eq(values.iter().map(String::as_str)) {
            return;
        }
        for value in before.iter() {
            if values.binary_search_by(|new| (**new).cmp(&**value)).is_err() {
                self.leave(value, key);
            }
        }
        let after: Arc<[Arc<str>]> = values.into_iter().map(|value| self.join(value, key)).collect();
        if after.is_empty() {
            self.values.remove(key);
        } else {
            self.values.insert(key.clone(), after);
        }
    }

    /// Removes a key from all entries.
    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        self.set(key, Vec::new());
    }

    /// Adds a member, unless it is one already, and gives the entry's own text, so that each value is stored once.
    fn join(&mut self, value: String, key: &ObjectKey) -> Arc<str> {
        if let Some((known, members)) = self.members.entry(&value) {
            let (known, is_member) = (Arc::clone(known), members.contains(key));
            if let Some(members) = self.members.get_mut(&value).filter(|_| !is_member) {
                members.insert(key.clone(), ());
            }
            return known;
        }
        let (value, mut members): (Arc<str>, _) = (value.into(), SortedSet::new());
        members.insert(key.clone(), ());
        self.members.insert(Arc::clone(&value), members);
        value
    }

    fn leave(&mut self, value: &str, key: &ObjectKey) {
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

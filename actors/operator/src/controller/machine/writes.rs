//! The writes that the caches have to show before their key may be reconciled again.
//!
//! 1. For each informer an object has one entry: its newest known version and, if its removal came last, the
//!    removed uid.
//! 2. A removal is seen when the cache has reached that version without that uid.
//! 3. At most [`MOST_WRITES`] objects are awaited; further ones are counted.

use std::collections::BTreeMap;

use informer_core::meta::{Meta, ObjectKey, ResourceVersion, Uid};

/// For how many objects a key waits after one reconcile.
pub const MOST_WRITES: usize = 1_024;

/// What a cache has to show of one object.
///
/// ```
/// # use informer_operator::controller::machine::Awaited;
/// # use informer_core::meta::{Meta, ObjectKey, ResourceVersion, SourceId};
/// let version = |number| ResourceVersion::from_number(number).expect("not zero");
/// let at = |number| Meta::new(ObjectKey::cluster("map"), version(number), SourceId::default());
/// let written = Awaited::written(&at(7));
/// assert!(!written.is_seen(Some(&at(6)), false));
/// assert!(written.is_seen(Some(&at(8)), false), "something newer");
/// assert!(written.is_seen(None, true), "its source has passed version 7, so it is gone again");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited {
    /// The version that the cache has to reach.
    pub version: ResourceVersion,
    /// The uid that must be gone.
    removed: Option<Option<Uid>>,
}

impl Awaited {
    /// The object was written, and had this version then.
    pub fn written(meta: &Meta) -> Self {
        Self { version: meta.version.clone(), removed: None }
    }

    /// The object was removed; this is its last known state.
    pub fn removed(meta: &Meta) -> Self {
        Self { version: meta.version.clone(), removed: Some(meta.uid.clone()) }
    }

    /// Whether the object was removed.
    pub const fn is_removal(&self) -> bool {
        self.removed.is_some()
    }

    /// Whether a cache that has this of the object has seen the write. `is_reached`: each source that may
    /// bring the object has reached [`Self::version`].
    pub fn is_seen(&self, cached: Option<&Meta>, is_reached: bool) -> bool {
        self.is_version_seen(cached, is_reached) && self.is_removal_seen(cached)
    }

    /// Whether the version is reached.
    pub fn is_version_seen(&self, cached: Option<&Meta>, is_reached: bool) -> bool {
        is_reached || cached.is_some_and(|cached| cached.version >= self.version)
    }

    /// Whether the removed uid is gone.
    pub fn is_removal_seen(&self, cached: Option<&Meta>) -> bool {
        let Some(removed) = &self.removed else { return true };
        cached.is_none_or(|cached| cached.uid != *removed)
    }

    fn merge(&mut self, later: Self) {
        self.removed = later.removed;
        if later.version > self.version {
            self.version = later.version;
        }
    }
}

/// What one reconcile has written, by informer number and key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writes {
    entries: BTreeMap<(usize, ObjectKey), Awaited>,
    left_out: u64,
}

impl Writes {
    /// Something was written or removed that this informer follows.
    pub fn handle_write(&mut self, informer: usize, key: &ObjectKey, awaited: Awaited) {
        let is_full = self.entries.len() >= MOST_WRITES;
        match self.entries.get_mut(&(informer, key.clone())) {
            Some(entry) => entry.merge(awaited),
            None if is_full => self.left_out += 1,
            None => drop(self.entries.insert((informer, key.clone()), awaited)),
        }
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The objects: the number of the informer, the key, and what its cache has to show.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &ObjectKey, &Awaited)> {
        self.entries.iter().map(|((informer, key), awaited)| (*informer, key, awaited))
    }

    /// As [`Self::iter`], the newest version first; equal versions are in the order of the informers and
    /// keys.
    pub fn newest_first(&self) -> impl Iterator<Item = (usize, &ObjectKey, &Awaited)> {
        let mut entries: Vec<_> = self.iter().collect();
        entries.sort_by(|(.., one), (.., other)| other.version.cmp(&one.version));
        entries.into_iter()
    }

    /// How many objects are not awaited, because there are too many.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Removes what is seen.
    pub fn drop_seen(&mut self, mut is_seen: impl FnMut(usize, &ObjectKey, &Awaited) -> bool) {
        self.entries.retain(|(informer, key), awaited| !is_seen(*informer, key, awaited));
    }
}

impl IntoIterator for Writes {
    type Item = ((usize, ObjectKey), Awaited);
    type IntoIter = std::collections::btree_map::IntoIter<(usize, ObjectKey), Awaited>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

// Answers to writes, until their events come. Only the exact version counts, for the key whose reconcile was
// answered. Any reported state of an object forgets its answer, since a version may come again after a server
// has gone back; so does a write that was not shown in time. Beyond the bound the oldest goes.

/// Informer number and key.
pub(super) type Place = (usize, ObjectKey);

#[derive(Clone)]
pub(super) struct Answered {
    by_place: BTreeMap<Place, Answer>,
    by_number: BTreeMap<u64, Place>,
    number: u64,
    most: usize,
}

#[derive(Clone)]
pub(super) struct Answer {
    number: u64,
    owner: ObjectKey,
    version: ResourceVersion,
}

impl Answered {
    pub(super) const fn new(most: usize) -> Self {
        Self { by_place: BTreeMap::new(), by_number: BTreeMap::new(), number: 0, most }
    }

    pub(super) fn keep(&mut self, place: Place, owner: &ObjectKey, version: &ResourceVersion) {
        self.number += 1;
        let answer = Answer { number: self.number, owner: owner.clone(), version: version.clone() };
        if let Some(former) = self.by_place.insert(place.clone(), answer) {
            self.by_number.remove(&former.number);
        }
        self.by_number.insert(self.number, place);
        if self.by_place.len() > self.most
            && let Some((_, oldest)) = self.by_number.pop_first()
        {
            self.by_place.remove(&oldest);
        }
    }

    /// True if it was this version, for `owner`.
    pub(super) fn take(&mut self, place: &Place, owner: &ObjectKey, version: &ResourceVersion) -> bool {
        let answer = self.forget(place);
        answer.is_some_and(|answer| answer.owner == *owner && answer.version == *version)
    }

    pub(super) fn forget(&mut self, place: &Place) -> Option<Answer> {
        let answer = self.by_place.remove(place)?;
        self.by_number.remove(&answer.number);
        Some(answer)
    }
}

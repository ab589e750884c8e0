//! What a source has yet to bring, since others have told it before.
//!
//! Answers "is this part of a source old news?" while one source takes over from another. Invariants:
//! 1. `told` has each key with the version at which another source told it last: as deleted, or as an object that passed
//!    to this source. When it is full, `beyond` is the newest version of what it does not have: each key counts as told
//!    then. So a source that stands still costs no more memory, and what it brings waits a little longer.
//! 2. `until` is the newest of these versions: when the source has reached it, it has brought all of them that it follows.
//! 3. `brought` has objects of told keys alone, each older than what was told, which the store did not have.
//!
//! Cloning copies pointers. Read next: `indexer/hand_over.rs`, which decides.

use crate::meta::{Object, ObjectKey, ResourceVersion};
use crate::tree::SortedMap;

/// How many keys that were told to one source are kept, at most: some megabytes. What is lent to it, and what it brings, is
/// kept besides: no more than there is of its objects.
pub(crate) const MOST_TOLD: usize = 10_000;

#[derive(Clone)]
pub(crate) struct Told {
    pub(crate) version: ResourceVersion,
    /// What this source holds of the key it has not brought: it passed to it, or was deleted by an older part.
    pub(crate) is_lent: bool,
}

pub(crate) struct Behind<S> {
    pub(crate) round: u64,
    pub(crate) until: ResourceVersion,
    pub(crate) told: SortedMap<ObjectKey, Told>,
    beyond: Option<ResourceVersion>,
    pub(crate) brought: SortedMap<ObjectKey, Object<S>>,
}

impl<S> Behind<S> {
    pub(crate) fn new(round: u64, until: ResourceVersion) -> Self {
        Self { round, until, told: SortedMap::new(), beyond: None, brought: SortedMap::new() }
    }

    /// Nothing is left of it.
    pub(crate) fn is_over(&self) -> bool {
        self.told.is_empty() && self.beyond.is_none()
    }

    /// The version at which another source told this key.
    pub(crate) fn version(&self, key: &ObjectKey) -> Option<&ResourceVersion> {
        self.told.get(key).map(|told| &told.version).or(self.beyond.as_ref())
    }

    /// Another source has told this key at this version.
    pub(crate) fn tell(&mut self, key: &ObjectKey, version: &ResourceVersion) {
        if self.until < *version {
            self.until = version.clone();
        }
        self.brought.remove(key);
        let version = self.version(key).filter(|told| *told > version).unwrap_or(version).clone();
        if let Some(told) = self.told.get_mut(key) {
            told.version = version;
        } else if self.told.len() < MOST_TOLD {
            self.told.insert(key.clone(), Told { version, is_lent: false });
        } else {
            self.beyond = Some(version);
        }
    }

    /// What the source holds of a told key it has not brought.
    pub(crate) fn lend(&mut self, key: &ObjectKey) {
        if let Some(version) = self.version(key).cloned() {
            self.told.insert(key.clone(), Told { version, is_lent: true });
        }
    }

    /// The source holds what it has brought itself, older than what was told.
    pub(crate) fn own(&mut self, key: &ObjectKey) {
        self.brought.remove(key);
        if let Some(told) = self.told.get_mut(key) {
            told.is_lent = false;
        }
    }

    /// The source has brought an older object of a told key, which the store does not have.
    pub(crate) fn bring(&mut self, object: Object<S>) {
        let key = object.key();
        if let Some(version) = self.version(key).cloned() {
            self.told.insert(key.clone(), Told { version, is_lent: false });
            self.brought.insert(key.clone(), object);
        }
    }

    /// The source has brought what was told of this key.
    pub(crate) fn confirm(&mut self, key: &ObjectKey) {
        self.told.remove(key);
        self.brought.remove(key);
    }
}

crate::clone_of!([S] Behind<S> { round, until, told, beyond, brought });

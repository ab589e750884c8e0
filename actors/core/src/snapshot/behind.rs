//! What a source has yet to bring, because others have told it before (`indexer/hand_over.rs`). Invariants:
//! 1. `told` has the version at which another source told each key last. When it is full, `beyond` is the newest
//!    version that it lacks, and each key counts as told then: what the source brings waits a little longer.
//! 2. `until` is the newest of these versions.
//! 3. `brought` has objects of told keys, older than told, which were not in the store.

use crate::meta::{Object, ObjectKey, ResourceVersion};
use crate::tree::SortedMap;

/// The most keys that are kept for one source: some megabytes, besides what is lent and brought.
pub(crate) const MOST_TOLD: usize = 10_000;

#[derive(Clone)]
pub(crate) struct Told {
    pub(crate) version: ResourceVersion,
    /// The source holds a state of the key that it has not brought.
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

    pub(crate) fn is_over(&self) -> bool {
        self.told.is_empty() && self.beyond.is_none()
    }

    pub(crate) fn version(&self, key: &ObjectKey) -> Option<&ResourceVersion> {
        self.told.get(key).map(|told| &told.version).or(self.beyond.as_ref())
    }

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

    pub(crate) fn lend(&mut self, key: &ObjectKey) {
        if let Some(version) = self.version(key).cloned() {
            self.told.insert(key.clone(), Told { version, is_lent: true });
        }
    }

    pub(crate) fn own(&mut self, key: &ObjectKey) {
        self.brought.remove(key);
        if let Some(told) = self.told.get_mut(key) {
            told.is_lent = false;
        }
    }

    /// An older object of a told key, which the store does not have.
    pub(crate) fn bring(&mut self, object: Object<S>) {
        let key = object.key();
        if let Some(version) = self.version(key).cloned() {
            self.told.insert(key.clone(), Told { version, is_lent: false });
            self.brought.insert(key.clone(), object);
        }
    }

    pub(crate) fn confirm(&mut self, key: &ObjectKey) {
        self.told.remove(key);
        self.brought.remove(key);
    }
}

crate::clone_of!([S] Behind<S> { round, until, told, beyond, brought });

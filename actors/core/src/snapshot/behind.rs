//! What a source has yet to bring, since others have told it before.
//!
//! Answers "is this part of a source old news?" while one source takes over from another. Invariants:
//! 1. `told` has each key with the version at which another source told it last: as deleted, or as an object that passed
//!    to this source.
//! 2. `until` is the newest of these versions: when the source has reached it, it has brought all of them that it follows.
//! 3. `brought` has objects of told keys alone, each older than what was told, which the store does not have.
//!
//! Cloning copies pointers. Read next: `indexer/hand_over.rs`, which decides.

use crate::meta::{Object, ObjectKey, ResourceVersion};
use crate::tree::SortedMap;

pub(crate) struct Behind<S> {
    pub(crate) round: u64,
    pub(crate) until: ResourceVersion,
    pub(crate) told: SortedMap<ObjectKey, ResourceVersion>,
    pub(crate) brought: SortedMap<ObjectKey, Object<S>>,
}

impl<S> Behind<S> {
    pub(crate) fn new(round: u64, until: ResourceVersion) -> Self {
        Self { round, until, told: SortedMap::new(), brought: SortedMap::new() }
    }

    /// Another source has told this key at this version.
    pub(crate) fn tell(&mut self, key: ObjectKey, version: &ResourceVersion) {
        if self.until < *version {
            self.until = version.clone();
        }
        self.brought.remove(&key);
        if self.told.get(&key).is_none_or(|told| told < version) {
            self.told.insert(key, version.clone());
        }
    }

    /// The source has brought what was told of this key.
    pub(crate) fn confirm(&mut self, key: &ObjectKey) {
        self.told.remove(key);
        self.brought.remove(key);
    }
}

impl<S> Clone for Behind<S> {
    fn clone(&self) -> Self {
        let (told, brought) = (self.told.clone(), self.brought.clone());
        Self { round: self.round, until: self.until.clone(), told, brought }
    }
}

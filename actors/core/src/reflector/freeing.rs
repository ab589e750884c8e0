//! The stages of a list, and how one that is not needed is freed: each is in an `OffArbiter`, so that its drop costs
//! the same for any number of objects.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, btree_map, btree_set};
use std::sync::Arc;

use crate::chunks::Chunks;
use crate::delta::{Undecodable, WatchPart};
use crate::meta::{Object, ObjectKey, ResourceVersion};
use crate::off_arbiter::{Freeing, Release};

pub(super) struct Rest<S> {
    pub(super) objects: btree_set::IntoIter<ByKey<S>>,
    pub(super) undecodable: btree_map::IntoValues<ObjectKey, Undecodable>,
}

/// The net result of a watch-list's initial events so far.
pub(super) struct Content<S> {
    pub(super) objects: BTreeSet<ByKey<S>>,
    pub(super) undecodable: BTreeMap<ObjectKey, Undecodable>,
}

pub(super) struct ByKey<S>(pub(super) Object<S>);

impl<S> Content<S> {
    /// Returns the version of an end bookmark.
    pub(super) fn absorb(&mut self, part: WatchPart<S>) -> Option<ResourceVersion> {
        match part {
            WatchPart::Applied(object) | WatchPart::Fetched(object) => {
                self.undecodable.remove(object.key());
                self.objects.replace(ByKey(object));
            }
            WatchPart::Undecodable(undecodable) => {
                self.objects.remove(&undecodable.key);
                self.undecodable.insert(undecodable.key.clone(), undecodable);
            }
            WatchPart::Deleted(object) => self.remove(object.key()),
            WatchPart::DeletedUndecodable(undecodable) => self.remove(&undecodable.key),
            // It is about what was stored before.
            WatchPart::LateUndecodable(_) => {}
            WatchPart::Bookmark { version, initial_events_end } => {
                return initial_events_end.then_some(version);
            }
        }
        None
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len() + self.undecodable.len()
    }

    fn remove(&mut self, key: &ObjectKey) {
        self.objects.remove(key);
        self.undecodable.remove(key);
    }
}

pub(super) struct ListFreeing<S> {
    pub(super) objects: Freeing<Chunks<Object<S>>>,
    pub(super) undecodable: Freeing<Chunks<Undecodable>>,
    pub(super) content: Freeing<Content<S>>,
    pub(super) rest: Freeing<Rest<S>>,
}

impl<S> ListFreeing<S> {
    pub(super) const fn in_place() -> Self {
        Self {
            objects: Freeing::in_place(),
            undecodable: Freeing::in_place(),
            content: Freeing::in_place(),
            rest: Freeing::in_place(),
        }
    }
}

impl<S: Send + Sync + 'static> ListFreeing<S> {
    pub(super) fn by(release: &Arc<dyn Release>) -> Self {
        let by = || Arc::clone(release);
        Self {
            objects: Freeing::by_chunks(by()),
            undecodable: Freeing::by_chunks(by()),
            content: Freeing::whole(by()),
            rest: Freeing::whole(by()),
        }
    }
}

impl<S> Borrow<ObjectKey> for ByKey<S> {
    fn borrow(&self) -> &ObjectKey {
        self.0.key()
    }
}

impl<S> PartialEq for ByKey<S> {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl<S> Eq for ByKey<S> {}

impl<S> PartialOrd for ByKey<S> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<S> Ord for ByKey<S> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key().cmp(other.0.key())
    }
}

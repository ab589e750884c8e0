//! The waits for a newer snapshot, sorted by what wakes them.
//!
//! 1. To add or remove a wait costs O(log W). A publish costs O(log W) for each source and object that it
//!    changed and for each wait that it wakes. Only a list looks at every wait for an object.
//! 2. No call takes more than its bound; the next one takes the rest.

use std::collections::BTreeMap;
use std::ops::Bound;

use informer_core::meta::{Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::snapshot::Snapshot;

use crate::runtime::signal::WakeOnce;

#[derive(Debug, Default)]
pub(super) struct Waits {
    next: u64,
    /// With the number of the wait.
    versions: BTreeMap<SourceId, BTreeMap<(ResourceVersion, u64), WakeOnce>>,
    /// The waits for another version than the known one.
    changes: BTreeMap<ObjectKey, BTreeMap<Known, WakeOnce>>,
    #[cfg(test)]
    looks: std::cell::Cell<u64>,
}

/// The known version (`None`: absent), and the number of the wait.
type Known = (Option<ResourceVersion>, u64);

#[derive(Debug)]
pub(super) enum Place {
    Version(SourceId, (ResourceVersion, u64)),
    Change(ObjectKey, Known),
}

/// What a publish has changed, as far as not yet looked at.
#[derive(Debug)]
pub(crate) struct News<S> {
    pub(super) snapshot: Snapshot<S>,
    pub(super) sources: Vec<SourceId>,
    pub(super) objects: NewObjects,
}

#[derive(Debug)]
pub(crate) enum NewObjects {
    These(Vec<ObjectKey>),
    /// After a list: any behind this key, or all.
    Any(Option<ObjectKey>),
}

impl Waits {
    /// Ends when the source has reached the version, or is gone.
    pub(super) fn for_version(
        &mut self,
        source: &SourceId,
        version: &ResourceVersion,
        waker: WakeOnce,
    ) -> Place {
        let at = (version.clone(), self.number());
        self.versions.entry(source.clone()).or_default().insert(at.clone(), waker);
        Place::Version(source.clone(), at)
    }

    pub(super) fn for_change(
        &mut self,
        key: &ObjectKey,
        known: Option<ResourceVersion>,
        waker: WakeOnce,
    ) -> Place {
        let known = (known, self.number());
        self.changes.entry(key.clone()).or_default().insert(known.clone(), waker);
        Place::Change(key.clone(), known)
    }

    pub(super) fn are_there(&self) -> (bool, bool) {
        (!self.versions.is_empty(), !self.changes.is_empty())
    }

    pub(super) fn remove(&mut self, place: &Place) {
        match place {
            Place::Version(source, at) => {
                let Some(waits) = self.versions.get_mut(source) else { return };
                waits.remove(at);
                if waits.is_empty() {
                    self.versions.remove(source);
                }
            }
            Place::Change(key, known) => {
                let Some(waits) = self.changes.get_mut(key) else { return };
                waits.remove(known);
                if waits.is_empty() {
                    self.changes.remove(key);
                }
            }
        }
    }

    /// Leaves the rest of the news.
    pub(super) fn take<S>(&mut self, news: &mut News<S>, most: usize) -> Vec<WakeOnce> {
        let mut woken = Vec::new();
        while let Some(source) = news.sources.last() {
            if !self.take_reached(source, news.snapshot.version(source), most, &mut woken) {
                return woken;
            }
            news.sources.pop();
        }
        let version = |key: &ObjectKey| news.snapshot.get(key).map(Object::version);
        match &mut news.objects {
            NewObjects::These(keys) => {
                while let Some(key) = keys.last() {
                    if !self.take_changed(key, version(key), most, &mut woken) {
                        return woken;
                    }
                    keys.pop();
                }
            }
            NewObjects::Any(passed) => {
                let mut looked_at = 0;
                loop {
                    let behind = passed.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
                    let Some(key) = self.changes.range((behind, Bound::Unbounded)).next() else {
                        news.objects = NewObjects::These(Vec::new());
                        return woken;
                    };
                    let key = key.0.clone();
                    looked_at += 1;
                    if looked_at > most || !self.take_changed(&key, version(&key), most, &mut woken) {
                        return woken;
                    }
                    *passed = Some(key);
                }
            }
        }
        woken
    }

    /// All waits, if the source has no version. False if there may be more.
    fn take_reached(
        &mut self,
        source: &SourceId,
        reached: Option<&ResourceVersion>,
        most: usize,
        woken: &mut Vec<WakeOnce>,
    ) -> bool {
        let Some(waits) = self.versions.get_mut(source) else { return true };
        while let Some(first) = waits.first_entry() {
            if reached.is_some_and(|reached| first.key().0 > *reached) {
                return true;
            }
            if woken.len() >= most {
                return false;
            }
            woken.push(first.remove());
        }
        self.versions.remove(source);
        true
    }

    /// False if there may be more. Waits that know this version are neighbours, and are not looked at.
    fn take_changed(
        &mut self,
        key: &ObjectKey,
        version: Option<&ResourceVersion>,
        most: usize,
        woken: &mut Vec<WakeOnce>,
    ) -> bool {
        let Some(waits) = self.changes.get_mut(key) else { return true };
        #[cfg(test)]
        let looks = &self.looks;
        let ends = |known: &&Known| {
            #[cfg(test)]
            looks.set(looks.get() + 1);
            known.0.as_ref() != version
        };
        let next = |waits: &BTreeMap<Known, WakeOnce>| {
            let at_the_ends = [waits.first_key_value(), waits.last_key_value()];
            at_the_ends.into_iter().flatten().map(|(known, _)| known).find(ends).cloned()
        };
        while let Some(known) = next(waits) {
            if woken.len() >= most {
                return false;
            }
            woken.extend(waits.remove(&known));
        }
        if waits.is_empty() {
            self.changes.remove(key);
        }
        true
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    #[cfg(test)]
    pub(super) fn looks(&self) -> u64 {
        self.looks.get()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let versions = self.versions.values().map(BTreeMap::len).sum::<usize>();
        versions + self.changes.values().map(BTreeMap::len).sum::<usize>()
    }
}

impl<S> News<S> {
    pub(crate) fn is_over(&self) -> bool {
        let has_keys = match &self.objects {
            NewObjects::These(keys) => !keys.is_empty(),
            NewObjects::Any(_) => true,
        };
        self.sources.is_empty() && !has_keys
    }
}

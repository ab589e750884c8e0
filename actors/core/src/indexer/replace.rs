//! How a list of one source, or its removal, changes the store in slices. The walks, in order:
//! - `Outdate`, after a rewind: outdates the other sources of the hand-over.
//! - `Store`: stores the listed objects, undecodable ones first.
//! - `Release`, not on a first list: releases objects that the source did not list.
//! - `DropUndecodable`: drops undecodable entries that are not in the list.
//! - `Settle`, alone: settles what others have told to the source.
//!
//! Invariants:
//! 1. Nothing is published before the last walk ends.
//! 2. An unchanged object keeps its pointer, except in a rewind: an equal version may then be another state.
//! 3. A stored object stays if it was fetched and is newer than the list, or if another holder has sent a newer
//!    state.
//!
//! `Release` finds listed objects by address. `objects` and `base` keep every listed object to the end, so no address
//! is used again.

use super::replacing::{Kind, Listed, Replacing, Walk};
use super::{Incident, Store, Waiting};
use crate::delta::{Cause, Replacement, Undecodable};
use crate::meta::{Object, ObjectKey, ResourceVersion, SourceId};
use crate::snapshot::Put;
use crate::tree::Sources;

impl<S> Store<S> {
    /// True when a Replace is ready.
    pub(super) fn advance_replace(&mut self, budget: usize) -> bool {
        let next = self.replacing.take().or_else(|| {
            let waiting = self.waiting.pop_front()?;
            if let Waiting::List(source, replacement) = &waiting {
                self.report_older_replace(source, replacement);
                self.begin_told(source, replacement.cause);
            }
            let base = self.published.with(self.working.clone());
            let mut replacing = Replacing::new(base, waiting);
            if replacing.version().is_some() && self.working.end_outdated(&replacing.source) {
                // Another source noticed the rewind before: others may have brought what is newer than this list.
                (replacing.walk, replacing.was_outdated) = (Walk::Store, Some(replacing.source.clone()));
            }
            if replacing.is_rewind() {
                self.working.objects_mut().count_rewind();
            }
            Some(replacing)
        });
        let Some(mut replacing) = next else {
            return false;
        };
        let mut left = budget;
        while left > 0 {
            let is_over = match &replacing.walk {
                Walk::Outdate(..) => self.outdate_others(&mut replacing, &mut left),
                Walk::Store => self.store_listed(&mut replacing, &mut left),
                Walk::Release(_) => self.release_missing(&mut replacing, &mut left),
                Walk::DropUndecodable(_) => self.drop_undecodable(&mut replacing, &mut left),
                Walk::Settle => self.settle_told(&replacing.source, &mut left),
            };
            if is_over {
                self.end_replace(replacing);
                return true;
            }
        }
        self.replacing = Some(replacing);
        false
    }

    fn end_replace(&mut self, replacing: Replacing<S>) {
        self.working.set_replaces(replacing.round);
        self.draft.list(replacing.source.clone(), replacing.cause);
        match replacing.kind {
            Kind::List(version) => {
                self.working.list_behind(&replacing.source, &version);
                self.note_first(&replacing.source);
                self.working.set_version(&replacing.source, &version);
            }
            Kind::Removal(_) => self.working.forget_source(&replacing.source),
            Kind::Settlement => {}
        }
    }

    fn report_older_replace(&mut self, source: &SourceId, replacement: &Replacement<S>) {
        let published = self.working.newest(source).cloned();
        let older = published.filter(|published| replacement.version < *published);
        if let (Some(published), true) = (older, replacement.cause != Cause::Rewind) {
            let (of, listed) = (source.clone(), replacement.version.clone());
            self.draft.report(source, Incident::OlderReplace { source: of, published, listed });
        }
    }

    fn store_listed(&mut self, replacing: &mut Replacing<S>, left: &mut usize) -> bool {
        while *left > 0 {
            if let Some(object) = replacing.undecodable.get(replacing.undecodable_stored).cloned() {
                replacing.undecodable_stored += 1;
                self.draft.report(&replacing.source, Incident::Undecodable(object.clone()));
                self.store_unread(replacing, object);
            } else if let Some(object) = replacing.objects.get(replacing.stored).cloned() {
                replacing.stored += 1;
                self.store_one(replacing, object);
            } else {
                let is_first = matches!(replacing.listed, Listed::All);
                replacing.walk = if is_first { Walk::DropUndecodable(None) } else { Walk::Release(None) };
                return false;
            }
            *left -= 1;
        }
        false
    }

    /// A newer state from another source stays.
    fn store_unread(&mut self, replacing: &mut Replacing<S>, object: Undecodable) {
        let source = &replacing.source;
        self.hold_unread(source, &object.key, replacing.version().unwrap_or(&object.version));
        let is_newer = |newest: &ResourceVersion, by: &SourceId| {
            *newest > object.version
                && (!replacing.is_rewind() || self.is_present(source, &object.key, (by, newest)))
        };
        let stored = self.working.get(&object.key).filter(|stored| stored.source() != source);
        if let Some(newer) = stored.filter(|stored| is_newer(stored.version(), stored.source())) {
            let newer = newer.clone();
            return replacing.list(&newer);
        }
        let entry = self.working.undecodable().get(&object.key);
        let known =
            entry.filter(|one| one.is_held_by_others(source) && is_newer(&one.object.version, one.by()));
        let newest = known.map_or(object, |known| known.object.clone());
        self.working.insert_undecodable(source, replacing.round, newest);
    }

    fn store_one(&mut self, replacing: &mut Replacing<S>, object: Object<S>) {
        if self.working.undecodable().contains(object.key()) {
            let stored = self.working.get(object.key());
            if stored.is_some_and(|stored| !self.is_replaced(replacing, stored)) {
                self.end_unless_stored(&replacing.source, &object);
            } else {
                self.end_undecodable(object.key(), object.version());
            }
        }
        let listed_at = replacing.version();
        let Some(object) = self.unless_old_news(&replacing.source, object, listed_at) else { return };
        let Some(held) = self.working.objects().held(object.key()) else {
            return self.store_new(replacing, object);
        };
        let stored = held.object().clone();
        if replacing.is_listed(held) {
            return self.store_duplicate(replacing, &stored, object);
        }
        let is_known = !self.is_replaced(replacing, &stored)
            && (stored.is_same_as(&object) || replacing.is_behind(held, &object));
        if is_known {
            replacing.list(&stored);
            if !held.is_held_by(&replacing.source) {
                self.working.objects_mut().put(&replacing.source, &stored, |_| false);
            }
            return;
        }
        let is_older = stored.is_same_life_as(&object) && object.version() < stored.version();
        if is_older && !replacing.is_rewind() {
            let (key, stored, listed) =
                (object.key().clone(), stored.version().clone(), object.version().clone());
            self.draft.report(&replacing.source, Incident::OlderListed { key, stored, listed });
        }
        self.store_new(replacing, object);
    }

    /// Whether this list replaces the stored state whatever its version is.
    fn is_replaced(&self, replacing: &Replacing<S>, stored: &Object<S>) -> bool {
        let key = stored.key();
        let is_former = replacing.is_rewind() || self.is_former(key, replacing.was_outdated.as_ref());
        is_former && !self.is_present(&replacing.source, key, (stored.source(), stored.version()))
    }

    fn store_new(&mut self, replacing: &mut Replacing<S>, object: Object<S>) {
        let source = &replacing.source;
        if object.source() != source {
            let (key, of) = (object.key().clone(), source.clone());
            self.draft.report(source, Incident::ForeignSource { key, source: of });
        }
        self.index(&object);
        let is_former = self.is_former(object.key(), replacing.was_outdated.as_ref());
        let objects = self.working.objects_mut();
        let put = if is_former || replacing.is_rewind() {
            objects.put_rewound(source, &object)
        } else {
            objects.put(source, &object, |_| true)
        };
        if let Put::Replaced(old) = put {
            self.draft.discard(old.clone());
        }
        replacing.list(&object);
    }

    /// The higher version stays, with the pointer of the frame before if that had this state.
    fn store_duplicate(&mut self, replacing: &mut Replacing<S>, stored: &Object<S>, object: Object<S>) {
        self.draft.report(&replacing.source, Incident::Duplicate(object.key().clone()));
        if object.version() <= stored.version() {
            return;
        }
        if let Listed::Addresses(addresses) = &mut replacing.listed {
            addresses.remove(&stored.address());
        }
        let known = replacing.base.get(object.key());
        let known = known.filter(|known| known.is_same_as(&object) && !replacing.is_rewind()).cloned();
        self.store_new(replacing, known.unwrap_or(object));
    }

    /// Keeps objects that are undecodable in this list.
    fn release_missing(&mut self, replacing: &mut Replacing<S>, left: &mut usize) -> bool {
        let Walk::Release(passed) = &mut replacing.walk else {
            return false;
        };
        let passed = passed.take();
        let mut objects = self.working.objects().after(passed.as_ref(), Sources::of(&replacing.source));
        let mut missing = Vec::new();
        let mut last = None;
        for held in objects.by_ref().take(*left) {
            let key = held.object().key();
            if replacing.lacks(held) {
                let entry = self.working.undecodable().get(key);
                if entry.is_none_or(|undecodable| undecodable.round != replacing.round) {
                    missing.push(key.clone());
                }
            }
            *left -= 1;
            last = Some(key);
        }
        let is_over = objects.next().is_none();
        let last = last.cloned().or(passed);
        drop(objects);
        for key in &missing {
            self.let_go(replacing, key);
        }
        replacing.walk = if is_over { Walk::DropUndecodable(None) } else { Walk::Release(last) };
        false
    }

    fn let_go(&mut self, replacing: &Replacing<S>, key: &ObjectKey) {
        let source = &replacing.source;
        let stored = self.working.get(key);
        let is_replaced = stored.is_some_and(|stored| self.is_replaced(replacing, stored));
        match &replacing.kind {
            Kind::Removal(successors) => self.pass_on(key, source, successors),
            Kind::List(version) if !is_replaced && self.lends(source, key, version) => return,
            Kind::List(version) => self.tell_deleted(source, key, version),
            Kind::Settlement => {}
        }
        self.release(key, source);
    }

    fn let_go_undecodable(&mut self, replacing: &Replacing<S>, key: &ObjectKey) {
        let source = &replacing.source;
        match &replacing.kind {
            Kind::Removal(successors) => self.pass_on(key, source, successors),
            Kind::List(version) if self.lends(source, key, version) => return,
            Kind::List(_) | Kind::Settlement => {}
        }
        self.working.release_undecodable(key, source);
    }

    fn drop_undecodable(&mut self, replacing: &mut Replacing<S>, left: &mut usize) -> bool {
        let Walk::DropUndecodable(passed) = &replacing.walk else { return false };
        let keys: Vec<ObjectKey> =
            self.working.undecodable_by(&replacing.source, passed.as_ref()).take(*left).cloned().collect();
        let is_over = keys.len() < *left;
        *left -= keys.len();
        for key in &keys {
            let is_missing = self.working.undecodable().get(key).is_some_and(|entry| {
                let held =
                    || self.working.objects().held(key).filter(|held| held.is_held_by(&replacing.source));
                let is_stored =
                    || held().is_some_and(|held| *held.object().version() == entry.object.version);
                entry.round != replacing.round && !(entry.is_late && is_stored())
            });
            if is_missing {
                self.let_go_undecodable(replacing, key);
            }
        }
        replacing.walk = Walk::DropUndecodable(keys.into_iter().next_back());
        is_over
    }
}

//! How one part of a watch changes the store. Invariants:
//! 1. Every part moves its source's version forward, applied or not. A fetched object does not: it may be
//!    ahead of the watch.
//! 2. A new life of a key ends the old one: Deleted (not exact), then Added.
//! 3. An undecodable entry ends with a version that decodes, or a deletion by each source that holds it, if not
//!    older. A fetched object is applied only while its key has an entry that is not newer: otherwise the watch has
//!    brought a newer state. An entry about the stored body stays while that is stored.
//! 4. Of parts by key, each slice is one publish. After the last part of the batch a source's version moves to what
//!    the queue reports as reached. The newest version applied is kept too: no request may go below it.

use std::vec;

use super::hand_over::Deletes;
use super::{Incident, Store};
use crate::delta::{Cause, Change, Undecodable, WatchPart};
use crate::meta::{Object, ObjectKey, ResourceVersion, SourceId};
use crate::snapshot::Put;

pub(super) struct PartsByKey<S> {
    parts: vec::IntoIter<(SourceId, WatchPart<S>)>,
    reached: Vec<(SourceId, ResourceVersion)>,
}

impl<S> PartsByKey<S> {
    pub(super) fn new(
        parts: Vec<(SourceId, WatchPart<S>)>,
        reached: Vec<(SourceId, ResourceVersion)>,
    ) -> Self {
        Self { parts: parts.into_iter(), reached }
    }
}

impl<S> Store<S> {
    pub(super) fn advance_keyed(&mut self, budget: usize) {
        let Some(mut keyed) = self.keyed.take() else { return };
        for (source, part) in keyed.parts.by_ref().take(budget) {
            if let Some(version) = part.reached() {
                self.working.run_ahead(&source, version);
            }
            self.apply_part(&source, part);
            self.note_behind(source);
        }
        if keyed.parts.len() > 0 {
            self.keyed = Some(keyed);
            return;
        }
        for (source, version) in keyed.reached {
            self.note_first(&source);
            self.working.reach(&source, &version);
            self.note_behind(source);
        }
        self.settle_noted();
    }

    pub(super) fn apply_part(&mut self, source: &SourceId, part: WatchPart<S>) {
        match part {
            WatchPart::Applied(object) => self.apply_object(source, object),
            WatchPart::Deleted(last) => self.apply_deletion(source, last),
            WatchPart::DeletedUndecodable(undecodable) => self.apply_unread_deletion(source, &undecodable),
            WatchPart::Undecodable(undecodable) => self.apply_undecodable(source, undecodable),
            WatchPart::LateUndecodable(undecodable) => self.apply_late(source, undecodable),
            WatchPart::Fetched(object) => self.apply_fetched(source, object),
            WatchPart::Bookmark { .. } => {}
        }
    }

    fn apply_object(&mut self, source: &SourceId, object: Object<S>) {
        let Some(object) = self.unless_old_news(source, object, None) else { return };
        let is_outdated = self.working.is_outdated(source);
        let is_former = self.is_former(object.key(), None);
        // A state of a former history replaces none of the present one.
        let is_newer = |stored: &Object<S>| {
            object.version() >= stored.version() && !object.is_same_as(stored) && (is_former || !is_outdated)
        };
        let is_former = is_former && !is_outdated;
        let objects = self.working.objects_mut();
        let put = if is_former {
            objects.put_rewound(source, &object)
        } else {
            objects.put(source, &object, is_newer)
        };
        let stored = match put {
            Put::Kept(stored) => return self.refuse(source, &stored, object),
            Put::Replaced(stored) => Some(stored),
            Put::New => None,
        };
        if object.source() != source {
            let (key, of) = (object.key().clone(), source.clone());
            self.draft.report(source, Incident::ForeignSource { key, source: of });
        }
        self.end_undecodable(object.key(), object.version());
        self.index(&object);
        let cause = Cause::Watch;
        let Some(old) = stored else {
            return self.draft.change(Change::Added { object, cause });
        };
        self.draft.discard(old.clone());
        if old.is_same_life_as(&object) {
            // Its version may be equal to that of the state before, or older.
            let cause = if is_former { Cause::Rewind } else { cause };
            return self.draft.change(Change::Updated { old, object, cause });
        }
        self.draft.change(Change::Deleted { last: old.clone(), old, exact: false, cause });
        self.draft.change(Change::Added { object, cause });
    }

    /// An incident only if this source brought the stored state: overlapping sources bring everything twice.
    fn refuse(&mut self, source: &SourceId, stored: &Object<S>, object: Object<S>) {
        let is_own = stored.source() == source;
        if object.version() >= stored.version() {
            self.end_unless_stored(source, &object);
            if is_own {
                self.draft.report(source, Incident::Unchanged(object.key().clone()));
            }
        } else if is_own {
            self.report_stale(source, object.key(), [stored.version(), object.version()]);
        }
        self.draft.discard(object);
    }

    fn apply_deletion(&mut self, source: &SourceId, last: Object<S>) {
        let Some(old) = self.take_for_deletion(source, last.key(), last.version()) else {
            return self.draft.discard(last);
        };
        let change = if old.is_same_life_as(&last) && old.version() <= last.version() {
            Change::Deleted { old, last, exact: true, cause: Cause::Watch }
        } else {
            self.draft.discard(last);
            Change::Deleted { last: old.clone(), old, exact: false, cause: Cause::Watch }
        };
        self.draft.change(change);
    }

    fn apply_unread_deletion(&mut self, source: &SourceId, undecodable: &Undecodable) {
        self.draft.report(source, Incident::Undecodable(undecodable.clone()));
        if let Some(old) = self.take_for_deletion(source, &undecodable.key, &undecodable.version) {
            self.draft.change(Change::Deleted { last: old.clone(), old, exact: false, cause: Cause::Watch });
        }
    }

    /// Returns the object if no other source holds it.
    fn take_for_deletion(
        &mut self,
        source: &SourceId,
        key: &ObjectKey,
        version: &ResourceVersion,
    ) -> Option<Object<S>> {
        let entry = self.working.undecodable().get(key);
        if entry.is_some_and(|entry| entry.ends_with(source, version)) {
            self.working.release_undecodable(key, source);
        }
        let deletes = self.weigh_deletion(source, key, version);
        if matches!(deletes, Deletes::Old) {
            return None;
        }
        let held = self.working.objects().held(key).filter(|held| held.is_held_by(source));
        let Some(stored) = held.map(|held| held.object().clone()) else {
            if matches!(deletes, Deletes::News) {
                self.draft.report(source, Incident::DeletedUnknown(key.clone()));
            }
            return None;
        };
        if version < stored.version() && stored.source() == source {
            self.report_stale(source, key, [stored.version(), version]);
            return None;
        }
        self.tell_deleted(source, key, version);
        self.release(key, source)
    }

    fn apply_undecodable(&mut self, source: &SourceId, undecodable: Undecodable) {
        let stored = self.working.get(&undecodable.key);
        let known = self.working.undecodable().get(&undecodable.key);
        let is_own = stored.is_some_and(|stored| stored.source() == source)
            || known.is_some_and(|known| known.is_held_by(source));
        let newest = stored.map(Object::version).max(known.map(|known| &known.object.version)).cloned();
        self.hold_unread(source, &undecodable.key, &undecodable.version);
        if let Some(newer) = newest.filter(|newest| undecodable.version <= *newest) {
            if is_own {
                self.report_stale(source, &undecodable.key, [&newer, &undecodable.version]);
            }
            return;
        }
        self.draft.report(source, Incident::Undecodable(undecodable.clone()));
        let round = self.working.replaces();
        self.working.insert_undecodable(source, round, undecodable);
    }

    /// All holders of the object hold the entry, too: it stays as long as the body.
    fn apply_late(&mut self, source: &SourceId, undecodable: Undecodable) {
        let stored = self.working.objects().held(&undecodable.key);
        let Some(held) = stored.filter(|held| *held.object().version() == undecodable.version) else {
            return;
        };
        let known = self.working.undecodable().get(&undecodable.key);
        if known.is_some_and(|known| known.object.version >= undecodable.version) {
            return;
        }
        let (by, holders) = (held.object().source().clone(), held.holders().to_vec());
        self.draft.report(source, Incident::Undecodable(undecodable.clone()));
        self.working.insert_late(&by, &holders, undecodable);
    }

    fn apply_fetched(&mut self, source: &SourceId, object: Object<S>) {
        let wanted = self
            .working
            .undecodable()
            .get(object.key())
            .is_some_and(|entry| entry.is_held_by(source) && entry.object.version <= *object.version());
        if wanted { self.apply_object(source, object) } else { self.draft.discard(object) }
    }

    pub(super) fn end_undecodable(&mut self, key: &ObjectKey, version: &ResourceVersion) {
        if self.working.undecodable().get(key).is_some_and(|entry| entry.object.version <= *version) {
            self.working.remove_undecodable(key);
        }
    }

    /// As [`Self::end_undecodable`]; if the object is the stored one, its source holds the entry, too.
    pub(super) fn end_unless_stored(&mut self, source: &SourceId, object: &Object<S>) {
        let entry = self.working.undecodable().get(object.key());
        let is_stored = || self.working.get(object.key()).is_some_and(|stored| stored.is_same_as(object));
        if entry.is_some_and(|entry| entry.is_late) && is_stored() {
            self.working.hold_undecodable(object.key(), source);
        } else {
            self.end_undecodable(object.key(), object.version());
        }
    }

    fn report_stale(
        &mut self,
        source: &SourceId,
        key: &ObjectKey,
        [stored, received]: [&ResourceVersion; 2],
    ) {
        let (key, stored, received) = (key.clone(), stored.clone(), received.clone());
        self.draft.report(source, Incident::StaleVersion { key, stored, received });
    }
}

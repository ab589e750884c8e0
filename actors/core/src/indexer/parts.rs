//! How one part of a watch changes the store: one decision per (stored, told) pair.
//!
//! Answers "is this newer than what is held, and is it the same life?". Invariants:
//! 1. Every part moves its source's version forward, applied or not; but a fetched object does not: it may be
//!    ahead of the watch, which has yet to tell what else happened before it.
//! 2. A part older than what the store holds of that key is reported, never applied; so is a state told again.
//! 3. A new life of a key ends the old one: Deleted (not exact), then Added.
//! 4. A set-aside entry ends with a good version or a deletion that is not older than it. A fetched object counts
//!    only as long as its key is set aside, at no newer version: else the watch knows better.

use super::{Incident, Store};
use crate::delta::{Cause, Change, SetAside, WatchPart};
use crate::meta::{Object, ObjectKey, ResourceVersion, SourceId};
use crate::snapshot::{Aside, Put};

impl<S> Store<S> {
    pub(super) fn apply_part(&mut self, source: &SourceId, part: WatchPart<S>) {
        match part {
            WatchPart::Applied(object) => self.apply_object(source, object),
            WatchPart::Deleted(last) => self.apply_deletion(source, last),
            WatchPart::DeletedUnread(aside) => self.apply_unread_deletion(source, &aside),
            WatchPart::SetAside(aside) => self.apply_set_aside(source, aside),
            WatchPart::Fetched(object) => self.apply_fetched(source, object),
            WatchPart::Bookmark { .. } => {}
        }
    }

    fn apply_object(&mut self, source: &SourceId, object: Object<S>) {
        let is_news = |stored: &Object<S>| object.version() >= stored.version() && !object.is_same_as(stored);
        let stored = match self.working.objects_mut().put(source, &object, is_news) {
            Put::Kept(stored) => return self.refuse(source, &stored, object),
            Put::Replaced(stored) => Some(stored),
            Put::New => None,
        };
        if object.source() != source {
            let (key, of) = (object.key().clone(), source.clone());
            self.draft.report(source, Incident::ForeignSource { key, source: of });
        }
        self.end_set_aside(object.key(), object.version());
        self.index(&object);
        let cause = Cause::Watch;
        let Some(old) = stored else {
            return self.draft.change(Change::Added { object, cause });
        };
        self.draft.discard_stored(&old);
        if old.is_same_life_as(&object) {
            return self.draft.change(Change::Updated { old, object, cause });
        }
        self.draft.change(Change::Deleted { last: old.clone(), old, exact: false, cause });
        self.draft.change(Change::Added { object, cause });
    }

    /// A part that is older than what is stored, or the same. That another source has told as much is no incident: two
    /// that overlap tell everything twice.
    fn refuse(&mut self, source: &SourceId, stored: &Object<S>, object: Object<S>) {
        let is_own = stored.source() == source;
        if object.version() >= stored.version() {
            self.end_set_aside(object.key(), object.version());
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

    fn apply_unread_deletion(&mut self, source: &SourceId, aside: &SetAside) {
        self.draft.report(source, Incident::SetAside(aside.clone()));
        if let Some(old) = self.take_for_deletion(source, &aside.key, &aside.version) {
            self.draft.change(Change::Deleted { last: old.clone(), old, exact: false, cause: Cause::Watch });
        }
    }

    /// The source does not hold this key any more, unless it has told a newer state. Gives the object if no other
    /// source holds it: it is gone.
    fn take_for_deletion(
        &mut self,
        source: &SourceId,
        key: &ObjectKey,
        version: &ResourceVersion,
    ) -> Option<Object<S>> {
        self.end_set_aside(key, version);
        let held = self.working.objects().held(key).filter(|held| held.is_held_by(source));
        let Some(stored) = held.map(|held| held.object().clone()) else {
            self.draft.report(source, Incident::DeletedUnknown(key.clone()));
            return None;
        };
        if version < stored.version() && stored.source() == source {
            self.report_stale(source, key, [stored.version(), version]);
            return None;
        }
        self.release(key, source)
    }

    fn apply_set_aside(&mut self, source: &SourceId, told: SetAside) {
        let stored = self.working.get(&told.key).map(Object::version);
        let known = self.working.set_aside().get(&told.key).map(|aside| &aside.told.version);
        if let Some(newer) = stored.max(known).filter(|newest| told.version <= **newest).cloned() {
            return self.report_stale(source, &told.key, [&newer, &told.version]);
        }
        self.draft.report(source, Incident::SetAside(told.clone()));
        let round = self.working.replaces();
        let entry = Aside { source: source.clone(), round, told };
        self.working.insert_set_aside(entry);
    }

    fn apply_fetched(&mut self, source: &SourceId, object: Object<S>) {
        let wanted = self
            .working
            .set_aside()
            .get(object.key())
            .is_some_and(|aside| aside.source == *source && aside.told.version <= *object.version());
        if wanted { self.apply_object(source, object) } else { self.draft.discard(object) }
    }

    /// A good version or a deletion ends a set-aside entry that is not newer.
    pub(super) fn end_set_aside(&mut self, key: &ObjectKey, version: &ResourceVersion) {
        if self.working.set_aside().get(key).is_some_and(|aside| aside.told.version <= *version) {
            self.working.remove_set_aside(key);
        }
    }

    fn report_stale(&mut self, source: &SourceId, key: &ObjectKey, [stored, told]: [&ResourceVersion; 2]) {
        let (key, stored, told) = (key.clone(), stored.clone(), told.clone());
        self.draft.report(source, Incident::StaleVersion { key, stored, told });
    }
}

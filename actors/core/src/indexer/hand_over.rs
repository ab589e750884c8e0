//! How one source takes over from another. Versions decide, not which source delivers first.
//!
//! Several sources then follow the same objects, and each may be behind. A deletion, or a state that a leaving source
//! passes on, is "told": kept with its version for those that are behind (`snapshot/behind.rs`). Invariants:
//! 1. Where the store has nothing, a state older than told is kept and not added: the object was deleted. It is added
//!    if its source reaches the newest version told without a deletion: the object only left the other source.
//! 2. A deletion older than the stored object and than told deletes nothing: the object was created again. What its
//!    source holds is lent to it.
//! 3. An object of the leaving source is lent to a successor that is behind it, until that reaches the version told
//!    without the object.
//! 4. A rewind ends what was told before. The first source that notices it outdates the others until they list: what
//!    they brought above its version passes to nobody, replaces nothing that others hold, and gives way to any part
//!    that is not outdated.
//!
//! ```text
//!   told as deleted by one ──▶ kept for the others that may follow the key ──their own deletion, or `until`──▶ forgotten
//!   removed, newer than its successor ──▶ held by the successor, kept for it ──brought, or released at `until`──▶ settled
//! ```

use super::replacing::{Replacing, Walk};
use super::successors::Successors;
use super::{Store, Waiting};
use crate::delta::Cause;
use crate::meta::{Object, ObjectKey, ResourceVersion, SourceId};

pub(super) enum Deletes {
    News,
    /// As `News`, but told by another source before.
    Told,
    /// Older than what was told.
    Old,
}

impl<S> Store<S> {
    /// Sets the sources that take over from each other at present, by the keys that each may bring. What one
    /// of them tells as deleted is kept for the others.
    pub fn hand_over_among(&mut self, successors: Vec<Successors>) {
        self.successors = successors;
    }

    /// Returns the object if it is to be applied. `listed` is the version of its list.
    pub(super) fn unless_old_news(
        &mut self,
        source: &SourceId,
        object: Object<S>,
        listed: Option<&ResourceVersion>,
    ) -> Option<Object<S>> {
        if self.working.behind().is_empty() {
            return Some(object);
        }
        let key = object.key();
        let Some(told) = self.working.told(source, key).cloned() else { return Some(object) };
        if self.working.is_outdated(source) {
            self.draft.discard(object);
            return None;
        }
        if *listed.unwrap_or_else(|| object.version()) >= told {
            self.working.confirm(source, key);
            return Some(object);
        }
        let is_stored = self.working.objects().held(key).is_some();
        let Some(behind) = self.working.behind_mut(source) else { return Some(object) };
        if is_stored {
            behind.own(key);
            return Some(object);
        }
        behind.bring(object);
        None
    }

    /// The source holds the last state that decoded.
    pub(super) fn hold_unread(&mut self, source: &SourceId, key: &ObjectKey, version: &ResourceVersion) {
        self.hold(source, key);
        let is_outdated = self.working.is_outdated(source);
        if self.working.told(source, key).is_some_and(|told| told <= version && !is_outdated) {
            self.working.confirm(source, key);
        } else if let Some(behind) = self.working.behind_mut(source) {
            behind.own(key);
        }
    }

    fn hold(&mut self, source: &SourceId, key: &ObjectKey) {
        if let Some(stored) = self.working.get(key).cloned() {
            self.working.objects_mut().put(source, &stored, |_| false);
        }
        self.working.hold_undecodable(key, source);
    }

    fn newest_of(&self, key: &ObjectKey) -> Option<&ResourceVersion> {
        let entry = self.working.undecodable().get(key).map(|entry| &entry.object.version);
        self.working.get(key).map(Object::version).max(entry)
    }

    /// Whether only outdated sources hold the stored object, and `own`, which was outdated. Its source may have left
    /// and come back under its name.
    pub(super) fn is_former(&self, key: &ObjectKey, own: Option<&SourceId>) -> bool {
        let is_outdated = |holder: &SourceId| own == Some(holder) || self.working.is_outdated(holder);
        (own.is_some() || self.working.has_outdated())
            && self.working.objects().held(key).is_some_and(|held| held.holders().iter().all(is_outdated))
    }

    fn follows(&self, source: &SourceId, key: &ObjectKey) -> bool {
        self.working.objects().held(key).is_some_and(|held| held.is_held_by(source))
            || self.working.undecodable().get(key).is_some_and(|entry| entry.is_held_by(source))
    }

    pub(super) fn weigh_deletion(
        &mut self,
        source: &SourceId,
        key: &ObjectKey,
        version: &ResourceVersion,
    ) -> Deletes {
        let Some(told) = self.working.told(source, key) else { return Deletes::News };
        if self.working.is_outdated(source) {
            return Deletes::Old;
        }
        if version >= told {
            self.working.confirm(source, key);
            return Deletes::Told;
        }
        if self.lends(source, key, version) { Deletes::Old } else { Deletes::Told }
    }

    /// Whether it is old news that the source had no such object at this version. Lends it a newer stored state;
    /// drops what it brought.
    pub(super) fn lends(&mut self, source: &SourceId, key: &ObjectKey, version: &ResourceVersion) -> bool {
        if self.working.told(source, key).is_none_or(|told| told <= version) {
            return false;
        }
        let newest = self.newest_of(key);
        let (is_newer, is_stored) = (newest.is_none_or(|newest| newest > version), newest.is_some());
        if let Some(behind) = self.working.behind_mut(source) {
            behind.brought.remove(key);
            if is_newer && is_stored {
                behind.lend(key);
            }
        }
        is_newer
    }

    /// Its newest version does not count: under `PerKey`, older parts of a key may come after newer parts of other
    /// keys.
    fn is_behind(&self, source: &SourceId, version: &ResourceVersion) -> bool {
        let reached = self.working.version(source).filter(|_| !self.working.is_outdated(source));
        reached.is_none_or(|reached| reached < version)
    }

    pub(super) fn tell_deleted(&mut self, source: &SourceId, key: &ObjectKey, version: &ResourceVersion) {
        if self.successors.is_empty() || self.working.is_outdated(source) {
            return;
        }
        let successors = std::mem::take(&mut self.successors);
        // Only versions of sources that hand over among themselves compare: others may be of another server.
        let among = successors.iter().filter(|among| among.has(source)).flat_map(|among| among.of(key));
        for other in among.filter(|other| other.source != *source) {
            if self.is_behind(&other.source, version) {
                self.working.tell(&other.source, other.round, key, version);
            }
        }
        self.successors = successors;
    }

    /// Passes the key to the successors that hold it too, and lends it to those that are behind.
    pub(super) fn pass_on(&mut self, key: &ObjectKey, from: &SourceId, successors: &Successors) {
        if self.working.is_outdated(from) {
            return;
        }
        let Some(newest) = self.newest_of(key).cloned() else { return };
        for heir in successors.of(key).filter(|heir| heir.source != *from) {
            if self.working.version(&heir.source).is_none() {
                continue;
            }
            let (is_newer, follows) =
                (self.is_behind(&heir.source, &newest), self.follows(&heir.source, key));
            if is_newer {
                self.working.tell(&heir.source, heir.round, key, &newest);
            }
            if is_newer || follows {
                self.hold(&heir.source, key);
            }
            if let Some(behind) = self.working.behind_mut(&heir.source).filter(|_| is_newer && !follows) {
                behind.lend(key);
            }
        }
    }

    pub(super) fn settle_if_reached(&mut self, source: &SourceId) {
        let Some(behind) = self.working.behind().get(source) else { return };
        if !self.is_behind(source, &behind.until) {
            self.settle(source.clone());
        }
    }

    pub(super) fn note_behind(&mut self, source: SourceId) {
        if !self.working.behind().is_empty() && self.brought.last() != Some(&source) {
            self.brought.push(source);
        }
    }

    pub(super) fn settle_noted(&mut self) {
        let mut brought = std::mem::take(&mut self.brought);
        brought.drain(..).for_each(|source| self.settle_if_reached(&source));
        self.brought = brought;
    }

    fn settle(&mut self, source: SourceId) {
        let is_same = |waiting: &Waiting<S>| matches!(waiting, Waiting::Settle(of) if *of == source);
        if !self.waiting.iter().any(is_same) {
            self.waiting.push_front(Waiting::Settle(source));
        }
    }

    /// A list begins: what the source brought ends. So does what was told to it, in a rewind that no other source can
    /// have noticed before.
    pub(super) fn begin_told(&mut self, source: &SourceId, cause: Cause) {
        let has_listed = self.working.version(source).is_some();
        if cause == Cause::Rewind && has_listed && !self.working.is_outdated(source) {
            self.working.forget_behind(source);
        } else {
            self.working.drop_brought(source);
        }
    }

    /// Outdates the sources that have not noticed this rewind. If one may have told something, all that was told
    /// ends. Never returns true.
    pub(super) fn outdate_others(&mut self, replacing: &mut Replacing<S>, left: &mut usize) -> bool {
        while *left > 0 {
            let Walk::Outdate(group, passed) = &replacing.walk else { return false };
            let (group, passed) = (*group, passed.as_ref());
            *left -= 1;
            let (Some(among), Some(to)) = (self.successors.get(group), replacing.version()) else {
                replacing.walk = Walk::Store;
                return false;
            };
            let Some(other) = among.others(replacing.source(), passed).next().cloned() else {
                replacing.walk = Walk::Outdate(group + 1, None);
                continue;
            };
            let is_former = among.is_former(&other, replacing.source());
            let is_former = is_former.unwrap_or_else(|| self.working.newest(&other) > Some(to));
            let is_former = is_former || among.went_back(&other);
            let is_news = !self.working.is_outdated(&other);
            if is_news && is_former && !replacing.ends_told {
                // Starts again: what was told to sources already passed ends too.
                replacing.ends_told = true;
                replacing.walk = Walk::Outdate(0, None);
                self.working.forget_behind(replacing.source());
                continue;
            }
            if is_news && is_former {
                self.working.outdate(&other);
                self.working.forget_behind(&other);
            } else if is_news && replacing.ends_told && !self.settle_told(&other, left) {
                return false;
            }
            replacing.walk = Walk::Outdate(group, Some(other));
        }
        false
    }

    /// Whether the stored state, brought by `by`, is of the present history when `source` lists after a rewind: a
    /// source that has noticed the rewind holds or has told it.
    pub(super) fn is_present(
        &self,
        source: &SourceId,
        key: &ObjectKey,
        (by, stored): (&SourceId, &ResourceVersion),
    ) -> bool {
        let is_with = || self.successors.iter().any(|among| among.has(source) && among.has(by));
        let is_told = self.working.told(source, key).is_some_and(|told| stored <= told);
        by != source && (is_told || (!self.working.is_outdated(by) && self.follows(by, key) && is_with()))
    }

    /// True when no key told remains.
    pub(super) fn settle_told(&mut self, source: &SourceId, left: &mut usize) -> bool {
        while *left > 0 {
            let Some(behind) = self.working.behind().get(source) else { return true };
            let Some((key, told)) = behind.told.entries_after(None).next() else {
                self.working.forget_behind(source);
                return true;
            };
            let (key, told) = (key.clone(), told.clone());
            let brought = behind.brought.get(&key).cloned();
            let is_reached = self.working.version(source).is_some_and(|reached| *reached >= told.version);
            self.working.confirm(source, &key);
            *left -= 1;
            if let Some(object) = brought {
                if self.working.get(&key).is_none() {
                    self.index(&object);
                }
                self.working.objects_mut().put(source, &object, |_| false);
                self.end_unless_stored(source, &object);
            } else if is_reached && told.is_lent {
                self.end_lent(source, &key, &told.version);
            }
        }
        false
    }

    fn end_lent(&mut self, source: &SourceId, key: &ObjectKey, version: &ResourceVersion) {
        self.release(key, source);
        self.tell_deleted(source, key, version);
        self.working.release_undecodable(key, source);
    }
}

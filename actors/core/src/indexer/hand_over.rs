//! How one source takes over from another: by versions, and not by which of them tells first.
//!
//! Answers "is this part of a source older than what another source has told?". The source that goes and the one that
//! comes follow the same objects for a while, and either may be behind the other. What one of them has told as deleted,
//! and what passes from the one that goes, is kept for the other with its version (`snapshot/behind.rs`) until that has brought it.
//! Invariants:
//! 1. A state older than what was told of its key is not added where the store has nothing: the object was deleted. It is
//!    kept, and added if the source reaches the newest version told without a deletion: then it only left the other source.
//! 2. A deletion that is older than both the stored object and what was told of it deletes nothing: the object was made
//!    again since. What its source holds is lent to it then.
//! 3. An object of the source that goes, newer than all that its successor has brought, is lent to it. What is lent ends
//!    when its source has reached the version told without bringing it: then it does not follow it.
//! 4. A rewind ends what was told before it. It is told as one by the first source that notices it; what the others had
//!    brought above that version when it asked for its list is outdated until they list: it passes to nobody, replaces
//!    nothing that others hold, and any part of one that is not outdated replaces what outdated ones alone hold, as another
//!    state. What is told since is kept for the outdated, whatever version they have reached, until they have listed.
//!
//! Cost: nothing while nothing is handed over. What is kept ends with the successor's own parts, at the latest when it has
//! reached the newest version told; before its first list, each request for that list begins anew.
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

/// What a deletion means for the store.
pub(super) enum Deletes {
    /// It is the newest news of its key.
    News,
    /// As `News`; another source has told it before.
    Told,
    /// It is older than what was told.
    Old,
}

impl<S> Store<S> {
    /// The sources that take over from each other at present: of each key those that may bring it. What one of them tells
    /// as deleted is kept for the others.
    pub fn hand_over_among(&mut self, successors: Vec<Successors>) {
        self.successors = successors;
    }

    /// Gives the object back if it is to be applied. It is not if another source has told a newer state of its key, and
    /// the store has none. `listed` is the version of the list that it is in.
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

    /// A source has brought a state of this key that does not decode, in a part or a list of this version: it holds what
    /// there is of the key, the last state that decoded.
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

    /// The newest version of this key, whether it decodes or not.
    fn newest_of(&self, key: &ObjectKey) -> Option<&ResourceVersion> {
        let entry = self.working.undecodable().get(key).map(|entry| &entry.object.version);
        self.working.get(key).map(Object::version).max(entry)
    }

    /// Whether the store has an object of this key, of a former history: none but outdated sources hold it, and `own`, which
    /// was so. Who brought it says nothing: it may have left, and have come back under its name.
    pub(super) fn is_former(&self, key: &ObjectKey, own: Option<&SourceId>) -> bool {
        let is_outdated = |holder: &SourceId| own == Some(holder) || self.working.is_outdated(holder);
        (own.is_some() || self.working.has_outdated())
            && self.working.objects().held(key).is_some_and(|held| held.holders().iter().all(is_outdated))
    }

    fn follows(&self, source: &SourceId, key: &ObjectKey) -> bool {
        self.working.objects().held(key).is_some_and(|held| held.is_held_by(source))
            || self.working.undecodable().get(key).is_some_and(|entry| entry.is_held_by(source))
    }

    /// What a deletion by this source means.
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

    /// Whether it is old news that this source had no such object at this version: what was told of it is newer, and so is
    /// what is stored, if anything is. Then what the source holds is lent to it. What it brought before counts no more.
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

    /// Whether a source has yet to bring what has happened up to this version.
    fn is_behind(&self, source: &SourceId, version: &ResourceVersion) -> bool {
        let reached = self.working.version(source).filter(|_| !self.working.is_outdated(source));
        reached.is_none_or(|reached| reached < version)
    }

    /// A source has told this key as deleted at this version: it is kept for those that have yet to bring that.
    pub(super) fn tell_deleted(&mut self, source: &SourceId, key: &ObjectKey, version: &ResourceVersion) {
        if self.successors.is_empty() || self.working.is_outdated(source) {
            return;
        }
        let successors = std::mem::take(&mut self.successors);
        // The versions of a source that takes no part are of another server.
        let among = successors.iter().filter(|among| among.has(source)).flat_map(|among| among.of(key));
        for other in among.filter(|other| other.source != *source) {
            // With parts in the order of their keys, older ones of this key may still come after newer ones of others.
            if self.is_behind(&other.source, version) {
                self.working.tell(&other.source, other.round, key, version);
            }
        }
        self.successors = successors;
    }

    /// Before a source lets go of a key: what there is of it passes to the successors that hold it as well, and is lent to
    /// those that have yet to bring it. With parts in the order of their keys, older ones of this key may still come after
    /// newer ones of others.
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

    /// Settles what is left for a source that has reached the newest version told.
    pub(super) fn settle_if_reached(&mut self, source: &SourceId) {
        let Some(behind) = self.working.behind().get(source) else { return };
        if !self.is_behind(source, &behind.until) {
            self.settle(source.clone());
        }
    }

    /// Remembers that a source has brought something, if it has yet to bring what others told.
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

    /// A list of this source begins: what it brought before counts no more. If it notices a rewind by itself, nothing that was
    /// told to it does. Before its first list others may have noticed that, and have told it since.
    pub(super) fn begin_told(&mut self, source: &SourceId, cause: Cause) {
        let has_listed = self.working.version(source).is_some();
        if cause == Cause::Rewind && has_listed && !self.working.is_outdated(source) {
            self.working.forget_behind(source);
        } else {
            self.working.drop_brought(source);
        }
    }

    /// The server of this source went back: notes which others have yet to notice it, and ends what was told to any before, if
    /// one that has not noticed may have told it. Visits at most `left` of both. Never true.
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
                // What those were told that were passed ends, too.
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

    /// Whether what is stored of this key, in this version and brought by this source, is of the present history, when another
    /// one lists after a rewind: one that has noticed it holds it, has passed it on, or has told it as deleted since. What is
    /// newer than it was told is held by one that has noticed, or is of the former history.
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

    /// Settles at most `left` of the keys that were told; true when it is over.
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
                self.end_undecodable(&key, object.version());
            } else if is_reached && told.is_lent {
                self.end_lent(source, &key, &told.version);
            }
        }
        false
    }

    /// The source has reached this version without what was lent to it: it does not follow it.
    fn end_lent(&mut self, source: &SourceId, key: &ObjectKey, version: &ResourceVersion) {
        self.release(key, source);
        self.tell_deleted(source, key, version);
        self.working.release_undecodable(key, source);
    }
}

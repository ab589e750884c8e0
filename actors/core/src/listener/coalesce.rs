//! How the waiting events of one key merge with the next event. Invariants:
//! 1. The waiting events lead from the state delivered last to the newest. Of lives in between, only the last one
//!    that was created and deleted is delivered.
//! 2. Their order: `Deleted` of the life delivered last, `Added` and `Deleted` of a brief life, `Added` of the
//!    present life; or one `Updated`.
//! 3. A return to the state delivered last is nothing, unless a list lies between: it may hide a rewind, after which
//!    equal versions prove nothing. Then it is delivered with cause `Rewind`.
//! 4. An `Added` keeps its first cause. Otherwise the last one counts, but `Rewind` stays: it explains why versions
//!    repeat.

use crate::delta::{Cause, Change};
use crate::meta::{Object, ObjectKey};

#[derive(Debug)]
pub(super) struct KeyEvents<S> {
    deleted: Option<Change<S>>,
    pub(super) brief: Option<Box<Brief<S>>>,
    now: Option<Change<S>>,
}

#[derive(Debug)]
pub(super) struct Brief<S> {
    /// Of its end.
    pub(super) arrival: u64,
    /// Of its beginning.
    pub(super) cause: Cause,
    /// Its end; the state before it is delivered as added.
    pub(super) deleted: Change<S>,
}

impl<S> Brief<S> {
    pub(super) fn into_changes(self) -> Vec<Change<S>> {
        let added = match &self.deleted {
            Change::Deleted { old, .. } => Some(Change::Added { object: old.clone(), cause: self.cause }),
            _ => None,
        };
        added.into_iter().chain([self.deleted]).collect()
    }

    fn is_life_of(&self, object: &Object<S>) -> bool {
        matches!(&self.deleted, Change::Deleted { old, .. } if old.is_same_life_as(object))
    }
}

impl<S> KeyEvents<S> {
    pub(super) const fn nothing() -> Self {
        Self { deleted: None, brief: None, now: None }
    }

    pub(super) fn len(&self) -> usize {
        let brief = if self.brief.is_some() { 2 } else { 0 };
        usize::from(self.deleted.is_some()) + brief + usize::from(self.now.is_some())
    }

    pub(super) fn key(&self) -> Option<&ObjectKey> {
        let brief = self.brief.as_ref().map(|brief| &brief.deleted);
        self.now.as_ref().or(self.deleted.as_ref()).or(brief).map(Change::key)
    }

    pub(super) fn into_changes(self) -> impl Iterator<Item = Change<S>> {
        let brief = self.brief.map(|brief| brief.into_changes()).unwrap_or_default();
        self.deleted.into_iter().chain(brief).chain(self.now)
    }

    /// False if the event could not follow; what waits leads to the newest state all the same.
    pub(super) fn merge(&mut self, next: Change<S>, arrival: u64) -> bool {
        match next {
            Change::Added { object, cause } => self.add(object, cause),
            // The waiting event carries the object.
            Change::Updated { cause: Cause::Resync, .. } if self.len() > 0 => true,
            Change::Updated { old, object, cause } => self.update(old, object, cause),
            Change::Deleted { .. } => self.delete(next, arrival),
        }
    }

    fn add(&mut self, object: Object<S>, cause: Cause) -> bool {
        if self.brief.as_ref().is_some_and(|brief| brief.is_life_of(&object)) {
            self.brief = None;
        }
        let (now, is_possible) = match (self.now.take(), self.deleted.take()) {
            (None, Some(Change::Deleted { old, cause: first, .. }))
                if self.brief.is_none() && old.is_same_life_as(&object) =>
            {
                let is_listed = first != Cause::Watch || cause != Cause::Watch;
                let is_hidden_rewind = is_listed && old.is_same_as(&object);
                let cause = if is_hidden_rewind { Cause::Rewind } else { standing(first, cause) };
                (updated(old, object, cause), true)
            }
            (Some(Change::Updated { old, .. }), deleted) => {
                self.deleted = deleted;
                (updated(old, object, cause), false)
            }
            (now, deleted) => {
                self.deleted = deleted;
                (Some(Change::Added { object, cause }), now.is_none())
            }
        };
        self.now = now;
        is_possible
    }

    fn update(&mut self, old: Object<S>, object: Object<S>, cause: Cause) -> bool {
        let is_first = self.len() == 0;
        let (now, is_possible) = match self.now.take() {
            Some(Change::Added { cause, .. }) => (Some(Change::Added { object, cause }), true),
            Some(Change::Updated { old, cause: first, .. }) => {
                (updated(old, object, standing(first, cause)), true)
            }
            _ if is_first => (Some(Change::Updated { old, object, cause }), true),
            _ => (Some(Change::Added { object, cause }), false),
        };
        self.now = now;
        is_possible
    }

    fn delete(&mut self, deleted: Change<S>, arrival: u64) -> bool {
        match (self.now.take(), deleted) {
            (Some(Change::Added { cause, .. }), deleted) => {
                self.brief = Some(Box::new(Brief { arrival, cause, deleted }));
            }
            (Some(Change::Updated { old, cause: first, .. }), Change::Deleted { last, exact, cause, .. }) => {
                self.deleted = Some(Change::Deleted { old, last, exact, cause: standing(first, cause) });
            }
            (_, deleted) if self.len() == 0 => self.deleted = Some(deleted),
            _ => return false,
        }
        true
    }
}

fn updated<S>(old: Object<S>, object: Object<S>, cause: Cause) -> Option<Change<S>> {
    let is_same = old.is_same_as(&object) && cause != Cause::Rewind;
    (!is_same).then_some(Change::Updated { old, object, cause })
}

pub(super) fn standing(first: Cause, next: Cause) -> Cause {
    if first == Cause::Rewind { first } else { next }
}

#[cfg(test)]
mod tests;

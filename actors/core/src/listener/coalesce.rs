//! What the events of one key come to while its subscriber has not been told: the table.
//!
//! Answers "the recipient has not heard of this, and now that happened: what is it owed?" and nothing about order or
//! other keys. Invariants:
//! 1. What is owed leads from the state that the recipient was told last to the newest one; what lies between is
//!    lost on purpose, except that a life which came and went is told: the last one of them.
//! 2. At most four events, in this order: the `Deleted` of the life told last, the `Added` and the `Deleted` of a
//!    brief life, and the `Added` of the life that is there now; or one `Updated`.
//! 3. A way back to the very state told last is nothing, unless a list lies between: a list may hide a rewind, after
//!    which equal versions prove nothing, so then it is told with cause `Rewind`.
//!
//! Which cause stands: an `Added` keeps its first one; else the last one counts, except that `Rewind` stays, since it
//! is the reason why versions may repeat. Read next: `pending.rs`.

use crate::delta::{Cause, Change};
use crate::meta::{Object, ObjectKey};

/// What one key is owed, in the order of telling.
#[derive(Debug)]
pub(super) struct Owed<S> {
    /// The end of the life told last.
    deleted: Option<Change<S>>,
    /// The last life that came and went meanwhile.
    pub(super) brief: Option<Box<Brief<S>>>,
    /// What is there now: `Added`, or `Updated` if nothing else is owed.
    now: Option<Change<S>>,
}

/// A life that came and went before it was told: an `Added` and a `Deleted`.
#[derive(Debug)]
pub(super) struct Brief<S> {
    /// When it went, by the number of the arrival.
    pub(super) arrival: u64,
    /// Why it came.
    pub(super) cause: Cause,
    /// Its end; the state before it is told as added.
    pub(super) deleted: Change<S>,
}

impl<S> Brief<S> {
    /// Its two events.
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

impl<S> Owed<S> {
    /// Nothing is owed.
    pub(super) const fn nothing() -> Self {
        Self { deleted: None, brief: None, now: None }
    }

    /// How many events.
    pub(super) fn len(&self) -> usize {
        let brief = if self.brief.is_some() { 2 } else { 0 };
        usize::from(self.deleted.is_some()) + brief + usize::from(self.now.is_some())
    }

    /// The key that it is about; `None` if nothing is owed.
    pub(super) fn key(&self) -> Option<&ObjectKey> {
        let brief = self.brief.as_ref().map(|brief| &brief.deleted);
        self.now.as_ref().or(self.deleted.as_ref()).or(brief).map(Change::key)
    }

    /// The events, in order.
    pub(super) fn into_changes(self) -> impl Iterator<Item = Change<S>> {
        let brief = self.brief.map(|brief| brief.into_changes()).unwrap_or_default();
        self.deleted.into_iter().chain(brief).chain(self.now)
    }

    /// Adds what happened next, as the event of this arrival; false if it could not follow. What is owed leads to the
    /// newest state all the same.
    pub(super) fn merge(&mut self, next: Change<S>, arrival: u64) -> bool {
        match next {
            Change::Added { object, cause } => self.add(object, cause),
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
                let is_hidden_rewind = cause != Cause::Watch && old.is_same_as(&object);
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

/// From the state told last to the newest of the same life: nothing, if they are the same.
fn updated<S>(old: Object<S>, object: Object<S>, cause: Cause) -> Option<Change<S>> {
    let is_same = old.is_same_as(&object) && cause != Cause::Rewind;
    (!is_same).then_some(Change::Updated { old, object, cause })
}

/// The cause of two events that became one.
fn standing(first: Cause, next: Cause) -> Cause {
    if first == Cause::Rewind { first } else { next }
}

#[cfg(test)]
mod tests;
